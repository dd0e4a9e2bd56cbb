package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/weir-mcp/weir/bench/guests"
	"github.com/weir-mcp/weir/internal/wire"
)

// The backend knows as little of MCP as it can: it looks for id and method at the
// beginning of a message, and its answers are made in advance. A call is answered
// with a result that is about as large as the call.

// tools is how many a list has.
const tools = 10_000

const initialized = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1"}}`

// canned are the results of calls of about these sizes, of the tool that takes a
// text and of the one that takes records, and the list.
type canned struct {
	sizes   []int
	texts   [][]byte
	records [][]byte
	list    []byte
}

var answers = sync.OnceValue(func() *canned {
	c := &canned{sizes: []int{1 << 10, 64 << 10, 1 << 20}, list: toolList(tools)}
	for _, size := range c.sizes {
		text, _ := wire.Get(guests.Text(size), "arguments", "content")
		c.texts = append(c.texts, textResult(text))
		// What programs answer is JSON as a text.
		text, err := json.Marshal(string(guests.Payload(size * 4 / 5)))
		if err != nil {
			panic(err)
		}
		c.records = append(c.records, textResult(text))
	}
	return c
})

func textResult(text []byte) []byte {
	return fmt.Appendf(nil, `{"content":[{"type":"text","text":%s}]}`, text)
}

// result is the answer to a call.
func (c *canned) result(call []byte) []byte {
	results := c.texts
	if bytes.Contains(call[:min(len(call), 256)], []byte(`"records"`)) {
		results = c.records
	}
	for i, size := range c.sizes {
		if len(call) < 8*size {
			return results[i]
		}
	}
	return results[len(results)-1]
}

// toolList is the result of a tools/list.
func toolList(n int) []byte {
	list := []byte(`{"tools":[`)
	for i := range n {
		if i > 0 {
			list = append(list, ',')
		}
		list = fmt.Appendf(list, `{"name":"tool_%05d","description":"Looks up record %d, and says \"none\" where there is none.",`+
			`"inputSchema":{"type":"object","properties":{"path":{"type":"string","description":"where to look"},"limit":{"type":"integer","minimum":1,"maximum":%d}},"required":["path"]}}`, i, i, i+10)
	}
	return append(list, `]}`...)
}

// addresses is how many addresses there were in the call that came last: whether
// interceptors have been at work.
var addresses atomic.Int64

// answer appends the answer to a message, nothing when there is none to be given.
func answer(b, message []byte) []byte {
	head := message[:min(len(message), 256)]
	id, method := token(head, `"id":`), token(head, `"method":`)
	if id == nil || method == nil {
		return b
	}
	var result []byte
	switch string(method) {
	case `"initialize"`:
		result = []byte(initialized)
	case `"tools/call"`:
		if len(message) < 8<<10 {
			addresses.Store(int64(bytes.Count(message, []byte("@mail"))))
		}
		result = answers().result(message)
	case `"tools/list"`:
		result = answers().list
	case methodSeen:
		result = fmt.Appendf(nil, `{"addresses":%d}`, addresses.Load())
	default:
		result = []byte(`{}`)
	}
	b = append(append(b, `{"jsonrpc":"2.0","id":`...), id...)
	return append(append(append(b, `,"result":`...), result...), '}')
}

// methodSeen asks for addresses.
const methodSeen = `"bench/seen"`

// token is the number or string behind a name.
func token(head []byte, name string) []byte {
	_, rest, found := bytes.Cut(head, []byte(name))
	if !found {
		return nil
	}
	rest = bytes.TrimLeft(rest, " ")
	if end := bytes.IndexAny(rest, ",}"); end >= 0 {
		return rest[:end]
	}
	return nil
}

// serveLines is the backend over stdio.
func serveLines(in io.Reader, out io.Writer) error {
	answers()
	lines := &lines{r: in}
	var b []byte
	for {
		line, err := lines.next()
		if err != nil {
			return nil
		}
		if b = answer(b[:0], line); len(b) > 0 {
			if _, err := out.Write(append(b, '\n')); err != nil {
				return nil
			}
		}
	}
}

// serveBackend is the backend over HTTP.
func serveBackend(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	message, err := readBody(r.Body, r.ContentLength, nil)
	if err != nil {
		return
	}
	b := answer(nil, message)
	if len(b) == 0 {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	if bytes.Contains(message[:min(len(message), 256)], []byte(`"initialize"`)) {
		w.Header().Set("Mcp-Session-Id", "session")
	}
	_, _ = w.Write(b)
}

// readBody reads a body of n bytes, or of a length that is not known, into b.
func readBody(r io.Reader, n int64, b []byte) ([]byte, error) {
	if n >= 0 {
		if int64(cap(b)) < n {
			b = make([]byte, n)
		}
		b = b[:n]
		_, err := io.ReadFull(r, b)
		return b, err
	}
	buffer := bytes.NewBuffer(b[:0])
	_, err := buffer.ReadFrom(r)
	return buffer.Bytes(), err
}

// lines reads lines of any length.
type lines struct {
	r              io.Reader
	buf            []byte
	from, seen, to int
}

// next gives a line with its end. It is valid until the next call.
func (l *lines) next() ([]byte, error) {
	for {
		if i := bytes.IndexByte(l.buf[l.seen:l.to], '\n'); i >= 0 {
			line := l.buf[l.from : l.seen+i+1]
			l.from = l.seen + i + 1
			l.seen = l.from
			return line, nil
		}
		l.seen = l.to
		if l.from > 0 {
			l.to = copy(l.buf, l.buf[l.from:l.to])
			l.from, l.seen = 0, l.to
		}
		if l.to == len(l.buf) {
			l.buf = append(l.buf, make([]byte, max(64<<10, len(l.buf)))...)
		}
		n, err := l.r.Read(l.buf[l.to:])
		if l.to += n; n == 0 && err != nil {
			return nil, err
		}
	}
}
