package main

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway"
	"github.com/weir-mcp/weir/gateway/hosts"
	"github.com/weir-mcp/weir/guest"
	"github.com/weir-mcp/weir/runtime/server"
)

// claims are what the program knows of a user besides the name.
func claims(u user) json.RawMessage {
	b, err := json.Marshal(map[string]string{"organisation": u.organisation})
	if err != nil {
		return nil
	}
	return b
}

// organisations are those that have an interceptor server of their own.
type organisations map[string]*ruleServer

// resolve says who else governs what a user does: the server of the user's
// organisation. It is asked anew for each message; the connection that it names
// is shared by all users of the organisation, since it holds the organisation's
// own token and no user's.
func (o organisations) resolve(_ context.Context, _ *gateway.Operation, c *abi.Context) (gateway.Resolved, error) {
	if c.Principal == nil {
		return gateway.Resolved{}, errors.New("nobody is signed in")
	}
	name, _ := guest.GetText(c.Principal.Claims, "organisation")
	s, ok := o[name]
	if !ok {
		return gateway.Resolved{}, nil
	}
	return gateway.Resolved{Key: name, Open: func() (gateway.Hosts, error) {
		host := hosts.HTTP(name, hosts.Endpoint{URL: s.url, Headers: map[string]string{"Authorization": "Bearer " + s.token}}, hosts.Options{Logger: s.log})
		return hosts.NewSet([]*hosts.Host{host}, hosts.SetOptions{}), nil
	}}, nil
}

// ruleServer is the interceptor server of an organisation. It runs in here so
// that nothing else has to be started; everything speaks with it over HTTP.
type ruleServer struct {
	url, token string
	log        *slog.Logger
	http       *http.Server
	stopped    chan struct{}
}

func serveRules(log *slog.Logger) (*ruleServer, error) {
	lib, err := northRules()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("the interceptor server of north: %w", err)
	}
	s := &ruleServer{url: "http://" + listener.Addr().String() + "/mcp", token: rand.Text(), log: log, stopped: make(chan struct{})}
	mcp := server.New(lib, server.Options{Name: "north", Version: "1.0.0", Logger: log}).Handler()
	mux := http.NewServeMux()
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+s.token)) != 1 {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		mcp.ServeHTTP(w, r)
	})
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		defer close(s.stopped)
		_ = s.http.Serve(listener)
	}()
	return s, nil
}

func (s *ruleServer) close() {
	_ = s.http.Close()
	<-s.stopped
}
