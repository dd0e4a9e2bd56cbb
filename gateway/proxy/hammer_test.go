package proxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/leak"
	"github.com/weir-mcp/weir/internal/mirror"
	"github.com/weir-mcp/weir/internal/sse"
	"github.com/weir-mcp/weir/internal/wire"
)

// moody is a backend that does to each call what the call asks for, so that the
// client knows what to expect.
type moody struct {
	sessions, events atomic.Int64
	// kept is what is left to be sent of a stream, by the last event that was.
	kept sync.Map
	// held are calls that wait for their cancellation, by session and id.
	held sync.Map
	// refused counts the errors for requests of its own.
	refused atomic.Int64
}

func (b *moody) event(message string) string {
	return fmt.Sprintf("id: %d\ndata: %s\n\n", b.events.Add(1), message)
}

func (b *moody) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	session := r.Header.Get(mirror.SessionHeader)
	switch r.Method {
	case http.MethodDelete:
		return
	case http.MethodGet:
		last := r.Header.Get(mirror.LastEventIDHeader)
		rest, ok := b.kept.Load(last)
		w.Header().Set("Content-Type", typeSSE)
		w.(http.Flusher).Flush()
		if ok {
			io.WriteString(w, rest.(string))
			return
		}
		<-r.Context().Done()
		return
	}
	body, _ := io.ReadAll(r.Body)
	m, err := wire.Read(body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	switch m.Kind {
	case wire.Notification:
		if m.Method == "notifications/cancelled" {
			raw, _ := wire.Get(m.Params, "requestId")
			if c, ok := b.held.LoadAndDelete(session + " " + string(raw)); ok {
				close(c.(chan struct{}))
			}
		}
		w.WriteHeader(http.StatusAccepted)
		return
	case wire.Failure, wire.Response:
		b.refused.Add(1)
		w.WriteHeader(http.StatusAccepted)
		return
	}
	id := m.ID.String()
	if m.Method == "initialize" {
		w.Header().Set(mirror.SessionHeader, fmt.Sprintf("s%d", b.sessions.Add(1)))
		w.Header().Set("Content-Type", typeJSON)
		io.WriteString(w, result(id, `{"protocolVersion":"2025-11-25"}`))
		return
	}
	name, _ := wire.Get(m.Params, "name")
	word, _ := wire.Get(m.Params, "word")
	do, _ := wire.Unquote(name)
	answer := result(id, `{"word":`+string(word)+`}`)
	progress := b.event(notification("notifications/progress", `{"progressToken":`+string(word)+`}`))
	at := strings.TrimPrefix(strings.Split(progress, "\n")[0], "id: ")
	stream := func(text string) {
		w.Header().Set("Content-Type", typeSSE)
		io.WriteString(w, text)
		w.(http.Flusher).Flush()
	}
	switch do {
	case "json":
		w.Header().Set("Content-Type", typeJSON)
		io.WriteString(w, answer)
	case "stream":
		stream(": comment\n\n" + progress + b.event(request(`"s"`, "sampling/createMessage", "{}")) + b.event(answer))
	case "break", "poll":
		if session == "" {
			stream(progress)
			die(w)
			return
		}
		b.kept.Store(at, b.event(answer))
		stream(progress)
		if do == "break" {
			die(w)
		}
	case "die":
		die(w)
	case "hold", "leave":
		// Before anything is sent, so that whoever cancels finds it.
		c := make(chan struct{})
		b.held.Store(session+" "+id, c)
		stream(progress)
		select {
		case <-c:
			io.WriteString(w, b.event(answer)) // too late
		case <-r.Context().Done():
		}
	}
}

// Many clients and a backend that does what it likes: each call has one answer or
// one error, its own, governed; nothing is left behind.
func TestHammer(t *testing.T) {
	leak.Descriptors(t)
	b := &moody{}
	s := stage(t, map[string]rule{
		"tools/call request":             pass,
		"tools/call response":            edit(`{"word":"w`, `{"word":"governed`),
		"sampling/createMessage request": block,
	}, b.ServeHTTP, func(o *Options) { o.Sessions, o.Idle = 30, 50*time.Millisecond })
	clients, calls := 12, 40
	if testing.Short() {
		calls = 15
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	defer transport.CloseIdleConnections()
	var all sync.WaitGroup
	for n := range clients {
		all.Go(func() {
			c := &hammering{s: s, n: n, rand: rand.New(rand.NewPCG(1, uint64(n))), transport: transport}
			for i := range calls {
				if err := c.call(i); err != nil {
					t.Errorf("client %d, call %d: %v", n, i, err)
					return
				}
			}
		})
	}
	all.Wait()
	require.Positive(t, b.refused.Load(), "the backend was told what was blocked of its own")
	require.LessOrEqual(t, s.proxy.Sessions(), 30)
	require.Eventually(t, func() bool { return s.proxy.Sessions() == 0 }, patience, time.Millisecond)
}

// hammering is one client.
type hammering struct {
	s         *scene
	n         int
	rand      *rand.Rand
	transport *http.Transport
	session   string
}

func (c *hammering) do(ctx context.Context, method, body string, headers ...string) (*http.Response, error) {
	if c.session != "" {
		headers = append(headers, "Mcp-Session-Id: "+c.session)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.s.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", typeJSON)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	return c.transport.RoundTrip(r)
}

// once makes a request of which only the status counts.
func (c *hammering) once(method, body string) (*http.Response, error) {
	res, err := c.do(context.Background(), method, body)
	if err == nil {
		_, err = io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
	return res, err
}

func (c *hammering) call(i int) error {
	switch c.rand.IntN(6) {
	case 0: // another session
		if c.session != "" && c.rand.IntN(2) == 0 {
			if _, err := c.once(http.MethodDelete, ""); err != nil {
				return err
			}
		}
		c.session = ""
		res, err := c.once(http.MethodPost, request("0", "initialize", "{}"))
		if err != nil {
			return err
		}
		c.session = res.Header.Get(mirror.SessionHeader)
	case 1: // none
		c.session = ""
	}
	do := []string{"json", "stream", "break", "poll", "die", "hold", "leave"}[c.rand.IntN(7)]
	if c.session == "" && (do == "hold" || do == "poll") {
		do = "json"
	}
	id, word := fmt.Sprint(i+1), fmt.Sprintf("w-%d-%d", c.n, i)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	res, err := c.do(ctx, http.MethodPost, call(id, `{"name":"`+do+`","word":"`+word+`"}`))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusNotFound {
		c.session = "" // it was idle for too long: on to the next one
		return nil
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", do, res.Status)
	}
	governed := strings.Replace(word, "w", "governed", 1)
	got, last, err := c.answers(res, func() error {
		switch do {
		case "leave":
			cancel()
		case "hold":
			_, err := c.once(http.MethodPost, notification("notifications/cancelled", `{"requestId":`+id+`}`))
			return err
		}
		return nil
	})
	if do == "leave" {
		c.session = "" // the id stays taken there
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", do, err)
	}
	if do == "poll" && len(got) == 0 {
		res, err := c.do(context.Background(), http.MethodGet, "", "Last-Event-ID: "+last)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if got, _, err = c.answers(res, nil); err != nil {
			return err
		}
	}
	if do == "hold" {
		if len(got) != 0 {
			return fmt.Errorf("answered after its cancellation: %s", got)
		}
		return nil
	}
	want := result(id, `{"word":"`+governed+`"}`)
	if do == "die" || do == "break" && c.session == "" {
		want = failure(id, "-32603", "the backend is gone; the request may or may not have been carried out")
	}
	if len(got) != 1 || string(got[0]) != want {
		return fmt.Errorf("%s: got %q, want %s", do, got, want)
	}
	return nil
}

// answers reads all of an answer: the messages that answer something, and the id
// of the last event. First is called behind the first event.
func (c *hammering) answers(res *http.Response, first func() error) (got [][]byte, last string, err error) {
	if res.Header.Get("Content-Type") != typeSSE {
		body, err := io.ReadAll(res.Body)
		return [][]byte{body}, "", err
	}
	r := sse.NewReader(res.Body, sse.Limits{})
	for {
		event, err := r.Next()
		if err == io.EOF {
			return got, last, nil
		}
		if err != nil {
			return nil, "", err
		}
		if event.HasID {
			last = event.ID
		}
		if bytes.Contains(event.Data, []byte("sampling")) {
			return nil, "", fmt.Errorf("not blocked: %s", event.Data)
		}
		if m, err := wire.Read(event.Data); err == nil && (m.Kind == wire.Response || m.Kind == wire.Failure) {
			got = append(got, event.Data)
		}
		if first != nil {
			if err := first(); err != nil {
				return nil, "", err
			}
			first = nil
		}
	}
}
