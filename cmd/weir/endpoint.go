package main

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway"
	"github.com/weir-mcp/weir/gateway/chain"
	"github.com/weir-mcp/weir/gateway/expose"
	"github.com/weir-mcp/weir/gateway/proxy"
	"github.com/weir-mcp/weir/gateway/relay"
	"github.com/weir-mcp/weir/gateway/streamable"
	"github.com/weir-mcp/weir/internal/config"
	"github.com/weir-mcp/weir/runtime/server"
)

// startBackend gives the end of a relay that leads to a backend of its own: a
// process, or a client of a server over HTTP.
func startBackend(log *slog.Logger, file *config.File) (relay.End, error) {
	b := file.Backend
	if b.URL.IsZero() {
		return gateway.Start(gateway.Command{Args: revealList(b.Command), Dir: b.Dir, Env: revealMap(b.Env), Hide: file.ConsumedEnv})
	}
	return streamable.Dial(streamable.BackendOptions{URL: b.URL.Reveal(), Header: headers(b.Headers), Logger: log})
}

func headers(m map[string]config.Text) http.Header {
	h := http.Header{}
	for name, value := range m {
		h.Set(name, value.Reveal())
	}
	return h
}

// endpoint is what stands for the backend over HTTP.
type endpoint interface {
	http.Handler
	// Sessions is how many there are.
	Sessions() int
	// Shutdown lets what runs finish while ctx lasts.
	Shutdown(ctx context.Context) error
}

// newEndpoint gives the endpoint for the backend: each session a process of its
// own, or all one server.
func newEndpoint(log *slog.Logger, g *gateway.Gateway, file *config.File) (endpoint, error) {
	limits, b := file.Listen.Limits, file.Backend
	if b.URL.IsZero() {
		if err := runnable(b); err != nil {
			return nil, err
		}
		return streamable.NewFront(streamable.FrontOptions{
			Start:    func(context.Context, *abi.Principal) (relay.End, error) { return startBackend(log, file) },
			Relay:    g.SessionOptions("", nil),
			Body:     int(limits.Body),
			Sessions: limits.Sessions,
			Logger:   log,
		}), nil
	}
	return proxy.New(proxy.Options{
		Backend: b.URL.Reveal(), Headers: headers(b.Headers), Relay: g.SessionOptions("", nil),
		ClientLimit: int(limits.Body), Sessions: limits.Sessions,
	})
}

// exposedOf gives the interceptors of all hosts together, nil where they are not
// exposed.
func exposedOf(a *assembly, file *config.File) *expose.Set {
	if !file.Expose {
		return nil
	}
	return expose.New(expose.Options{
		Listings: func(ctx context.Context) []chain.Listing {
			listings, _ := a.hosts.Listings(ctx)
			return listings
		},
		Policy: a.policy, Principal: relay.PrincipalFrom, Timeout: file.Timeout,
	})
}

// routes puts what answers callers at its paths; exposed may be nil.
func routes(log *slog.Logger, stand endpoint, exposed *expose.Set, file *config.File) http.Handler {
	mux := http.NewServeMux()
	var mcp http.Handler = stand
	if exposed != nil {
		mcp = expose.Route(exposedHandler(log, exposed, file), stand, file.Listen.Limits.Body)
	}
	mux.Handle("/mcp", mcp)
	if !file.Backend.URL.IsZero() {
		mux.Handle("GET /.well-known/", stand) // where the backend says how to be authorized
	}
	return mux
}

// exposedHandler serves them. Whoever comes as far is authenticated.
func exposedHandler(log *slog.Logger, set *expose.Set, file *config.File) http.Handler {
	return server.New(set, server.Options{
		Name: "weir", Version: buildVersion(), Logger: log, MessageBytes: file.Listen.Limits.Body,
		Concurrency: file.Listen.Limits.Concurrency, TrustContext: true,
	}).Handler()
}
