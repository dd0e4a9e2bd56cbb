package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/config"
	"github.com/weir-mcp/weir/internal/door"
	"github.com/weir-mcp/weir/internal/wire"
)

// front is where a command serves HTTP: the endpoint for callers at /mcp, and
// what operators look at. Either may be missing.
type front struct {
	log             *slog.Logger
	listener, admin net.Listener
	door, adminDoor *door.Door
	tls, adminTLS   *tls.Config
	// known says that callers are authenticated.
	known bool
}

// openFront listens where the configuration says, and puts callers who are known
// where the rooms behind look for them. What is wrong with tokens and
// certificates is wrong configuration.
func openFront(log *slog.Logger, file *config.File, known func(context.Context, *abi.Principal) context.Context) (*front, error) {
	listen := &file.Listen
	f := &front{log: log, known: listen.Tokens != nil}
	var who door.Authenticator
	if f.known {
		tokens, err := tokensOf(listen.Tokens)
		if err != nil {
			return nil, err
		}
		who = tokens
	}
	if listen.TLS != nil {
		certificate, err := door.LoadCertificate(listen.TLS.Cert.Reveal(), listen.TLS.Key.Reveal())
		if err != nil {
			return nil, usagef("%s: listen.tls: %w", listen.TLS.Source, err)
		}
		f.tls = certificate.Config()
	}
	f.door = door.New(door.Options{
		Authenticator: who, Known: known, Concurrency: listen.Limits.Concurrency, Streams: listen.Limits.Sessions,
		Rate: listen.Limits.Rate, Answer: turnAway, Logger: log,
	})
	f.adminDoor = door.New(door.Options{Streams: adminRequests, Logger: log})
	if !config.IsLoopback(listen.Admin) {
		// From other machines operators need a token, too.
		f.adminDoor = door.New(door.Options{Authenticator: who, Streams: adminRequests, Logger: log})
		f.adminTLS = f.tls
	}
	var err error
	if listen.HTTP != "" {
		if f.listener, err = net.Listen("tcp", listen.HTTP); err != nil {
			return nil, fmt.Errorf("cannot serve at %s: %w; give another address, or end what listens there", listen.HTTP, err)
		}
	}
	if listen.Admin != "" {
		if f.admin, err = net.Listen("tcp", listen.Admin); err != nil {
			f.close()
			return nil, fmt.Errorf("listen.admin, %s: %w; give another address, or end what listens there", listen.Admin, err)
		}
	}
	return f, nil
}

// adminRequests bounds how many look at once.
const adminRequests = 16

func (f *front) close() {
	for _, l := range []net.Listener{f.listener, f.admin} {
		if l != nil {
			_ = l.Close()
		}
	}
}

// endpoint is where callers reach it, empty for stdio.
func (f *front) endpoint() string {
	if f.listener == nil {
		return ""
	}
	scheme := "http"
	if f.tls != nil {
		scheme = "https"
	}
	return scheme + "://" + f.listener.Addr().String() + "/mcp"
}

// view is what operators see.
type view struct {
	// ready says what is missing, nil when nothing is.
	ready func(context.Context) error
	// metrics may be nil.
	metrics http.Handler
}

// serveCallers serves handler until ctx ends, then lets what runs finish. What takes
// longer is cut off, as told: that is no failure of the command.
func (f *front) serveCallers(ctx context.Context, handler http.Handler, v view) error {
	mux := http.NewServeMux()
	mux.Handle("/", f.door.Guard(handler))
	mux.Handle("GET /healthz", health(ctx, nil, nobody))
	mux.Handle("GET /readyz", health(ctx, v.ready, nobody))
	err := door.Serve(ctx, f.listener, mux, door.ServeOptions{TLS: f.tls, Drain: drainTime, Logger: f.log})
	if err != nil && ctx.Err() != nil {
		f.log.Warn("calls were cut off at the end", "cause", err)
		return nil
	}
	return err
}

// serveOperators serves what operators look at until ctx ends, when there is an
// address for it. It is there while calls drain.
func (f *front) serveOperators(ctx context.Context, v view) (stop func()) {
	if f.admin == nil {
		return func() {}
	}
	mux := http.NewServeMux()
	mux.Handle("GET /healthz", health(ctx, nil, nobody))
	mux.Handle("GET /readyz", health(ctx, v.ready, f.adminDoor.Admits)) // a probe without a token gets the status
	if v.metrics != nil {
		mux.Handle("GET /metrics", f.adminDoor.Guard(v.metrics))
	}
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := door.Serve(serving, f.admin, mux, door.ServeOptions{TLS: f.adminTLS, Drain: drainTime, Logger: f.log}); err != nil {
			f.log.Error("what operators look at is not served", "cause", err)
		}
	}()
	f.log.Info("operators look at", "address", f.admin.Addr().String())
	return func() {
		end()
		<-served
	}
}

// health answers 200, or 503 while something is missing or the command ends.
// What is missing is told to those for whom informed is true.
func health(running context.Context, missing func(context.Context) error, informed func(*http.Request) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		var err error
		if missing != nil {
			if running.Err() != nil {
				err = errors.New("it is ending")
			} else {
				err = missing(r.Context())
			}
		}
		switch {
		case err == nil:
			_, _ = io.WriteString(w, "ok\n")
		case informed(r):
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		default:
			http.Error(w, "not ready", http.StatusServiceUnavailable)
		}
	})
}

func nobody(*http.Request) bool { return false }

// turnAway words what the door refuses as MCP clients read it.
func turnAway(w http.ResponseWriter, r *http.Request, status int) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(wire.AppendFailure(nil, nil, wire.CodeInvalid, http.StatusText(status), nil))
}

// maxToken bounds a file with a token, in bytes.
const maxToken = 4 << 10

// tokensOf reads the tokens.
func tokensOf(list []config.Token) (*door.Tokens, error) {
	tokens := make([]door.Token, len(list))
	for i, t := range list {
		tokens[i] = door.Token{Name: t.Name, Secret: t.Value.Reveal()}
		if t.File.IsZero() {
			continue
		}
		secret, err := readToken(t.File.Reveal())
		if err != nil {
			return nil, usagef("%s: the token of %q: %w", t.Source, t.Name, err)
		}
		tokens[i].Secret = secret
	}
	known, err := door.NewTokens(tokens...)
	if err != nil {
		return nil, usagef("listen.auth: %w", err)
	}
	return known, nil
}

func readToken(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxToken+1))
	if err != nil {
		return "", err
	}
	if len(text) > maxToken {
		return "", fmt.Errorf("%s is larger than %d bytes", path, maxToken)
	}
	return string(bytes.TrimSpace(text)), nil
}
