package streamable

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/weir-mcp/weir/gateway/relay"
	"github.com/weir-mcp/weir/internal/mirror"
	"github.com/weir-mcp/weir/internal/wire"
)

// ErrSessionLost ends a [Backend] whose session the server does not know any
// more. Nothing is initialised anew behind the client's back: the server's state
// is gone, and only the client knows what to do about it.
var ErrSessionLost = errors.New("the backend does not know the session any more (HTTP 404)")

// The defaults of [BackendOptions].
const (
	DefaultMessage = 16 << 20
	DefaultOpen    = 1024
	DefaultRetries = 5
)

// BackendOptions of [Dial].
type BackendOptions struct {
	// URL of the MCP endpoint, http or https.
	URL string
	// Header is sent with every request. It must not name a header that the
	// protocol or the transport sets itself.
	Header http.Header
	// Transport carries the requests. Nil is one of the backend's own with the
	// usual timeouts for connecting, and none for answers. What it decompresses
	// counts towards Limit.
	Transport http.RoundTripper
	// Limit bounds one message of the server, in bytes; default [DefaultMessage].
	Limit int
	// Open is how many requests may wait for their answers at once; one more is
	// answered with an error. Default [DefaultOpen].
	Open int
	// Retries is how often in a row a broken stream is asked for again before it
	// counts as lost; one that brings an event starts anew. 0 means
	// [DefaultRetries], a negative number never.
	Retries int
	// Logger takes what went wrong, with the details that clients are not told.
	// Nil is silent.
	Logger *slog.Logger
}

// The times of a Backend. They are variables of it so that tests need not wait.
type pace struct {
	// retry is how long the first wait before a stream is asked for again takes,
	// where the server does not say; it doubles up to maxRetry.
	retry, maxRetry time.Duration
	// accept is how long the server may take to accept a notification.
	accept time.Duration
	// linger is how long a stream may stay open once its request is answered or
	// cancelled.
	linger time.Duration
	// overtake is how long a cancellation waits for the server to begin with its
	// answer: the two go over different connections, and it must not be there
	// before the request it names.
	overtake time.Duration
	// farewell is how long the DELETE at the end may take.
	farewell time.Duration
}

var usualPace = pace{retry: time.Second, maxRetry: time.Minute, accept: 30 * time.Second, linger: 2 * time.Second, overtake: 100 * time.Millisecond, farewell: 2 * time.Second}

// Backend is the [relay.End] that leads to an MCP server over streamable HTTP.
// It is one client of that server: at most one session.
type Backend struct {
	o    BackendOptions
	pace pace
	url  string
	name string
	http *http.Client
	own  *http.Transport // nil when it is somebody else's
	log  *slog.Logger

	ctx    context.Context
	cancel context.CancelFunc
	outbox chan *outgoing
	in     chan incoming
	over   chan struct{} // closed with err, the final error of Read
	err    error

	finishOnce, closeOnce, listenOnce sync.Once
	closed                            chan struct{}
	writeClosed                       bool
	running                           sync.WaitGroup // all goroutines
	posts                             sync.WaitGroup // requests that wait for their answers

	tools mirror.Tools
	mu    sync.Mutex
	// session and version are what the initialize settled, empty before.
	session, version string
	// stateless is the protocol version that the last request of the stateless
	// era named: notifications do not name theirs.
	stateless string
	lost      bool
	open      map[string]*post
}

// incoming is what Read gives next.
type incoming struct {
	message []byte
	err     error
}

// outgoing is one message of the client.
type outgoing struct{ wire.Message }

// queued is how many messages wait to be sent before Write blocks.
const queued = 64

// Dial makes a backend. Nothing is sent before the first message. The error
// says what is wrong with the options.
func Dial(o BackendOptions) (*Backend, error) { return dial(o, usualPace) }

func dial(o BackendOptions, p pace) (*Backend, error) {
	u, err := url.Parse(o.URL)
	if err != nil {
		// The error of net/url shows the text, and with it a password.
		return nil, errors.New("the backend's url is not a URL")
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("the backend's url %q must begin with http:// or https:// and a host", u.Redacted())
	}
	for name := range o.Header {
		if canonical := http.CanonicalHeaderKey(name); slices.Contains(ownHeaders, canonical) || hasPrefixFold(canonical, mirror.ParamPrefix) {
			return nil, fmt.Errorf("the header %s is set by the transport: take it out of the backend's headers", canonical)
		}
	}
	if o.Limit <= 0 {
		o.Limit = DefaultMessage
	}
	if o.Open <= 0 {
		o.Open = DefaultOpen
	}
	if o.Retries == 0 {
		o.Retries = DefaultRetries
	}
	b := &Backend{
		o: o, pace: p, url: o.URL, name: u.Redacted(), log: o.Logger,
		outbox: make(chan *outgoing, queued), in: make(chan incoming), over: make(chan struct{}), closed: make(chan struct{}),
		open: map[string]*post{},
	}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	b.log = b.log.With("backend", b.name)
	carrier := o.Transport
	if carrier == nil {
		b.own = http.DefaultTransport.(*http.Transport).Clone()
		b.own.MaxIdleConnsPerHost, b.own.MaxIdleConns = 64, 64
		carrier = b.own
	}
	// No timeout: it would end streams in the middle.
	b.http = &http.Client{Transport: carrier, CheckRedirect: sameOrigin}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.running.Go(b.send)
	return b, nil
}

// ownHeaders are those that no configuration may set.
var ownHeaders = []string{
	"Accept", "Accept-Encoding", "Content-Type", "Content-Length", "Content-Encoding", "Transfer-Encoding", "Connection", "Te", "Trailer", "Upgrade",
	mirror.LastEventIDHeader, mirror.SessionHeader, mirror.VersionHeader, mirror.MethodHeader, mirror.NameHeader,
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && http.CanonicalHeaderKey(s[:len(prefix)]) == prefix
}

// maxRedirects is how many redirects in a row are followed.
const maxRedirects = 5

// sameOrigin follows a redirect only where it stays at the server and repeats
// the request as it was: headers and messages are for nobody else.
func sameOrigin(next *http.Request, before []*http.Request) error {
	first := before[0]
	if len(before) > maxRedirects || next.URL.Scheme != first.URL.Scheme || next.URL.Host != first.URL.Host || next.Method != first.Method {
		return http.ErrUseLastResponse
	}
	return nil
}

// String is the endpoint for messages, without a password.
func (b *Backend) String() string { return b.name }

// Read gives the next message of any of the server's streams. After CloseWrite
// it gives io.EOF once every request has its answer, and [ErrSessionLost] when
// the server has forgotten the session.
func (b *Backend) Read() ([]byte, error) {
	select {
	case i := <-b.in:
		return i.message, i.err
	case <-b.over:
		return nil, b.err
	case <-b.closed:
		return nil, relay.ErrClosed
	}
}

// deliver hands something to Read. It is false when nobody reads any more.
func (b *Backend) deliver(i incoming) bool {
	select {
	case b.in <- i:
		return true
	case <-b.ctx.Done():
		return false
	}
}

// Write queues one message. Messages are sent in order: what is not a request,
// and initialize, has been accepted before the next one goes; a request has been
// sent, but not answered.
func (b *Backend) Write(message []byte) error {
	if b.writeClosed || b.ctx.Err() != nil {
		return relay.ErrClosed
	}
	m, err := wire.Read(bytes.Clone(message))
	if err != nil {
		return fmt.Errorf("not a message: %w", err)
	}
	select {
	case b.outbox <- &outgoing{m}:
		return nil
	case <-b.ctx.Done():
		return relay.ErrClosed
	}
}

// CloseWrite says that nothing more is to be sent. Answers are still read.
func (b *Backend) CloseWrite() error {
	if !b.writeClosed {
		b.writeClosed = true
		close(b.outbox)
	}
	return nil
}

// Close ends all streams and then the session, with a DELETE.
func (b *Backend) Close() error {
	b.closeOnce.Do(func() {
		close(b.closed)
		b.cancel()
		b.running.Wait()
		b.leave()
		if b.own != nil {
			b.own.CloseIdleConnections()
		}
	})
	return nil
}

// finish makes err what Read returns from now on.
func (b *Backend) finish(err error) {
	b.finishOnce.Do(func() {
		b.err = err
		close(b.over)
	})
}

// send sends what has been queued, one after the other.
func (b *Backend) send() {
	for {
		select {
		case out, ok := <-b.outbox:
			if !ok {
				b.posts.Wait()
				b.finish(io.EOF)
				return
			}
			b.dispatch(out)
		case <-b.ctx.Done():
			return
		}
	}
}

const (
	methodInitialize  = "initialize"
	methodInitialized = "notifications/initialized"
	methodCancelled   = "notifications/cancelled"
	methodDiscover    = "server/discover"
	methodToolsList   = "tools/list"
)

func (b *Backend) dispatch(out *outgoing) {
	if out.Kind != wire.Request {
		b.tell(out)
		return
	}
	p, ok := b.begin(out)
	if !ok {
		b.log.Warn("too many requests are open at the backend", "limit", b.o.Open)
		b.deliver(incoming{message: failure(out.ID, textTooMany)})
		return
	}
	b.posts.Add(1)
	b.running.Go(func() {
		defer b.posts.Done()
		defer b.end(p)
		b.ask(p)
	})
	wait := p.sent
	if out.Method == methodInitialize {
		wait = p.settled
	}
	select {
	case <-wait:
	case <-p.done:
	case <-b.ctx.Done():
	}
}

// begin takes up a request, unless too many are open.
func (b *Backend) begin(out *outgoing) (*post, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := out.ID.Key()
	// The relay refuses an id that is in flight; one that was cancelled may
	// still have its stream here.
	if old := b.open[key]; old != nil {
		old.cancel()
	}
	if len(b.open) >= b.o.Open {
		return nil, false
	}
	p := &post{outgoing: out, key: key, sent: make(chan struct{}), begun: make(chan struct{}), settled: make(chan struct{}), done: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancel(b.ctx)
	if v := mirror.Version(&out.Message); mirror.Applies(v) {
		p.stateless = v
		b.stateless = v
	}
	b.open[key] = p
	return p, true
}

func (b *Backend) end(p *post) {
	p.cancel()
	close(p.done)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open[p.key] == p {
		delete(b.open, p.key)
	}
}

// tell sends a notification or a response and waits until it has been accepted.
func (b *Backend) tell(out *outgoing) {
	var target *post
	if out.Method == methodCancelled {
		raw, _ := wire.Get(out.Params, "requestId")
		if id, ok := wire.ParseID(raw); ok {
			b.mu.Lock()
			target = b.open[id.Key()]
			b.mu.Unlock()
		}
		if target != nil && target.stateless != "" {
			// In the stateless era a request is cancelled by hanging up.
			target.cancel()
			return
		}
		if target != nil {
			late := time.NewTimer(b.pace.overtake)
			defer late.Stop()
			select {
			case <-target.begun:
			case <-target.done:
			case <-late.C:
			case <-b.ctx.Done():
			}
		}
	}
	ctx, cancel := context.WithTimeout(b.ctx, b.pace.accept)
	defer cancel()
	r, err := b.do(b.newPost(ctx, out, b.statelessVersion()))
	if target != nil {
		time.AfterFunc(b.pace.linger, target.cancel)
	}
	if err != nil {
		if b.ctx.Err() == nil {
			b.log.Warn("a message was not accepted", "method", wire.Clip(out.Method, longWord), "error", err)
		}
		return
	}
	drop(r)
	switch {
	case r.StatusCode == http.StatusNotFound && r.Request.Header.Get(mirror.SessionHeader) != "":
		b.lose()
	case r.StatusCode < 200 || r.StatusCode > 299:
		b.log.Warn("a message was not accepted", "method", wire.Clip(out.Method, longWord), "status", r.StatusCode)
	case out.Method == methodInitialized && b.sessionEra():
		b.listenOnce.Do(func() { b.running.Go(b.listen) })
	}
}

func (b *Backend) statelessVersion() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.version != "" || b.session != "" {
		return ""
	}
	return b.stateless
}

func (b *Backend) sessionEra() bool { return b.statelessVersion() == "" }

// lose ends everything because the session is gone.
func (b *Backend) lose() {
	b.mu.Lock()
	b.lost = true
	b.mu.Unlock()
	b.finish(ErrSessionLost)
}

// leave tells the server that the session has ended.
func (b *Backend) leave() {
	b.mu.Lock()
	known := b.session != "" && !b.lost
	b.mu.Unlock()
	if !known {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), b.pace.farewell)
	defer cancel()
	r, err := b.do(b.newRequest(ctx, http.MethodDelete, nil))
	if err != nil {
		b.log.Debug("the session was not ended", "error", err)
		return
	}
	drop(r)
}

// longWord bounds a word of a peer in the log, in bytes.
const longWord = 128

var _ relay.End = (*Backend)(nil)
