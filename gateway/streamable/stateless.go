package streamable

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/relay"
	"github.com/weir-mcp/weir/internal/mirror"
	"github.com/weir-mcp/weir/internal/wire"
)

const methodListen = "subscriptions/listen"

// stateless serves one message of the stateless era. It is a scope of its own:
// nothing that another request does can be taken for a part of it.
func (f *Front) stateless(w http.ResponseWriter, r *http.Request, m *wire.Message, version, named string) {
	problem := ""
	switch {
	case version == "":
		problem = "the header " + mirror.VersionHeader + " is missing"
	case named != "" && named != version:
		problem = "the header " + mirror.VersionHeader + " does not match the body"
	case m.Kind == wire.Request || m.Kind == wire.Notification:
		if mirror.Applies(version) {
			problem = mirror.Check(r.Header, m)
		}
	}
	if problem != "" {
		refuse(w, http.StatusBadRequest, answerable(m.Kind, m.ID), mirror.CodeMismatch, problem)
		return
	}
	if twoTokens(m.Params) {
		refuse(w, http.StatusBadRequest, answerable(m.Kind, m.ID), wire.CodeInvalid, textTwoTokens)
		return
	}
	if !f.enter() {
		refuseForNow(w, time.Second, m.ID, textClosing)
		return
	}
	listens := m.Method == methodListen
	if listens {
		// It lasts until somebody ends it: nobody waits for that.
		f.leave()
	} else {
		defer f.leave()
	}
	worker, err := f.workerOf(relay.PrincipalFrom(r.Context()))
	if no, ok := errors.AsType[*notNow](err); ok {
		refuseForNow(w, no.after, m.ID, no.text)
		return
	}
	defer worker.release()
	x := &exchange{
		front: f, worker: worker, r: r, out: newResponder(w, f.stall), listens: listens, id: m.ID, stop: f.ctx.Done(),
		scope: f.base.Fork(relay.PrincipalFrom(r.Context())), wake: make(chan struct{}, 1),
	}
	defer x.scope.Close()
	defer x.out.end()
	x.serve(m, version)
}

const textTwoTokens = "the progress token is ambiguous"

// twoTokens says that a backend might read another progress token in the params
// than the one that is minted anew: it would belong to the request of somebody else
// who shares the backend.
func twoTokens(params []byte) bool {
	if params == nil {
		return false
	}
	variant, tokens := false, 0
	_ = wire.Members(params, func(name string, _, meta []byte) bool {
		if !strings.EqualFold(name, "_meta") {
			return true
		}
		variant = variant || name != "_meta"
		if len(meta) > 0 && meta[0] == '{' {
			_ = wire.Members(meta, func(name string, _, _ []byte) bool {
				if strings.EqualFold(name, "progressToken") {
					tokens++
					variant = variant || name != "progressToken"
				}
				return true
			})
		}
		return true
	})
	return tokens > 1 || tokens > 0 && variant
}

// exchange is one request of the stateless era, with all that the backend sends
// for it.
type exchange struct {
	front  *Front
	worker *worker
	r      *http.Request
	out    *responder
	scope  *relay.Session
	stop   <-chan struct{}

	// id and token are what the client has chosen, minted is what the backend
	// sees in their place; token is nil when there is none.
	id      wire.ID
	token   []byte
	minted  string
	ticket  relay.Ticket
	listens bool
	// answered says that the response has been written, gone that there is nobody
	// to write to, failed that the backend's own answer is an error.
	answered, gone, failed bool

	mu    sync.Mutex
	queue [][]byte
	bytes int
	// over says that the backend is gone, full that the client is too slow, served
	// that nothing more is written.
	over, full, served bool
	wake               chan struct{}
}

// The bounds of what waits for a client that reads slowly: others share the
// backend, and must not wait for it.
const (
	maxWaiting      = 1024
	maxWaitingBytes = 16 << 20
)

// put hands over a message of the backend.
func (x *exchange) put(message []byte) {
	x.mu.Lock()
	switch {
	case x.full || x.served:
	case len(x.queue) > 0 && (len(x.queue) >= maxWaiting || x.bytes+len(message) > maxWaitingBytes):
		x.full = true
		x.out.abort()
	default:
		x.queue = append(x.queue, message)
		x.bytes += len(message)
	}
	x.mu.Unlock()
	x.signal()
}

// fail says that the backend is gone.
func (x *exchange) fail() {
	x.mu.Lock()
	x.over = true
	x.mu.Unlock()
	x.signal()
}

func (x *exchange) signal() {
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

// next takes a message from the queue.
func (x *exchange) next() (message []byte, over, full bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.full {
		return nil, false, true
	}
	if len(x.queue) == 0 {
		return nil, x.over, false
	}
	message = x.queue[0]
	x.queue[0] = nil
	x.queue = x.queue[1:]
	x.bytes -= len(message)
	return message, false, false
}

// serve moves the message, and what comes back.
func (x *exchange) serve(m *wire.Message, version string) {
	rest := x.scope.HandleRead(x.r.Context(), relay.Arrival{From: relay.Client, Raw: m.Raw, At: time.Now(), Version: version, Traceparent: mirror.Traceparent(x.r.Header), Lane: forth{x}}, *m)
	if rest != nil {
		rest()
	}
	if x.minted == "" {
		if !x.answered && !x.gone {
			x.out.w.WriteHeader(http.StatusAccepted)
		}
		return
	}
	slow, silence := time.NewTimer(x.front.slow), time.NewTimer(x.front.o.KeepAlive)
	defer slow.Stop()
	defer silence.Stop()
	for !x.answered && !x.gone {
		message, over, full := x.next()
		switch {
		case message != nil:
			x.receive(message, version)
			silence.Reset(x.front.o.KeepAlive)
			continue
		case over:
			x.end(x.ticket.Fail())
			continue
		case full:
			x.gone = true
			continue
		}
		select {
		case <-x.wake:
		case <-x.r.Context().Done():
			x.gone = true
		case <-x.stop:
			x.end(x.ticket.Fail())
		case <-slow.C:
			x.gone = x.out.start(false) != nil
		case <-silence.C:
			x.gone = x.out.start(true) != nil || x.out.alive() != nil
			silence.Reset(x.front.o.KeepAlive)
		}
	}
	x.mu.Lock()
	x.served = true
	if x.full {
		x.front.log.Warn("a client reads too slowly", "method", wire.Clip(m.Method, longWord))
	}
	x.mu.Unlock()
	if x.worker.leave(x.minted) {
		// Nobody waits for the answer any more.
		w := wire.OpenObject(nil)
		w.Raw("requestId", []byte(x.minted))
		w.String("reason", "the client has disconnected")
		_ = x.worker.send(notification(methodCancelled, w.Close()))
	}
}

// receive moves one message of the backend.
func (x *exchange) receive(message []byte, version string) {
	a := relay.Arrival{From: relay.Backend, Raw: message, At: time.Now(), Version: version, Lane: back{x}}
	m, err := wire.Read(message)
	if err != nil {
		x.scope.HandleUnreadable(a, err)
		return
	}
	x.failed = m.Kind == wire.Failure
	if rest := x.scope.HandleRead(x.r.Context(), a, m); rest != nil {
		rest()
	}
}

// notification writes a notification of the front's own.
func notification(method string, params []byte) []byte {
	w := wire.OpenObject(nil)
	w.String("jsonrpc", "2.0")
	w.String("method", method)
	w.Raw("params", params)
	return w.Close()
}

// end writes the answer.
func (x *exchange) end(out relay.Outgoing) {
	if out.Commit() {
		x.answer(http.StatusOK, out.Message)
	}
	x.answered = true
}

func (x *exchange) answer(status int, message []byte) {
	x.answered = true
	message = wire.Flat(nil, message)
	if x.out.started {
		x.gone = x.out.message("", message) != nil
		return
	}
	x.out.json(status, message)
}

// forth is the lane of what the client sends.
type forth struct{ *exchange }

// Forward sends a message to the backend, under ids that no other request has.
func (l forth) Forward(out relay.Outgoing) {
	if l.r.Context().Err() != nil {
		l.gone = true
		return
	}
	if !out.Commit() {
		return
	}
	message := out.Message
	switch {
	case out.Kind == wire.Request:
		l.exchange.ticket = out.Ticket
		if message = l.remap(message, out.Params); message == nil {
			l.end(l.ticket.Fail())
			return
		}
	case out.Method == methodCancelled:
		// The request it names is in another scope, so in none that is known.
		l.front.discard(relay.Client, relay.CancelledUnseen, &wire.Message{Kind: out.Kind, Method: out.Method}, "requests of the stateless era are cancelled by disconnecting")
		return
	}
	if l.worker.send(message) != nil && l.minted != "" {
		l.end(l.ticket.Fail())
	}
}

// remap gives the request the id, and its progress the token, that the backend is
// to see. It is nil when the backend is gone.
func (l forth) remap(message, params []byte) []byte {
	x := l.exchange
	x.token, _ = wire.Get(params, "_meta", "progressToken")
	id, ok := x.worker.enter(x)
	if !ok {
		return nil
	}
	x.minted = id
	return minted(message, []byte(id))
}

// Answer refuses what the client has sent.
func (l forth) Answer(out relay.Outgoing) {
	if !out.Commit() || len(out.Message) == 0 {
		return
	}
	status := http.StatusOK
	if out.Cause != "" && isRefusal(refusalCode(out.Message)) {
		status = http.StatusBadRequest
	}
	l.answer(status, out.Message)
}

func refusalCode(message []byte) int {
	m, err := wire.Read(message)
	if err != nil {
		return abi.CodeInternal
	}
	return codeOf(&m)
}

// back is the lane of what the backend sends.
type back struct{ *exchange }

// Forward writes a message to the client.
func (l back) Forward(out relay.Outgoing) {
	if !out.Commit() {
		return
	}
	if out.Method == "" {
		if out.Kind == wire.Response && !l.front.o.JSON {
			l.gone = l.out.start(true) != nil
		}
		l.answer(l.status(&out), out.Message)
		return
	}
	l.gone = l.out.start(true) != nil || l.out.message("", wire.Flat(nil, out.Message)) != nil
}

// status is the HTTP status for an answer: an error of the backend's own has the
// one that the protocol of 2026-07-28 names for its code.
func (l back) status(out *relay.Outgoing) int {
	if !l.failed {
		return http.StatusOK
	}
	switch refusalCode(out.Message) {
	case codeMethodNotFound:
		return http.StatusNotFound
	case codeInvalidParams, mirror.CodeMismatch, codeNoCapability, codeNoVersion:
		return http.StatusBadRequest
	default:
		return http.StatusOK
	}
}

// The codes of MCP that have an HTTP status of their own.
const (
	codeInvalidParams = abi.CodeInvalidParams
	codeNoCapability  = -32021
	codeNoVersion     = -32022
)

// Answer would answer the backend, which asks nothing here.
func (l back) Answer(relay.Outgoing) {}

var (
	_ relay.Lane = forth{}
	_ relay.Lane = back{}
)
