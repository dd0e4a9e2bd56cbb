package hosts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/wire"
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
	h.source = &remote{host: h, envelope: o.Envelope, dial: func(ctx context.Context) (*connection, error) {
		life, end := context.WithCancel(context.Background())
		trip := &roundTripper{base: transport, headers: e.Headers, life: life, gone: make(chan struct{}, 1)}
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
	}}
	return h
}

// noRedirect stops at a redirect: the configured headers are for one server.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// roundTripper adds the headers, bounds what comes back, and notices when the
// connection is of no use any more.
type roundTripper struct {
	base    http.RoundTripper
	headers map[string]string
	life    context.Context // of the connection
	gone    chan struct{}   // gets a value when the connection is lost
}

// maxStreamBytes bounds one event stream: an answer and whatever the host says
// before it.
const maxStreamBytes = 4 * MaxAnswer

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
			t.lose()
		}
		end()
		return nil, err
	}
	if resp.StatusCode == http.StatusNotFound && req.Header.Get("Mcp-Session-Id") != "" {
		t.lose() // the server has forgotten the session
	}
	resp.Body = &body{Reader: io.LimitReader(resp.Body, maxStreamBytes), Closer: resp.Body, end: end}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind == "application/json" && req.GetBody != nil {
		return t.strict(req, resp)
	}
	return resp, nil
}

// lose never blocks: once is enough.
func (t *roundTripper) lose() {
	select {
	case t.gone <- struct{}{}:
	default:
	}
}

// strict reads an answer in JSON whole and lets through what internal/wire
// accepts; else the call that waits for it gets a failure, and no other call
// suffers.
func (t *roundTripper) strict(req *http.Request, resp *http.Response) (*http.Response, error) {
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, MaxAnswer+envelopeBytes+1))
	if err != nil {
		return nil, err
	}
	reason := abi.ReasonBadOutput
	_, err = wire.Read(answer)
	if len(answer) > MaxAnswer+envelopeBytes {
		reason, err = abi.ReasonOutputTooLarge, errTooLarge
	}
	if err != nil && resp.StatusCode >= 200 && resp.StatusCode <= 299 && len(answer) > 0 {
		request, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		defer request.Close()
		sent, err := io.ReadAll(request)
		if err != nil {
			return nil, err
		}
		answer = refuseBody(sent, reason)
	}
	resp.Body = io.NopCloser(bytes.NewReader(answer))
	resp.ContentLength = int64(len(answer))
	resp.Header.Set("Content-Length", strconv.Itoa(len(answer)))
	return resp, nil
}

var errTooLarge = errors.New("the answer is too large")

// body is a response body that ends the request's context when it is closed.
type body struct {
	io.Reader
	io.Closer
	end func()
}

func (b *body) Close() error {
	err := b.Closer.Close()
	b.end()
	return err
}
