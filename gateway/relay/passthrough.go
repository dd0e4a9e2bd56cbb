package relay

import (
	"strconv"
	"strings"

	"github.com/weir-mcp/weir/internal/wire"
)

// Passthrough narrows what crosses without being governed (protocol.md §6). The
// zero value lets all of it pass as it is.
type Passthrough struct {
	// GenericErrors leaves of a backend's JSON-RPC errors the code, and puts a
	// text of the relay's own in the place of text and data.
	GenericErrors bool
	// Notifications are the methods of notifications that pass, from either side:
	// names, and patterns that are "*" or end in "/*". Nil lets all pass. Those that
	// the protocol itself rests on always do: notifications/initialized and
	// notifications/cancelled.
	Notifications []string
}

const methodInitialized = "notifications/initialized"

// lets says whether a notification passes.
func (p *Passthrough) lets(method string) bool {
	if p.Notifications == nil || method == methodInitialized || method == methodCancelled {
		return true
	}
	for _, pattern := range p.Notifications {
		if prefix, ok := strings.CutSuffix(pattern, "*"); ok && strings.HasPrefix(method, prefix) || pattern == method {
			return true
		}
	}
	return false
}

// failed is an error as its requester gets it.
func (s *Session) failed(a *Arrival, f *flight, m *wire.Message) []byte {
	if a.From != Backend || !s.Passthrough.GenericErrors {
		return m.Raw
	}
	raw, _ := wire.Get(m.Error, "code")
	code, err := strconv.Atoi(string(raw))
	if err != nil {
		code = codeInternal
	}
	return appendError(nil, f.id(), code, textBackendError)
}
