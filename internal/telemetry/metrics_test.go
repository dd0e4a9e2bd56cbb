package telemetry

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/chain"
	"github.com/weir-mcp/weir/gateway/relay"
	"github.com/weir-mcp/weir/internal/wire"
)

// scrape gives what is served, without the process's own metrics.
func scrape(t testing.TB, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	require.Equal(t, 200, w.Code)
	var ours []string
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "weir_") {
			ours = append(ours, strings.TrimSpace(line))
		}
	}
	return strings.Join(ours, "\n")
}

func TestDecided(t *testing.T) {
	m := New(Options{Version: "v1"})
	released := &chain.Outcome{Status: abi.StatusSuccess, Results: []chain.StepResult{
		{Name: "redactor", Host: "local", Type: abi.Mutation, Effect: chain.EffectApplied, Duration: 2 * time.Millisecond},
		{Name: "audit", Host: "local", Type: abi.Sink, Effect: chain.EffectStarted},
	}}
	m.Decided(abi.ToolsCall, abi.Request, released)
	m.Decided(abi.ToolsCall, abi.Request, released)
	m.Sink(chain.SinkReport{Event: abi.ToolsCall, Phase: abi.Request, StepResult: chain.StepResult{
		Name: "audit", Host: "local", Type: abi.Sink, Effect: chain.EffectLost, Err: abi.Failed("audit", abi.Request, abi.ReasonBusy, errors.New("x")),
	}})
	m.Decided("made-up/by-a-client", abi.Response, &chain.Outcome{
		Status:  abi.StatusInterceptorFailed,
		Results: []chain.StepResult{{Name: "guard", Host: "team", Type: abi.Validation, Effect: chain.EffectBlocked, Err: abi.TimedOut("guard", abi.Response, time.Second, nil)}},
		Aborted: &chain.Abort{Interceptor: "guard", Host: "team", Reason: "timeout"},
	})
	got := scrape(t, m)
	for _, want := range []string{
		`weir_build_info{version="v1"} 1`,
		`weir_invocation_seconds_count{event="tools/call",host="local",interceptor="redactor",outcome="applied",phase="request",type="mutation"} 2`,
		`weir_invocation_seconds_bucket{event="tools/call",host="local",interceptor="redactor",outcome="applied",phase="request",type="mutation",le="0.001"} 0`,
		`weir_invocation_seconds_bucket{event="tools/call",host="local",interceptor="redactor",outcome="applied",phase="request",type="mutation",le="0.0025"} 2`,
		`weir_invocation_seconds_count{event="tools/call",host="local",interceptor="audit",outcome="lost",phase="request",type="sink"} 1`,
		`weir_invocation_failures_total{host="local",interceptor="audit",reason="busy"} 1`,
		`weir_invocation_failures_total{host="team",interceptor="guard",reason="timeout"} 1`,
		`weir_operations_total{event="tools/call",phase="request",status="success"} 2`,
		`weir_operations_total{event="custom",phase="response",status="interceptor_failed"} 1`,
		`weir_blocked_total{event="custom",host="team",interceptor="guard",phase="response",reason="timeout"} 1`,
	} {
		require.Contains(t, got, want)
	}
	require.NotContains(t, got, "made-up", "what a client says is no label")
	require.NotContains(t, got, `outcome="started"`, "a sink counts once, when it is done")
}

// relayed remembers what it was told.
type relayed struct{ governed, discarded, arrived int }

func (r *relayed) Governed(relay.Record)         { r.governed++ }
func (r *relayed) Discarded(relay.Discard)       { r.discarded++ }
func (r *relayed) Arrived(relay.Side, wire.Kind) { r.arrived++ }

func TestObserver(t *testing.T) {
	var next relayed
	m := New(Options{Observer: &next})
	m.Governed(relay.Record{Scope: relay.Scope{Event: abi.ToolsList, Phase: abi.Response}, Waited: time.Millisecond, Duration: 3 * time.Millisecond})
	m.Discarded(relay.Discard{From: relay.Backend, Cause: relay.UnknownResponse})
	m.Arrived(relay.Client, wire.Request)
	got := scrape(t, m)
	require.Contains(t, got, `weir_added_seconds_sum{event="tools/list",phase="response"} 0.004`)
	require.Contains(t, got, `weir_messages_discarded_total{cause="unknown_response",from="backend"} 1`)
	require.Contains(t, got, `weir_messages_total{from="client",kind="request"} 1`)
	require.Equal(t, relayed{1, 1, 1}, next)
	New(Options{}).Governed(relay.Record{}) // nobody else to tell
}

func TestState(t *testing.T) {
	m := New(Options{State: func() State {
		return State{
			Hosts:     []Host{{Name: "local", Up: true, Interceptors: 3, Skipped: 1}, {Name: "team"}},
			Modules:   []Module{{Host: "local", File: "a.wasm", Digest: "00ff"}, {Host: "local", File: "bad.wasm", Refused: true}, {Host: "local", File: "\xff.wasm"}},
			Unmatched: []string{"weir.yaml:3:5", "a", "weir.yaml:3:5"},
			Sessions:  2,
		}
	}})
	got := scrape(t, m)
	for _, want := range []string{
		`weir_host_up{host="local"} 1`, `weir_host_up{host="team"} 0`, `weir_host_interceptors{host="local"} 3`, `weir_host_skipped{host="local"} 1`,
		`weir_module_info{file="a.wasm",host="local",sha256="00ff"} 1`,
		`weir_module_refused{file="a.wasm",host="local"} 0`, `weir_module_refused{file="bad.wasm",host="local"} 1`,
		`weir_policy_unmatched{at="weir.yaml:3:5"} 1`, `weir_sessions 2`,
	} {
		require.Contains(t, got, want)
	}
	require.NotContains(t, got, `sha256=""`)
	require.NotContains(t, scrape(t, New(Options{})), "weir_host_up")
}

// lines counts the series of a metric.
func lines(scraped, metric string) (n int) {
	for line := range strings.Lines(scraped) {
		if strings.HasPrefix(line, metric+"{") {
			n++
		}
	}
	return n
}

// A host that lists other names each time fills no memory, and takes no room from
// the others.
func TestLabels_areBounded(t *testing.T) {
	m := New(Options{})
	events := []string{abi.ToolsCall, abi.PromptsGet, abi.ResourcesRead}
	step := func(name, host string) chain.StepResult {
		return chain.StepResult{Name: name, Host: host, Type: abi.Validation, Effect: chain.EffectBlocked, Err: abi.Failed("x", abi.Request, abi.ReasonBusy, nil)}
	}
	for i := range 3000 {
		name := fmt.Sprint("flood-", i)
		m.Decided(events[i%3], abi.Request, &chain.Outcome{
			Status: abi.StatusInterceptorFailed, Results: []chain.StepResult{step(name, "hostile")}, Aborted: &chain.Abort{Interceptor: name, Host: "hostile", Reason: "busy"},
		})
	}
	m.Decided(abi.ToolsCall, abi.Request, &chain.Outcome{Results: []chain.StepResult{step("guard", "local")}, Aborted: &chain.Abort{Interceptor: "guard", Host: "local", Reason: "busy"}})
	got := scrape(t, m)
	for metric, beyond := range map[string]int{"weir_invocation_seconds_count": 3, "weir_invocation_failures_total": 1, "weir_blocked_total": 3} {
		require.LessOrEqual(t, lines(got, metric), mostOfHost+beyond+1, metric)
	}
	require.LessOrEqual(t, m.labels.hosts["hostile"], mostOfHost)
	require.Contains(t, got, `weir_blocked_total{event="tools/call",host="hostile",interceptor="other",phase="request",reason="busy"}`)
	require.Contains(t, got, `weir_blocked_total{event="tools/call",host="local",interceptor="guard",phase="request",reason="busy"} 1`)
	require.Contains(t, got, `weir_blocked_total{event="tools/call",host="hostile",interceptor="flood-0",phase="request",reason="busy"} 1`, "what is there stays")
	var all float64
	for line := range strings.Lines(got) {
		if strings.HasPrefix(line, "weir_invocation_failures_total{") {
			n, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndex(line, " "):]), 64)
			require.NoError(t, err)
			all += n
		}
	}
	require.Equal(t, 3001.0, all, "nothing is lost")

	for i := range mostHosts + 10 {
		m.Sink(chain.SinkReport{Event: abi.ToolsCall, Phase: abi.Request, StepResult: step("x", fmt.Sprint("host-", i))})
	}
	require.Len(t, m.labels.hosts, mostHosts)
	require.Contains(t, scrape(t, m), `weir_invocation_failures_total{host="other",interceptor="other",reason="busy"} 12`)

	for i := range 20 {
		for j := range mostOfHost {
			m.labels.of(inFailures, fmt.Sprint(j), fmt.Sprint("host-", i), "busy")
		}
	}
	require.Len(t, m.labels.seen, mostOfAll)
}

// What a host lists may match nothing, in any number and length.
func TestUnmatched_isBounded(t *testing.T) {
	m := New(Options{State: func() (s State) {
		for i := range 5000 {
			s.Unmatched = append(s.Unmatched, fmt.Sprintf("%d\xff%s", i, strings.Repeat("x", 1000)))
		}
		return s
	}})
	got := scrape(t, m)
	require.Equal(t, mostUnmatched+1, lines(got, "weir_policy_unmatched"))
	require.Contains(t, got, `weir_policy_unmatched{at="other"} 1`)
	require.Less(t, len(got), 1<<20)
}

// Whatever anybody says is no label, or a short one in UTF-8, and breaks no line.
func TestLabels_areFit(t *testing.T) {
	const hostile = "x\"} 1\nweir_forged{a=\"b\"} 1\n\xff\xfe\x00"
	m := New(Options{State: func() State {
		return State{
			Hosts:     []Host{{Name: hostile}, {Name: "twice"}, {Name: "twice"}},
			Modules:   []Module{{Host: "local", File: hostile}, {Host: "local", File: "a\nweir_forged 1\n.wasm", Digest: "00"}},
			Unmatched: []string{"weir.yaml:3:5", "weir.yaml:3:5"},
		}
	}})
	for i := range 1000 {
		event := fmt.Sprintf("acme/%d%s", i, hostile)
		m.Decided(event, abi.Request, &chain.Outcome{
			Status:  abi.StatusInterceptorFailed,
			Results: []chain.StepResult{{Name: hostile, Host: hostile, Type: abi.Mutation, Effect: chain.EffectBlocked, Err: abi.Failed(hostile, abi.Request, abi.ReasonGuest, errors.New(hostile))}},
			Aborted: &chain.Abort{Interceptor: hostile, Host: hostile, Reason: "guest", Detail: hostile},
		})
		m.Sink(chain.SinkReport{Event: event, Phase: abi.Request, StepResult: chain.StepResult{Name: strings.Repeat("y", 1<<16), Host: "h", Type: abi.Sink, Effect: chain.EffectRecorded}})
		m.Governed(relay.Record{Scope: relay.Scope{Event: event, Phase: abi.Request}, Reference: hostile})
		m.Discarded(relay.Discard{From: relay.Client, Cause: relay.BadMessage, Kind: hostile, Method: hostile, Detail: hostile})
	}
	got := scrape(t, m)
	require.NotContains(t, got, "acme")
	require.True(t, utf8.ValidString(got))
	require.Less(t, len(got), 64<<10)
	for line := range strings.Lines(got) {
		require.False(t, strings.HasPrefix(line, "weir_forged"), line)
	}
	require.Equal(t, 1, lines(got, "weir_operations_total"))
	require.Equal(t, 1, lines(got, "weir_blocked_total"))
	require.Equal(t, 2, lines(got, "weir_added_seconds_count")+lines(got, "weir_messages_discarded_total"))
	require.Contains(t, got, `weir_policy_unmatched{at="weir.yaml:3:5"} 1`, "one that is there twice does not cost the others")
	require.Contains(t, got, `weir_host_up{host="twice"} 0`)
}

func TestHammer(t *testing.T) {
	m := New(Options{State: func() State { return State{Sessions: 1} }})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				m.Decided(abi.ToolsCall, abi.Request, &chain.Outcome{Status: abi.StatusSuccess})
				m.Arrived(relay.Client, wire.Request)
			}
			scrape(t, m)
		})
	}
	all.Wait()
	require.Contains(t, scrape(t, m), `weir_operations_total{event="tools/call",phase="request",status="success"} 800`)
}

var metricName = regexp.MustCompile("`(weir_[a-z_]+)`")

// The page for operators and the metrics that are served name the same ones.
func TestOperatingPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/operating.md")
	require.NoError(t, err)
	written := map[string]bool{}
	for _, match := range metricName.FindAllStringSubmatch(string(page), -1) {
		written[match[1]] = true
	}
	m := New(Options{State: func() State {
		return State{Hosts: []Host{{Name: "h"}}, Modules: []Module{{Host: "h", File: "f", Digest: "d"}}, Unmatched: []string{"x"}}
	}})
	m.Decided(abi.ToolsCall, abi.Request, &chain.Outcome{Aborted: &chain.Abort{}, Results: []chain.StepResult{{Err: abi.Failed("", "", abi.ReasonGuest, nil)}}})
	m.Governed(relay.Record{})
	m.Discarded(relay.Discard{})
	m.Arrived(relay.Client, wire.Request)
	families, err := m.registry.Gather()
	require.NoError(t, err)
	served := map[string]bool{}
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "weir_") {
			served[f.GetName()] = true
		}
	}
	require.Equal(t, served, written)
}
