package middleware

import (
	"crypto/rand"
	"runtime"
	"sync"
	"weak"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/weir-mcp/weir/gateway/relay"
)

// facts are what is known of a session.
type facts struct {
	// name is what interceptors are told as context.sessionId.
	name string
	// version is the protocol version that initialize settled, on a server.
	version string
}

// sessions keeps facts for as long as their sessions live.
type sessions struct {
	mu    sync.Mutex
	known map[any]facts // by weak pointer
}

// of gives the facts of a session. One with an id is named by it, so that every
// replica names it alike; others (stdio, memory) get a random name.
func (s *sessions) of(session mcp.Session) facts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.locked(session)
}

func (s *sessions) locked(session mcp.Session) facts {
	key := s.key(session)
	f, ok := s.known[key]
	if !ok {
		f.name = rand.Text()
		s.known[key] = f
		s.forget(session, key)
	}
	if id := session.ID(); id != "" {
		f.name = relay.SessionName(id)
	}
	return f
}

func (s *sessions) key(session mcp.Session) any {
	switch session := session.(type) {
	case *mcp.ServerSession:
		return weak.Make(session)
	case *mcp.ClientSession:
		return weak.Make(session)
	}
	return nil // the SDK has no third kind
}

// forget drops the facts when the session is gone.
func (s *sessions) forget(session mcp.Session, key any) {
	drop := func(key any) {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.known, key)
	}
	switch session := session.(type) {
	case *mcp.ServerSession:
		runtime.AddCleanup(session, drop, key)
	case *mcp.ClientSession:
		runtime.AddCleanup(session, drop, key)
	}
}

// observe learns what version a server settled. The client of an older protocol
// asks for one and may get another.
func (s *sessions) observe(session mcp.Session, res mcp.Result) {
	settled, ok := res.(*mcp.InitializeResult)
	if !ok || settled == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.locked(session)
	f.version = settled.ProtocolVersion
	s.known[s.key(session)] = f
}

// version is the protocol version that counts for a message: that of the
// session, else the one the message names, else none. The session's comes first,
// so that no single request can talk itself out of a plan.
func version(f facts, req mcp.Request) string {
	switch session := req.GetSession().(type) {
	case *mcp.ClientSession:
		if r := session.InitializeResult(); r != nil {
			return r.ProtocolVersion
		}
	case *mcp.ServerSession:
		if f.version != "" {
			return f.version
		}
		if p := req.GetParams(); !isNil(p) {
			if v, ok := p.GetMeta()[mcp.MetaKeyProtocolVersion].(string); ok {
				return v
			}
		}
		if p := session.InitializeParams(); p != nil {
			return p.ProtocolVersion
		}
	}
	return ""
}

// serverName is who the server of a session says it is. A server knows that of
// itself and gives it to the chain as an option.
func serverName(session mcp.Session) string {
	if session, ok := session.(*mcp.ClientSession); ok {
		if r := session.InitializeResult(); r != nil && r.ServerInfo != nil {
			return r.ServerInfo.Name
		}
	}
	return ""
}
