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

	// stuckAfter is how long a call that was given up may take to return before
	// its connection counts as broken: the peer does not read.
	stuckAfter = 250 * time.Millisecond
)

// remote is a host in another process, whatever the transport.
type remote struct {
	host     *Host
	envelope bool
	// dial makes a new connection; it is never called twice at once.
	dial func(ctx context.Context) (*connection, error)

	mu     sync.Mutex
	conn   *connection // nil when there is none or it is lost
	closed bool
	ending sync.WaitGroup // connections on their way out
}

// connection is one MCP session and what has to end with it.
type connection struct {
	session *mcp.ClientSession
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
func (r *remote) connect(ctx context.Context) (*connection, error) {
	if c := r.current(); c != nil {
		return c, nil
	}
	c, err := r.dial(ctx)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		c.lose()
		r.supervise(c)
		return nil, errClosed
	}
	r.conn = c
	r.ending.Go(func() { r.supervise(c) })
	r.mu.Unlock()
	return c, nil
}

var errClosed = errors.New("the gateway is closing")

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

// list follows the pages of interceptors/list.
func (r *remote) list(ctx context.Context) (offer, error) {
	c, err := r.connect(ctx)
	if err != nil {
		return offer{}, err
	}
	var out offer
	var cursor string
	cursors := make(map[string]struct{})
	names := make(map[string]struct{})
	bytes := 0
	for page := 1; ; page++ {
		raw, err := r.call(ctx, c, abi.MethodList, abi.ListParams{Cursor: cursor}.AppendJSON(nil))
		if err != nil {
			if ctx.Err() != nil {
				c.lose() // it had its time
			}
			return offer{}, listError(err)
		}
		if err := admissible(raw); err != nil {
			return offer{}, fmt.Errorf("page %d of its list: %w", page, err)
		}
		p, err := abi.ReadPage(raw)
		if err != nil {
			return offer{}, fmt.Errorf("page %d: %w", page, err)
		}
		out.take(p, names)
		bytes += len(raw)
		if bytes > maxListBytes || len(out.interceptors)+len(out.skipped) > maxInterceptors {
			return offer{}, fmt.Errorf("its list holds more than %d interceptors or %d bytes", maxInterceptors, maxListBytes)
		}
		if cursor = p.NextCursor; cursor == "" {
			return out, nil
		}
		if _, again := cursors[cursor]; again {
			return offer{}, fmt.Errorf("page %d of its list names a cursor that came before: the list has no end", page)
		}
		cursors[cursor] = struct{}{}
		if page == maxPages {
			return offer{}, fmt.Errorf("its list has more than %d pages", maxPages)
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

var errTwice = errors.New("another interceptor of the host has this name")

func listError(err error) error {
	var answer *jsonrpc.Error
	if errors.As(err, &answer) && answer.Code == jsonrpc.CodeMethodNotFound {
		return fmt.Errorf("is no interceptor server: it does not know %s", abi.MethodList)
	}
	return fmt.Errorf("%s failed: %w", abi.MethodList, err)
}

func (r *remote) invoke(ctx context.Context, inv abi.Invocation) (abi.Result, error) {
	outer := ctx
	if inv.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, inv.Timeout)
		defer cancel()
	}
	raw, err := r.answer(ctx, inv)
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
	raw, err := r.call(ctx, c, abi.MethodInvoke, r.params(inv))
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
	if r.host.needs(time.Now()) == wait {
		select {
		case <-r.host.discover().done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
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
	var answer *jsonrpc.Error
	if errors.Is(err, mcp.ErrConnectionClosed) || !errors.As(err, &answer) {
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
func (r *remote) call(ctx context.Context, c *connection, method string, params json.RawMessage) (json.RawMessage, error) {
	type answer struct {
		result *rawResult
		err    error
	}
	answered := make(chan answer, 1)
	go func() {
		result, err := mcp.CallCustomMethod[*rawParams, *rawResult](ctx, c.session, method, &rawParams{raw: params})
		answered <- answer{result, err}
	}()
	select {
	case a := <-answered:
		if a.err != nil {
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

// rawParams and rawResult carry JSON through the SDK as it is: what an
// interceptor sees and answers keeps its spelling.
type rawParams struct {
	mcp.ParamsBase
	raw json.RawMessage
}

// MarshalJSON is the params with what the protocol version wants in "_meta"
// (2026-07-28 says in each request who speaks which version).
func (p *rawParams) MarshalJSON() ([]byte, error) {
	if len(p.Meta) == 0 {
		return p.raw, nil
	}
	meta, err := json.Marshal(p.Meta)
	if err != nil {
		return nil, err
	}
	out := slices.Grow([]byte(nil), len(p.raw)+len(meta)+16)
	out = append(out, p.raw[:len(p.raw)-1]...)
	if len(p.raw) > len("{}") {
		out = append(out, ',')
	}
	out = append(out, `"_meta":`...)
	out = append(out, meta...)
	return append(out, '}'), nil
}

type rawResult struct {
	mcp.ResultBase
	raw json.RawMessage
}

// UnmarshalJSON only keeps the bytes; [remote.read] judges them.
func (r *rawResult) UnmarshalJSON(b []byte) error {
	r.raw = append(json.RawMessage(nil), b...)
	return nil
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
