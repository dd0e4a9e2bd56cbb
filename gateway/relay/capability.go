package relay

import (
	"slices"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/wire"
)

// announced is the answer to a handshake with the capability that the gateway
// itself has (protocol.md §6 "What crosses unchanged"). Nothing else of it changes.
func (s *Session) announced(a *Arrival, f *flight, m *wire.Message) []byte {
	if s.Capability == nil || a.From != Backend || f.method != methodInitialize && f.method != methodDiscover {
		return m.Raw
	}
	settings := s.Capability()
	if len(settings) == 0 {
		return m.Raw
	}
	result, ok := withMember(m.Result, settings, "capabilities", "extensions", abi.ExtensionKey)
	if !ok {
		return m.Raw
	}
	return m.WithResult(result)
}

// withMember sets a member at a path of objects, and makes the objects that are
// missing. It is false where one of them is something else.
func withMember(object, value []byte, path ...string) ([]byte, bool) {
	if len(path) == 0 {
		return value, true
	}
	if !isObject(object) {
		return nil, false
	}
	if from, to, ok := wire.Find(object, path[0]); ok {
		inner, ok := withMember(object[from:to], value, path[1:]...)
		if !ok {
			return nil, false
		}
		return slices.Concat(object[:from], inner, object[to:]), true
	}
	inner, _ := withMember([]byte("{}"), value, path[1:]...)
	w := wire.OpenObject(nil)
	w.Raw(path[0], inner)
	member := w.Close()
	rest := object[1:]
	if empty(rest) {
		return slices.Concat(member[:len(member)-1], rest), true
	}
	return slices.Concat(member[:len(member)-1], []byte(","), rest), true
}

// empty says of an object without its first brace that there is nothing in it.
func empty(rest []byte) bool {
	for _, c := range rest {
		switch c {
		case ' ', '\t', '\r', '\n':
		default:
			return c == '}'
		}
	}
	return true
}
