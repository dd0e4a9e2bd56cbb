package streamable

import (
	"errors"
	"mime"
	"net/http"
	"strings"

	"github.com/weir-mcp/weir/gateway/relay"
	"github.com/weir-mcp/weir/internal/mirror"
	"github.com/weir-mcp/weir/internal/wire"
)

// sessionVersions are the protocol versions that a session's requests may name
// whatever it has settled: clients name their own newest one, too.
var sessionVersions = map[string]bool{"2024-11-05": true, "2025-03-26": true, "2025-06-18": true, "2025-11-25": true}

const (
	allMethods    = "GET, POST, DELETE"
	statelessOnly = "POST"
)

// ServeHTTP serves one request of a client.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	version, ok := oneHeader(r, mirror.VersionHeader)
	if !ok || version != "" && !mirror.IsVersion(version) {
		refuse(w, http.StatusBadRequest, wire.ID{}, codeInvalid, "the header "+mirror.VersionHeader+" is not one protocol version")
		return
	}
	switch r.Method {
	case http.MethodPost:
		f.post(w, r, version)
	case http.MethodGet, http.MethodDelete:
		if mirror.Applies(version) {
			notAllowed(w, statelessOnly)
			return
		}
		s, ok := f.known(w, r, version)
		switch {
		case !ok:
		case r.Method == http.MethodGet:
			s.get(w, r)
			s.release()
		default:
			s.release()
			f.forget(s) // whoever has the answer finds no session any more
			s.cancel(ErrDeleted)
			w.WriteHeader(http.StatusNoContent)
		}
	default:
		notAllowed(w, allMethods)
	}
}

func notAllowed(w http.ResponseWriter, allowed string) {
	w.Header().Set("Allow", allowed)
	refuse(w, http.StatusMethodNotAllowed, wire.ID{}, codeInvalid, "method not allowed")
}

// oneHeader gives a header that may be there once.
func oneHeader(r *http.Request, name string) (string, bool) {
	switch values := r.Header.Values(name); len(values) {
	case 0:
		return "", true
	case 1:
		return values[0], true
	default:
		return "", false
	}
}

// known finds the session of a request and holds it. Otherwise it has answered.
func (f *Front) known(w http.ResponseWriter, r *http.Request, version string) (*session, bool) {
	id, ok := oneHeader(r, mirror.SessionHeader)
	if !ok || id == "" {
		refuse(w, http.StatusBadRequest, wire.ID{}, codeInvalid, textNeedsStart)
		return nil, false
	}
	f.mu.Lock()
	s := f.sessions[id]
	f.mu.Unlock()
	if s == nil || !samePrincipal(s.principal, relay.PrincipalFrom(r.Context())) || !s.hold() {
		refuse(w, http.StatusNotFound, wire.ID{}, codeInvalid, textNoSession)
		return nil, false
	}
	if version != "" && !sessionVersions[version] && version != s.settled() {
		s.release()
		refuse(w, http.StatusBadRequest, wire.ID{}, codeInvalid, "the header "+mirror.VersionHeader+" names a version that this session does not speak")
		return nil, false
	}
	return s, true
}

// accepts says whether a request accepts all of the types.
func accepts(r *http.Request, types ...string) bool {
	for _, want := range types {
		major, _, _ := strings.Cut(want, "/")
		found := false
		for _, header := range r.Header.Values("Accept") {
			for part := range strings.SplitSeq(header, ",") {
				kind, params, err := mime.ParseMediaType(part)
				q, weighed := params["q"]
				never := weighed && strings.Trim(q, "0.") == ""
				found = found || err == nil && !never && (kind == want || kind == "*/*" || kind == major+"/*")
			}
		}
		if !found {
			return false
		}
	}
	return true
}

// post takes one message.
func (f *Front) post(w http.ResponseWriter, r *http.Request, version string) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != jsonType {
		refuse(w, http.StatusUnsupportedMediaType, wire.ID{}, codeInvalid, "Content-Type must be "+jsonType)
		return
	}
	if e := r.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		refuse(w, http.StatusUnsupportedMediaType, wire.ID{}, codeInvalid, "Content-Encoding must be identity")
		return
	}
	if !accepts(r, jsonType, streamType) {
		refuse(w, http.StatusNotAcceptable, wire.ID{}, codeInvalid, "Accept must allow "+jsonType+" and "+streamType)
		return
	}
	raw, err := readBounded(r.Body, r.ContentLength, f.o.Body)
	var long *wire.TooLong
	switch {
	case errors.As(err, &long):
		if !f.passRefused(r, long.Kind, incoming{err: long}) {
			f.discard(relay.Client, relay.TooLarge, nil, long.Error())
		}
		refuse(w, http.StatusRequestEntityTooLarge, answerable(long.Kind, long.ID), codeInvalid, textTooLarge)
		return
	case err != nil:
		refuse(w, http.StatusBadRequest, wire.ID{}, codeInvalid, "the body cannot be read")
		return
	}
	m, err := wire.Read(raw)
	if err != nil {
		bad := wire.AsError(err)
		if !f.passRefused(r, bad.Kind, incoming{message: raw}) {
			f.discard(relay.Client, relay.BadMessage, nil, bad.Error())
		}
		refuse(w, http.StatusBadRequest, answerable(bad.Kind, bad.ID), bad.Code, bad.Reason)
		return
	}
	named := mirror.Version(&m)
	if mirror.Applies(version) || r.Header.Get(mirror.SessionHeader) == "" && mirror.Applies(named) && m.Method != methodInitialize {
		f.stateless(w, r, &m, version, named)
		return
	}
	if m.Method == methodInitialize && m.Kind == wire.Request && r.Header.Get(mirror.SessionHeader) == "" {
		f.open(w, r, &m)
		return
	}
	s, ok := f.known(w, r, version)
	if !ok {
		return
	}
	defer s.release()
	s.post(w, r, &m)
}

// answerable is the id of something that is answered on it.
func answerable(kind wire.Kind, id wire.ID) wire.ID {
	if kind == wire.Response || kind == wire.Failure {
		return wire.ID{}
	}
	return id
}

// passRefused hands the relay an answer that does not pass: whoever waits for it
// gets an error. It is false when it is no answer, or there is no session.
func (f *Front) passRefused(r *http.Request, kind wire.Kind, i incoming) bool {
	if kind != wire.Response && kind != wire.Failure {
		return false
	}
	f.mu.Lock()
	s := f.sessions[r.Header.Get(mirror.SessionHeader)]
	f.mu.Unlock()
	if s == nil || !samePrincipal(s.principal, relay.PrincipalFrom(r.Context())) || !s.hold() {
		return false
	}
	defer s.release()
	return s.push(r.Context(), i)
}
