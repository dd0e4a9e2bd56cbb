package mockhost

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/weir-mcp/weir/abi"
)

// Server serves the host over MCP, as raw as it is scripted: nothing between
// behaviour and wire checks or mends an answer. Calls end with life at the latest.
// drop loses the connection that a call came over before it returns.
func (h *Host) Server(life context.Context, drop func()) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: h.Label, Version: "1"}, &mcp.ServerOptions{Capabilities: &mcp.ServerCapabilities{}})
	must(mcp.AddReceivingCustomMethod(s, abi.MethodList, func(_ context.Context, _ *mcp.ServerSession, p *params) (*result, error) {
		list, err := abi.ReadListParams(p.raw)
		if err != nil {
			return nil, rpcError(err)
		}
		if h.Hold != nil {
			h.Hold()
		}
		page, err := h.Page(list.Cursor)
		if err != nil {
			return nil, rpcError(err)
		}
		return &result{raw: page}, nil
	}))
	must(mcp.AddReceivingCustomMethod(s, abi.MethodInvoke, func(ctx context.Context, _ *mcp.ServerSession, p *params) (*result, error) {
		inv, err := abi.ReadInvocation(p.raw)
		if err != nil {
			return nil, rpcError(err)
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(life, cancel)()
		r, err := h.run(ctx, inv)
		if raw, ok := errors.AsType[rawAnswer](err); ok {
			return &result{raw: []byte(raw)}, nil
		}
		if errors.Is(err, ErrDropped) {
			drop()
			return nil, err
		}
		if err != nil {
			return nil, rpcError(abi.AsError(err, inv.Name, inv.Phase))
		}
		return &result{raw: r.AppendJSON(nil)}, nil
	}))
	return s
}

// ServeStdio serves the host on the standard input and output of this process
// until its input ends, and says how the process should exit.
func (h *Host) ServeStdio() (exit int) {
	const dropped, failed = 7, 1
	if h.Down != nil {
		return failed
	}
	s := h.Server(context.Background(), func() { os.Exit(dropped) })
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		return failed
	}
	return 0
}

// ServeHTTP serves the host at the root of a web server of its own until the
// test ends: with sessions and event streams, or, stateless, with JSON answers.
// While away says so it cuts every connection, as one that is not there.
func (h *Host) ServeHTTP(t testing.TB, stateless bool, away func() bool) *httptest.Server {
	life, end := context.WithCancel(context.Background())
	var web *httptest.Server
	server := h.Server(life, func() { web.CloseClientConnections() })
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: stateless, JSONResponse: stateless})
	web = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h.Down != nil || away() {
			panic(http.ErrAbortHandler)
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		end()
		web.CloseClientConnections()
		web.Close()
		for session := range server.Sessions() {
			_ = session.Close() // it may have ended by itself
		}
	})
	return web
}

// params and result carry JSON through the SDK as it is.
type params struct {
	mcp.ParamsBase
	raw json.RawMessage
}

// UnmarshalJSON keeps the bytes.
func (p *params) UnmarshalJSON(b []byte) error {
	p.raw = bytes.Clone(b)
	return nil
}

type result struct {
	mcp.ResultBase
	raw json.RawMessage
}

// MarshalJSON gives the bytes.
func (r *result) MarshalJSON() ([]byte, error) { return r.raw, nil }

// rpcError is an error as it goes over the wire (protocol.md §3).
func rpcError(err error) error {
	e, ok := errors.AsType[*abi.Error](err)
	if !ok {
		return err
	}
	return &jsonrpc.Error{Code: int64(e.Code()), Message: e.Message(), Data: e.AppendData(nil)}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
