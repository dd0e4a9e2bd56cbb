package server

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/wire"
)

// Interceptors is a set of interceptors. Both methods may be called
// concurrently.
type Interceptors interface {
	// List is what is served now, in a stable order.
	List() []abi.Descriptor
	// Invoke calls one of them. The error is an *abi.Error, or is read by
	// abi.AsError. A result must be one that abi's writer can write: its raw
	// parts are well-formed JSON.
	Invoke(ctx context.Context, inv abi.Invocation) (abi.Result, error)
}

// Options are how a server works. The zero value will do.
type Options struct {
	// Name and Version are what the server says of itself; empty means "weir"
	// and "dev".
	Name, Version string
	// Logger gets one record for each invocation that has no result, with the
	// cause, and one for each message that is refused; nil discards.
	Logger *slog.Logger
	// Ready, when set, is waited for before a list, the capability or an
	// invocation is answered. When it fails, what there is by then is served:
	// bound it there, as library.Library's does.
	Ready func(ctx context.Context) error
	// MessageBytes bounds one message; 0 means 4 MiB for the payload and 64 KiB
	// for what stands around it.
	MessageBytes int64
	// Concurrency bounds the requests that are served at the same time: of all
	// handlers together, and of each stdio connection. One more is answered
	// "busy". 0 means 256.
	Concurrency int
	// PageSize is how many interceptors one page of a list holds at most; 0
	// means 100.
	PageSize int
	// TrustContext believes the context of an invocation that comes over HTTP.
	// Set it where something in front of the handler authenticates callers, and
	// nowhere else: without, the principal is anonymous and the session is not
	// passed on (config.md). Over stdio the context is always believed.
	TrustContext bool
}

const (
	defaultMessageBytes = 4<<20 + 64<<10
	defaultConcurrency  = 256
	defaultPageSize     = 100
)

func (o Options) withDefaults() Options {
	if o.Name == "" {
		o.Name = "weir"
	}
	if o.Version == "" {
		o.Version = "dev"
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Ready == nil {
		o.Ready = func(context.Context) error { return nil }
	}
	if o.MessageBytes <= 0 {
		o.MessageBytes = defaultMessageBytes
	}
	if o.Concurrency <= 0 {
		o.Concurrency = defaultConcurrency
	}
	if o.PageSize <= 0 {
		o.PageSize = defaultPageSize
	}
	return o
}

// Server serves a set of interceptors.
type Server struct {
	set   Interceptors
	o     Options
	sdk   *mcp.Server
	slots chan struct{} // one for each HTTP request that is served
}

// New makes a server for a set.
func New(set Interceptors, o Options) *Server {
	s := &Server{set: set, o: o.withDefaults()}
	s.slots = make(chan struct{}, s.o.Concurrency)
	s.sdk = mcp.NewServer(
		&mcp.Implementation{Name: s.o.Name, Version: s.o.Version},
		&mcp.ServerOptions{
			// Not nil: nil would announce logging.
			Capabilities: &mcp.ServerCapabilities{},
			// The capability is live, so nobody may keep it.
			SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) {
				c.TTLMs, c.CacheScope = 0, "private"
			},
		})
	s.sdk.AddReceivingMiddleware(s.announce)
	mustAdd(mcp.AddReceivingCustomMethod(s.sdk, abi.MethodList, s.list))
	mustAdd(mcp.AddReceivingCustomMethod(s.sdk, abi.MethodInvoke, s.invoke))
	return s
}

// mustAdd: the SDK refuses only names of standard methods, which ours are not.
func mustAdd(err error) {
	if err != nil {
		panic(err)
	}
}

// serves reports whether requests with this method reach the SDK. All others
// are answered "method not found": they belong to capabilities that this server
// does not have.
func serves(method string) bool {
	switch method {
	case "initialize", "ping", "server/discover", abi.MethodList, abi.MethodInvoke:
		return true
	}
	return false
}

// announce puts the capability of protocol.md §4, as it is now, into the answer
// of either handshake.
func (s *Server) announce(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		result, err := next(ctx, method, req)
		if err != nil {
			return result, err
		}
		switch r := result.(type) {
		case *mcp.InitializeResult:
			r.Capabilities = s.capabilities(ctx, r.Capabilities)
		case *mcp.DiscoverResult:
			r.Capabilities = s.capabilities(ctx, r.Capabilities)
		}
		return result, nil
	}
}

func (s *Server) capabilities(ctx context.Context, c *mcp.ServerCapabilities) *mcp.ServerCapabilities {
	s.ready(ctx)
	live := mcp.ServerCapabilities{}
	if c != nil {
		live = *c
	}
	settings := abi.AppendCapability(nil, abi.SupportedEvents(s.set.List()))
	live.Extensions = map[string]any{abi.ExtensionKey: json.RawMessage(settings)}
	return &live
}

// ready waits for the set; when it does not get ready, what there is is served.
func (s *Server) ready(ctx context.Context) {
	if err := s.o.Ready(ctx); err != nil {
		s.o.Logger.Warn("serving before everything is loaded", "cause", err)
	}
}

// list answers interceptors/list.
func (s *Server) list(ctx context.Context, _ *mcp.ServerSession, p *params) (*result, error) {
	request, err := abi.ReadListParams(p.bytes())
	if err != nil {
		return nil, s.refusal(err)
	}
	s.ready(ctx)
	page, err := paginate(s.set.List(), request, s.o.PageSize)
	if err != nil {
		return nil, s.refusal(err)
	}
	return &result{raw: page}, nil
}

// invoke answers interceptor/invoke.
func (s *Server) invoke(ctx context.Context, _ *mcp.ServerSession, p *params) (*result, error) {
	inv, err := abi.ReadInvocation(p.bytes())
	if err != nil {
		return nil, s.refusal(err)
	}
	readMeta(&inv, p.bytes())
	// Over HTTP nothing else ends an invocation whose caller has gone.
	if over, ok := httpRequestOf(ctx); ok {
		var cancel context.CancelCauseFunc
		ctx, cancel = context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(over, func() { cancel(context.Cause(over)) })()
		if !s.o.TrustContext {
			inv.Context = distrust(inv.Context)
		}
	}
	inv.Connection = connectionOf(ctx)
	s.ready(ctx)
	r, err := s.set.Invoke(ctx, inv)
	if err != nil {
		return nil, s.failure(abi.AsError(err, inv.Name, inv.Phase), &inv)
	}
	raw := r.AppendJSON(make([]byte, 0, len(r.Payload)+256))
	if err := wire.Valid(raw); err != nil {
		// The SDK would answer nothing at all.
		return nil, s.failure(abi.Failed(inv.Name, inv.Phase, abi.ReasonBadOutput, err), &inv)
	}
	return &result{raw: raw}, nil
}

// distrust leaves of a context what nobody is keyed or authorised by.
func distrust(c *abi.Context) *abi.Context {
	d := &abi.Context{Principal: &abi.Principal{Type: abi.PrincipalAnonymous}}
	if c != nil {
		d.TraceID, d.SpanID, d.Timestamp = c.TraceID, c.SpanID, c.Timestamp
	}
	return d
}

// refusal is the JSON-RPC error for parameters that were not understood.
func (s *Server) refusal(err error) error {
	e := abi.AsError(err, "", "")
	s.o.Logger.Info("malformed params", "interceptor", e.Interceptor, "path", e.Path, "cause", err)
	return outward(e)
}

// failure is the JSON-RPC error for an invocation without a result. The record
// is the operator's; of it only code, generic text and data go out.
func (s *Server) failure(e *abi.Error, inv *abi.Invocation) error {
	level := slog.LevelWarn
	if e.Code() == abi.CodeInvalidParams || e.Reason == abi.ReasonCancelled {
		level = slog.LevelInfo
	}
	s.o.Logger.Log(context.Background(), level, "an invocation has no result",
		"interceptor", inv.Name, "event", inv.Event, "phase", inv.Phase, "reason", e.Reason, "cause", e.Error())
	return outward(e)
}

func outward(e *abi.Error) error {
	return &jsonrpc.Error{Code: int64(e.Code()), Message: e.Message(), Data: e.AppendData(nil)}
}
