package streamable

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/mirror"
	"github.com/weir-mcp/weir/internal/sse"
	"github.com/weir-mcp/weir/internal/wire"
)

// What the client is told. Nothing in it comes from the server.
const (
	textTooMany     = "too many requests in flight"
	textUnreachable = "the backend cannot be reached; the request may or may not have been carried out"
	textBroken      = "the stream of the answer broke; the request may or may not have been carried out"
	textNoAnswer    = "the backend gave no answer to the request"
	textStatus      = "the backend refused the request with HTTP status "
	textNotFound    = "method not found"
)

const codeMethodNotFound = -32601

func failure(id wire.ID, text string) []byte {
	return wire.AppendFailure(nil, id.Raw(), abi.CodeInternal, text, nil)
}

const (
	jsonType   = "application/json"
	streamType = "text/event-stream"
	bothTypes  = jsonType + ", " + streamType
)

// post is one request on its way: a POST, and the streams that carry its answer.
type post struct {
	*outgoing
	key string
	// stateless is the protocol version, where it is one of the stateless era.
	stateless string
	ctx       context.Context
	cancel    context.CancelFunc
	sentOnce  sync.Once
	sent      chan struct{} // closed when it has been written
	begun     chan struct{} // closed when the server has begun to answer
	settled   chan struct{} // closed when the server's answer has been read
	done      chan struct{} // closed when nothing more comes
	answered  bool
}

// newRequest makes a request with the headers that every one has.
func (b *Backend) newRequest(ctx context.Context, method string, body []byte) *http.Request {
	var content io.Reader
	if body != nil {
		content = bytes.NewReader(body)
	}
	r, err := http.NewRequestWithContext(ctx, method, b.url, content)
	if err != nil {
		panic(err) // the URL has been parsed before
	}
	for name, values := range b.o.Header {
		r.Header[http.CanonicalHeaderKey(name)] = values
	}
	if host := r.Header.Get("Host"); host != "" {
		r.Host = host
		r.Header.Del("Host")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.session != "" {
		r.Header.Set(mirror.SessionHeader, b.session)
	}
	if b.version != "" {
		r.Header.Set(mirror.VersionHeader, b.version)
	}
	return r
}

func (b *Backend) newPost(ctx context.Context, out *outgoing, stateless string) *http.Request {
	r := b.newRequest(ctx, http.MethodPost, out.Raw)
	r.Header.Set("Content-Type", jsonType)
	r.Header.Set("Accept", bothTypes)
	if stateless != "" {
		r.Header.Del(mirror.SessionHeader)
		r.Header.Set(mirror.VersionHeader, stateless)
		if out.Kind == wire.Request || out.Kind == wire.Notification {
			mirror.Set(r.Header, &out.Message, &b.tools)
		}
	}
	return r
}

// do sends a request. The error names neither the URL nor what it may hold.
func (b *Backend) do(r *http.Request) (*http.Response, error) {
	answer, err := b.http.Do(r)
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return answer, err
}

// shortBody is how much of a body that nobody reads is taken in, so that its
// connection can be used again.
const shortBody = 64 << 10

func drop(r *http.Response) {
	// One that says no length may be a stream without an end.
	if r.ContentLength > 0 && r.ContentLength <= shortBody {
		_, _ = io.Copy(io.Discard, r.Body)
	}
	r.Body.Close()
}

// ask sends a request and sees to it that an answer is delivered.
func (b *Backend) ask(p *post) {
	defer p.written()
	ctx := httptrace.WithClientTrace(p.ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { p.written() }})
	r, err := b.do(b.newPost(ctx, p.outgoing, p.stateless))
	if err != nil {
		if p.ctx.Err() == nil {
			b.log.Warn("the backend cannot be reached", "method", wire.Clip(p.Method, longWord), "error", err)
			b.fail(p, textUnreachable)
		}
		return
	}
	close(p.begun)
	defer r.Body.Close()
	if r.StatusCode < 200 || r.StatusCode > 299 {
		b.refused(p, r)
		return
	}
	if p.Method == methodInitialize {
		if err := b.learnSession(r.Header); err != nil {
			b.log.Error("the backend's session cannot be used", "error", err)
			b.fail(p, textNoAnswer)
			return
		}
	}
	switch kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind {
	case jsonType:
		b.readJSON(p, r)
	case streamType:
		b.readStreams(p, r.Body)
	}
	if !p.answered && p.ctx.Err() == nil {
		b.log.Warn("the backend gave no answer", "method", wire.Clip(p.Method, longWord), "status", r.StatusCode,
			"type", wire.Clip(r.Header.Get("Content-Type"), longWord))
		b.fail(p, textNoAnswer)
	}
}

func (p *post) written() { p.sentOnce.Do(func() { close(p.sent) }) }

// fail answers a request in the server's place.
func (b *Backend) fail(p *post, text string) {
	p.answered = true
	b.deliver(incoming{message: failure(p.ID, text)})
}

// longSession bounds the id of a session, in bytes.
const longSession = 1 << 10

// learnSession takes the session id from the answer to an initialize.
func (b *Backend) learnSession(h http.Header) error {
	id := h.Get(mirror.SessionHeader)
	if len(id) > longSession {
		return fmt.Errorf("its id has %d bytes, more than %d", len(id), longSession)
	}
	for i := range len(id) {
		if id[i] < 0x21 || id[i] > 0x7e {
			return errors.New("its id is not made of visible ASCII characters")
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.session = id
	return nil
}

// refused deals with an answer that is no success. An error that the server has
// put into the body is its own answer, unless the status says that it is about
// the gateway's rights or the server's state.
func (b *Backend) refused(p *post, r *http.Response) {
	body, _ := io.ReadAll(io.LimitReader(r.Body, shortBody))
	b.log.Warn("the backend refused a request", "method", wire.Clip(p.Method, longWord), "status", r.StatusCode, "body", wire.Clip(string(body), longWord))
	if r.StatusCode == http.StatusNotFound && r.Request.Header.Get(mirror.SessionHeader) != "" {
		b.lose()
		p.answered = true
		return
	}
	ownMatter := r.StatusCode == http.StatusUnauthorized || r.StatusCode == http.StatusForbidden || r.StatusCode >= 500
	if own, ok := errorOf(p, body); ok && !ownMatter {
		p.answered = true
		b.deliver(incoming{message: own})
		return
	}
	if p.Method == methodDiscover && !ownMatter && r.StatusCode >= 400 {
		// A server of the session era: this is what makes a client fall back.
		p.answered = true
		b.deliver(incoming{message: wire.AppendFailure(nil, p.ID.Raw(), codeMethodNotFound, textNotFound, nil)})
		return
	}
	b.fail(p, textStatus+strconv.Itoa(r.StatusCode))
}

// errorOf gives the JSON-RPC error in a body, on the request's own id.
func errorOf(p *post, body []byte) ([]byte, bool) {
	m, err := wire.Read(body)
	switch {
	case err != nil || m.Kind != wire.Failure:
		return nil, false
	case m.ID.IsNull():
		return m.WithID(p.ID.Raw()), true
	default:
		return m.Raw, m.ID.Equal(p.ID)
	}
}

// readJSON takes an answer that is one message.
func (b *Backend) readJSON(p *post, r *http.Response) {
	raw, err := readBounded(r.Body, r.ContentLength, b.o.Limit)
	var long *wire.TooLong
	switch {
	case errors.As(err, &long):
		b.tooLong(p, long)
	case err != nil:
		if p.ctx.Err() == nil {
			b.log.Warn("reading an answer failed", "method", wire.Clip(p.Method, longWord), "error", err)
			b.fail(p, textBroken)
		}
	case len(bytes.TrimSpace(raw)) > 0:
		b.message(p, raw)
	}
}

// trusted is how much room a body gets because it says that it will need it.
const trusted = 64 << 10

// readBounded reads a body of at most limit bytes, which says that it has length.
// A longer one is dropped as it comes, up to as much again, and reported as a
// *wire.TooLong.
func readBounded(body io.Reader, length int64, limit int) ([]byte, error) {
	room := min(max(length, 0), trusted, int64(limit))
	buf := bytes.NewBuffer(make([]byte, 0, room+bytes.MinRead))
	_, err := buf.ReadFrom(io.LimitReader(body, int64(limit)+1))
	raw := buf.Bytes()
	if err != nil || len(raw) <= limit {
		return raw, err
	}
	var s wire.Skimmer
	s.Feed(raw)
	size := int64(len(raw))
	rest := io.LimitReader(body, int64(limit))
	for buf := raw[:min(len(raw), 32<<10)]; ; {
		n, err := rest.Read(buf)
		s.Feed(buf[:n])
		size += int64(n)
		if err != nil {
			break
		}
	}
	long := &wire.TooLong{Max: int64(limit), Size: size}
	long.Kind, long.ID = s.Found()
	return nil, long
}

// tooLong passes on that a message was dropped; the relay knows whom to answer.
func (b *Backend) tooLong(p *post, long *wire.TooLong) {
	if p != nil && (long.ID.Equal(p.ID) || long.Kind == wire.Unknown && long.ID.IsZero()) && long.Kind != wire.Request {
		long.Kind, long.ID = wire.Response, p.ID
		p.answered = true
	}
	b.deliver(incoming{err: long})
}

// message passes on one message of a stream; p is nil on the stream that belongs
// to no request. It is false when nobody reads any more.
func (b *Backend) message(p *post, raw []byte) bool {
	m, err := wire.Read(raw)
	kind, id := m.Kind, m.ID
	if err != nil {
		// The relay answers for a message that it refuses, where it can be told
		// what the message was going to be.
		bad := wire.AsError(err)
		if kind, id = bad.Kind, bad.ID; kind == wire.Unknown {
			b.log.Warn("the backend sent something that is no message", "error", bad)
			return true
		}
	}
	if p != nil && (kind == wire.Response || kind == wire.Failure) && id.Equal(p.ID) {
		b.learn(p, &m)
		if !p.answered {
			p.answered = true
			close(p.settled)
		}
	}
	return b.deliver(incoming{message: raw})
}

// learn keeps what later requests need of an answer.
func (b *Backend) learn(p *post, m *wire.Message) {
	if m.Kind != wire.Response {
		return
	}
	switch p.Method {
	case methodInitialize:
		raw, _ := wire.Get(m.Result, "protocolVersion")
		if v, _ := wire.Unquote(raw); mirror.IsVersion(v) {
			b.mu.Lock()
			b.version = v
			b.mu.Unlock()
		}
	case methodToolsList:
		if p.stateless != "" {
			b.tools.Learn(m.Result)
		}
	}
}

// readStreams reads the stream of an answer, and asks for it again when it
// breaks before the answer has come.
func (b *Backend) readStreams(p *post, body io.ReadCloser) {
	var at position
	for failures := 0; ; {
		came, err := b.readStream(p, body, &at)
		if p.answered || p.ctx.Err() != nil {
			return
		}
		if came {
			failures = 0
		}
		for body = nil; body == nil; failures++ {
			if at.id == "" || p.stateless != "" || failures >= b.o.Retries {
				b.log.Warn("the stream of an answer broke", "method", wire.Clip(p.Method, longWord), "error", err, "attempts", failures)
				b.fail(p, textBroken)
				return
			}
			if !b.pause(p.ctx, at.wait(b.pace, failures)) {
				return
			}
			var final bool
			if body, final, err = b.resume(p.ctx, at.id); final {
				p.answered = true // by the relay, if the session is lost
				if !errors.Is(err, ErrSessionLost) {
					b.log.Warn("the stream of an answer cannot be resumed", "method", wire.Clip(p.Method, longWord), "error", err)
					b.fail(p, textBroken)
				}
				return
			}
		}
	}
}

// position is where in its streams a reader is.
type position struct {
	id    string
	retry time.Duration
}

// wait is how long to wait before a stream is asked for again.
func (at *position) wait(p pace, failures int) time.Duration {
	d := at.retry
	if d == 0 {
		d = p.retry
	}
	return min(d<<min(failures, 16), p.maxRetry)
}

func (b *Backend) pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// readStream passes on what one stream brings, until it ends. It says whether
// there was any event. The body is closed.
func (b *Backend) readStream(p *post, body io.ReadCloser, at *position) (came bool, err error) {
	defer body.Close()
	in := sse.NewReader(body, sse.Limits{Data: b.o.Limit})
	var linger *time.Timer
	for {
		e, err := in.Next()
		var long *wire.TooLong
		if err != nil && !errors.As(err, &long) {
			return came, err
		}
		if e.IsComment {
			continue
		}
		came = true
		at.note(&e, b.pace)
		switch {
		case long != nil:
			b.tooLong(p, long)
		case !e.HasData || len(e.Data) == 0 || e.Name != "" && e.Name != "message":
			// An event that only moves the position, or is for somebody else.
		case !b.message(p, e.Data):
			return came, b.ctx.Err()
		}
		if p != nil && p.answered && linger == nil {
			linger = time.AfterFunc(b.pace.linger, p.cancel)
			defer linger.Stop()
		}
	}
}

// note keeps the position behind an event.
func (at *position) note(e *sse.Event, p pace) {
	if e.HasID {
		at.id = e.ID
		for i := range len(e.ID) {
			if e.ID[i] < ' ' || e.ID[i] == 0x7f {
				at.id = "" // no header can carry it
			}
		}
	}
	if e.Retry != "" {
		ms, err := strconv.ParseInt(e.Retry, 10, 64)
		if limit := p.maxRetry.Milliseconds(); err != nil || ms > limit {
			ms = limit
		}
		at.retry = time.Duration(max(ms, 1)) * time.Millisecond
	}
}

// resume asks for a stream, for what follows an event id if there is one. Final
// says that asking again is of no use.
func (b *Backend) resume(ctx context.Context, id string) (body io.ReadCloser, final bool, err error) {
	r := b.newRequest(ctx, http.MethodGet, nil)
	r.Header.Set("Accept", streamType)
	if id != "" {
		r.Header.Set(mirror.LastEventIDHeader, id)
	}
	answer, err := b.do(r)
	if err != nil {
		return nil, false, err
	}
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if answer.StatusCode == http.StatusOK && kind == streamType {
		return answer.Body, false, nil
	}
	drop(answer)
	if answer.StatusCode == http.StatusNotFound && r.Header.Get(mirror.SessionHeader) != "" {
		b.lose()
		return nil, true, ErrSessionLost
	}
	temporary := answer.StatusCode >= 500 || answer.StatusCode == http.StatusTooManyRequests || answer.StatusCode == http.StatusConflict
	return nil, !temporary, fmt.Errorf("HTTP status %d for a stream", answer.StatusCode)
}

// listen keeps the stream open that belongs to no request. A server need not
// have one (HTTP 405).
func (b *Backend) listen() {
	var at position
	for failures := 0; ; failures++ {
		body, final, err := b.resume(b.ctx, at.id)
		if err == nil {
			var came bool
			if came, err = b.readStream(nil, body, &at); came {
				failures = 0
			}
		}
		switch {
		case b.ctx.Err() != nil:
			return
		case final:
			b.log.Info("the backend opens no stream for messages of its own", "error", err)
			return
		case failures >= b.o.Retries:
			b.log.Warn("the backend's stream for messages of its own is lost", "error", err, "attempts", failures)
			return
		}
		if !b.pause(b.ctx, at.wait(b.pace, failures)) {
			return
		}
	}
}
