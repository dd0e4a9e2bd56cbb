package chain

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares JSON with a file, indented for people but not changed.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	require.True(t, json.Valid(got), "%s", got)
	var b bytes.Buffer
	require.NoError(t, json.Indent(&b, got, "", "  "))
	b.WriteByte('\n')
	file := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(file, b.Bytes(), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String())
}

func TestOutcomeJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		finding := abi.Message{Path: "$.name", Message: "<no> \"t\"", Severity: abi.SeverityWarn}
		hosts := []*mock{
			host("local", mutator("redact", after(1500*time.Microsecond, tag)), mutator("shadow", tag, audit), mutator("skip", broken, failOpen),
				validator("guard", verdict(false, abi.SeverityWarn, finding)), sink("trail", recorded)),
			host("team", validator("slow", after(20*time.Millisecond, pass))),
		}
		plan := NewPlan(listings(hosts, nil), nil, abi.ToolsCall, abi.Request, abi.Sending, "")
		x := NewExecutor(Options{})
		out := x.Execute(t.Context(), plan, Operation{Payload: json.RawMessage(`{"amp":"<&>","name":"t"}`)})
		golden(t, "outcome_released.json", out.AppendJSON(nil))
		require.Contains(t, string(out.AppendJSON(nil)), `"finalPayload":{"amp":"<&>","name":"t+redact"}`, "payloads are spelled as they came")
		for _, v := range []any{out, &out} {
			marshalled, err := json.Marshal(v)
			require.NoError(t, err)
			require.JSONEq(t, string(out.AppendJSON(nil)), string(marshalled))
		}

		policy, err := NewPolicy([]Entry{{Interceptor: "slow", Timeout: ptr(5 * time.Millisecond)}})
		require.NoError(t, err)
		plan = NewPlan(listings(hosts, nil), policy, abi.ToolsCall, abi.Request, abi.Receiving, "")
		out = x.Execute(t.Context(), plan, Operation{Payload: input})
		golden(t, "outcome_timeout.json", out.AppendJSON(nil))

		plan = NewPlan([]Listing{{Host: hosts[0], Err: errors.New("connection refused")}}, nil, abi.ToolsCall, abi.Request, abi.Sending, "")
		out = x.Execute(t.Context(), plan, Operation{Payload: input})
		golden(t, "outcome_discovery.json", out.AppendJSON(nil))
	})
}

func TestPlanJSON(t *testing.T) {
	p := planOf(t, []Entry{
		{Interceptor: "guard", As: "no-rm", Config: json.RawMessage(`{"deny":["rm"],"key":"s3cret"}`), ConfigShown: json.RawMessage(`{"deny":["rm"],"key":"${KEY}"}`), Source: "weir.yaml:20:3"},
		{Interceptor: "redact", PriorityHint: ptr(abi.Priority(-5)), Timeout: ptr(1500 * time.Microsecond), Source: "weir.yaml:21:3"},
		{Interceptor: "noisy", Enabled: ptr(false), Source: "weir.yaml:22:3"},
		{Interceptor: "wide", Hooks: abi.OnBoth("*"), Source: "weir.yaml:23:3"},
		{Interceptor: "needed", Required: true, Source: "weir.yaml:24:3"},
	},
		host("local", validator("guard", pass, audit), mutator("redact", tag, compat("2025-06-18", "2026-07-28")), validator("wide", pass, hooks(abi.On(abi.Request, abi.ToolsCall)), failOpen)),
		host("team", validator("noisy", pass), sink("later", recorded, compat("2026-07-28", ""))),
		&mock{Label: "gone", Down: errors.New("connection refused"), FailOpen: true})
	golden(t, "plan.json", p.AppendJSON(nil))
	require.NotContains(t, string(p.AppendJSON(nil)), "s3cret")
	empty, err := json.Marshal(planOf(t, nil))
	require.NoError(t, err)
	golden(t, "plan_empty.json", empty)
}
