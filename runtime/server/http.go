package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/door"
	"github.com/weir-mcp/weir/internal/wire"
)

type httpRequestKey struct{}

// httpRequestOf gives the context of the HTTP request that a call came with.
// The SDK passes its values on, but not its end.
func httpRequestOf(ctx context.Context) (context.Context, bool) {
	over, ok := ctx.Value(httpRequestKey{}).(context.Context)
	return over, ok
}

// Handler is the streamable HTTP endpoint, to be mounted at one path such as
// /mcp. It is stateless: it keeps no sessions, serves POST only, and answers in
// JSON. A message that is refused is answered 400, or 413 when it is too large,
// with a JSON-RPC error; more requests than Options.Concurrency are answered
// 503. A caller that goes away cancels its invocation.
//
// Browsers are kept out unless they come from the same origin, and on a loopback
// address so is every name that is not the loopback's (DNS rebinding). Timeouts
// of reading and TLS are the http.Server's. All handlers of a server share its
// bound of concurrency.
func (s *Server) Handler() http.Handler {
	sdk := mcp.NewStreamableHTTPHandler(
		func(*http.Request) *mcp.Server { return s.sdk },
		&mcp.StreamableHTTPOptions{
			Stateless: true, JSONResponse: true, MaxRequestBodyBytes: s.o.MessageBytes, Logger: s.o.Logger,
		})
	return &endpoint{s: s, sdk: sdk}
}

// bodyTime is how long a caller may take to send its message.
const bodyTime = 30 * time.Second

type endpoint struct {
	s   *Server
	sdk http.Handler
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !door.AdmitsPage(r) {
		http.Error(w, "Forbidden", http.StatusForbidden)
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
		return
	}
	select {
	case e.s.slots <- struct{}{}:
		defer func() { <-e.s.slots }()
	default:
		w.Header().Set("Retry-After", "1")
		e.answer(w, http.StatusServiceUnavailable,
			wire.AppendFailure(nil, nil, abi.CodeInternal, textBusy, []byte(`{"reason":"busy"}`)))
		return
	}
	// A caller that sends its body byte by byte must not keep a slot. Not every
	// ResponseWriter can do this; a real server's can.
	deadline := http.NewResponseController(w)
	_ = deadline.SetReadDeadline(time.Now().Add(bodyTime))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, e.s.o.MessageBytes))
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			kind, id := wire.Peek(body)
			e.refuse(w, http.StatusRequestEntityTooLarge, &wire.Error{Code: wire.CodeInvalid, Reason: "message too large", Kind: kind, ID: id})
			return
		}
		http.Error(w, "the body cannot be read", http.StatusBadRequest)
		return
	}
	_ = deadline.SetReadDeadline(time.Time{})
	m, bad := read(body)
	if bad != nil {
		e.refuse(w, http.StatusBadRequest, bad)
		return
	}
	e.serve(w, r, &m)
}

// serve passes an accepted message on.
func (e *endpoint) serve(w http.ResponseWriter, r *http.Request, m *wire.Message) {
	body := m.Raw
	switch m.Kind {
	case wire.Request:
		if !serves(m.Method) {
			status := http.StatusOK
			if r.Header.Get("Mcp-Protocol-Version") >= statelessVersion {
				status = http.StatusNotFound
			}
			e.answer(w, status, notFound(m))
			return
		}
		body = m.WithID([]byte(ownID))
	case wire.Notification:
	default:
		e.s.o.Logger.Warn("an answer to a request that this server did not make is dropped", "id", m.ID.String())
		w.WriteHeader(http.StatusAccepted)
		return
	}
	ctx := context.WithValue(r.Context(), httpRequestKey{}, r.Context())
	inner := r.Clone(ctx)
	inner.Body = io.NopCloser(bytes.NewReader(body))
	inner.ContentLength = int64(len(body))
	inner.Header.Del("Content-Length")
	answer := &recorder{header: http.Header{}}
	e.sdk.ServeHTTP(answer, inner)
	maps.Copy(w.Header(), answer.header)
	w.Header().Del("Content-Length")
	w.WriteHeader(answer.code())
	_, _ = w.Write(outgoing(answer.body.Bytes(), m))
}

const (
	// statelessVersion is the first protocol version without sessions, in which
	// an unknown method is answered 404.
	statelessVersion = "2026-07-28"
	// ownID is the id under which the SDK knows a request: its ids pass through
	// floats, and each HTTP request is a scope of its own.
	ownID = "1"
)

// outgoing puts the caller's id back and makes errors generic. What is no
// JSON-RPC answer passes as it is.
func outgoing(body []byte, request *wire.Message) []byte {
	m, err := wire.Read(body)
	if err != nil || request.Kind != wire.Request {
		return body
	}
	switch m.Kind {
	case wire.Response:
		return m.WithID(request.ID.Raw())
	case wire.Failure:
		code, text, data := worded(m.Error, request.Method)
		return wire.AppendFailure(nil, request.ID.Raw(), code, text, data)
	default:
		return body
	}
}

// worded is [generic] for an error that is written already. Those of our own
// methods are worded by us, and so may stay; those of the handshakes are the
// SDK's, whose standard ones quote the input.
func worded(raw []byte, method string) (code int, text string, data []byte) {
	number, _ := wire.Get(raw, "code")
	code, err := strconv.Atoi(string(number))
	if err != nil || code == 0 {
		return wire.CodeInvalid, genericText(wire.CodeInvalid), nil
	}
	message, _ := wire.Get(raw, "message")
	text, ok := wire.Unquote(message)
	ours := method == abi.MethodList || method == abi.MethodInvoke
	if standard := code <= -32600 && code >= -32700; !ok || standard && !ours {
		text = genericText(code)
	}
	data, _ = wire.Get(raw, "data")
	return code, text, data
}

func (e *endpoint) refuse(w http.ResponseWriter, status int, bad *wire.Error) {
	e.s.o.Logger.Warn("a message is refused", "kind", bad.Kind.String(), "status", status, "cause", bad)
	id := bad.ID
	if bad.Kind != wire.Request {
		id = wire.ID{} // what looks like an id may be anybody's
	}
	e.answer(w, status, wire.AppendFailure(nil, id.Raw(), bad.Code, bad.Reason, nil))
}

func (e *endpoint) answer(w http.ResponseWriter, status int, message []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(message)
}

// recorder holds the SDK's answer until it is complete.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}

func (r *recorder) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(p)
}

// code is the status, 200 when none was set.
func (r *recorder) code() int {
	if r.status == 0 {
		return http.StatusOK
	}
	return r.status
}
