package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/weir-mcp/weir/internal/wire"
)

// drainTime is how long the calls that run at the end of the input, or when the
// server is told to stop, may still take.
const drainTime = 5 * time.Second

// lastTime is how long calls may take to end once they are cancelled.
const lastTime = 2 * time.Second

var errStuck = errors.New("calls still run or answers are not read; they are left behind")

// ServeStdio serves one connection of newline-delimited messages until the
// input ends or ctx does. Requests run concurrently. Calls that run then are
// answered before it returns, for at most 5 s; after that they are cancelled.
//
// It returns nil in both cases, and an error when the input cannot be read, the
// output cannot be written any more, or a call did not end when cancelled. When
// in is an io.Closer it is closed at the end, so that a read that hangs does not
// outlive the server.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	c := newConnection(s, in, out)
	session, err := s.sdk.Connect(withConnection(context.WithoutCancel(ctx)), c, nil)
	if err != nil {
		c.end(err)
		return err
	}
	stop := context.AfterFunc(ctx, func() { c.finish(nil) })
	defer stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = session.Wait() // what went wrong is the connection's to know
	}()
	select {
	case <-ended:
	case <-c.done:
		// Soon now, unless a call ignores its context or nobody reads.
		late := time.NewTimer(lastTime)
		defer late.Stop()
		select {
		case <-ended:
		case <-late.C:
			c.end(errStuck)
		}
	}
	c.end(nil)
	if closer, ok := in.(io.Closer); ok {
		_ = closer.Close()
	}
	return c.failed()
}

// connection is both the transport and its one connection, with the strict
// reader inside. The SDK sees requests that were accepted, under ids of our own:
// its ids pass through floats, and answers must bear the id as it was spelled.
type connection struct {
	s    *Server
	log  *slog.Logger
	in   *wire.LineReader
	next chan jsonrpc.Message // from the reader to the SDK

	writing sync.Mutex
	out     io.Writer

	done    chan struct{} // closed by end
	endOnce sync.Once

	mu        sync.Mutex
	sequence  int64
	calls     map[jsonrpc.ID]call
	byClient  map[string]jsonrpc.ID // by wire.ID.Key
	finishing bool
	drained   chan struct{} // closed when finishing and no call runs
	err       error
}

// call is a request that has not been answered.
type call struct {
	id        wire.ID // as the client spelled it
	number    int64   // our own
	cancelled bool    // nobody waits for the answer
}

var (
	_ mcp.Transport  = (*connection)(nil)
	_ mcp.Connection = (*connection)(nil)
)

func newConnection(s *Server, in io.Reader, out io.Writer) *connection {
	return &connection{
		s: s, log: s.o.Logger, in: wire.NewLineReader(in, int(s.o.MessageBytes)), out: out,
		next: make(chan jsonrpc.Message), done: make(chan struct{}), drained: make(chan struct{}),
		calls: map[jsonrpc.ID]call{}, byClient: map[string]jsonrpc.ID{},
	}
}

// Connect starts reading.
func (c *connection) Connect(context.Context) (mcp.Connection, error) {
	go c.read()
	return c, nil
}

// SessionID is empty: a stdio connection has none.
func (c *connection) SessionID() string { return "" }

// Read gives the SDK the next message, and the end of the input only when all
// calls have been answered: at the end the SDK cancels what runs and writes
// nothing more, and a client that writes its requests and closes its end is
// owed the answers.
func (c *connection) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-c.next:
		return m, nil
	case <-c.drained:
		return nil, io.EOF
	case <-c.done:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Close is called by the SDK when the connection is done.
func (c *connection) Close() error {
	c.end(nil)
	return nil
}

// finish takes no more requests and has the SDK told of the end when the calls
// that run are answered, or after drainTime.
func (c *connection) finish(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.finishing {
		return
	}
	c.finishing = true
	if c.err == nil {
		c.err = err
	}
	if len(c.calls) == 0 {
		close(c.drained)
		return
	}
	go func() {
		t := time.NewTimer(drainTime)
		defer t.Stop()
		select {
		case <-t.C:
			c.log.Warn("calls that still run at the end of the connection are cancelled", "after", drainTime)
			c.end(nil)
		case <-c.drained:
		case <-c.done:
		}
	}()
}

// end stops everything.
func (c *connection) end(err error) {
	c.mu.Lock()
	if c.err == nil {
		c.err = err
	}
	c.mu.Unlock()
	c.endOnce.Do(func() { close(c.done) })
}

func (c *connection) failed() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// read reads lines until the input ends.
func (c *connection) read() {
	for {
		line, err := c.in.Next()
		if tooLong, ok := errors.AsType[*wire.TooLong](err); ok {
			c.refuse(&wire.Error{Code: wire.CodeInvalid, Reason: "message too large", ID: tooLong.ID, Kind: tooLong.Kind}, err)
			continue
		}
		if err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) {
				err = nil
			}
			c.finish(err)
			return
		}
		m, bad := read(line)
		if bad != nil {
			c.refuse(bad, bad)
			continue
		}
		if !c.take(&m) {
			return
		}
	}
}

// refuse answers a message that was not accepted, unless nobody waits for an
// answer.
func (c *connection) refuse(bad *wire.Error, cause error) {
	c.log.Warn("a message is refused", "kind", bad.Kind.String(), "cause", cause)
	switch bad.Kind {
	case wire.Request:
		_ = c.write(wire.AppendFailure(nil, bad.ID.Raw(), bad.Code, bad.Reason, nil))
	case wire.Unknown: // what looks like its id may be anybody's
		_ = c.write(wire.AppendFailure(nil, nil, bad.Code, bad.Reason, nil))
	}
}

// take passes an accepted message on. It is false when the connection has
// ended.
func (c *connection) take(m *wire.Message) bool {
	var message *jsonrpc.Request
	switch m.Kind {
	case wire.Request:
		var answer []byte
		if message, answer = c.request(m); answer != nil {
			_ = c.write(answer) // write ends the connection when it fails
			return true
		}
	case wire.Notification:
		if message = c.notification(m); message == nil {
			return true
		}
	default:
		c.log.Warn("an answer to a request that this server did not make is dropped", "id", m.ID.String())
		return true
	}
	if message == nil {
		return false
	}
	select {
	case c.next <- message:
		return true
	case <-c.done:
		return false
	}
}

// request enters a request under an id of our own, or gives the answer to one
// that is not passed on. Both are nil when the connection is finishing.
func (c *connection) request(m *wire.Message) (*jsonrpc.Request, []byte) {
	if !serves(m.Method) {
		return nil, notFound(m)
	}
	id, err := c.enter(m.ID)
	switch {
	case err == nil:
		return &jsonrpc.Request{ID: id, Method: m.Method, Params: m.Params}, nil
	case errors.Is(err, errFinishing):
		return nil, nil
	case errors.Is(err, errBusy):
		return nil, busy(m)
	default:
		return nil, wire.AppendFailure(nil, m.ID.Raw(), wire.CodeInvalid, err.Error(), nil)
	}
}

var (
	errFinishing = errors.New("the connection is finishing")
	errBusy      = errors.New("too many requests are in flight")
	errReused    = errors.New("a request with this id is in flight")
)

// enter gives a request an id of our own.
func (c *connection) enter(theirs wire.ID) (jsonrpc.ID, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := theirs.Key()
	switch _, reused := c.byClient[key]; {
	case c.finishing:
		return jsonrpc.ID{}, errFinishing
	case reused:
		return jsonrpc.ID{}, errReused
	case len(c.calls) >= c.s.o.Concurrency:
		return jsonrpc.ID{}, errBusy
	}
	c.sequence++
	id, err := jsonrpc.MakeID(float64(c.sequence))
	if err != nil {
		return jsonrpc.ID{}, err
	}
	c.calls[id], c.byClient[key] = call{id: theirs.Clone(), number: c.sequence}, id
	return id, nil
}

// notification gives what is passed on of a notification, nil for nothing. A
// cancellation is translated to our own id.
func (c *connection) notification(m *wire.Message) *jsonrpc.Request {
	if m.Method != "notifications/cancelled" {
		return &jsonrpc.Request{Method: m.Method, Params: m.Params}
	}
	raw, _ := wire.Get(m.Params, "requestId")
	theirs, ok := wire.ParseID(raw)
	if !ok {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	id, ok := c.byClient[theirs.Key()]
	if !ok {
		return nil // answered already
	}
	running := c.calls[id]
	running.cancelled = true
	c.calls[id] = running
	return &jsonrpc.Request{Method: m.Method, Params: cancelled(running.number)}
}

// Write sends what the SDK has to say.
func (c *connection) Write(_ context.Context, message jsonrpc.Message) error {
	response, ok := message.(*jsonrpc.Response)
	if !ok {
		raw, err := jsonrpc.EncodeMessage(message)
		if err != nil {
			return err
		}
		return c.write(raw)
	}
	answered := c.answered(response.ID)
	defer c.leave(response.ID)
	switch {
	case answered.cancelled || answered.id.IsZero():
		return nil
	case response.Error != nil:
		code, text, data := generic(response.Error)
		return c.write(wire.AppendFailure(nil, answered.id.Raw(), code, text, data))
	default:
		return c.write(wire.AppendResult(nil, answered.id.Raw(), response.Result))
	}
}

// answered frees the client's id, which it may use again once it has read the
// answer.
func (c *connection) answered(id jsonrpc.ID) call {
	c.mu.Lock()
	defer c.mu.Unlock()
	running := c.calls[id]
	delete(c.byClient, running.id.Key())
	return running
}

// leave ends a call whose answer is written.
func (c *connection) leave(id jsonrpc.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.calls[id]; !ok {
		return
	}
	delete(c.calls, id)
	if c.finishing && len(c.calls) == 0 {
		close(c.drained)
	}
}

// write writes one line.
func (c *connection) write(message []byte) error {
	line := append(wire.Flat(nil, message), '\n')
	c.writing.Lock()
	defer c.writing.Unlock()
	if _, err := c.out.Write(line); err != nil {
		c.end(err)
		return err
	}
	return nil
}

// cancelled is the params of a cancellation of one of our own ids.
func cancelled(id int64) []byte {
	return fmt.Appendf(nil, `{"requestId":%d}`, id)
}
