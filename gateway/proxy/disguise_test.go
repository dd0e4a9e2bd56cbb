package proxy

import (
	"bufio"
	"bytes"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/gateway/relay"
)

// What no reader by the book takes for a result must not reach one that is not by
// the book either: an error and an event of another name pass as they are, but not
// where only something that cannot be seen stands before a message.
func TestAResultInDisguiseDoesNotPass(t *testing.T) {
	message := result("1", `{"content":[{"type":"text","text":"secret"}]}`)
	disguises := map[string]string{
		"nothing":                "",
		"white space":            " \t\r",
		"a byte order mark":      "\uFEFF",
		"two byte order marks":   "\uFEFF\uFEFF",
		"NUL, as in UTF-16":      "\x00",
		"the mark of UTF-16":     "\xfe\xff\x00",
		"a vertical tab":         "\v",
		"a no-break space":       "\u00a0",
		"a line separator":       "\u2028",
		"a zero width space":     "\u200b",
		"a line end and a blank": "\n ",
	}
	for name, before := range disguises {
		t.Run(name, func(t *testing.T) {
			for _, status := range []int{http.StatusBadRequest, http.StatusInternalServerError} {
				backend, _ := answering(status, typeJSON, before+message)
				s := stage(t, map[string]rule{"tools/call response": edit("secret", "******")}, backend)
				require.NotContains(t, s.read(s.do(http.MethodPost, call("1", `{"name":"t"}`))), "secret")
			}
			var event bytes.Buffer
			event.WriteString("event: other\n")
			for line := range bytes.SplitSeq([]byte(before+message), []byte("\n")) {
				event.WriteString("data: " + string(line) + "\n")
			}
			backend, _ := answering(http.StatusOK, typeSSE, event.String()+"\n")
			s := stage(t, map[string]rule{"tools/call response": edit("secret", "******")}, backend)
			require.NotContains(t, s.read(s.do(http.MethodPost, call("1", `{"name":"t"}`))), "secret")
		})
	}
}

// Errors that are no messages still pass.
func TestAnErrorInPlainTextPasses(t *testing.T) {
	for _, text := range []string{"not here", " <html>", `"{"`, "\uFEFFnot here"} {
		backend, _ := answering(http.StatusBadRequest, "text/plain", text)
		s := stage(t, nil, backend)
		s.posts(call("1", `{"name":"t"}`), http.StatusBadRequest, text)
	}
}

// With two types, one reader finds a stream of events where another finds JSON.
func TestAnAnswerOfTwoTypesDoesNotPass(t *testing.T) {
	for _, status := range []int{http.StatusOK, http.StatusBadRequest} {
		s := stage(t, map[string]rule{"tools/call response": edit("secret", "******")}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = []string{typeJSON, typeSSE}
			w.WriteHeader(status)
			io.WriteString(w, "data: "+result("1", `{"content":[{"type":"text","text":"secret"}]}`)+"\n\n")
		})
		require.NotContains(t, s.read(s.do(http.MethodPost, call("1", `{"name":"t"}`))), "secret")
	}
}

// A status below 200 that arrives as an answer can be passed on in no way, and
// net/http panics when asked to write one below 100.
func TestAStatusThatIsNone(t *testing.T) {
	for _, status := range []string{"000", "042", "099", "101"} {
		t.Run(status, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			var serving sync.WaitGroup
			serving.Go(func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					_ = c.SetDeadline(time.Now().Add(patience))
					if r, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
						_, _ = io.Copy(io.Discard, r.Body)
					}
					_, _ = io.WriteString(c, "HTTP/1.1 "+status+" X\r\nConnection: close\r\nContent-Type: application/json\r\n\r\n"+result("1", "{}"))
					c.Close()
				}
			})
			p, err := New(Options{Backend: "http://" + l.Addr().String(), Relay: relay.Options{}})
			require.NoError(t, err)
			var said bytes.Buffer
			front := httptest.NewUnstartedServer(p)
			front.Config.ErrorLog = log.New(&said, "", 0)
			front.Start()
			s := &scene{t: t, proxy: p, url: front.URL + "/mcp"}
			s.posts(call("1", `{"name":"t"}`), http.StatusOK, failure("1", "-32603", textGone))
			require.Equal(t, http.StatusBadGateway, s.do(http.MethodGet, "").StatusCode)
			require.Equal(t, http.StatusBadGateway, s.do(http.MethodDelete, "").StatusCode)
			require.Equal(t, http.StatusBadGateway, s.do(http.MethodOptions, "").StatusCode)
			p.Close()
			front.Close()
			l.Close()
			serving.Wait()
			require.Empty(t, said.String())
		})
	}
}
