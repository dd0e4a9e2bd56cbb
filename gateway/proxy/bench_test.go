package proxy_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-mcp/weir/gateway/proxy"
)

// load is one call and what the backend answers to it.
type load struct{ name, message, answer string }

func loads() []load {
	var all []load
	for _, size := range []int{1 << 10, 64 << 10, 1 << 20} {
		text := strings.Repeat("x", size)
		all = append(all, load{
			fmt.Sprintf("%dKiB", size>>10),
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"` + text + `"}}}`,
			`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"` + text + `"}]}}`,
		})
	}
	var tools strings.Builder
	for i := range 10_000 {
		if i > 0 {
			tools.WriteByte(',')
		}
		fmt.Fprintf(&tools, `{"name":"tool-%d","description":"does what tool number %d does","inputSchema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}`, i, i)
	}
	return append(all, load{
		"10000tools", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
		`{"jsonrpc":"2.0","id":1,"result":{"tools":[` + tools.String() + `]}}`,
	})
}

// buffered is a reverse proxy of the standard library that has the whole message
// in hand before it passes it on, as whoever looks into it must, and does not look.
func buffered(b *testing.B, backend string) http.Handler {
	to, err := url.Parse(backend)
	if err != nil {
		b.Fatal(err)
	}
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			body, _ := io.ReadAll(r.In.Body)
			r.Out.Body, r.Out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		},
		ModifyResponse: func(res *http.Response) error {
			body, err := io.ReadAll(res.Body)
			res.Body.Close()
			res.Body = io.NopCloser(bytes.NewReader(body))
			return err
		},
		Transport: transport(),
	}
}

func transport() *http.Transport {
	return &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true, WriteBufferSize: 64 << 10, ReadBufferSize: 64 << 10}
}

// contender is one way to the backend.
type contender struct {
	name, url string
	took      []time.Duration
	total     time.Duration
}

// BenchmarkProxy compares, in one run and turn by turn, calls to a backend that
// does nothing with calls through the standard library's reverse proxy and through
// this one with nothing to govern. p50 is of one client's calls, throughput of
// eight at once; x-… are ratios to the reverse proxy, 1 is the same and less is better
// for p50, more is better for throughput.
func BenchmarkProxy(b *testing.B) {
	for _, l := range loads() {
		b.Run(l.name, func(b *testing.B) { compare(b, l) })
	}
}

func compare(b *testing.B, l load) {
	answer := []byte(l.answer)
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
		_, _ = w.Write(answer)
	}))
	defer backend.Close()
	p, err := proxy.New(proxy.Options{Backend: backend.URL + "/mcp"})
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	plain, ours := httptest.NewServer(buffered(b, backend.URL)), httptest.NewServer(p)
	defer plain.Close()
	defer ours.Close()
	all := []*contender{{name: "direct", url: backend.URL}, {name: "reverse-proxy", url: plain.URL}, {name: "weir", url: ours.URL}}
	client := &http.Client{Transport: transport()}
	defer client.CloseIdleConnections()
	for _, c := range all { // connections are there
		burst(b, client, c.url, &l)
	}
	b.SetBytes(int64(len(l.message) + len(l.answer)))
	b.ResetTimer()
	const round = 8
	for n := 0; n < b.N; n += round {
		for i := range all {
			c := all[(i+n/round)%len(all)] // nobody is always the first
			for range round {
				start := time.Now()
				post(b, client, c.url, &l)
				c.took = append(c.took, time.Since(start))
			}
		}
		for i := range all {
			c := all[(i+n/round)%len(all)]
			start := time.Now()
			burst(b, client, c.url, &l)
			c.total += time.Since(start)
		}
	}
	b.StopTimer()
	p50 := map[string]float64{}
	rate := map[string]float64{}
	for _, c := range all {
		slices.Sort(c.took)
		p50[c.name] = float64(c.took[len(c.took)/2].Nanoseconds())
		rate[c.name] = float64(len(c.took)) / c.total.Seconds()
		b.ReportMetric(p50[c.name]/1e3, c.name+"-p50-µs")
		b.ReportMetric(rate[c.name], c.name+"-calls/s")
	}
	b.ReportMetric(p50["weir"]/p50["reverse-proxy"], "x-p50")
	b.ReportMetric(rate["weir"]/rate["reverse-proxy"], "x-throughput")
	b.ReportMetric(0, "ns/op") // of all three together: says nothing
}

// burst makes eight calls at once.
func burst(b *testing.B, client *http.Client, url string, l *load) {
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { post(b, client, url, l) })
	}
	all.Wait()
}

func post(b *testing.B, client *http.Client, url string, l *load) {
	r, err := http.NewRequest(http.MethodPost, url, strings.NewReader(l.message))
	if err != nil {
		b.Error(err)
		return
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	res, err := client.Do(r)
	if err != nil {
		b.Error(err)
		return
	}
	n, err := io.Copy(io.Discard, res.Body)
	res.Body.Close()
	if err != nil || res.StatusCode != http.StatusOK || n != int64(len(l.answer)) {
		b.Errorf("%s: %s, %d bytes: %v", url, res.Status, n, err)
	}
}
