package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/weir-mcp/weir/gateway/relay"
)

// The defaults of [Options]. Sizes are in bytes; what a client sends and how many
// sessions there are is config.md's listen.limits.
const (
	DefaultClientLimit  = 4 << 20
	DefaultBackendLimit = 16 << 20
	DefaultSessions     = 1000
	DefaultIdle         = time.Hour
	DefaultEndpoint     = "/mcp"
)

// Options of a [Proxy].
type Options struct {
	// Backend is the URL of the MCP endpoint that the proxy stands for. Required.
	Backend string
	// Relay says how messages are governed. Its Session and Principal are filled in
	// for each session; Stall bounds how long one event may wait for a client that
	// does not read; Grace, Leave and Drain are not used.
	Relay relay.Options
	// Headers are set on each request to the backend's endpoint, and win over those
	// of the client.
	Headers http.Header
	// Endpoint is the path at which clients find the proxy, which stands in the
	// paths of metadata about it. Empty means [DefaultEndpoint].
	Endpoint string
	// ClientLimit bounds the body of a request and BackendLimit one message of the
	// backend, in bytes. 0 means the default.
	ClientLimit, BackendLimit int
	// Sessions is how many sessions are known at once, and Idle how long one
	// without any request in progress stays known; one in which somebody still owes
	// an answer stays twenty-four times as long. 0 means the default.
	Sessions int
	Idle     time.Duration
	// Transport carries the requests to the backend. Nil means one of the proxy's
	// own, with the proxies that the environment names. It must not decompress or
	// follow redirects, as no http.Transport with DisableCompression does.
	Transport http.RoundTripper
}

// Proxy is the handler. It is safe for concurrent use.
type Proxy struct {
	o       Options
	log     *slog.Logger
	backend *url.URL
	scopes  *scopes
	// alone is what sessions of one request are forked from.
	alone *relay.Session

	// all ends when the proxy is closed, streams when it begins to end.
	all, streams     context.Context
	stop, stopStream context.CancelFunc
	mu               sync.Mutex
	closing          bool
	running          sync.WaitGroup

	troubles rarely
	own      *http.Transport
}

// New makes a proxy. [Proxy.Close] ends it.
func New(o Options) (*Proxy, error) {
	backend, err := url.Parse(o.Backend)
	switch {
	case err != nil:
		// The error of url.Parse holds the URL, and that may hold a password.
		return nil, errors.New("proxy: the backend's URL cannot be parsed")
	case backend.Scheme != "http" && backend.Scheme != "https" || backend.Host == "":
		return nil, fmt.Errorf("proxy: the backend's URL must be http:// or https:// with a host, not %q", backend.Redacted())
	case backend.User != nil:
		return nil, errors.New("proxy: the backend's URL must not hold a user or password: use a header")
	}
	if o.ClientLimit <= 0 {
		o.ClientLimit = DefaultClientLimit
	}
	if o.BackendLimit <= 0 {
		o.BackendLimit = DefaultBackendLimit
	}
	if o.Sessions <= 0 {
		o.Sessions = DefaultSessions
	}
	if o.Idle <= 0 {
		o.Idle = DefaultIdle
	}
	if o.Endpoint == "" {
		o.Endpoint = DefaultEndpoint
	}
	if o.Relay.Stall <= 0 {
		o.Relay.Stall = 10 * time.Minute
	}
	if o.Relay.Logger == nil {
		o.Relay.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Relay.Observer == nil {
		// One for all sessions: it bounds what they write together.
		o.Relay.Observer = relay.NewLogObserver(o.Relay.Logger)
	}
	p := &Proxy{o: o, log: o.Relay.Logger, backend: backend, alone: relay.NewSession(o.Relay)}
	p.scopes = newScopes(o.Sessions, o.Idle)
	p.all, p.stop = context.WithCancel(context.Background())
	p.streams, p.stopStream = context.WithCancel(p.all)
	if o.Transport == nil {
		p.own = &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
			TLSHandshakeTimeout: 10 * time.Second,
			ForceAttemptHTTP2:   true,
			DisableCompression:  true,
			MaxIdleConnsPerHost: 256,
			IdleConnTimeout:     90 * time.Second,
			WriteBufferSize:     64 << 10,
			ReadBufferSize:      64 << 10,
		}
		p.o.Transport = p.own
	}
	return p, nil
}

// ServeHTTP serves one request: metadata where its path begins with
// /.well-known/, else the MCP endpoint, whatever the path is.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !p.begin() {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "shutting down", http.StatusServiceUnavailable)
		return
	}
	defer p.running.Done()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	ends := p.all
	if r.Method == http.MethodGet {
		ends = p.streams
	}
	defer context.AfterFunc(ends, cancel)()
	x := &exchange{p: p, w: w, r: r, ctx: ctx, cancel: cancel}
	switch {
	case strings.HasPrefix(r.URL.Path, wellKnown):
		x.metadata()
	case r.Method == http.MethodPost:
		x.post()
	case r.Method == http.MethodGet:
		x.listen()
	case r.Method == http.MethodDelete:
		x.delete()
	case r.Method == http.MethodOptions:
		x.options()
	default:
		w.Header().Set("Allow", "GET, POST, DELETE, OPTIONS")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	}
}

func (p *Proxy) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing {
		return false
	}
	p.running.Add(1)
	return true
}

// Shutdown takes no more requests, ends the streams that clients listen on, and
// lets what they have asked be answered while ctx lasts; then it closes. The error
// is ctx's when something was cut off.
func (p *Proxy) Shutdown(ctx context.Context) error {
	p.mu.Lock()
	p.closing = true
	p.mu.Unlock()
	p.stopStream()
	idle := make(chan struct{})
	go func() {
		p.running.Wait()
		close(idle)
	}()
	var err error
	select {
	case <-idle:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	p.stop()
	<-idle
	p.scopes.close()
	p.alone.Close()
	if p.own != nil {
		p.own.CloseIdleConnections()
	}
	return err
}

// Close ends everything at once and waits for it.
func (p *Proxy) Close() {
	p.stop()
	_ = p.Shutdown(context.Background())
}

// Sessions is how many sessions are known at present.
func (p *Proxy) Sessions() int { return p.scopes.size() }

// trouble logs what an operator should know of the backend. A peer must not be
// able to fill the log.
func (p *Proxy) trouble(text string, args ...any) {
	if n, ok := p.troubles.next(); ok {
		p.log.Warn(text, append(args, "backend", p.backend.Host, "number", n)...)
	}
}

// rarely lets the first hundred through, then those whose number is a power of
// two.
type rarely struct {
	mu sync.Mutex
	n  uint64
}

func (r *rarely) next() (uint64, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
	return r.n, r.n <= 100 || r.n&(r.n-1) == 0
}

var _ http.Handler = (*Proxy)(nil)
