package hosts

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/sse"
	"github.com/weir-mcp/weir/internal/wire"
)

// answer makes one strict JSON answer of the response to a call; a response to
// anything else passes. It waits for the whole of it: every call has a goroutine
// and a context of its own.
func (t *roundTripper) answer(req *http.Request, resp *http.Response) (*http.Response, error) {
	ok := resp.StatusCode >= 200 && resp.StatusCode <= 299
	if req.GetBody == nil || !ok && !isInvocation(req) {
		return resp, nil
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	inJSON, inEvents := kind == "application/json", kind == "text/event-stream"
	if !inJSON && !inEvents && !isInvocation(req) {
		return resp, nil // accepted, or what the SDK is to complain of
	}
	id, err := idOf(req)
	if err != nil || id.IsZero() { // a notification
		return resp, err
	}
	var message []byte
	reason := abi.ReasonBadOutput
	switch {
	case inJSON:
		message, reason, err = oneAnswer(resp.Body, id)
		_ = resp.Body.Close()
	case inEvents && ok:
		message, reason, err = answerAmong(resp.Body, id)
		go drain(resp.Body)
	default:
		_ = resp.Body.Close()
	}
	switch {
	case req.Context().Err() != nil:
		return nil, req.Context().Err()
	case err != nil: // the connection broke under it
		t.doubt()
		return nil, err
	case message == nil && !ok: // a server that is not well, or a proxy's word in place of its
		t.doubt()
		message = refuse(id, abi.ReasonUnavailable, "the host answered "+resp.Status)
	case message == nil:
		message = refuse(id, reason, "the answer was refused")
	}
	resp.StatusCode, resp.Status = http.StatusOK, "200 OK"
	resp.Body = io.NopCloser(bytes.NewReader(message))
	resp.ContentLength = int64(len(message))
	resp.Header.Set("Content-Length", strconv.Itoa(len(message)))
	resp.Header.Set("Content-Type", "application/json")
	return resp, nil
}

// idOf is the id of the call in the body of req, zero where there is none.
func idOf(req *http.Request) (wire.ID, error) {
	body, err := req.GetBody()
	if err != nil {
		return wire.ID{}, err
	}
	defer body.Close()
	sent, err := io.ReadAll(body)
	if err != nil {
		return wire.ID{}, err
	}
	kind, id := wire.Peek(sent)
	if kind != wire.Request {
		return wire.ID{}, nil
	}
	return id, nil
}

// oneAnswer reads a body that is one message. It is nil where the message is no
// answer to the call, for which reason says what to say of it.
func oneAnswer(r io.Reader, id wire.ID) ([]byte, abi.Reason, error) {
	answer, err := io.ReadAll(io.LimitReader(r, MaxAnswer+envelopeBytes+1))
	switch {
	case err != nil:
		return nil, "", err
	case len(answer) > MaxAnswer+envelopeBytes:
		return nil, abi.ReasonOutputTooLarge, nil
	case !isAnswer(answer, id):
		return nil, abi.ReasonBadOutput, nil
	}
	return answer, "", nil
}

// answerAmong reads events until the answer comes. What else a host says in a
// stream, an invoker has no use for.
func answerAmong(r io.Reader, id wire.ID) ([]byte, abi.Reason, error) {
	events := sse.NewReader(r, sse.Limits{Data: MaxAnswer + envelopeBytes})
	for {
		event, err := events.Next()
		long, over := errors.AsType[*wire.TooLong](err)
		switch {
		case over && long.ID.Equal(id) && long.Kind != wire.Request, errors.Is(err, errStreamTooLong):
			return nil, abi.ReasonOutputTooLarge, nil
		case over:
		case errors.Is(err, sse.ErrMalformed):
			return nil, abi.ReasonBadOutput, nil
		case errors.Is(err, io.EOF):
			return nil, "", fmt.Errorf("the stream ended without an answer: %w", io.ErrUnexpectedEOF)
		case err != nil:
			return nil, "", err
		case !event.HasData || event.Name != "" && event.Name != "message":
		case isAnswer(event.Data, id):
			return event.Data, "", nil
		default:
			if kind, of := wire.Peek(event.Data); (kind == wire.Response || kind == wire.Failure) && of.Equal(id) {
				return nil, abi.ReasonBadOutput, nil // it was meant to be
			}
		}
	}
}

// isAnswer says that a message passes the strict reader and answers the call.
func isAnswer(message []byte, id wire.ID) bool {
	m, err := wire.Read(message)
	return err == nil && (m.Kind == wire.Response || m.Kind == wire.Failure) && m.ID.Equal(id)
}

// drain reads a stream to its end, where that comes soon, so that the connection
// under it can be used again.
func drain(b io.ReadCloser) {
	defer time.AfterFunc(drainTime, func() { _ = b.Close() }).Stop()
	_, _ = io.CopyN(io.Discard, b, drainBytes)
	_ = b.Close()
}

var errStreamTooLong = errors.New("the answer is too long")

// bounded reads no more than maxStreamBytes, and fails then: an answer that was
// cut must not pass for a whole one.
func bounded(r io.Reader) io.Reader { return &boundedReader{r, maxStreamBytes} }

type boundedReader struct {
	r    io.Reader
	left int64
}

func (b *boundedReader) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errStreamTooLong
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// body is a response body that ends the request's context when it is closed.
type body struct {
	io.Reader
	io.Closer
	end func()
}

func (b *body) Close() error {
	err := b.Closer.Close()
	b.end()
	return err
}
