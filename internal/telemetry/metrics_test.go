package telemetry

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

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

// A host that lists other names each time fills no memory.
func TestLabels_areBounded(t *testing.T) {
	m := New(Options{})
	for i := range mostNames + 100 {
		m.Sink(chain.SinkReport{Event: abi.ToolsCall, Phase: abi.Request, StepResult: chain.StepResult{Name: fmt.Sprint(i), Host: "h", Type: abi.Sink, Effect: chain.EffectRecorded}})
	}
	m.Sink(chain.SinkReport{StepResult: chain.StepResult{Name: "0", Host: "h"}})
	require.Len(t, m.names.seen, mostNames)
	require.Contains(t, scrape(t, m), `interceptor="other"`)
	long := New(Options{})
	long.Sink(chain.SinkReport{StepResult: chain.StepResult{Name: strings.Repeat("x", 1<<20) + "\xff", Host: "h"}})
	require.Less(t, len(scrape(t, long)), 64<<10)
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
