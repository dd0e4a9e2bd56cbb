package proxy

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/weir-mcp/weir/gateway/relay"
	"github.com/weir-mcp/weir/internal/mirror"
	"github.com/weir-mcp/weir/internal/wire"
)

const (
	typeJSON = "application/json"
	typeSSE  = "text/event-stream"
)

// Texts of the proxy's own answers. They are generic, as the relay's are.
const (
	textNoSession = "session not found"
	textCrowded   = "too many sessions"
	textGone      = "the backend is gone; the request may or may not have been carried out"
	textNoAnswer  = "the answer of the backend cannot be passed on"
	textTooLarge  = "the message is larger than the gateway accepts"
	textMarks     = "too many cancelled requests in this session"
)

// exchange is one request of a client and what comes of it.
type exchange struct {
	p      *Proxy
	w      http.ResponseWriter
	r      *http.Request
	ctx    context.Context
	cancel context.CancelFunc
	scope  *scope
}

// post serves one message of a client.
func (x *exchange) post() {
	at := time.Now()
	if text, status := unreadable(x.r.Header); status != 0 {
		x.refuse(status, nil, wire.CodeInvalid, text)
		return
	}
	body, long, err := x.body()
	if err != nil {
		return // the client is gone
	}
	var m wire.Message
	var bad error
	if long == nil {
		if m, bad = wire.Read(body); bad == nil {
			if text := contradiction(x.r.Header, &m); text != "" {
				x.refuse(http.StatusBadRequest, m.ID.Raw(), mirror.CodeMismatch, text)
				return
			}
		}
	}
	if !x.enter(bad == nil && m.Method == methodInitialize, false) {
		return
	}
	defer x.leave()
	if m.Method == methodListen {
		// The stream to listen on of 2026-07-28: nobody waits for its answer.
		defer context.AfterFunc(x.p.streams, x.cancel)()
	}

	l := &postLane{}
	a := relay.Arrival{From: relay.Client, Raw: body, At: at, Version: x.r.Header.Get(mirror.VersionHeader), Traceparent: mirror.Traceparent(x.r.Header), Lane: l}
	switch {
	case long != nil:
		x.scope.session.HandleTooLong(a, long)
	case bad != nil:
		x.scope.session.HandleUnreadable(a, bad)
	default:
		if rest := x.scope.session.HandleRead(x.ctx, a, m); rest != nil {
			rest()
		}
	}
	if x.overflown() {
		x.refuse(http.StatusNotFound, nil, wire.CodeInvalid, textMarks)
		return
	}
	switch {
	case l.forward != nil && (long != nil || bad != nil):
		// An answer that cannot be passed on: the backend gets an error in its place.
		x.tell(x.ctx, l.forward.Message)
		if long != nil {
			x.refuse(http.StatusRequestEntityTooLarge, nil, wire.CodeInvalid, textTooLarge)
			return
		}
		x.refuse(http.StatusBadRequest, nil, wire.AsError(bad).Code, wire.AsError(bad).Reason)
	case l.forward != nil:
		x.send(l.forward, &m)
	case l.answer != nil && l.answer.Message != nil:
		x.write(refusalStatus(l.answer.Cause), l.answer.Message)
	case l.answer != nil:
		x.w.WriteHeader(refusalStatus(l.answer.Cause))
	default:
		// Cancelled before it had passed.
		x.w.WriteHeader(http.StatusAccepted)
	}
}

// postLane is the lane of the message in a POST: it keeps what is to be written
// until everything about the message has been decided.
type postLane struct {
	forward, answer *relay.Outgoing
}

// Forward keeps what is for the backend.
func (l *postLane) Forward(out relay.Outgoing) {
	if out.Commit() {
		l.forward = &out
	}
}

// Answer keeps what is for the client.
func (l *postLane) Answer(out relay.Outgoing) {
	if out.Commit() {
		l.answer = &out
	}
}

var _ relay.Lane = (*postLane)(nil)

// refusalStatus is the HTTP status that goes with an answer of the relay, and of a
// message that was dropped (protocol.md §6 "What is refused").
func refusalStatus(c relay.Cause) int {
	switch c {
	case "":
		return http.StatusOK
	case relay.TooLarge:
		return http.StatusRequestEntityTooLarge
	case relay.TableFull, relay.Closing:
		return http.StatusServiceUnavailable
	case relay.UnknownResponse, relay.DuplicateResponse, relay.CancelledResponse, relay.CancelledUnseen, relay.BlockedInside,
		relay.NotLetThrough:
		// The message is fine, and nobody waits for it.
		return http.StatusAccepted
	default:
		return http.StatusBadRequest
	}
}

// enter finds the scope, and answers the client when there is none. A fresh one
// may become a session.
func (x *exchange) enter(fresh, known bool) bool {
	id := x.r.Header.Get(mirror.SessionHeader)
	principal := relay.PrincipalFrom(x.r.Context())
	switch {
	case id == "" && !fresh:
		x.scope = &scope{session: x.p.alone.Fork(principal)}
		return true
	case id == "":
		if x.p.scopes.crowded() {
			return x.noRoom()
		}
		x.scope = x.newScope("")
		return true
	case len(id) > longSessionID:
		http.Error(x.w, textNoSession, http.StatusNotFound)
		return false
	}
	s, crowded := x.p.scopes.enter(id, principal, known, func() *scope { return x.newScope(id) })
	switch {
	case crowded:
		return x.noRoom()
	case s == nil:
		http.Error(x.w, textNoSession, http.StatusNotFound)
	default:
		x.scope = s
		return true
	}
	return false
}

// noRoom answers when no session can be taken up.
func (x *exchange) noRoom() bool {
	x.w.Header().Set("Retry-After", "10")
	http.Error(x.w, textCrowded, http.StatusServiceUnavailable)
	return false
}

func (x *exchange) newScope(id string) *scope {
	o := x.p.o.Relay
	o.Principal = relay.PrincipalFrom(x.r.Context())
	if id != "" {
		o.Session = relay.SessionName(id)
	}
	return &scope{id: id, session: relay.NewSession(o), principal: o.Principal, trails: newTrails()}
}

// leave ends the exchange's part in its scope.
func (x *exchange) leave() {
	if x.scope.id == "" {
		x.scope.session.Close()
		return
	}
	x.p.scopes.leave(x.scope)
}

// overflown ends a session with too many marks.
func (x *exchange) overflown() bool {
	select {
	case <-x.scope.session.Overflow():
		x.p.scopes.end(x.scope)
		return true
	default:
		return false
	}
}

// opened takes up the session that the answer to initialize has opened, before
// anything of the answer is passed on.
func (x *exchange) opened(res *http.Response) bool {
	id := res.Header.Get(mirror.SessionHeader)
	if x.scope.id != "" || x.scope.trails == nil || id == "" || len(id) > longSessionID {
		return true
	}
	x.scope.id, x.scope.session.Session, x.scope.uses = id, relay.SessionName(id), 1
	if x.p.scopes.open(x.scope) {
		return true
	}
	x.scope.id = ""
	return false
}

// body reads the client's message. A *wire.TooLong stands for one that was
// discarded.
func (x *exchange) body() ([]byte, *wire.TooLong, error) {
	limit := int64(x.p.o.ClientLimit)
	if x.r.ContentLength > limit {
		long := &wire.TooLong{Max: limit, Size: x.r.ContentLength}
		if x.r.ContentLength > 2*limit {
			x.w.Header().Set("Connection", "close") // the rest is not read
		}
		var s wire.Skimmer
		_, _ = io.CopyN(feed{&s}, x.r.Body, min(x.r.ContentLength, 2*limit))
		long.Kind, long.ID = s.Found()
		return nil, long, nil
	}
	body, err := readAll(nil, x.r.Body, limit, x.r.ContentLength)
	if err == errTooLarge {
		var s wire.Skimmer
		s.Feed(body)
		n, _ := io.CopyN(feed{&s}, x.r.Body, limit)
		long := &wire.TooLong{Max: limit, Size: int64(len(body)) + n}
		long.Kind, long.ID = s.Found()
		return nil, long, nil
	}
	return body, nil, err
}

// feed skims what is written to it.
type feed struct{ *wire.Skimmer }

func (f feed) Write(b []byte) (int, error) {
	f.Feed(b)
	return len(b), nil
}

// refuse answers with an error of the proxy's own.
func (x *exchange) refuse(status int, id []byte, code int, text string) {
	x.write(status, wire.AppendFailure(nil, id, code, text, nil))
}

// write answers with one message.
func (x *exchange) write(status int, message []byte) {
	h := x.w.Header()
	h.Set("Content-Type", typeJSON)
	h.Set("Content-Length", strconv.Itoa(len(message)))
	if status == http.StatusServiceUnavailable {
		h.Set("Retry-After", "1")
	}
	x.w.WriteHeader(status)
	_, _ = x.w.Write(message)
}

// gone says that the client does not wait any more.
func (x *exchange) gone() bool { return x.r.Context().Err() != nil }

// send makes the backend's request of a client's message and passes on what
// comes back.
func (x *exchange) send(out *relay.Outgoing, m *wire.Message) {
	req := x.outbound(x.ctx, http.MethodPost, out.Message)
	switch {
	case out.Kind != m.Kind:
		ownMessage(req.Header) // an error in place of an answer
	case !bytes.Equal(out.Params, m.Params):
		if text := follow(req.Header, m, out.Params); text != "" {
			no := out.Ticket.Refuse(codeInternal, text)
			x.finish(&no, http.StatusOK)
			return
		}
	}
	if !bytes.Equal(out.Message, m.Raw) {
		dropDigests(req.Header)
	}
	res, err := x.p.roundTrip(req)
	if err != nil {
		x.unreachable(out.Ticket, err)
		return
	}
	defer res.Body.Close()
	x.answer(res, out.Ticket)
}

// finish answers the client's request, unless that is done or not wanted.
func (x *exchange) finish(out *relay.Outgoing, status int) {
	if out.Commit() {
		x.write(status, out.Message)
		return
	}
	x.w.WriteHeader(http.StatusAccepted)
}

// unreachable answers for a backend that has not answered.
func (x *exchange) unreachable(ticket relay.Ticket, err error) {
	switch {
	case x.gone():
		ticket.Abandon()
		return
	case x.ctx.Err() == nil:
		x.p.trouble("the backend does not answer", "error", err)
	}
	if ticket.IsZero() {
		x.refuse(http.StatusBadGateway, nil, codeInternal, textGone)
		return
	}
	// The request is over, not the way to it: some clients take any other status
	// for the end of all their requests.
	out := ticket.Fail()
	x.finish(&out, http.StatusOK)
}
