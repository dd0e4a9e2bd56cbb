package proxy

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/weir-mcp/weir/gateway/relay"
	"github.com/weir-mcp/weir/internal/mirror"
	"github.com/weir-mcp/weir/internal/wire"
)

// met notes what a status of the backend's says of the session, and whether it
// is a success; leave is called once the answer has been passed on.
func (x *exchange) met(status int) (ok bool, leave func()) {
	ok = status >= 200 && status < 300
	switch {
	case x.scope.id == "":
	case ok:
		x.p.scopes.accept(x.scope)
	case status == http.StatusNotFound:
		return false, func() { x.p.scopes.gone(x.scope) }
	}
	return ok, func() {}
}

// answer passes on what the backend answers to a message. The ticket is that of
// the request in it, zero when it was none.
func (x *exchange) answer(res *http.Response, ticket relay.Ticket) {
	ok, leave := x.met(res.StatusCode)
	defer leave()
	kind, readable := mediaType(res.Header)
	readable = readable && identity(res.Header)
	switch {
	case res.StatusCode >= 300 && res.StatusCode < 400:
		x.redirected(res, ticket)
	case !readable:
		x.p.trouble("the backend compresses its answers, or writes them in another encoding than UTF-8", "status", res.StatusCode)
		if ok {
			x.unanswered(ticket)
			return
		}
		x.resolve(ticket)
		x.status(res)
	case ok && !x.opened(res):
		out := ticket.Refuse(codeInternal, textCrowded)
		x.finish(&out, http.StatusServiceUnavailable)
	case kind == typeSSE:
		x.stream(res, ticket)
	case ok && ticket.IsZero():
		x.status(res)
	case ok && kind != typeJSON && kind != "":
		x.p.trouble("the backend answers a request with something else than JSON or a stream of events", "type", wire.Clip(kind, 64))
		x.unanswered(ticket)
	default:
		x.json(res, ticket, ok)
	}
}

// status passes on an answer without its body, which nobody asked for.
func (x *exchange) status(res *http.Response) {
	x.head(res, true).Del("Content-Type")
	x.w.WriteHeader(res.StatusCode)
}

// resolve ends the wait for an answer that the client gets in another way.
func (x *exchange) resolve(ticket relay.Ticket) {
	if !ticket.IsZero() {
		out := ticket.Fail()
		out.Commit()
	}
}

// unanswered answers for a backend whose answer cannot be passed on.
func (x *exchange) unanswered(ticket relay.Ticket) {
	if ticket.IsZero() {
		x.refuse(http.StatusBadGateway, nil, codeInternal, textNoAnswer)
		return
	}
	out := ticket.Malformed()
	x.finish(&out, http.StatusOK)
}

// redirected refuses to lead the client around the gateway.
func (x *exchange) redirected(res *http.Response, ticket relay.Ticket) {
	x.p.trouble("the backend redirects, which the gateway does not follow or pass on: configure the URL that it redirects to",
		"status", res.StatusCode)
	x.unanswered(ticket)
}

// raw passes on a body that is no message, unless errors are to be generic.
func (x *exchange) raw(res *http.Response) {
	if res.StatusCode >= http.StatusBadRequest && x.p.o.Relay.Passthrough.GenericErrors {
		x.status(res)
		return
	}
	h := x.head(res, false)
	if res.ContentLength >= 0 {
		h.Set("Content-Length", strconv.FormatInt(res.ContentLength, 10))
	}
	x.w.WriteHeader(res.StatusCode)
	_, _ = io.Copy(x.w, io.LimitReader(res.Body, int64(x.p.o.BackendLimit)))
}

// json passes on a body that is one message, or should be.
func (x *exchange) json(res *http.Response, ticket relay.Ticket, mustBe bool) {
	lent := bodies.Get().(*[]byte)
	body, err := readAll(*lent, res.Body, int64(x.p.o.BackendLimit), res.ContentLength)
	kept := false // by a governor, who may look at it for longer than we do
	defer func() {
		if !kept {
			giveBack(lent, body)
		}
	}()
	switch {
	case err == errTooLarge:
		x.p.trouble("an answer of the backend is larger than the gateway accepts", "limit", x.p.o.BackendLimit)
		x.unanswered(ticket)
		return
	case err != nil:
		x.unreachable(ticket, err)
		return
	}
	m, err := wire.Read(body)
	answers := err == nil && (m.Kind == wire.Response || m.Kind == wire.Failure)
	switch {
	case !mustBe && !mayAnswer(body, &m, err):
		// An error that is for nobody's request, such as those of OAuth.
		x.resolve(ticket)
		if x.p.o.Relay.Passthrough.GenericErrors {
			x.status(res)
			return
		}
		x.head(res, false)
		x.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		x.w.WriteHeader(res.StatusCode)
		_, _ = x.w.Write(body)
		return
	case ticket.IsZero():
		x.status(res)
		return
	case len(body) == 0 && !ticket.Open():
		x.w.WriteHeader(http.StatusAccepted) // it was cancelled
		return
	case !answers:
		// Also what is no answer at all: an empty body is not turned into a success.
		if err != nil {
			x.scope.session.HandleUnreadable(relay.Arrival{From: relay.Backend, Raw: body, At: time.Now(), For: &relay.Ticket{}, Lane: &postLane{}}, err)
		} else {
			x.p.trouble("the backend answers a POST with a message that is no answer", "kind", m.Kind.String())
		}
		x.unanswered(ticket)
		return
	}
	l := &postLane{}
	a := relay.Arrival{From: relay.Backend, Raw: body, At: time.Now(), Version: x.r.Header.Get(mirror.VersionHeader), For: &ticket, Lane: l}
	if rest := x.scope.session.HandleRead(x.ctx, a, m); rest != nil {
		kept = true
		rest()
	}
	if l.forward == nil {
		x.unanswered(ticket)
		return
	}
	changed := !bytes.Equal(l.forward.Message, body)
	h := x.head(res, changed)
	if l.forward.Kind == wire.Failure && m.Kind != wire.Failure {
		// What was blocked is answered at the request's own level.
		h.Set("Content-Type", typeJSON)
	}
	h.Set("Content-Length", strconv.Itoa(len(l.forward.Message)))
	x.w.WriteHeader(res.StatusCode)
	_, _ = x.w.Write(l.forward.Message)
}

// mayAnswer says that a body with an HTTP error may be read as the answer to a
// request: one with an id, or with a result however it is spelled. Anything else
// passes as it is, as errors do (protocol.md §6).
func mayAnswer(body []byte, m *wire.Message, err error) bool {
	if err == nil {
		return m.Kind != wire.Failure || !m.ID.IsZero() && !m.ID.IsNull()
	}
	found := false
	if wire.Members(body, func(name string, _, _ []byte) bool {
		found = strings.EqualFold(name, "result") || strings.EqualFold(name, "method") || strings.EqualFold(name, "jsonrpc")
		return !found
	}) != nil {
		// No object. Text that begins like one might be read by someone lenient.
		return beginsLikeMessage(body)
	}
	return found
}

// beginsLikeMessage says that the first thing to be seen in a text opens an object
// or an array. What cannot be seen, some readers pass over where JSON does not
// allow it: byte order marks, the halves of UTF-16, all sorts of spaces.
func beginsLikeMessage(text []byte) bool {
	text = bytes.TrimLeftFunc(text, func(r rune) bool {
		return r == utf8.RuneError || r == '\uFEFF' || unicode.IsSpace(r) || unicode.In(r, unicode.C)
	})
	return len(text) > 0 && (text[0] == '{' || text[0] == '[')
}
