package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// A host that takes calls and never answers keeps nobody from the handshake,
// which is not governed.
func TestGatewayDoesNotWaitForItsHosts(t *testing.T) {
	t.Parallel()
	var givenUp atomic.Bool
	host := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // else nobody sees the caller go
		<-r.Context().Done()
		givenUp.Store(true)
	}))
	t.Cleanup(host.Close)
	s := startRaw(t, []string{weirBinary(t), "gateway", "--hosts", host.URL + "/mcp", "--", everythingServer(t)}, nil)
	require.Contains(t, s.call(initialize("2025-11-25")), `"protocolVersion":"2025-11-25"`)
	require.False(t, givenUp.Load(), "the gateway has given the host up first")
	s.end()
}
