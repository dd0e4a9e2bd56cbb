package hosts

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Endpoint is an interceptor server over streamable HTTP.
type Endpoint struct {
	URL string
	// Headers go with every request.
	Headers map[string]string
	// Transport carries the requests; nil is one of the host's own, which is
	// closed with it.
	Transport http.RoundTripper
}

// HTTP is a host at a URL. There is no standing stream: nothing that the host
// says unasked is needed. A time limit holds for each call, not for the
// connection.
func HTTP(name string, e Endpoint, o Options) *Host {
	h := newHost(name, o)
	transport, idle := e.Transport, func() {}
	if transport == nil {
		own := http.DefaultTransport.(*http.Transport).Clone()
		own.MaxIdleConnsPerHost = 32
		transport, idle = own, own.CloseIdleConnections
	}
	r := newRemote(h, o, "see that an interceptor server answers at its url, and that the headers of its entry carry the token it asks for, if any")
	r.dial = func(ctx context.Context) (*connection, error) {
		life, end := context.WithCancel(context.Background())
		trip := &roundTripper{base: transport, headers: e.Headers, life: life, gone: make(chan struct{}, 1), doubt: h.doubt}
		client := &http.Client{Transport: trip, CheckRedirect: noRedirect}
		c, err := h.open(ctx, &mcp.StreamableClientTransport{
			Endpoint: e.URL, HTTPClient: client, DisableStandaloneSSE: true, MaxEventSize: MaxAnswer + envelopeBytes, MaxRetries: -1,
		}, func(ctx context.Context, goodbye <-chan struct{}) {
			select {
			case <-goodbye:
			case <-ctx.Done():
			}
			end() // of calls that are still in flight
			idle()
		})
		if err != nil {
			return nil, fmt.Errorf("does not answer as an MCP server: %w", err)
		}
		go func() {
			select {
			case <-trip.gone:
				c.lose()
			case <-c.lost:
			}
		}()
		return c, nil
	}
	h.source = r
	return h
}

// noRedirect stops at a redirect: the configured headers are for one server.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// invocationKey marks the context of an invocation.
type invocationKey struct{}

func invoking(ctx context.Context) context.Context {
	return context.WithValue(ctx, invocationKey{}, true)
}

func isInvocation(r *http.Request) bool { return r.Context().Value(invocationKey{}) != nil }

// roundTripper adds the headers, makes one bounded JSON answer of whatever comes
// back to a call, and notices when the connection is of no use any more.
//
// What goes wrong with one invocation stays with it: a proxy that refuses one
// client's payload, or a connection that breaks under it, must not cost other
// clients theirs. So an invocation is always answered, by a failure if need be,
// and the SDK's session goes on; whether the host is still there is found out by
// asking for its list.
type roundTripper struct {
	base    http.RoundTripper
	headers map[string]string
	life    context.Context // of the connection
	gone    chan struct{}   // gets a value when the connection is lost
	doubt   func()          // has the host asked for its list
}

// The bounds of one event stream: an answer and whatever the host says before
// it; and how long a stream may take to end once it has brought the answer, so
// that its connection can be used again.
const (
	maxStreamBytes = 4 * MaxAnswer
	drainBytes     = 64 << 10
	drainTime      = time.Second
)

// RoundTrip implements [http.RoundTripper].
func (t *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	detach := context.AfterFunc(t.life, cancel)
	end := func() {
		detach()
		cancel()
	}
	out := req.Clone(ctx)
	for name, value := range t.headers {
		out.Header.Set(name, value)
	}
	resp, err := t.base.RoundTrip(out)
	if err != nil {
		if req.Context().Err() == nil {
			t.doubt()
		}
		end()
		return nil, err
	}
	if resp.StatusCode == http.StatusNotFound && req.Header.Get("Mcp-Session-Id") != "" {
		t.lose() // the server has forgotten the session
	}
	resp.Body = &body{bounded(resp.Body), resp.Body, end}
	return t.answer(req, resp)
}

// lose never blocks: once is enough.
func (t *roundTripper) lose() {
	select {
	case t.gone <- struct{}{}:
	default:
	}
}
