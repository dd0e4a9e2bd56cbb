package mirror

import (
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/wire"
)

// The headers of streamable HTTP, in canonical form.
const (
	MethodHeader      = "Mcp-Method"
	NameHeader        = "Mcp-Name"
	ParamPrefix       = "Mcp-Param-"
	VersionHeader     = "Mcp-Protocol-Version"
	SessionHeader     = "Mcp-Session-Id"
	LastEventIDHeader = "Last-Event-Id"
)

// CodeMismatch is the JSON-RPC code for headers that contradict the body, or
// are missing; it goes with HTTP 400.
const CodeMismatch = -32020

// Stateless is the first protocol version without sessions. From it on the
// headers of this package are required.
const Stateless = "2026-07-28"

const metaVersion = "io.modelcontextprotocol/protocolVersion"

// Applies says whether messages of the protocol version carry the headers. It
// is false for what is no version.
func Applies(version string) bool { return IsVersion(version) && version >= Stateless }

// IsVersion says whether a text is a protocol version: a date.
func IsVersion(v string) bool {
	if len(v) != len(Stateless) {
		return false
	}
	for i := range len(v) {
		if dash := i == 4 || i == 7; dash != (v[i] == '-') || !dash && (v[i] < '0' || v[i] > '9') {
			return false
		}
	}
	return true
}

// Version is the protocol version that a message itself names, empty when it
// names none.
func Version(m *wire.Message) string {
	raw, _ := wire.Get(m.Params, "_meta", metaVersion)
	v, _ := wire.Unquote(raw)
	return v
}

// named are the members of params that Mcp-Name repeats.
var named = map[string]string{abi.ToolsCall: "name", abi.PromptsGet: "name", abi.ResourcesRead: "uri"}

// name is what Mcp-Name has to say of a message.
func name(m *wire.Message) (string, bool) {
	member, ok := named[m.Method]
	if !ok {
		return "", false
	}
	raw, _ := wire.Get(m.Params, member)
	return wire.Unquote(raw)
}

// Set writes the headers of a request or notification, and takes away what of
// them does not belong to it. Without tools Mcp-Param-* headers are left as they
// are.
func Set(h http.Header, m *wire.Message, tools *Tools) {
	h.Set(MethodHeader, Encode(m.Method))
	h.Del(NameHeader)
	called, ok := name(m)
	if ok {
		h.Set(NameHeader, Encode(called))
	}
	if tools == nil {
		return
	}
	for key := range h {
		if strings.HasPrefix(key, ParamPrefix) {
			delete(h, key)
		}
	}
	if m.Method == abi.ToolsCall && ok {
		tools.set(h, called, m.Params)
	}
}

// Check compares Mcp-Method and Mcp-Name with a request or notification. It
// gives what is wrong, in words that hold nothing of either, or nothing.
func Check(h http.Header, m *wire.Message) (problem string) {
	if problem = same(h, MethodHeader, m.Method); problem != "" {
		return problem
	}
	if called, ok := name(m); ok {
		return same(h, NameHeader, called)
	}
	return ""
}

func same(h http.Header, header, want string) string {
	values := h.Values(header)
	switch {
	case len(values) == 0:
		return "the header " + header + " is missing"
	case len(values) > 1:
		return "the header " + header + " is there twice"
	case values[0] == want:
		return ""
	}
	if got, ok := Decode(values[0]); !ok || got != want {
		return "the header " + header + " does not match the body"
	}
	return ""
}

const (
	encodedPrefix = "=?base64?"
	encodedSuffix = "?="
)

// Encode gives a value the form that fits into a header: as it is, or in base64
// where it would not arrive as it is: controls, white space at an end, nothing
// at all, and what looks like base64 in this form already.
func Encode(value string) string {
	if plain(value) {
		return value
	}
	return encodedPrefix + base64.StdEncoding.EncodeToString([]byte(value)) + encodedSuffix
}

// Text beyond ASCII stays as it is: go-sdk v1.8.0 does not decode Mcp-Name.
func plain(value string) bool {
	if value == "" || value[0] == ' ' || value[len(value)-1] == ' ' || strings.HasPrefix(value, encodedPrefix) {
		return false
	}
	for i := range len(value) {
		if value[i] < ' ' || value[i] == 0x7f {
			return false
		}
	}
	return true
}

// Decode gives the value that a header stands for. It is false where the form is
// that of base64 and the content is not.
func Decode(header string) (string, bool) {
	inner, ok := strings.CutPrefix(header, encodedPrefix)
	if !ok {
		return header, true
	}
	inner, ok = strings.CutSuffix(inner, encodedSuffix)
	if !ok {
		return "", false
	}
	value, err := base64.StdEncoding.DecodeString(inner)
	return string(value), err == nil
}
