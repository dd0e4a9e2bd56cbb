package door

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// ServeOptions are how [Serve] works.
type ServeOptions struct {
	// TLS is nil for plain HTTP.
	TLS *tls.Config
	// Drain is how long what runs may take to end; 10 s when it is 0.
	Drain time.Duration
	// Body is how long the body of a request may take to come, 30 s when it is 0.
	// Half of Drain is left to it from when ctx ends, and a second once its request
	// has been dealt with, such as turned away.
	Body time.Duration
	// Logger takes what the HTTP server has to say. Nil is silent.
	Logger *slog.Logger
}

// Bounds on one connection. An answer may take as long as its calls do, and a
// stream for ever: what bounds the time of a body is [hurried].
const (
	headerTime   = 10 * time.Second
	idleTime     = 2 * time.Minute
	headerBytes  = 64 << 10
	defaultDrain = 10 * time.Second
)

type closingKey struct{}

// Serve serves until ctx ends. Then it takes no more connections, ends the GET
// streams that go through a door, lets what else runs finish, for at most
// o.Drain, and returns nil; what had not ended by then is told to, and an error.
// It closes the listener.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler, o ServeOptions) error {
	if o.Drain <= 0 {
		o.Drain = defaultDrain
	}
	if o.Body <= 0 {
		o.Body = defaultBodyTime
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.TLS != nil {
		listener = tls.NewListener(listener, o.TLS)
	}
	closing, closeNow := context.WithCancel(context.Background())
	defer closeNow()
	base, giveUp := context.WithCancel(context.WithValue(context.Background(), closingKey{}, closing))
	defer giveUp()
	s := &http.Server{
		Handler:           hurried(handler, closing, o.Body, o.Drain/2),
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    headerBytes,
		ErrorLog:          slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
		BaseContext:       func(net.Listener) context.Context { return base },
	}
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	closeNow()
	drain, cancel := context.WithTimeout(context.Background(), o.Drain)
	defer cancel()
	err := s.Shutdown(drain)
	if err != nil {
		err = errors.Join(fmt.Errorf("some calls did not end in %v: %w", o.Drain, err), s.Close())
	}
	<-failed
	return err
}

// whileOpen ends a GET when the house closes: it is a stream that only waits,
// and would wait for ever.
func whileOpen(r *http.Request) (*http.Request, func()) {
	closing, ok := r.Context().Value(closingKey{}).(context.Context)
	if !ok || r.Method != http.MethodGet {
		return r, func() {}
	}
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(closing, cancel)
	return r.WithContext(ctx), func() {
		stop()
		cancel()
	}
}
