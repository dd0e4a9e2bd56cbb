package door

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/leak"
)

type callerKey struct{}

func known(ctx context.Context, p *abi.Principal) context.Context {
	return context.WithValue(ctx, callerKey{}, p.Type+":"+p.ID)
}

func callerOf(ctx context.Context) string {
	name, _ := ctx.Value(callerKey{}).(string)
	return name
}

// told answers with who came and what came with them.
var told = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	_, _ = io.WriteString(w, callerOf(r.Context())+"|"+r.Header.Get("Authorization")+"|"+string(body))
})

func tokens(t *testing.T) *Tokens {
	t.Helper()
	all, err := NewTokens(Token{"ci", "s3cret"}, Token{"ops", "other"})
	require.NoError(t, err)
	return all
}

func TestGuard_whoComesIn(t *testing.T) {
	open := New(Options{})
	locked := New(Options{Authenticator: tokens(t), Known: known})
	loopback := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8414}
	public := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 8414}
	for _, c := range []struct {
		name   string
		door   *Door
		local  net.Addr
		host   string
		header map[string]string
		status int
		body   string
	}{
		{name: "a program", door: open, status: 200, body: "||"},
		{name: "with credentials of the backend's", door: open, header: map[string]string{"Authorization": "Basic x"}, status: 200, body: "|Basic x|"},
		{name: "a page of the same origin", door: open, header: map[string]string{"Origin": "http://127.0.0.1:8414", "Sec-Fetch-Site": "same-origin"}, status: 200, body: "||"},
		{name: "a page of another origin", door: open, header: map[string]string{"Origin": "http://evil.example"}, status: 403},
		{name: "a page of another port", door: open, header: map[string]string{"Origin": "http://127.0.0.1:80"}, status: 403},
		{name: "a page without an origin", door: open, header: map[string]string{"Origin": "null"}, status: 403},
		{name: "a page that does not say", door: open, header: map[string]string{"Sec-Fetch-Site": "cross-site"}, status: 403},
		{name: "a page of a sister", door: open, header: map[string]string{"Sec-Fetch-Site": "same-site"}, status: 403},
		{name: "by a name that was bent here", door: open, host: "evil.example:8414", status: 403},
		{name: "by the loopback's name", door: open, host: "LocalHost:8414", status: 200, body: "||"},
		{name: "by the loopback's other address", door: open, host: "[::1]:8414", status: 200, body: "||"},
		{name: "by its own name", door: open, local: public, host: "gw.example", status: 200, body: "||"},
		{name: "a known caller", door: locked, header: map[string]string{"Authorization": "Bearer s3cret"}, status: 200, body: "service:ci||"},
		{name: "another known caller", door: locked, header: map[string]string{"Authorization": "bearer  other "}, status: 200, body: "service:ops||"},
		{name: "nobody", door: locked, status: 401},
		{name: "somebody else", door: locked, header: map[string]string{"Authorization": "Bearer s3cre"}, status: 401},
		{name: "nobody with an empty token", door: locked, header: map[string]string{"Authorization": "Bearer "}, status: 401},
		{name: "by another scheme", door: locked, header: map[string]string{"Authorization": "Basic s3cret"}, status: 401},
		{name: "a page with a token", door: locked, header: map[string]string{"Authorization": "Bearer s3cret", "Origin": "http://evil.example"}, status: 403},
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete, http.MethodOptions} {
			t.Run(c.name+" "+method, func(t *testing.T) {
				r := httptest.NewRequest(method, "/mcp", nil)
				r.Host = "127.0.0.1:8414"
				if c.host != "" {
					r.Host = c.host
				}
				local := c.local
				if local == nil {
					local = loopback
				}
				r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, local))
				for name, value := range c.header {
					r.Header.Set(name, value)
				}
				require.Equal(t, c.status == 200, c.door.Admits(r))
				w := httptest.NewRecorder()
				c.door.Guard(told).ServeHTTP(w, r)
				require.Equal(t, c.status, w.Code, w.Body)
				if c.status == 200 {
					require.Equal(t, c.body, w.Body.String())
				}
				require.Equal(t, c.status == 401, w.Header().Get("WWW-Authenticate") != "")
				require.NotContains(t, w.Body.String(), "s3cre")
			})
		}
	}
	r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
	r.Header["Authorization"] = []string{"Bearer s3cret", "Bearer wrong"}
	w := httptest.NewRecorder()
	locked.Guard(told).ServeHTTP(w, r)
	require.Equal(t, 401, w.Code, "two headers: which of them would count somewhere else?")
}

func TestAddress(t *testing.T) {
	for from, want := range map[string]string{
		"192.0.2.7:1234":          "192.0.2.7",
		"[::ffff:192.0.2.7]:1234": "192.0.2.7",
		"[2001:db8:1:2:3::4]:1":   "2001:db8:1:2::/64",
		"[2001:db8:1:2::]:2":      "2001:db8:1:2::/64",
		"[fe80::1%eth0]:1":        "fe80::/64",
		"@":                       "@",
	} {
		require.Equal(t, want, address(&http.Request{RemoteAddr: from}), from)
	}
}

func TestNewTokens_refuses(t *testing.T) {
	for _, c := range []struct {
		tokens []Token
		want   string
	}{
		{nil, "there are no tokens"},
		{[]Token{{"a", ""}}, `the token of "a" is empty`},
		{[]Token{{"a", "x y"}}, "holds spaces"},
		{[]Token{{"a", "x\n"}}, "control characters"},
		{[]Token{{"a", "x"}, {"b", "x"}}, `"a" and "b" have the same token`},
	} {
		_, err := NewTokens(c.tokens...)
		require.ErrorContains(t, err, c.want)
	}
}

func TestGuard_bounds(t *testing.T) {
	t.Run("calls at once, and streams apart from them", func(t *testing.T) {
		entered, release := make(chan string), make(chan struct{})
		h := New(Options{Concurrency: 1, Streams: 1}).Guard(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			entered <- r.Method
			<-release
		}))
		ask := func(method string) int {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(method, "/", nil))
			return w.Code
		}
		var inside sync.WaitGroup
		for _, method := range []string{http.MethodPost, http.MethodGet} {
			inside.Go(func() { ask(method) })
			require.Equal(t, method, <-entered)
		}
		require.Equal(t, 503, ask(http.MethodPost))
		require.Equal(t, 503, ask(http.MethodDelete))
		require.Equal(t, 503, ask(http.MethodGet))
		close(release)
		inside.Wait()
		go func() { <-entered }()
		require.Equal(t, 200, ask(http.MethodPost), "there is room again")
	})
	t.Run("calls of one caller", func(t *testing.T) {
		h := New(Options{Rate: 3, Authenticator: tokens(t)}).Guard(told)
		ask := func(token string) int {
			r := httptest.NewRequest(http.MethodPost, "/", nil)
			r.Header.Set("Authorization", "Bearer "+token)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w.Code
		}
		codes := map[int]int{}
		for range 1000 {
			codes[ask("s3cret")]++
		}
		require.Positive(t, codes[429])
		require.GreaterOrEqual(t, codes[200], 3)
		require.Equal(t, 200, ask("other"), "another caller has not come yet")
	})
}

func TestRate(t *testing.T) {
	now := time.Unix(0, 0)
	r := newRate(10)
	for range 10 {
		require.True(t, r.allows("a", now))
	}
	require.False(t, r.allows("a", now))
	require.True(t, r.allows("b", now))
	require.True(t, r.allows("a", now.Add(100*time.Millisecond)), "one more after a tenth")
	require.False(t, r.allows("a", now.Add(100*time.Millisecond)))
	require.False(t, r.allows("a", now), "a clock that goes back gives nothing")
	for i := range mostCallers {
		r.allows(strconv.Itoa(i), now)
	}
	require.LessOrEqual(t, len(r.buckets), mostCallers+1, "bounded, whoever comes")
	r.allows("stranger", now.Add(999*time.Millisecond))
	require.Equal(t, now, r.forgot, "looking through all of them is not for every stranger")
	later := now.Add(time.Minute)
	require.True(t, r.allows("new", later))
	require.Less(t, len(r.buckets), 10, "who has not come for a second is forgotten")
	require.True(t, (*rate)(nil).allows("a", now))
}

// A stream that waits ends when the house closes; a call that runs may finish;
// one that does not is an error.
func TestServe_drains(t *testing.T) {
	leak.Goroutines(t, "weir/internal/door")
	for _, c := range []struct {
		name    string
		finish  bool
		wantErr string
	}{{"calls that end", true, ""}, {"a call that does not", false, "some calls did not end in"}} {
		t.Run(c.name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			running, finish := make(chan struct{}), make(chan struct{})
			mux := http.NewServeMux()
			mux.HandleFunc("POST /", func(w http.ResponseWriter, r *http.Request) {
				close(running)
				select {
				case <-finish:
				case <-r.Context().Done():
				}
				_, _ = io.WriteString(w, "done")
			})
			mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, ": hello\n")
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			})
			ctx, stop := context.WithCancel(t.Context())
			served := make(chan error, 1)
			drain := time.Minute
			if !c.finish {
				drain = time.Millisecond
			}
			go func() { served <- Serve(ctx, listener, New(Options{}).Guard(mux), ServeOptions{Drain: drain}) }()
			url := "http://" + listener.Addr().String()
			stream, err := http.Get(url)
			require.NoError(t, err)
			defer stream.Body.Close()
			lines := bufio.NewReader(stream.Body)
			line, err := lines.ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, ": hello\n", line)
			answers := make(chan string, 1)
			go func() {
				res, err := http.Post(url, "text/plain", strings.NewReader("x"))
				if err != nil {
					answers <- "none"
					return
				}
				defer res.Body.Close()
				body, _ := io.ReadAll(res.Body)
				answers <- string(body)
			}()
			<-running
			stop()
			_, err = lines.ReadString('\n')
			require.Error(t, err, "the stream has ended")
			if c.finish {
				close(finish)
				require.NoError(t, <-served)
				require.Equal(t, "done", <-answers)
			} else {
				require.ErrorContains(t, <-served, c.wantErr)
				<-answers
			}
			http.DefaultClient.CloseIdleConnections()
		})
	}
}

func pair(t *testing.T, dir, name string, modified time.Time) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), DNSNames: []string{name}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	for file, block := range map[string]*pem.Block{"c.pem": {Type: "CERTIFICATE", Bytes: der}, "k.pem": {Type: "PRIVATE KEY", Bytes: private}} {
		path := filepath.Join(dir, file)
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(block), 0o600))
		require.NoError(t, os.Chtimes(path, modified, modified))
	}
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return cert
}

func TestCertificate(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "c.pem"), filepath.Join(dir, "k.pem")
	_, err := LoadCertificate(cert, key)
	require.ErrorContains(t, err, "c.pem")
	now := time.Now()
	first := pair(t, dir, "first.example", now)
	c, err := LoadCertificate(cert, key)
	require.NoError(t, err)
	require.Equal(t, first.Raw, c.get(now.Add(2 * time.Second)).Certificate[0])

	// A pair that is being replaced: the last good one serves.
	second := pair(t, dir, "second.example", now.Add(time.Hour))
	good, err := os.ReadFile(key)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(key, good[:20], 0o600))
	require.Equal(t, first.Raw, c.get(now.Add(10 * time.Second)).Certificate[0])
	require.NoError(t, os.WriteFile(key, good, 0o600))
	require.Equal(t, second.Raw, c.get(now.Add(20 * time.Second)).Certificate[0])

	// Over a real connection.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, listener, told, ServeOptions{TLS: c.Config()}) }()
	roots := x509.NewCertPool()
	roots.AddCert(second)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	res, err := (&http.Client{Transport: transport}).Post("https://"+listener.Addr().String(), "text/plain", strings.NewReader("x"))
	require.NoError(t, err)
	res.Body.Close()
	require.Equal(t, 2, res.ProtoMajor)
	transport.CloseIdleConnections()
	stop()
	require.NoError(t, <-served)
}

// Hammer: callers come and go, and no place is lost.
func TestGuard_hammer(t *testing.T) {
	leak.Goroutines(t, "weir/internal/door")
	d := New(Options{Concurrency: 4, Streams: 4, Rate: 1_000_000, Authenticator: tokens(t)})
	h := d.Guard(told)
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for range 200 {
				method := []string{http.MethodGet, http.MethodPost}[i%2]
				r := httptest.NewRequest(method, "/", strings.NewReader("x"))
				r.Header.Set("Authorization", "Bearer s3cret")
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if w.Code != 200 && w.Code != 503 {
					t.Errorf("%d", w.Code)
				}
			}
		})
	}
	all.Wait()
	require.Empty(t, d.slots)
	require.Empty(t, d.streams)
}
