package proxy

import (
	"net/http"
	"path"
	"strings"

	"github.com/weir-mcp/weir/gateway/relay"
	"github.com/weir-mcp/weir/internal/mirror"
)

// listen serves a GET: the stream that a client opens to listen, or the rest of
// another one.
func (x *exchange) listen() {
	if text, status := unreadable(x.r.Header); status != 0 {
		http.Error(x.w, text, status)
		return
	}
	last := x.r.Header.Get(mirror.LastEventIDHeader)
	if x.r.Header.Get(mirror.SessionHeader) == "" && last != "" {
		http.Error(x.w, textNoSession, http.StatusNotFound)
		return
	}
	if !x.enter(false, last != "") {
		return
	}
	defer x.leave()
	var tr *trail
	switch {
	case last != "":
		if tr = x.scope.trails.resume(last); tr == nil {
			// It is not known whose answer the stream brings.
			http.Error(x.w, textNoSession, http.StatusNotFound)
			return
		}
	case x.scope.id != "":
		tr = x.scope.trails.begin(relay.Ticket{})
	}
	followed := false
	defer func() {
		if tr != nil && !followed {
			x.scope.trails.leave(tr)
		}
	}()
	res, err := x.p.roundTrip(x.outbound(x.ctx, http.MethodGet, nil))
	if err != nil {
		if x.ctx.Err() == nil {
			x.p.trouble("the backend does not answer", "error", err)
		}
		http.Error(x.w, textGone, http.StatusBadGateway)
		return
	}
	defer res.Body.Close()
	ok, leave := x.met(res.StatusCode)
	defer leave()
	kind, readable := mediaType(res.Header)
	switch {
	case res.StatusCode >= 300 && res.StatusCode < 400:
		x.redirected(res, relay.Ticket{})
	case ok && (kind != typeSSE || !readable || !identity(res.Header)):
		x.p.trouble("the backend answers a GET with something else than a stream of events in UTF-8")
		http.Error(x.w, textNoAnswer, http.StatusBadGateway)
	case ok:
		followed = true
		var ticket relay.Ticket
		if tr != nil {
			ticket = tr.ticket
		}
		x.follow(res, ticket, tr)
	default:
		x.raw(res)
	}
}

// delete ends a session.
func (x *exchange) delete() {
	if text, status := unreadable(x.r.Header); status != 0 {
		http.Error(x.w, text, status)
		return
	}
	if !x.enter(false, false) {
		return
	}
	defer x.leave()
	res, ok := x.plain(x.outbound(x.ctx, http.MethodDelete, nil))
	if !ok {
		return
	}
	defer res.Body.Close()
	good := res.StatusCode >= 200 && res.StatusCode < 300
	if x.scope.id != "" && (good || res.StatusCode == http.StatusNotFound) {
		x.p.scopes.gone(x.scope)
	}
	if good {
		x.status(res)
		return
	}
	x.raw(res)
}

// options passes on what browsers ask before they send anything. It is about no
// session: whose that would be, nobody has looked.
func (x *exchange) options() {
	req := x.outbound(x.ctx, http.MethodOptions, nil)
	req.Header.Del(mirror.SessionHeader)
	req.Header.Del(mirror.LastEventIDHeader)
	if res, ok := x.plain(req); ok {
		defer res.Body.Close()
		x.raw(res)
	}
}

// plain makes a request without a message.
func (x *exchange) plain(req *http.Request) (*http.Response, bool) {
	res, err := x.p.roundTrip(req)
	switch {
	case err != nil:
		if x.ctx.Err() == nil {
			x.p.trouble("the backend does not answer", "error", err)
		}
		http.Error(x.w, textGone, http.StatusBadGateway)
		return nil, false
	case res.StatusCode >= 300 && res.StatusCode < 400 && res.StatusCode != http.StatusNotModified:
		res.Body.Close()
		x.redirected(res, relay.Ticket{})
		return nil, false
	}
	return res, true
}

// wellKnown is where clients look for metadata about a server, such as who
// authorises them (RFC 9728).
const wellKnown = "/.well-known/"

// metadata passes on metadata of the backend's host. It is not governed, and the
// backend's own headers do not go along: whoever can reach the proxy gets it.
func (x *exchange) metadata() {
	at := x.r.URL.Path
	if x.r.Method != http.MethodGet && x.r.Method != http.MethodOptions {
		x.w.Header().Set("Allow", "GET, OPTIONS")
		http.Error(x.w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	if path.Clean(at) != strings.TrimSuffix(at, "/") {
		http.Error(x.w, "not found", http.StatusNotFound)
		return
	}
	to := x.p.target(x.r.URL.RawQuery)
	to.RawQuery = x.r.URL.RawQuery
	if rest, ok := strings.CutSuffix(at, x.p.o.Endpoint); ok && x.p.o.Endpoint != "/" && strings.Count(rest, "/") == 2 {
		at = rest + x.p.backend.Path
	}
	to.Path, to.RawPath = at, ""
	h := withoutHops(x.r.Header)
	if relay.PrincipalFrom(x.r.Context()) != nil {
		delete(h, "Authorization")
	}
	if res, ok := x.plain(x.p.request(x.ctx, x.r.Method, to, h, nil)); ok {
		defer res.Body.Close()
		x.raw(res)
	}
}
