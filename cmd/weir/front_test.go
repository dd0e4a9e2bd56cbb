package main

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/door"
)

// A call that does not end is cut off when the command is told to end, which is
// no failure (docs/operating.md).
func TestServeCallers_cutsCallsOff(t *testing.T) {
	t.Parallel() // it lasts for drainTime
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var logged bytes.Buffer
	log := slog.New(slog.NewTextHandler(&logged, nil))
	f := &front{log: log, listener: listener, door: door.New(door.Options{})}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		res, err := http.Post("http://"+listener.Addr().String()+"/mcp", "application/json", strings.NewReader("{}"))
		if err == nil {
			res.Body.Close()
		}
	}()
	require.NoError(t, f.serveCallers(ctx, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		stop()
		<-r.Context().Done()
	}), view{}))
	require.Contains(t, logged.String(), "calls were cut off at the end")
}
