package chain_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/chain"
)

// natives is a host of two interceptors in plain Go.
type natives struct{}

func (natives) Name() string { return "local" }

func (natives) Invoke(_ context.Context, inv abi.Invocation) (abi.Result, error) {
	r := abi.Result{Interceptor: inv.Name, Phase: inv.Phase}
	switch inv.Name {
	case "redact":
		r.Type = abi.Mutation
		text := strings.ReplaceAll(string(inv.Payload), "hunter2", "***")
		if r.Modified = text != string(inv.Payload); r.Modified {
			r.Payload = json.RawMessage(text)
		}
	case "no-drop":
		r.Type, r.Valid = abi.Validation, !strings.Contains(string(inv.Payload), "drop table")
		if !r.Valid {
			r.Severity = abi.SeverityError
			r.Messages = []abi.Message{{Path: "$.arguments", Message: "drops a table", Severity: abi.SeverityError}}
		}
	default:
		return abi.Result{}, abi.UnknownName(inv.Name)
	}
	return r, nil
}

var local = chain.Listing{Host: natives{}, Interceptors: []abi.Descriptor{
	{Name: "no-drop", Type: abi.Validation, Hooks: abi.On(abi.Request, abi.ToolsCall)},
	{Name: "redact", Type: abi.Mutation, Hooks: abi.OnBoth("*"), PriorityHint: abi.Priority(-1000)},
}}

func Example() {
	plan := chain.NewPlan([]chain.Listing{local}, nil, abi.ToolsCall, abi.Request, abi.Sending, "2025-11-25")
	x := chain.NewExecutor(chain.Options{})
	for _, params := range []string{
		`{"name":"login","arguments":{"password":"hunter2"}}`,
		`{"name":"sql","arguments":{"q":"drop table users"}}`,
	} {
		out := x.Execute(context.Background(), plan, chain.Operation{
			Payload: json.RawMessage(params), Arrived: time.Now(), Timeout: 10 * time.Second,
		})
		if out.Released() {
			fmt.Printf("%s: %s\n", out.Status, out.FinalPayload)
			continue
		}
		fmt.Printf("%s: %s: %s\n", out.Status, out.Aborted.Interceptor, out.Aborted.Messages[0].Message)
	}
	// Output:
	// success: {"name":"login","arguments":{"password":"***"}}
	// validation_failed: no-drop: drops a table
}

func ExampleNewPlan() {
	audit := abi.Audit
	policy, err := chain.NewPolicy([]chain.Entry{
		{Interceptor: "no-drop", Mode: &audit, Source: "weir.yaml:12:3"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	plan := chain.NewPlan([]chain.Listing{local}, policy, abi.ToolsCall, abi.Request, abi.Receiving, "")
	for _, s := range plan.Steps() {
		fmt.Printf("%s on %s: %s (%s), priority %d (%s)\n", s.Name, s.Host, s.Mode.Value, s.Mode.From, s.Priority.Value, s.Priority.From)
	}
	// Output:
	// no-drop on local: audit (policy weir.yaml:12:3), priority 0 (default)
	// redact on local: active (default), priority -1000 (author)
}

// An outcome has the payloads in it and says how long all took, which this
// example sets to 0.
func ExampleOutcome_AppendJSON() {
	plan := chain.NewPlan([]chain.Listing{local}, nil, abi.ToolsCall, abi.Request, abi.Sending, "")
	out := chain.NewExecutor(chain.Options{}).Execute(context.Background(), plan, chain.Operation{Payload: json.RawMessage(`{"name":"<login>"}`)})
	out.TotalDuration = 0
	for i := range out.Results {
		out.Results[i].Duration = 0
	}
	fmt.Printf("%s\n", out.AppendJSON(nil)) // json.Marshal would write "<" and ">" as escapes
	// Output:
	// {"status":"success","event":"tools/call","phase":"request","direction":"sending","results":[{"interceptor":"redact","host":"local","type":"mutation","effect":"passed","durationMs":0,"result":{"type":"mutation","interceptor":"redact","phase":"request","modified":false}},{"interceptor":"no-drop","host":"local","type":"validation","effect":"passed","durationMs":0,"result":{"type":"validation","interceptor":"no-drop","phase":"request","valid":true}}],"finalPayload":{"name":"<login>"},"validationSummary":{"errors":0,"warnings":0,"infos":0},"totalDurationMs":0}
}

func ExampleNewPolicy() {
	off := false
	_, err := chain.NewPolicy([]chain.Entry{
		{Interceptor: "secret-scanner", Required: true, Source: "weir.yaml:12:3"},
		{Interceptor: "*", Enabled: &off, Source: "weir.yaml:13:3"},
	})
	fmt.Println(err)
	// Output:
	// weir.yaml:12:3: interceptor "secret-scanner": required, but disabled by the entry at weir.yaml:13:3
}

func ExampleSinks_Drain() {
	sinks := chain.NewSinks(chain.SinkOptions{Observe: func(r chain.SinkReport) {
		fmt.Println(r.Name, r.Effect, r.Err.Reason)
	}})
	trail := chain.Listing{Host: natives{}, Interceptors: []abi.Descriptor{{Name: "trail", Type: abi.Sink, Hooks: abi.OnBoth("*")}}}
	plan := chain.NewPlan([]chain.Listing{trail}, nil, abi.ToolsCall, abi.Request, abi.Sending, "")
	out := chain.NewExecutor(chain.Options{Sinks: sinks}).Execute(context.Background(), plan, chain.Operation{Payload: json.RawMessage(`{"name":"t"}`)})
	grace, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_ = sinks.Drain(grace)
	fmt.Println(out.Status)
	// Output:
	// trail lost params
	// success
}
