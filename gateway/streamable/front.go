package streamable

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/relay"
	"github.com/weir-mcp/weir/internal/wire"
)

// Why the sessions of a [Front] end, as the cause that [relay.Run] returns.
var (
	ErrShutdown = errors.New("the gateway shuts down")
	ErrIdle     = errors.New("the session has been idle for too long")
	ErrDeleted  = errors.New("the client has ended the session")
)

// The causes of discards that only a front has.
const (
	// Unattributed is a message of a shared backend that belongs to no request.
	Unattributed relay.Cause = "unattributed"
	// BackendAsked is a request of a shared backend: there is nobody to ask.
	BackendAsked relay.Cause = "backend_request"
	// Undelivered is a message that no stream took while there was room for it.
	Undelivered relay.Cause = "undelivered"
)

// The defaults of [FrontOptions].
const (
	DefaultBody       = 4 << 20
	DefaultSessions   = 1000
	DefaultIdle       = 10 * time.Minute
	DefaultEvents     = 1000
	DefaultEventBytes = 16 << 20
	DefaultKeepAlive  = 30 * time.Second
)

// FrontOptions of [NewFront].
type FrontOptions struct {
	// Start starts a backend: one for each session, and one for each principal
	// whose requests are stateless. The principal is nil where nobody has been
	// asked. It is required, and called by many goroutines at once. Close of what
	// it returns must end whatever it started.
	Start func(context.Context, *abi.Principal) (relay.End, error)
	// Relay is for every session; Session and Principal are set by the front.
	Relay relay.Options
	// Body bounds the body of a request, in bytes. Default [DefaultBody].
	Body int
	// Sessions is how many backends there may be at once; one more is refused with
	// HTTP 503. Default [DefaultSessions].
	Sessions int
	// Idle is how long a session, or the backend of a principal, may be without any
	// HTTP request before it is ended. An open stream counts as one. Default
	// [DefaultIdle].
	Idle time.Duration
	// Events and EventBytes bound what one session keeps for streams that are
	// resumed and for messages that wait for a stream. Default [DefaultEvents]
	// and [DefaultEventBytes].
	Events     int
	EventBytes int
	// JSON answers a request with JSON where its answer is the first thing to be
	// sent, within a second. It saves a little, but such an answer cannot be asked
	// for again when its connection breaks. Else the answer is a stream, errors
	// aside.
	JSON bool
	// KeepAlive is how often a comment is sent on a stream that is silent, so that
	// a peer that is gone is noticed. Default [DefaultKeepAlive].
	KeepAlive time.Duration
	// Logger takes what concerns sessions as a whole. Nil is silent.
	Logger *slog.Logger
}

// Front serves clients on streamable HTTP from backends that are processes. It is
// safe for concurrent use. [Front.Shutdown] ends it.
//
// Who calls is [relay.PrincipalFrom] of a request's context. A session is known
// to its principal only.
type Front struct {
	o   FrontOptions
	log *slog.Logger
	// base is what the scopes of stateless requests are made from.
	base   *relay.Session
	ctx    context.Context
	cancel context.CancelCauseFunc
	// slow is how long an answer may take before its stream is opened without it.
	slow time.Duration
	// stall is how long writing one event to a client may take.
	stall time.Duration

	running sync.WaitGroup
	mu      sync.Mutex
	// backends is how many there are, those that start or end included.
	backends int
	sessions map[string]*session
	pools    map[string]*pool
	closing  bool
	// calls is how many requests wait for their answers; none is signalled when
	// there is none while closing.
	calls int
	none  chan struct{}
}

// NewFront makes a front.
func NewFront(o FrontOptions) *Front {
	for _, d := range []struct {
		n   *int
		def int
	}{{&o.Body, DefaultBody}, {&o.Sessions, DefaultSessions}, {&o.Events, DefaultEvents}, {&o.EventBytes, DefaultEventBytes}} {
		if *d.n <= 0 {
			*d.n = d.def
		}
	}
	if o.Idle <= 0 {
		o.Idle = DefaultIdle
	}
	if o.KeepAlive <= 0 {
		o.KeepAlive = DefaultKeepAlive
	}
	f := &Front{o: o, log: o.Logger, slow: time.Second, stall: time.Minute, sessions: map[string]*session{}, pools: map[string]*pool{}, none: make(chan struct{})}
	if f.log == nil {
		f.log = slog.New(slog.DiscardHandler)
	}
	if f.o.Relay.Observer == nil {
		f.o.Relay.Observer = relay.NewLogObserver(f.log)
	}
	f.base = relay.NewSession(f.o.Relay)
	f.ctx, f.cancel = context.WithCancelCause(context.Background())
	return f
}

// Sessions is how many backends there are, those that start or end included.
func (f *Front) Sessions() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.backends
}

// Shutdown takes no new requests, lets those that are open be answered while ctx
// lasts, and then ends all sessions and their backends. It returns when they have
// ended; the error is ctx's if requests were still open. It may be called more
// than once.
func (f *Front) Shutdown(ctx context.Context) (err error) {
	f.mu.Lock()
	f.closing = true
	f.noteNone()
	f.mu.Unlock()
	select {
	case <-f.none:
	case <-ctx.Done():
		err = ctx.Err()
	}
	f.cancel(ErrShutdown)
	f.base.Close()
	f.running.Wait()
	return err
}

// noteNone signals that no call is open. f.mu is held.
func (f *Front) noteNone() {
	if f.closing && f.calls == 0 {
		select {
		case <-f.none:
		default:
			close(f.none)
		}
	}
}

// enter counts a call that is to be waited for at shutdown. It is false when
// there is to be none any more.
func (f *Front) enter() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closing {
		return false
	}
	f.calls++
	return true
}

func (f *Front) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls--
	f.noteNone()
}

// take makes room for one more backend; release gives it back. The goroutine that
// serves it is counted with it.
func (f *Front) take() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closing || f.backends >= f.o.Sessions {
		return false
	}
	f.backends++
	f.running.Add(1)
	return true
}

func (f *Front) release() {
	f.mu.Lock()
	f.backends--
	f.mu.Unlock()
	f.running.Done()
}

func (f *Front) isClosing() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closing
}

// discard reports a message that did not pass.
func (f *Front) discard(from relay.Side, cause relay.Cause, m *wire.Message, detail string) {
	d := relay.Discard{From: from, Cause: cause, Detail: detail, Kind: wire.Unknown.String()}
	if m != nil {
		d.Kind, d.Method = m.Kind.String(), wire.Clip(m.Method, longWord)
	}
	f.o.Relay.Observer.Discarded(d)
}

// What a client is told that gets no answer from a backend.
const (
	textBusy       = "too many sessions; try again later"
	textDown       = "the backend is not available"
	textClosing    = "the gateway is shutting down"
	textReused     = "a request with this id is in flight"
	textNoSession  = "there is no such session"
	textTooLarge   = "the message is larger than the gateway accepts"
	textNeedsStart = "the header Mcp-Session-Id is missing"
)

const codeInvalid = wire.CodeInvalid

// refuse answers with an HTTP status and a JSON-RPC error.
func refuse(w http.ResponseWriter, status int, id wire.ID, code int, text string) {
	writeJSON(w, status, wire.AppendFailure(nil, id.Raw(), code, text, nil))
}

// refuseForNow says when to try again.
func refuseForNow(w http.ResponseWriter, after time.Duration, id wire.ID, text string) {
	w.Header().Set("Retry-After", strconv.Itoa(max(1, int((after+time.Second-1)/time.Second))))
	refuse(w, http.StatusServiceUnavailable, id, abi.CodeInternal, text)
}

func writeJSON(w http.ResponseWriter, status int, message []byte) {
	h := w.Header()
	h.Set("Content-Type", jsonType)
	h.Set("Content-Length", strconv.Itoa(len(message)))
	w.WriteHeader(status)
	_, _ = w.Write(message)
}

var _ http.Handler = (*Front)(nil)
