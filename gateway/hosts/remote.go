package hosts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/wire"
)

// Bounds on what a host elsewhere may send.
const (
	// MaxAnswer is the largest answer in bytes: 4 MiB of payload and 64 KiB
	// around it (abi.md "Limits").
	MaxAnswer = 4<<20 + 64<<10

	maxPages        = 1_000 // protocol.md §2
	maxInterceptors = 10_000
	maxListBytes    = 16 << 20

	// maxWithRequest bounds payload and request together, in bytes, where the one
	// goes with the other: as much as a payload alone may have (abi.md "Limits").
	maxWithRequest = 4 << 20

	// stuckAfter is how long a call that was given up may take to return before
	// its connection counts as broken: the peer does not read. It is long, since
	// a peer that is only slow must not lose the calls of others to one whose
	// payload it was slow to take.
	stuckAfter = 2 * time.Second

	// rereads is how often a list of several pages is read before it counts as one
	// that never settles.
	rereads = 5

	// relistLimit is how long a connection that is in use may take to bring a
	// list before it counts as broken.
	relistLimit = 8 * time.Second
)

// Processes that live no longer than shortLife one after the other are started
// again after a pause, which grows to flapPause at most: a program that dies of
// itself is not started over and over at once. Those who wait for the host wait
// for that, too; nothing fails because of it.
const (
	shortLife = 10 * time.Second
	flapPause = time.Second
)

// remote is a host in another process, whatever the transport.
type remote struct {
	host     *Host
	envelope bool
	request  bool // goes along, see [Options.Request]
	out      string
	// dial makes a new connection; it is never called twice at once.
	dial func(ctx context.Context) (*connection, error)

	known offer // the list that was read last, in force or not; discovery's alone

	mu     sync.Mutex
	conn   *connection // the last one, lost or not; nil when there was none
	closed bool
	ending sync.WaitGroup // connections on their way out
	flaps  int            // processes in a row that did not live long
}

func newRemote(h *Host, o Options, wayOut string) *remote {
	return &remote{host: h, envelope: o.Envelope, request: o.Request, out: wayOut}
}

// connection is one MCP session and what has to end with it.
type connection struct {
	session *mcp.ClientSession
	// stream says that everything goes over one stream, so that a failure to send
	// or to receive is the end of it.
	stream bool
	since  time.Time
	// lost is closed when the connection cannot be used any more.
	lost    chan struct{}
	once    sync.Once
	release release
}

// release ends a transport, at the latest when ctx ends, and returns when it is
// gone. Goodbye is closed when the session has ended by itself.
type release func(ctx context.Context, goodbye <-chan struct{})

func (c *connection) lose() { c.once.Do(func() { close(c.lost) }) }

func (c *connection) alive() bool {
	select {
	case <-c.lost:
		return false
	default:
		return true
	}
}

// current is the connection in use, or nil.
func (r *remote) current() *connection {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conn != nil && r.conn.alive() {
		return r.conn
	}
	return nil
}

func (r *remote) valid() bool { return r.current() != nil }

// connect returns the connection in use, or a new one. Discovery alone calls
// it, one at a time.
func (r *remote) connect(ctx context.Context) (c *connection, isNew bool, err error) {
	if c := r.current(); c != nil {
		return c, false, nil
	}
	if err := r.settle(ctx); err != nil {
		return nil, false, err
	}
	c, err = r.dial(ctx)
	if err != nil {
		return nil, false, unlessAnswered(err)
	}
	c.since = time.Now()
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		c.lose()
		r.supervise(c)
		return nil, false, errClosed
	}
	r.conn = c
	r.ending.Go(func() { r.supervise(c) })
	r.mu.Unlock()
	return c, true, nil
}

// settle waits before a new connection is made where the last ones did not live
// long.
func (r *remote) settle(ctx context.Context) error {
	r.mu.Lock()
	flaps := r.flaps
	r.mu.Unlock()
	if flaps < 2 {
		return nil
	}
	timer := time.NewTimer(jitter(grown(flaps-1, flapPause)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// answerIn is the error that the host answered, where err holds one. The SDK has
// errors of its own of the same type; that of HTTP's transport is not exported.
func answerIn(err error) (*jsonrpc.Error, bool) {
	e, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || errors.Is(err, mcp.ErrConnectionClosed) || e.Code == codeRejected && e.Message == textRejected {
		return nil, false
	}
	return e, true
}

const (
	codeRejected = -32005
	textRejected = "rejected by transport"
)

// unlessAnswered is err as the failure of a transport, unless the host answered.
func unlessAnswered(err error) error {
	if _, ok := answerIn(err); ok {
		return err
	}
	return &unreachable{err}
}

func (r *remote) wayOut() string { return r.out }

// supervise waits for the end of a connection, from either side, and clears up
// after it.
func (r *remote) supervise(c *connection) {
	gone := make(chan struct{})
	go func() {
		_ = c.session.Wait() // why it ended shows in the calls that failed
		close(gone)
	}()
	select {
	case <-gone:
		c.lose()
	case <-c.lost:
	}
	r.mu.Lock()
	if c.stream && time.Since(c.since) < shortLife {
		r.flaps++
	} else {
		r.flaps = 0
	}
	r.mu.Unlock()
	r.host.wake()
	// Closing the session waits for calls in flight, which only the end of the
	// transport may end.
	closed := make(chan struct{})
	go func() {
		_ = c.session.Close()
		close(closed)
	}()
	ctx, cancel := context.WithTimeout(context.Background(), r.host.grace)
	defer cancel()
	c.release(ctx, closed)
	<-closed
	<-gone
}

// closeGrace is how long a peer may take to leave when it is asked to: the grace
// of every host outside of tests.
const closeGrace = 2 * time.Second

func (r *remote) close(ctx context.Context) error {
	r.mu.Lock()
	r.closed = true
	if r.conn != nil {
		r.conn.lose()
	}
	r.mu.Unlock()
	done := make(chan struct{})
	go func() {
		r.ending.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("host %q: %w while its connection was closing", r.host.name, context.Cause(ctx))
	}
}

// list fetches the list. A connection that turns out to be broken is made anew
// at once: that it broke is no reason to have no list.
func (r *remote) list(ctx context.Context) (offer, error) {
	c, isNew, err := r.connect(ctx)
	if err != nil {
		return offer{}, err
	}
	if isNew {
		return r.settled(ctx, c)
	}
	short, cancel := context.WithTimeout(ctx, relistLimit)
	defer cancel()
	found, err := r.settled(short, c)
	if _, broken := errors.AsType[*unreachable](err); !broken || ctx.Err() != nil {
		return found, err
	}
	c.lose()
	if c, _, err = r.connect(ctx); err != nil {
		return offer{}, err
	}
	return r.settled(ctx, c)
}

// settled fetches a list until it has been the same twice, unless it is the one
// that is known or fits on a page. One that changes between two of its pages may
// lack what has moved from one to the other: a guard would be gone for a minute.
func (r *remote) settled(ctx context.Context, c *connection) (offer, error) {
	found, pages, err := r.pages(ctx, c)
	for range rereads {
		if err != nil {
			return offer{}, err
		}
		if pages == 1 || found.same(r.known) {
			r.known = found
			return found, nil
		}
		r.known = found
		found, pages, err = r.pages(ctx, c)
	}
	return offer{}, errUnsettled
}

var errUnsettled = errors.New("its list changes each time it is read")

// pages follows the pages of interceptors/list and says how many there were.
func (r *remote) pages(ctx context.Context, c *connection) (offer, int, error) {
	var out offer
	var cursor string
	cursors := make(map[string]struct{})
	names := make(map[string]struct{})
	bytes := 0
	for page := 1; ; page++ {
		raw, err := r.call(ctx, c, abi.MethodList, abi.ListParams{Cursor: cursor}.AppendJSON(nil), nil)
		if err != nil {
			if ctx.Err() != nil {
				c.lose() // it had its time
			}
			return offer{}, 0, listError(err)
		}
		if err := admissible(raw); err != nil {
			return offer{}, 0, fmt.Errorf("page %d of its list: %w", page, err)
		}
		p, err := abi.ReadPage(raw)
		if err != nil {
			return offer{}, 0, fmt.Errorf("page %d: %w", page, err)
		}
		out.take(p, names)
		bytes += len(raw)
		if bytes > maxListBytes || len(out.interceptors)+len(out.skipped) > maxInterceptors {
			return offer{}, 0, fmt.Errorf("its list holds more than %d interceptors or %d bytes", maxInterceptors, maxListBytes)
		}
		if cursor = p.NextCursor; cursor == "" {
			return out, page, nil
		}
		if _, again := cursors[cursor]; again {
			return offer{}, 0, fmt.Errorf("page %d of its list names a cursor that came before: the list has no end", page)
		}
		cursors[cursor] = struct{}{}
		if page == maxPages {
			return offer{}, 0, fmt.Errorf("its list has more than %d pages", maxPages)
		}
	}
}

// take adds a page. Of two interceptors with one name the first stays: names
// are unique in a host (protocol.md §2).
func (o *offer) take(p abi.Page, names map[string]struct{}) {
	o.skipped = append(o.skipped, p.Skipped...)
	for i, d := range p.Interceptors {
		if _, twice := names[d.Name]; twice {
			o.skipped = append(o.skipped, abi.Skipped{Index: i, Name: d.Name, Err: errTwice})
			continue
		}
		names[d.Name] = struct{}{}
		o.interceptors = append(o.interceptors, d)
	}
}

func (o offer) same(p offer) bool {
	return slices.EqualFunc(o.skipped, p.skipped, sameSkip) && sameInterceptors(o.interceptors, p.interceptors)
}

var errTwice = errors.New("another interceptor of the host has this name")

func listError(err error) error {
	if answer, ok := answerIn(err); ok && answer.Code == jsonrpc.CodeMethodNotFound {
		return fmt.Errorf("is no interceptor server: it does not know %s", abi.MethodList)
	}
	return unlessAnswered(fmt.Errorf("%s failed: %w", abi.MethodList, err))
}

func (r *remote) invoke(ctx context.Context, inv abi.Invocation) (abi.Result, error) {
	outer := ctx
	if inv.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, inv.Timeout)
		defer cancel()
	}
	raw, err := r.answer(ctx, inv)
	if e, ok := errors.AsType[*abi.Error](err); ok && e.Reason == abi.ReasonParams {
		r.host.doubt() // it may not have the interceptor any more
	}
	switch {
	case err == nil:
	case ctx.Err() != nil && outer.Err() == nil:
		return abi.Result{}, abi.TimedOut(inv.Name, inv.Phase, inv.Timeout, err)
	case outer.Err() != nil:
		return abi.Result{}, abi.AsError(outer.Err(), inv.Name, inv.Phase)
	default:
		return abi.Result{}, err
	}
	if len(raw) > MaxAnswer {
		return abi.Result{}, abi.Failed(inv.Name, inv.Phase, abi.ReasonOutputTooLarge, fmt.Errorf("the answer has %d bytes", len(raw)))
	}
	result, err := r.read(inv, raw)
	if err != nil {
		return abi.Result{}, abi.Failed(inv.Name, inv.Phase, abi.ReasonBadOutput, err)
	}
	return result, nil
}

// answer sends the invocation and returns what came back, unread. What the host
// answered to discovery, where that was needed first, is no answer to inv.
func (r *remote) answer(ctx context.Context, inv abi.Invocation) (json.RawMessage, error) {
	c, err := r.reach(ctx)
	if err != nil {
		return nil, abi.Failed(inv.Name, inv.Phase, abi.ReasonUnavailable, err)
	}
	raw, err := r.call(invoking(ctx), c, abi.MethodInvoke, r.params(inv), r.meta(inv))
	if err != nil {
		return nil, failure(inv, err)
	}
	return raw, nil
}

// reach returns the connection in use; where there is none it waits for
// discovery to make one, with its pauses.
func (r *remote) reach(ctx context.Context) (*connection, error) {
	if c := r.current(); c != nil {
		return c, nil
	}
	if r.host.needs(time.Now()) == wait && !r.host.await(ctx, r.host.discover()) {
		return nil, ctx.Err()
	}
	if c := r.current(); c != nil {
		return c, nil
	}
	if s := r.host.state.Load(); s != nil && s.listing.Err != nil {
		return nil, s.listing.Err
	}
	return nil, errLost
}

var errLost = errors.New("the connection to the host is lost")

func (r *remote) params(inv abi.Invocation) json.RawMessage {
	if r.enveloped(inv) {
		payload := inv.Payload
		if len(payload) == 0 {
			payload = json.RawMessage("{}")
		}
		inv.Payload = abi.Wrap(inv.Event, payload)
	}
	return inv.AppendJSON(nil)
}

func (r *remote) enveloped(inv abi.Invocation) bool { return r.envelope && inv.Phase == abi.Request }

// read reads an answer that nobody has checked yet.
func (r *remote) read(inv abi.Invocation, raw json.RawMessage) (abi.Result, error) {
	if err := admissible(raw); err != nil {
		return abi.Result{}, err
	}
	result, err := abi.ReadResult(raw)
	if err != nil || result.Payload == nil || !r.enveloped(inv) {
		return result, err
	}
	bare, ok := abi.Unwrap(inv.Event, result.Payload)
	if !ok {
		return abi.Result{}, errors.New("the payload came back without its envelope")
	}
	result.Payload = bare
	return result, nil
}

func admissible(raw json.RawMessage) error {
	if len(raw) > MaxAnswer {
		return fmt.Errorf("the answer has %d bytes, over the limit of %d", len(raw), MaxAnswer)
	}
	return wire.Strict(raw)
}

// failure turns what went wrong with a call into the error of its invocation.
func failure(inv abi.Invocation, err error) *abi.Error {
	answer, ok := answerIn(err)
	if !ok {
		return abi.Failed(inv.Name, inv.Phase, abi.ReasonUnavailable, err)
	}
	data := answer.Data
	if wire.Strict(data) != nil {
		data = nil
	}
	return abi.ReadError(inv.Name, inv.Phase, int(answer.Code), clip(answer.Message), data)
}

// call sends one request and returns the result as sent. It returns when ctx
// ends, even while the peer does not read; the connection is given up then.
// Meta is members of "_meta".
func (r *remote) call(ctx context.Context, c *connection, method string, params, meta []byte) (json.RawMessage, error) {
	type answer struct {
		result *rawResult
		err    error
	}
	answered := make(chan answer, 1)
	go func() {
		result, err := mcp.CallCustomMethod[*rawParams, *rawResult](ctx, c.session, method, &rawParams{raw: params, meta: meta})
		answered <- answer{result, err}
	}()
	select {
	case a := <-answered:
		if a.err != nil {
			// Nobody else is to be sent that way.
			if _, answered := answerIn(a.err); errors.Is(a.err, mcp.ErrConnectionClosed) || c.stream && !answered && ctx.Err() == nil {
				c.lose()
			}
			return nil, a.err
		}
		return a.result.raw, nil
	case <-ctx.Done():
		stuck := time.AfterFunc(stuckAfter, c.lose)
		go func() {
			<-answered
			stuck.Stop()
		}()
		return nil, ctx.Err()
	}
}

// open begins an MCP session and promises the transport's end to release.
func (h *Host) open(ctx context.Context, t mcp.Transport, end release) (*connection, error) {
	client := mcp.NewClient(&mcp.Implementation{Name: "weir", Version: h.version}, &mcp.ClientOptions{
		Capabilities:   &mcp.ClientCapabilities{},
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
	})
	for _, method := range []string{abi.MethodList, abi.MethodInvoke} {
		if err := mcp.AddSendingCustomMethod[*rawParams, *rawResult](client, method); err != nil {
			return nil, err
		}
	}
	session, err := client.Connect(ctx, t, nil)
	if err != nil {
		grace, cancel := context.WithTimeout(context.Background(), h.grace)
		defer cancel()
		closed := make(chan struct{})
		close(closed)
		end(grace, closed)
		return nil, err
	}
	return &connection{session: session, lost: make(chan struct{}), release: end}, nil
}
