package proxy

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/mirror"
	"github.com/weir-mcp/weir/internal/wire"
)

// This file is about the headers of 2026-07-28 that mirror a message, for those
// who route by them without reading the body. Whatever they say, the body counts;
// so they must say the same, before a mutation and after it.

const (
	methodInitialize = "initialize"
	methodListen     = "subscriptions/listen"
	memberArguments  = "arguments"

	codeInternal = abi.CodeInternal
)

// The texts name headers, never values.
const (
	textMethod  = "header mismatch: Mcp-Method is not the method of the message"
	textName    = "header mismatch: Mcp-Name is not the name in the message"
	textVersion = "header mismatch: Mcp-Protocol-Version is not the version in the message"
	textParam   = "header mismatch: an Mcp-Param header is no argument of the message"
	textFollow  = "a header that mirrors the message cannot follow what an interceptor has changed"
)

// nameMember is the member of params that Mcp-Name mirrors, or empty where none
// is laid down.
func nameMember(method string) string {
	switch method {
	case abi.ToolsCall, abi.PromptsGet:
		return "name"
	case abi.ResourcesRead:
		return "uri"
	default:
		return ""
	}
}

// contradiction says in what the headers of a message contradict it, or nothing.
// A header that is missing is for the backend to ask for.
func contradiction(h http.Header, m *wire.Message) string {
	if m.Kind != wire.Request && m.Kind != wire.Notification {
		return ""
	}
	if v := h.Get(mirror.MethodHeader); v != "" && v != m.Method {
		return textMethod
	}
	if v, in := h.Get(mirror.VersionHeader), mirror.Version(m); v != "" && in != "" && v != in {
		return textVersion
	}
	if v := h.Get(mirror.NameHeader); v != "" {
		if member := nameMember(m.Method); member != "" {
			raw, _ := wire.Get(m.Params, member)
			in, ok := wire.Unquote(raw)
			if !ok || !mirrors(v, in) {
				return textName
			}
		}
	}
	if m.Method != abi.ToolsCall {
		return ""
	}
	for name, values := range h {
		if strings.HasPrefix(name, mirror.ParamPrefix) {
			if len(values) != 1 || len(places(arguments(m.Params), name, values[0])) == 0 {
				return textParam
			}
		}
	}
	return ""
}

// follow makes the headers mirror the params that an interceptor has put in place
// of those of m. It says what is in the way when that cannot be told.
func follow(h http.Header, m *wire.Message, params []byte) string {
	if v := h.Get(mirror.NameHeader); v != "" {
		member := nameMember(m.Method)
		if member == "" {
			member = memberWith(m.Params, v)
		}
		if member != "" {
			raw, _ := wire.Get(params, member)
			now, ok := wire.Unquote(raw)
			if !ok {
				return textFollow
			}
			h.Set(mirror.NameHeader, mirror.Encode(now))
		}
	}
	if m.Method != abi.ToolsCall {
		return ""
	}
	before, after := arguments(m.Params), arguments(params)
	for name, values := range h {
		if !strings.HasPrefix(name, mirror.ParamPrefix) {
			continue
		}
		now, ok := common(places(before, name, values[0]), after)
		switch {
		case !ok:
			return textFollow
		case now == nil:
			delete(h, name)
		default:
			h[name] = []string{mirror.Encode(*now)}
		}
	}
	return ""
}

// memberWith is the member of params whose text the header mirrors, if it is one.
func memberWith(params []byte, header string) (member string) {
	n := 0
	_ = wire.Members(params, func(name string, _, value []byte) bool {
		if in, ok := wire.Unquote(value); ok && mirrors(header, in) {
			member = name
			n++
		}
		return true
	})
	if n != 1 {
		return ""
	}
	return member
}

func arguments(params []byte) []byte {
	if params == nil {
		return nil
	}
	raw, _ := wire.Get(params, memberArguments)
	return raw
}

// mirrors says that a header stands for a text.
func mirrors(header, text string) bool {
	if header == text {
		return true
	}
	decoded, ok := mirror.Decode(header)
	return ok && decoded == text
}

// place is the way to an argument that a header may mirror.
type place []string

// places are the arguments at any depth of objects that a header may mirror: those
// with its value. Which one it is, the tool's schema says, which is not known
// here; where one of them has the header's own name, it is that one.
func places(arguments []byte, header, value string) []place {
	value, ok := mirror.Decode(value)
	if !ok {
		return nil
	}
	suffix := strings.TrimPrefix(header, mirror.ParamPrefix)
	var all, named []place
	var walk func(b []byte, at place)
	walk = func(b []byte, at place) {
		if len(at) > maxPlaceDepth {
			return
		}
		_ = wire.Members(b, func(name string, _, v []byte) bool {
			here := append(at[:len(at):len(at)], name)
			if len(v) > 0 && v[0] == '{' {
				walk(v, here)
			} else if text, ok := primitive(v); ok && (text == value || sameNumber(v, text, value)) {
				all = append(all, here)
				if strings.EqualFold(name, suffix) {
					named = append(named, here)
				}
			}
			return true
		})
	}
	walk(arguments, nil)
	if len(named) == 1 {
		return named
	}
	return all
}

// maxPlaceDepth bounds how deep in the arguments a mirrored one may lie.
const maxPlaceDepth = 32

// common is the text that all the places have in the arguments as they are now:
// nil when there is nothing at any of them, false when they differ.
func common(at []place, arguments []byte) (text *string, ok bool) {
	for i, path := range at {
		var now *string
		if raw, found := wire.Get(arguments, path...); found && string(raw) != "null" {
			s, ok := primitive(raw)
			if !ok {
				return nil, false
			}
			now = &s
		}
		if i > 0 && (now == nil) != (text == nil) || i > 0 && now != nil && *now != *text {
			return nil, false
		}
		text = now
	}
	return text, len(at) > 0
}

// primitive is the text of a value that a header can mirror: a string, a truth
// value or a whole number.
func primitive(raw []byte) (string, bool) {
	switch {
	case len(raw) == 0:
		return "", false
	case raw[0] == '"':
		return wire.Unquote(raw)
	case string(raw) == "true", string(raw) == "false":
		return string(raw), true
	}
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return strconv.FormatInt(n, 10), true
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f > maxWhole || f < -maxWhole || f != float64(int64(f)) {
		return "", false
	}
	return strconv.FormatInt(int64(f), 10), true
}

// maxWhole is up to where every reader reads the same whole number.
const maxWhole = 1<<53 - 1

// sameNumber says that a number, whose text is given, is the one in the header.
func sameNumber(raw []byte, text, header string) bool {
	if raw[0] == '"' || raw[0] == 't' || raw[0] == 'f' {
		return false
	}
	other, ok := primitive([]byte(header))
	return ok && header[0] != '"' && other == text
}
