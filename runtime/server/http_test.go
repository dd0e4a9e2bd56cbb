package server_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/runtime/server"
)

func TestHTTPRefusesWhatIsTooLarge(t *testing.T) {
	p := dialHTTP(t, server.New(desk(t), server.Options{MessageBytes: 1000}))
	response, body, err := p.post(t.Context(), invokeMessage("5", "echo", `"`+strings.Repeat("x", 5000)+`"`), nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusRequestEntityTooLarge, response.StatusCode)
	require.Equal(t, `{"jsonrpc":"2.0","id":5,"error":{"code":-32600,"message":"message too large"}}`, body)
}

func TestHTTPBoundsWhatRuns(t *testing.T) {
	g, lib := newGated(t)
	p := dialHTTP(t, server.New(lib, server.Options{Concurrency: 1}))
	first := make(chan string, 1)
	go func() {
		_, body, _ := p.post(context.Background(), invokeMessage("1", "gated", `{}`), nil)
		first <- body
	}()
	<-g.entered
	response, body, err := p.post(t.Context(), invokeMessage("2", "gated", `{}`), nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
	require.Equal(t, "1", response.Header.Get("Retry-After"))
	require.Equal(t, `{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"the server is busy","data":{"reason":"busy"}}}`, body)
	close(g.open)
	require.Contains(t, <-first, `"valid":true`)
}

// A caller that goes away cancels its invocation, in either era.
func TestHTTPCallerGoesAway(t *testing.T) {
	noLeaks(t)
	g, lib := newGated(t)
	p := dialHTTP(t, server.New(lib, server.Options{}))
	for _, message := range []string{invokeMessage("1", "gated", `{}`), stateless(invokeMessage("1", "gated", `{}`))} {
		headers := map[string]string{}
		if strings.Contains(message, "2026-07-28") {
			headers = map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "interceptor/invoke"}
		}
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			_, _, _ = p.post(ctx, message, headers)
		}()
		<-g.entered
		cancel()
		<-gone
		require.ErrorIs(t, <-g.ended, context.Canceled)
	}
}

func TestHTTPKeepsWebPagesOut(t *testing.T) {
	p := dialHTTP(t, server.New(desk(t), server.Options{}))
	own := strings.TrimPrefix(p.url, "http://")
	rows := []struct {
		name    string
		headers map[string]string
		status  int
	}{
		{"no browser", nil, 200},
		{"the same origin", map[string]string{"Origin": p.url}, 200},
		{"another origin", map[string]string{"Origin": "https://evil.example"}, 403},
		{"another site", map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		{"a name that was rebound to the loopback", map[string]string{"Host": "evil.example"}, 403},
		{"and its origin", map[string]string{"Host": "evil.example:80", "Origin": "http://evil.example:80"}, 403},
		{"localhost", map[string]string{"Host": "localhost"}, 200},
		{"IPv6", map[string]string{"Host": "[::1]:" + own[strings.LastIndex(own, ":")+1:]}, 200},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			response, _, err := p.post(t.Context(), invokeMessage("1", "echo", `{}`), row.headers)
			require.NoError(t, err)
			require.Equal(t, row.status, response.StatusCode)
		})
	}
}

func TestHTTPIsPostOnly(t *testing.T) {
	p := dialHTTP(t, server.New(desk(t), server.Options{}))
	for _, method := range []string{http.MethodGet, http.MethodDelete, http.MethodPut, http.MethodHead} {
		r, err := http.NewRequestWithContext(t.Context(), method, p.url, nil)
		require.NoError(t, err)
		r.Header.Set("Accept", "text/event-stream")
		response, err := p.client.Do(r)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusMethodNotAllowed, response.StatusCode)
		require.Equal(t, "POST", response.Header.Get("Allow"))
	}
}

func TestHTTPHeadersAreChecked(t *testing.T) {
	p := dialHTTP(t, server.New(desk(t), server.Options{}))
	rows := []struct {
		name    string
		headers map[string]string
		message string
		status  int
	}{
		{"wrong content type", map[string]string{"Content-Type": "text/plain"}, invokeMessage("1", "echo", `{}`), 415},
		{"no event stream accepted", map[string]string{"Accept": "application/json"}, invokeMessage("1", "echo", `{}`), 400},
		{"a version of nobody", map[string]string{"Mcp-Protocol-Version": "1999-01-01"}, invokeMessage("1", "echo", `{}`), 400},
		{"a method that is not the body's", map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "ping"},
			stateless(invokeMessage("1", "echo", `{}`)), 400},
		{"metadata without its header", nil, stateless(invokeMessage("1", "echo", `{}`)), 400},
		{"no method of ours, 2026-07-28", map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list"},
			stateless(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`), 404},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			response, body, err := p.post(t.Context(), row.message, row.headers)
			require.NoError(t, err)
			require.Equal(t, row.status, response.StatusCode, body)
		})
	}
}

func TestHTTPTakesNotificationsAndDropsAnswers(t *testing.T) {
	p := dialHTTP(t, server.New(desk(t), server.Options{}))
	for _, message := range []string{
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`{"jsonrpc":"2.0","id":1,"result":{}}`,
		`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}`,
	} {
		response, body, err := p.post(t.Context(), message, nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusAccepted, response.StatusCode, message)
		require.Empty(t, body)
	}
}

// Over HTTP nobody is who they say they are, unless something in front of the
// handler has made sure (config.md).
func TestHTTPContext(t *testing.T) {
	anonymous := dialHTTP(t, server.New(desk(t), server.Options{})).call(t, whoamiMessage)
	require.Contains(t, anonymous, `"Principal":{"Type":"anonymous","ID":"","Claims":null},"TraceID":"t1","SpanID":"s1","SessionID":"","Timestamp":"2026-11-30T00:00:00Z"`)
	trusted := dialHTTP(t, server.New(desk(t), server.Options{TrustContext: true})).call(t, whoamiMessage)
	require.Contains(t, trusted, `"Principal":{"Type":"user","ID":"alice","Claims":{"admin":true}}`)
	require.Contains(t, trusted, `"SessionID":"x1"`)
	silent := dialHTTP(t, server.New(desk(t), server.Options{})).call(t, invokeMessage("1", "whoami", `{}`))
	require.Contains(t, silent, `"Principal":{"Type":"anonymous"`)
}
