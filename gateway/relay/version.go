package relay

import "github.com/weir-mcp/weir/internal/wire"

// metaVersion is where a request of the stateless era names its protocol
// version.
const metaVersion = "io.modelcontextprotocol/protocolVersion"

// negotiated is the protocol version that counts for a request: that of the
// session, else the one the request names, else the one its transport names, else
// none. The session's comes first, so that no single request can talk itself out of a plan.
func (s *Session) negotiated(params []byte, transport string) string {
	if v := s.version.Load(); v != nil {
		return *v
	}
	if params != nil {
		raw, _ := wire.Get(params, "_meta", metaVersion)
		if v := version(raw); v != "" {
			return v
		}
	}
	return date(transport)
}

// observe learns the protocol version from the result of a handshake: the one
// that initialize settled, or the one that server/discover was asked under, if
// the backend supports it.
func (s *Session) observe(f *flight, m *wire.Message) {
	var v string
	switch f.method {
	case methodInitialize:
		raw, _ := wire.Get(m.Result, "protocolVersion")
		v = version(raw)
	case methodDiscover:
		raw, _ := wire.Get(m.Result, "supportedVersions")
		_ = wire.Elements(raw, func(_ int, supported []byte) bool {
			if f.version != "" && text(supported) == f.version {
				v = f.version
			}
			return v == ""
		})
	}
	if v != "" {
		s.version.Store(&v)
	}
}

// version reads a protocol version, which is a date; anything else is unknown.
func version(raw []byte) string { return date(text(raw)) }

func date(v string) string {
	if len(v) != len("2025-11-25") {
		return ""
	}
	for i := range len(v) {
		if dash := i == 4 || i == 7; dash != (v[i] == '-') || !dash && v[i]-'0' > 9 {
			return ""
		}
	}
	return v
}
