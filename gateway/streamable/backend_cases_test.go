package streamable

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/gateway/relay"
	"github.com/weir-mcp/weir/internal/leak"
	"github.com/weir-mcp/weir/internal/logbook"
)

// script is an HTTP server that does what a test says.
type script struct {
	t   *testing.T
	url string
	mu  sync.Mutex
	// seen are the requests: method, the headers of MCP, and the body.
	seen []string
	// on answers a request whose body or method contains the key. The longest key
	// wins.
	on map[string]http.HandlerFunc
}

var shown = []string{"Mcp-Session-Id", "Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name", "Mcp-Param-Region", "Last-Event-Id", "X-Own"}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	line := r.Method
	for _, name := range shown {
		if v := r.Header.Get(name); v != "" {
			line += " " + name + "=" + v
		}
	}
	if len(body) > 0 {
		line += " " + string(body)
	}
	s.mu.Lock()
	s.seen = append(s.seen, line)
	var found http.HandlerFunc
	longest := -1
	for key, f := range s.on {
		if len(key) > longest && (strings.Contains(string(body), key) || key == r.Method || strings.Contains(line, key)) {
			longest, found = len(key), f
		}
	}
	s.mu.Unlock()
	if found == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	found(w, r)
}

func (s *script) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.seen...)
}

func (s *script) count(words string) (n int) {
	for _, line := range s.requests() {
		if strings.Contains(line, words) {
			n++
		}
	}
	return n
}

func asJSON(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func asStream(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, text)
	}
}

// held keeps a stream open behind the text until the client hangs up.
func held(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		asStream(text)(w, r)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

const (
	initialize  = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	welcome     = `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18"}}`
	sessionMark = "Mcp-Session-Id=s1 Mcp-Protocol-Version=2025-06-18 "
)

// stage is a relay between a stdio client in the test's hand and a scripted server.
type stage struct {
	*far
	*script
	backend *Backend
	book    *logbook.Book
}

func play(t *testing.T, on map[string]http.HandlerFunc, adapt ...func(*BackendOptions)) *stage {
	t.Helper()
	leak.Goroutines(t, "streamable.(*Backend)", "gateway/relay.")
	s := &stage{script: &script{t: t, on: on}, book: &logbook.Book{}}
	server := httptest.NewServer(s.script)
	s.url = server.URL
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	if on["initialize"] == nil {
		on["initialize"] = func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Mcp-Session-Id", "s1")
			asJSON(200, welcome)(w, r)
		}
	}
	if on["GET"] == nil {
		on["GET"] = status(http.StatusMethodNotAllowed)
	}
	o := BackendOptions{URL: server.URL, Limit: 1 << 20, Logger: s.book.Text()}
	for _, f := range adapt {
		f(&o)
	}
	var err error
	s.backend, err = dial(o, quick)
	require.NoError(t, err)
	s.far = stdioTo(t, s.backend, relay.Options{Leave: 50 * time.Millisecond, Drain: 2 * time.Second})
	return s
}

// handshake brings the session up.
func (s *stage) handshake() *stage {
	s.far.t.Helper()
	s.send(initialize)
	s.gets(welcome)
	s.send(initialized)
	return s
}

func request(id, method string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `"}`
}

func result(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":{}}` }

func failed(id, text string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32603,"message":"` + text + `"}}`
}

func TestDialRefuses(t *testing.T) {
	for _, c := range []struct {
		o    BackendOptions
		want string
	}{
		{BackendOptions{}, "http://"},
		{BackendOptions{URL: "ftp://x/"}, "http://"},
		{BackendOptions{URL: "http:///mcp"}, "a host"},
		{BackendOptions{URL: "http://user:secret@x/%zz"}, "not a URL"},
		{BackendOptions{URL: "http://x", Header: http.Header{"mcp-session-id": {"1"}}}, "Mcp-Session-Id"},
		{BackendOptions{URL: "http://x", Header: http.Header{"accept-encoding": {"br"}}}, "Accept-Encoding"},
		{BackendOptions{URL: "http://x", Header: http.Header{"Mcp-Param-X": {"br"}}}, "Mcp-Param-X"},
	} {
		_, err := Dial(c.o)
		require.ErrorContains(t, err, c.want)
		require.NotContains(t, err.Error(), "secret")
	}
	b, err := Dial(BackendOptions{URL: "http://user:secret@x/mcp"})
	require.NoError(t, err)
	require.Equal(t, "http://user:xxxxx@x/mcp", b.String())
	require.NoError(t, b.Close())
	require.Equal(t, relay.ErrClosed, b.Write([]byte(request("1", "ping"))))
	_, err = b.Read()
	require.Equal(t, relay.ErrClosed, err)
}

// Initialize comes first and alone; notifications go in order; requests do not
// wait for each other; the session and its version are in every later request.
func TestOrderAndHeaders(t *testing.T) {
	release := make(chan struct{})
	s := play(t, map[string]http.HandlerFunc{
		`"slow"`: func(w http.ResponseWriter, r *http.Request) { <-release; asJSON(200, result("1"))(w, r) },
		`"ping"`: asJSON(200, result("2")),
		"DELETE": status(204),
	}, func(o *BackendOptions) { o.Header = http.Header{"X-Own": {"mine"}} })
	note := func(n string) string { return `{"jsonrpc":"2.0","method":"notifications/` + n + `"}` }
	s.send(initialize, initialized, note("a"), note("b"), request("2", "ping"))
	s.gets(welcome, result("2"))
	s.send(note("c"), request("1", "slow"))
	require.Eventually(t, func() bool { return s.count(`"slow"`) == 1 }, patience, time.Millisecond)
	s.send(request("2", "ping"))
	s.gets(result("2"))
	close(release)
	s.gets(result("1"))
	s.w.Close()
	require.NoError(t, s.ends())
	want := []string{"POST X-Own=mine " + initialize}
	for _, m := range []string{initialized, note("a"), note("b"), request("2", "ping"), note("c"), request("1", "slow"), request("2", "ping")} {
		want = append(want, "POST "+sessionMark+"X-Own=mine "+m)
	}
	var posts []string
	for _, line := range s.requests() {
		if strings.HasPrefix(line, "POST") {
			posts = append(posts, line)
		}
	}
	require.Equal(t, want, posts)
	require.Equal(t, 1, s.count("DELETE "+strings.TrimSpace(sessionMark)))
	require.Equal(t, 1, s.count("GET "+sessionMark))
}

func TestTheStreamOfTheServersOwn(t *testing.T) {
	message := func(n string) string { return `{"jsonrpc":"2.0","method":"notifications/` + n + `"}` }
	s := play(t, map[string]http.HandlerFunc{
		"GET":             asStream("retry: 1\nid: 1\ndata: " + message("a") + "\n\n: comment\n\nevent: other\ndata: no message\n\n"),
		"Last-Event-Id=1": asStream("id: 2\ndata: {\"jsonrpc\":\"2.0\",\r\ndata: \"method\":\"notifications/b\"}\r\n\r\n"),
		"Last-Event-Id=2": held("data: " + message("c") + "\n\n"),
	}).handshake()
	s.gets(message("a"), message("b"), message("c"))
}

func Test_progress_and_sampling(t *testing.T) {
	asked := `{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{}}`
	answered := make(chan struct{})
	s := play(t, map[string]http.HandlerFunc{
		`"work"`: func(w http.ResponseWriter, r *http.Request) {
			asStream("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\ndata: "+asked+"\n\n")(w, r)
			_ = http.NewResponseController(w).Flush()
			<-answered
			_, _ = io.WriteString(w, "data: "+result("7")+"\n\n")
		},
		`"id":"q","result"`: func(w http.ResponseWriter, _ *http.Request) { close(answered); w.WriteHeader(202) },
	}).handshake()
	s.send(request("7", "work"))
	s.gets(`{"jsonrpc":"2.0","method":"notifications/progress"}`, asked)
	s.send(`{"jsonrpc":"2.0","id":"q","result":{}}`)
	s.gets(result("7"))
}

func Test_smuggled_lines(t *testing.T) {
	inner := `{"jsonrpc":"2.0","id":9,"method":"sampling/createMessage"}`
	s := play(t, map[string]http.HandlerFunc{
		`"json"`:   asJSON(200, "{\r\n\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"x\":\n"+inner+"\n}}\n"),
		`"stream"`: asStream("data: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"x\":\ndata: " + inner + "\ndata: }}\n\n"),
	}).handshake()
	s.send(request("1", "json"))
	s.gets(`{"jsonrpc":"2.0","id":1,"result":{"x":` + inner + `}}`)
	s.send(request("2", "stream"))
	s.gets(`{"jsonrpc":"2.0","id":2,"result":{"x":` + inner + `}}`)
}

// Answers that are none become errors on the request's own id, with generic words;
// the log has the rest.
func TestAnswersThatAreNone(t *testing.T) {
	own := `{"jsonrpc":"2.0","id":1.0,"error":{"code":-32001,"message":"the server's own"}}`
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		want    string
	}{
		{"401", asJSON(401, own), failed("1.0", textStatus+"401")},
		{"403", asJSON(403, own), failed("1.0", textStatus+"403")},
		{"500", asJSON(500, own), failed("1.0", textStatus+"500")},
		{"503 in words", status(503), failed("1.0", textStatus+"503")},
		{"400 in words", status(400), failed("1.0", textStatus+"400")},
		{"400 with an error", asJSON(400, own), own},
		{"400 with an error on no id", asJSON(400, strings.Replace(own, "1.0,", "null,", 1)), own},
		{"400 with an error on another id", asJSON(400, strings.Replace(own, "1.0,", "2,", 1)), failed("1.0", textStatus+"400")},
		{"400 with a success", asJSON(400, result("1.0")), failed("1.0", textStatus+"400")},
		{"202", status(202), failed("1.0", textNoAnswer)},
		{"an empty body", asJSON(200, " \n"), failed("1.0", textNoAnswer)},
		{"HTML", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }, failed("1.0", textNoAnswer)},
		{"no JSON", asJSON(200, "<html>"), failed("1.0", textNoAnswer)},
		{"a batch", asJSON(200, "["+result("1.0")+"]"), failed("1.0", textNoAnswer)},
		{"malformed", asJSON(200, `{"jsonrpc":"2.0","id":1.0,"result":{},"result":{}}`), failed("1.0", "the answer to this request was malformed and has been withheld")},
		{"another id", asJSON(200, result("5")), failed("1.0", textNoAnswer)},
		{"an empty stream", asStream(""), failed("1.0", textBroken)},
		{"a stream without the answer", asStream("data: {\"jsonrpc\":\"2.0\",\"method\":\"\\u0070\"\n"), failed("1.0", textBroken)},
		{"a redirect to another method", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusFound) }, failed("1.0", textStatus+"302")},
		{"a redirect to another origin", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
		}, failed("1.0", textStatus+"307")},
		{"an id as it is spelled", asJSON(200, result("1.0")), result("1.0")},
		{"an id of the same value", asJSON(200, result("1")), result("1")},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := play(t, map[string]http.HandlerFunc{`"work"`: c.handler, `"ping"`: asJSON(200, result("2"))}).handshake()
			s.send(request("1.0", "work"))
			s.gets(c.want)
			s.send(request("2", "ping"))
			s.gets(result("2"))
		})
	}
}

func TestRedirectsWithinTheOriginAreFollowed(t *testing.T) {
	s := play(t, map[string]http.HandlerFunc{`"work"`: func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/there" {
			http.Redirect(w, r, "/there", http.StatusTemporaryRedirect)
			return
		}
		asJSON(200, result("1"))(w, r)
	}}).handshake()
	s.send(request("1", "work"))
	s.gets(result("1"))
	require.Equal(t, 2, s.count(sessionMark+request("1", "work")))
}

// A server of the session era that refuses server/discover in HTTP's own words
// makes the client fall back all the same.
func TestDiscoverAgainstAnOldServer(t *testing.T) {
	for code, want := range map[int]string{400: "-32601", 404: "-32601", 405: "-32601", 401: "-32603", 500: "-32603"} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			s := play(t, map[string]http.HandlerFunc{"server/discover": status(code)})
			s.send(request("1", "server/discover"))
			require.Contains(t, s.next(), `{"jsonrpc":"2.0","id":1,"error":{"code":`+want)
			s.handshake()
		})
	}
}

func Test_dead_backend(t *testing.T) {
	t.Run("it forgets the session", func(t *testing.T) {
		s := play(t, map[string]http.HandlerFunc{`"hang"`: held(": \n\n"), `"work"`: status(404)}).handshake()
		s.send(request("1", "hang"), request("2", "work"))
		got := []string{s.next(), s.next()}
		for _, id := range []string{"1", "2"} {
			require.Contains(t, strings.Join(got, "\n"), `"id":`+id+`,"error":{"code":-32603`)
		}
		require.ErrorIs(t, s.ends(), ErrSessionLost)
		require.Zero(t, s.count("DELETE"))
		require.Equal(t, 1, s.count(`"initialize"`), "nothing is initialised anew")
	})
	t.Run("nobody listens", func(t *testing.T) {
		s := play(t, map[string]http.HandlerFunc{}, func(o *BackendOptions) { o.URL = "http://127.0.0.1:1/mcp" })
		s.send(request("1", "ping"))
		s.gets(failed("1", textUnreachable))
		require.Equal(t, 1, s.book.Count("cannot be reached", "refused"))
	})
	t.Run("it hangs up", func(t *testing.T) {
		s := play(t, map[string]http.HandlerFunc{`"work"`: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }}).handshake()
		s.send(request("1", "work"))
		s.gets(failed("1", textUnreachable))
	})
	t.Run("a session that was never one", func(t *testing.T) {
		s := play(t, map[string]http.HandlerFunc{"initialize": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Mcp-Session-Id", "a b")
			asJSON(200, welcome)(w, r)
		}})
		s.send(initialize)
		s.gets(failed("0", textNoAnswer))
	})
}

// A stream that breaks is resumed with the last event id, with the server's own
// wait, a bounded number of times.
func TestResumption(t *testing.T) {
	note := func(n string) string { return `{"jsonrpc":"2.0","method":"notifications/` + n + `"}` }
	t.Run("until the answer", func(t *testing.T) {
		s := play(t, map[string]http.HandlerFunc{
			`"work"`:          asStream("id: a\ndata:\n\n"),
			"Last-Event-Id=a": asStream("retry: 1\nid: b\ndata: " + note("x") + "\n\n"),
			"Last-Event-Id=b": asStream("id: c\ndata: " + result("1") + "\n\n"),
		}).handshake()
		s.send(request("1", "work"))
		s.gets(note("x"), result("1"))
	})
	t.Run("a polling server is asked as long as it says something", func(t *testing.T) {
		var mu sync.Mutex
		n := 0
		s := play(t, map[string]http.HandlerFunc{
			`"work"`: asStream("retry: 1\nid: 0\ndata:\n\n"),
			"Last-Event-Id": func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				n++
				text := fmt.Sprintf("id: %d\ndata:\n\n", n)
				if n == 3*DefaultRetries {
					text = "data: " + result("1") + "\n\n"
				}
				mu.Unlock()
				asStream(text)(w, r)
			},
		}).handshake()
		s.send(request("1", "work"))
		s.gets(result("1"))
	})
	for name, h := range map[string]http.HandlerFunc{"an empty stream": asStream(""), "500": status(500), "busy": status(409)} {
		t.Run("in vain, "+name, func(t *testing.T) {
			s := play(t, map[string]http.HandlerFunc{`"work"`: asStream("id: a\ndata:\n\n"), "Last-Event-Id=a": h}).handshake()
			s.send(request("1", "work"))
			s.gets(failed("1", textBroken))
			require.Equal(t, DefaultRetries, s.count("Last-Event-Id=a"))
		})
	}
	t.Run("refused", func(t *testing.T) {
		s := play(t, map[string]http.HandlerFunc{`"work"`: asStream("id: a\ndata:\n\n"), "Last-Event-Id=a": status(400)}).handshake()
		s.send(request("1", "work"))
		s.gets(failed("1", textBroken))
		require.Equal(t, 1, s.count("Last-Event-Id=a"))
	})
	t.Run("the session is gone", func(t *testing.T) {
		s := play(t, map[string]http.HandlerFunc{`"work"`: asStream("id: a\ndata:\n\n"), "Last-Event-Id=a": status(404)}).handshake()
		s.send(request("1", "work"))
		require.Contains(t, s.next(), `"id":1,"error"`)
		require.ErrorIs(t, s.ends(), ErrSessionLost)
	})
	t.Run("never, if so told", func(t *testing.T) {
		s := play(t, map[string]http.HandlerFunc{`"work"`: asStream("id: a\ndata:\n\n")}, func(o *BackendOptions) { o.Retries = -1 }).handshake()
		s.send(request("1", "work"))
		s.gets(failed("1", textBroken))
		require.Zero(t, s.count("Last-Event-Id=a"))
	})
	t.Run("an id that no header can carry", func(t *testing.T) {
		s := play(t, map[string]http.HandlerFunc{`"work"`: asStream("id: a\x01b\ndata:\n\n")}).handshake()
		s.send(request("1", "work"))
		s.gets(failed("1", textBroken))
	})
}

func Test_big_body(t *testing.T) {
	big := `{"jsonrpc":"2.0","id":1,"result":"` + strings.Repeat("x", 2<<20) + `"}`
	late := `{"jsonrpc":"2.0","result":"` + strings.Repeat("x", 3<<20) + `","id":1}`
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = io.WriteString(z, `{"jsonrpc":"2.0","id":1,"result":"`)
	for range 100 {
		_, _ = z.Write(bytes.Repeat([]byte("x"), 1<<20))
	}
	_ = z.Close()
	bomb := func(kind, prefix string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(zipped.Bytes())
		}
	}
	for name, h := range map[string]http.HandlerFunc{
		"JSON": asJSON(200, big), "JSON, id at the end": asJSON(200, late), "stream": asStream("data: " + big + "\n\n"), "stream, id at the end": asStream("data: " + late + "\n\n"),
		"compressed": bomb("application/json", ""),
	} {
		t.Run(name, func(t *testing.T) {
			s := play(t, map[string]http.HandlerFunc{`"work"`: h, `"ping"`: asJSON(200, result("2"))}).handshake()
			s.send(request("1", "work"))
			require.Contains(t, s.next(), `"id":1,"error":{"code":-32603`)
			s.send(request("2", "ping"))
			s.gets(result("2"))
		})
	}
	t.Run("a notification among others", func(t *testing.T) {
		s := play(t, map[string]http.HandlerFunc{`"work"`: asStream("data: {\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":{\"x\":\"" + strings.Repeat("x", 2<<20) + "\"}}\n\ndata: " + result("1") + "\n\n")}).handshake()
		s.send(request("1", "work"))
		s.gets(result("1"))
	})
}

func Test_cancelled_call(t *testing.T) {
	cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`
	t.Run("session era", func(t *testing.T) {
		hungUp := make(chan struct{})
		s := play(t, map[string]http.HandlerFunc{`"hang"`: func(w http.ResponseWriter, r *http.Request) { held(": \n\n")(w, r); close(hungUp) }}).handshake()
		s.send(request("1", "hang"), cancel)
		<-hungUp
		require.Equal(t, 1, s.count(sessionMark+cancel))
	})
	t.Run("stateless era", func(t *testing.T) {
		hungUp := make(chan struct{})
		s := play(t, map[string]http.HandlerFunc{
			`"hang"`: func(w http.ResponseWriter, r *http.Request) { held(": \n\n")(w, r); close(hungUp) },
			`"ping"`: asJSON(200, result("2")),
		})
		s.send(stateless("1", "hang", ""))
		require.Eventually(t, func() bool { return s.count(`"hang"`) == 1 }, patience, time.Millisecond)
		s.send(cancel)
		<-hungUp
		s.send(stateless("2", "ping", ""))
		s.gets(result("2"))
		require.Zero(t, s.count("cancelled"), "it is cancelled by hanging up")
	})
}

func stateless(id, method, params string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{` + params + `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`
}

// Requests of the stateless era carry the headers that say what their bodies say.
func TestHeadersOfTheStatelessEra(t *testing.T) {
	list := `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"q","inputSchema":{"properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}]}}`
	s := play(t, map[string]http.HandlerFunc{
		"tools/list": asJSON(200, list),
		"tools/call": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Mcp-Session-Id", "not one")
			asJSON(200, result("2"))(w, r)
		},
	})
	s.send(stateless("1", "tools/list", ""))
	s.gets(list)
	called := stateless("2", "tools/call", `"name":"q","arguments":{"region":"eu"},`)
	s.send(called)
	s.gets(result("2"))
	note := `{"jsonrpc":"2.0","method":"notifications/x"}`
	s.send(note)
	s.w.Close()
	require.NoError(t, s.ends())
	require.Equal(t, []string{
		"POST Mcp-Protocol-Version=2026-07-28 Mcp-Method=tools/list " + stateless("1", "tools/list", ""),
		"POST Mcp-Protocol-Version=2026-07-28 Mcp-Method=tools/call Mcp-Name=q Mcp-Param-Region=eu " + called,
		"POST Mcp-Protocol-Version=2026-07-28 Mcp-Method=notifications/x " + note,
	}, s.requests())
}

func TestTooManyOpen(t *testing.T) {
	s := play(t, map[string]http.HandlerFunc{`"hang"`: held(": \n\n")}, func(o *BackendOptions) { o.Open = 2 }).handshake()
	s.send(request("1", "hang"), request("2", "hang"), request("3", "hang"))
	s.gets(failed("3", textTooMany))
}

// The client leaves while the server still works: what it asked is answered, then
// the session ends.
func TestTheEndWaitsForAnswers(t *testing.T) {
	release := make(chan struct{})
	s := play(t, map[string]http.HandlerFunc{`"slow"`: func(w http.ResponseWriter, r *http.Request) { <-release; asJSON(200, result("1"))(w, r) }}).handshake()
	s.send(request("1", "slow"))
	require.Eventually(t, func() bool { return s.count(`"slow"`) == 1 }, patience, time.Millisecond)
	s.w.Close()
	close(release)
	s.gets(result("1"))
	require.NoError(t, s.ends())
	require.Equal(t, 1, s.count("DELETE"))
}

// A server that keeps the stream of the handshake open holds nobody up.
func TestTheHandshakeIsOverWithItsAnswer(t *testing.T) {
	s := play(t, map[string]http.HandlerFunc{
		"initialize": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Mcp-Session-Id", "s1")
			held("data: "+welcome+"\n\n")(w, r)
		},
		`"ping"`: asJSON(200, result("1")),
	})
	s.handshake()
	s.send(request("1", "ping"))
	s.gets(result("1"))
}
