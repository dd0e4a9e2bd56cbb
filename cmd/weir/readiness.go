package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/config"
)

// readiness says what a gateway still waits for. Anybody may ask, so it looks
// once a second at most, one look at a time, and who asks meanwhile is told what
// was seen last.
type readiness struct {
	a    *assembly
	file *config.File

	mu    sync.Mutex
	at    time.Time
	known error
	look  chan struct{} // closed when the look that is under way is done; nil for none
}

// errUnseen is what is known before the first look.
var errUnseen = errors.New("it is not known yet what is missing")

const (
	lookEvery = time.Second
	lookFor   = 2 * time.Second
)

// missing is nil when hosts, required interceptors and the backend are there.
func (r *readiness) missing(ctx context.Context) error {
	r.mu.Lock()
	look := r.look
	switch {
	case !r.at.IsZero() && (look != nil || time.Since(r.at) < lookEvery):
		defer r.mu.Unlock()
		return r.known
	case look == nil:
		look = make(chan struct{})
		r.look = look
		go r.see(look)
	}
	r.mu.Unlock()
	select {
	case <-look:
	case <-ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at.IsZero() {
		return errUnseen
	}
	return r.known
}

// see looks, for nobody in particular: who asked may be gone before it has seen.
func (r *readiness) see(done chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), lookFor)
	defer cancel()
	known := masked(r.a.mask, errors.Join(r.blocked(ctx), reachable(ctx, r.file.Backend)))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known, r.at, r.look = known, time.Now(), nil
	close(done)
}

// blocked says which hosts and required interceptors are missing, so that
// operations are blocked whatever they hold.
func (r *readiness) blocked(ctx context.Context) error {
	listings, _ := r.a.hosts.Listings(ctx)
	seen := map[string]bool{}
	var errs []error
	events, _ := eventsToPlan(listings, "")
	for _, event := range events {
		for _, phase := range []abi.Phase{abi.Request, abi.Response} {
			for _, f := range r.a.plan(listings, r.file.Boundary, event, phase).Failures() {
				text := fmt.Sprintf("host %q: %s: %s", f.Host, f.Reason, f.Detail)
				if f.Interceptor != "" {
					text = fmt.Sprintf("interceptor %q: %s: %s", f.Interceptor, f.Reason, f.Detail)
				}
				if !seen[text] {
					seen[text] = true
					errs = append(errs, errors.New(text))
				}
			}
		}
	}
	return errors.Join(errs...)
}

// reachable says whether the backend could be spoken to: its program is there, or
// its address takes connections.
func reachable(ctx context.Context, b *config.Backend) error {
	if b.URL.IsZero() {
		return runnable(b)
	}
	u, err := url.Parse(b.URL.Reveal())
	if err != nil {
		return errors.New("the backend's URL cannot be parsed")
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	if proxy, err := http.ProxyFromEnvironment(&http.Request{URL: u}); err == nil && proxy != nil {
		return nil // it is the proxy's to reach
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return fmt.Errorf("the backend %s cannot be reached: %w", b.URL, err)
	}
	return conn.Close()
}

// runnable says whether a backend's command can be found.
func runnable(b *config.Backend) error {
	program := b.Command[0].Reveal()
	if filepath.Base(program) != program && !filepath.IsAbs(program) {
		program = filepath.Join(b.Dir, program) // as it is started
	}
	if _, err := exec.LookPath(program); err != nil {
		return fmt.Errorf("the backend's command %q (%s): %w; give a program that is in PATH, or its path", b.Command[0], b.Source, errors.Unwrap(err))
	}
	return nil
}
