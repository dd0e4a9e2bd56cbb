// Package tracecontext reads and writes the traceparent of W3C Trace Context, which names
// the trace that an operation belongs to. It comes as an HTTP header or as the
// member traceparent of a message's _meta; both are a stranger's words, so the
// reader is strict and whoever calls it ignores what it refuses.
//
// It knows text only: neither HTTP nor JSON nor MCP, and nothing of ours.
//
// # Use
//
//	if parent, ok := tracecontext.Parse(header.Get(tracecontext.Name)); ok {
//		context.TraceID, context.SpanID = parent.TraceID, parent.SpanID
//	}
package tracecontext

// Name is what the header, and the member of _meta, is called.
const Name = "traceparent"

// Parent is what a traceparent names.
type Parent struct {
	TraceID string // 32 lower-case hexadecimal digits, not all zero
	SpanID  string // 16 lower-case hexadecimal digits, not all zero
	Sampled bool   // whether the caller may have recorded the trace
}

// String writes the traceparent of version 00. It is one that [Parse] reads where
// the ids are as they should be; nothing checks them here.
func (p Parent) String() string {
	flags := "00"
	if p.Sampled {
		flags = "01"
	}
	return "00-" + p.TraceID + "-" + p.SpanID + "-" + flags
}

// The layout of version 00: version, trace id, parent id and flags, each with a
// dash in front but the first.
const (
	versionEnd = 2
	traceEnd   = versionEnd + 1 + 32
	spanEnd    = traceEnd + 1 + 16
	length     = spanEnd + 1 + 2
)

// maxLength bounds what a later version may append, in bytes.
const maxLength = 256

// Parse reads a traceparent. It is false for what the specification tells a
// receiver to ignore: another layout, capitals, ids that are all zero, version
// ff, and anything behind a version 00. Of a version above 00 it reads what
// version 00 has, as the specification demands, if a dash follows or nothing.
func Parse(s string) (Parent, bool) {
	if len(s) < length || len(s) > maxLength ||
		s[versionEnd] != '-' || s[traceEnd] != '-' || s[spanEnd] != '-' {
		return Parent{}, false
	}
	version, trace, span, flags := s[:versionEnd], s[versionEnd+1:traceEnd], s[traceEnd+1:spanEnd], s[spanEnd+1:length]
	if !isHex(version) || !isHex(flags) || !isID(trace) || !isID(span) || version == "ff" {
		return Parent{}, false
	}
	if len(s) > length && (version == "00" || s[length] != '-') {
		return Parent{}, false
	}
	return Parent{TraceID: trace, SpanID: span, Sampled: digit(flags[1])&1 == 1}, true
}

func isHex(s string) bool {
	for i := range len(s) {
		if digit(s[i]) > 15 {
			return false
		}
	}
	return true
}

// isID says that s is hexadecimal and not all zero.
func isID(s string) bool {
	zero := true
	for i := range len(s) {
		d := digit(s[i])
		if d > 15 {
			return false
		}
		zero = zero && d == 0
	}
	return !zero
}

// digit is the value of a lower-case hexadecimal digit, and above 15 for any
// other byte.
func digit(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	}
	return 0xff
}
