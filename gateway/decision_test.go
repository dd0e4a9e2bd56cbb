package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway"
	"github.com/weir-mcp/weir/gateway/chain"
	"github.com/weir-mcp/weir/gateway/hosts"
	"github.com/weir-mcp/weir/internal/logbook"
)

// verdicts are interceptors that answer what the test says.
func verdicts(answer func(abi.Invocation) (abi.Result, error), list ...abi.Descriptor) *set {
	return &set{list: list, invoke: func(_ context.Context, inv abi.Invocation) (abi.Result, error) {
		r, err := answer(inv)
		r.Interceptor, r.Phase = inv.Name, inv.Phase
		return r, err
	}}
}

// recorded is the one record that an operation leaves, as a line and read.
func recorded(t *testing.T, o gateway.ChainOptions, op gateway.Operation, s *set) (line string, record map[string]any) {
	t.Helper()
	book := &logbook.Book{}
	o.Hosts = hosts.NewSet([]*hosts.Host{hosts.InProcess("team", s, hosts.Options{})}, hosts.SetOptions{})
	o.Logger = book.JSON()
	c := newChain(t, o)
	require.NoError(t, c.Ready(t.Context()))
	c.Execute(t.Context(), op)
	for l := range strings.Lines(book.String()) {
		if strings.Contains(l, `"plan"`) {
			require.Empty(t, line, "one line for one governed phase: %s", book)
			line = l
		}
	}
	require.NotEmpty(t, line, book)
	require.NoError(t, json.Unmarshal([]byte(line), &record))
	requireNoNameTwice(t, line)
	requireOneLine(t, line)
	return line, record
}

// requireNoNameTwice says that no reader of a record can take another member for
// the one that counts.
func requireNoNameTwice(t *testing.T, line string) {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(line))
	seen := map[string]bool{}
	_, err := dec.Token()
	require.NoError(t, err)
	for dec.More() {
		name, err := dec.Token()
		require.NoError(t, err)
		require.False(t, seen[name.(string)], name)
		seen[name.(string)] = true
		var value json.RawMessage
		require.NoError(t, dec.Decode(&value))
	}
}

// requireOneLine says that there is one line by whatever measure, and nothing that
// a terminal obeys.
func requireOneLine(t *testing.T, line string) {
	t.Helper()
	line = strings.TrimSuffix(line, "\n")
	require.Negative(t, strings.IndexFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }), "%q", line)
}

func validation(name string) abi.Descriptor {
	return abi.Descriptor{Name: name, Type: abi.Validation, Hooks: abi.OnBoth("*")}
}

func allow(abi.Invocation) (abi.Result, error) {
	return abi.Result{Type: abi.Validation, Valid: true}, nil
}

func TestADecisionIsOnRecord(t *testing.T) {
	ctx := &abi.Context{Principal: &abi.Principal{Type: abi.PrincipalService, ID: "ci"}, SessionID: "s-1"}
	call := gateway.Operation{Event: abi.ToolsCall, Payload: json.RawMessage(`{"name":"send","arguments":{"text":"PAYLOAD"}}`), Reference: "REF", Context: ctx}
	names := func(inv abi.Invocation) (abi.Result, error) {
		switch inv.Name {
		case "a-redactor":
			return abi.Result{Type: abi.Mutation, Modified: true, Payload: json.RawMessage(`{"name":"send"}`)}, nil
		case "warns":
			return abi.Result{Type: abi.Validation, Severity: abi.SeverityWarn}, nil
		case "audited", "without-severity":
			return abi.Result{Type: abi.Validation}, nil
		case "grave":
			return abi.Result{Type: abi.Validation, Severity: "critical"}, nil
		case "fails", "fails-open":
			return abi.Result{}, errors.New("the database is away")
		}
		return allow(inv)
	}
	redactor := abi.Descriptor{Name: "a-redactor", Type: abi.Mutation, Hooks: abi.OnBoth("*")}
	audited, failsOpen := validation("audited"), validation("fails-open")
	audited.Mode, failsOpen.FailOpen = abi.Audit, true
	for _, tt := range []struct {
		name string
		list []abi.Descriptor
		want map[string]any
		plan []map[string]any
		not  []string
	}{
		{
			name: "released",
			list: []abi.Descriptor{redactor, validation("allows"), audited, failsOpen, validation("warns")},
			want: map[string]any{"msg": "released", "level": "INFO", "status": "success", "modified": true},
			plan: []map[string]any{
				{"interceptor": "a-redactor", "type": "mutation", "effect": "applied"},
				{"interceptor": "allows", "type": "validation", "effect": "passed", "valid": true},
				{"interceptor": "audited", "mode": "audit", "effect": "audited", "valid": false},
				{"interceptor": "fails-open", "effect": "ignored"},
				{"interceptor": "warns", "effect": "passed", "valid": false, "severity": "warn"},
			},
			not: []string{"interceptor", "reason", "severity", "detail"},
		},
		{
			name: "blocked by a verdict without a severity, which is an error",
			list: []abi.Descriptor{redactor, validation("allows"), validation("without-severity")},
			want: map[string]any{
				"msg": "blocked", "level": "WARN", "status": "validation_failed", "modified": false,
				"interceptor": "without-severity", "host": "team", "reason": "rejected", "severity": "error",
			},
			plan: []map[string]any{
				{"interceptor": "a-redactor", "effect": "discarded"},
				{"interceptor": "allows", "effect": "passed", "valid": true},
				{"interceptor": "without-severity", "effect": "blocked", "valid": false},
			},
		},
		{
			name: "blocked by a verdict of another severity",
			list: []abi.Descriptor{validation("grave")},
			want: map[string]any{"msg": "blocked", "interceptor": "grave", "reason": "rejected", "severity": "critical"},
			plan: []map[string]any{{"interceptor": "grave", "effect": "blocked", "severity": "critical"}},
		},
		{
			name: "blocked by a failure",
			list: []abi.Descriptor{validation("fails")},
			want: map[string]any{"msg": "blocked", "status": "interceptor_failed", "interceptor": "fails", "host": "team", "reason": "unavailable"},
			plan: []map[string]any{{"interceptor": "fails", "effect": "blocked"}},
			not:  []string{"severity"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			line, record := recorded(t, gateway.ChainOptions{}, call, verdicts(names, tt.list...))
			require.Subset(t, record, tt.want)
			require.Subset(t, record, map[string]any{
				"reference": "REF", "event": "tools/call", "phase": "request", "direction": "sending", "name": "send",
				"principal": "service:ci", "session": "6a840baf5d8c", // printf %s s-1 | sha256sum | cut -c-12
			})
			require.NotEmpty(t, record["time"])
			require.Contains(t, record, "ms")
			require.EqualValues(t, len(call.Payload), record["bytes"])
			for _, name := range tt.not {
				require.NotContains(t, record, name)
			}
			plan := record["plan"].([]any)
			require.Len(t, plan, len(tt.plan))
			for i, step := range tt.plan {
				require.Subset(t, plan[i], step)
				require.Equal(t, "team", plan[i].(map[string]any)["host"])
				require.Contains(t, plan[i], "ms", "how long it took")
			}
			require.NotContains(t, line, "PAYLOAD")
			require.NotContains(t, line, "s-1")
		})
	}
}

func TestEachPhaseHasARecordOfItsOwn(t *testing.T) {
	book := &logbook.Book{}
	c := newChain(t, gateway.ChainOptions{Logger: book.JSON(), Hosts: hosts.NewSet([]*hosts.Host{
		hosts.InProcess("team", verdicts(allow, validation("w")), hosts.Options{}),
	}, hosts.SetOptions{})})
	var told []string
	for i, phase := range []abi.Phase{abi.Request, abi.Response, abi.Request} {
		out := c.Execute(t.Context(), gateway.Operation{Event: abi.ToolsCall, Phase: phase, Payload: json.RawMessage(`{}`)})
		told = append(told, out.Reference)
		require.Equal(t, i+1, book.Count(`"plan"`))
		require.Equal(t, 1, book.Count(`"reference":"`+out.Reference+`"`), "which finds the record, and no other")
	}
	require.NotEqual(t, told[0], told[1])
	c.Execute(t.Context(), gateway.Operation{Event: "ping", Payload: json.RawMessage(`{}`)})
	require.Equal(t, 3, book.Count(`"plan"`), "what is not governed is not on record")
}

func TestMessagesAreOnRecordOnlyWhereThatIsWanted(t *testing.T) {
	talkative := verdicts(func(abi.Invocation) (abi.Result, error) {
		r := abi.Result{Type: abi.Validation, Severity: abi.SeverityError}
		for i := range 1000 {
			r.Messages = append(r.Messages, abi.Message{Path: "$.QUOTED", Message: fmt.Sprintf("%d QUOTED %s", i, strings.Repeat("é", 1000)), Severity: abi.SeverityError})
		}
		return r, nil
	}, validation("w"))
	op := gateway.Operation{Event: abi.ToolsCall, Payload: json.RawMessage(`{"name":"t"}`)}

	line, _ := recorded(t, gateway.ChainOptions{}, op, talkative)
	require.NotContains(t, line, "QUOTED")
	require.NotContains(t, line, "messages")

	line, record := recorded(t, gateway.ChainOptions{LogMessages: true}, op, talkative)
	step := record["plan"].([]any)[0].(map[string]any)
	messages := step["messages"].([]any)
	require.Len(t, messages, 16)
	require.EqualValues(t, 984, step["messagesNotShown"])
	for _, m := range messages {
		require.LessOrEqual(t, len(m.(string)), 256+len("…"))
	}
	require.NotContains(t, line, "$.QUOTED", "a path is made of the payload's names")
}

// hostile is what somebody would write into a line: its end and another record, a
// terminal's commands, text that turns round, what is not UTF-8.
const hostile = "x\"}\n{\"time\":\"2026-01-01T00:00:00Z\",\"level\":\"INFO\",\"msg\":\"released\",\"reference\":\"FORGED\",\"plan\":[]}\r\n\x1b[2J\x1b]0;t\a\u0085\u2028\u202e\u009b1m\x00\x7f\xff\xfe"

func TestNobodyWritesIntoTheLog(t *testing.T) {
	quoted, err := json.Marshal(hostile)
	require.NoError(t, err)
	bad := validation(hostile)
	says := func(abi.Invocation) (abi.Result, error) {
		return abi.Result{Type: abi.Validation, Severity: abi.Severity(hostile), Messages: []abi.Message{{Message: hostile}}}, nil
	}
	fails := func(abi.Invocation) (abi.Result, error) { return abi.Result{}, errors.New(hostile) }
	who := &abi.Context{Principal: &abi.Principal{Type: abi.PrincipalUser, ID: hostile}, SessionID: hostile, TraceID: hostile}
	op := gateway.Operation{
		Event: "acme/" + hostile, Payload: json.RawMessage(`{}`), Reference: "REAL" + hostile, Context: who, Server: hostile,
	}
	for name, tt := range map[string]struct {
		op     gateway.Operation
		answer func(abi.Invocation) (abi.Result, error)
	}{
		"an event, a principal, a session, a trace, a server": {op, allow},
		"a verdict": {op, says},
		"a failure": {op, fails},
		"a tool":    {gateway.Operation{Event: abi.ToolsCall, Payload: json.RawMessage(`{"name":` + string(quoted) + `}`)}, allow},
		"a URI":     {gateway.Operation{Event: abi.ResourcesRead, Payload: json.RawMessage(`{"uri":` + string(quoted) + `}`)}, allow},
	} {
		t.Run(name, func(t *testing.T) {
			s := verdicts(tt.answer, bad)
			line, record := recorded(t, gateway.ChainOptions{LogMessages: true}, tt.op, s)
			require.NotContains(t, line, `"reference":"FORGED"`)
			require.NotEqual(t, "FORGED", record["reference"])

			book := &logbook.Book{} // as a terminal shows it
			c := newChain(t, gateway.ChainOptions{Logger: book.Text(), LogMessages: true, Hosts: hosts.NewSet([]*hosts.Host{hosts.InProcess("team", s, hosts.Options{})}, hosts.SetOptions{})})
			require.NoError(t, c.Ready(t.Context()))
			c.Execute(t.Context(), tt.op)
			for l := range strings.Lines(book.String()) {
				requireOneLine(t, l)
				require.True(t, strings.HasPrefix(l, "time="), l)
			}
			require.NotContains(t, book.String(), " reference=FORGED")
		})
	}
}

// mostOfALine bounds a record in bytes, whatever anybody says.
const mostOfALine = 512 << 10

func TestNobodyMakesALineLong(t *testing.T) {
	huge := strings.Repeat("x\"\n", 1<<17)
	quoted, err := json.Marshal(huge)
	require.NoError(t, err)
	var many []abi.Descriptor
	for i := range 300 {
		many = append(many, validation(fmt.Sprintf("%04d%s", i, strings.Repeat("\"", 500))))
	}
	who := &abi.Context{Principal: &abi.Principal{Type: abi.PrincipalUser, ID: huge}, SessionID: huge, TraceID: huge}
	const longestError = 16 << 10
	op := gateway.Operation{Event: abi.ToolsCall, Payload: json.RawMessage(`{"name":` + string(quoted) + `}`), Context: who, Server: huge, Reference: huge}

	line, record := recorded(t, gateway.ChainOptions{}, op, verdicts(func(abi.Invocation) (abi.Result, error) { return abi.Result{}, errors.New(huge) }, validation("one")))
	require.Less(t, len(line), 64<<10)
	require.LessOrEqual(t, len(record["name"].(string)), 256+2*len("…"))

	line, record = recorded(t, gateway.ChainOptions{LogMessages: true}, op, verdicts(func(abi.Invocation) (abi.Result, error) {
		return abi.Result{}, errors.New(huge[:longestError])
	}, many...))
	require.Less(t, len(line), mostOfALine)
	require.Len(t, record["plan"], 256)
	require.EqualValues(t, len(many)-256, record["stepsNotShown"])

	op.Event, op.Payload = "acme/"+strings.Repeat("x", 1<<18), json.RawMessage(`{}`)
	line, _ = recorded(t, gateway.ChainOptions{}, op, verdicts(allow, validation("one")))
	require.Less(t, len(line), 8<<10)
}

func TestAHostThatCannotBeListedIsOnRecord(t *testing.T) {
	book := &logbook.Book{}
	c := newChain(t, gateway.ChainOptions{Logger: book.JSON(), Hosts: gateway.Fixed(chain.Listing{
		Host: &listener{name: "away"}, Err: errors.New("no answer" + hostile),
	})})
	out := c.Execute(t.Context(), gateway.Operation{Event: abi.ToolsCall, Payload: json.RawMessage(`{"name":"t"}`)})
	require.False(t, out.Released())
	record := decisions(t, book)[0]
	require.Subset(t, record, map[string]any{"msg": "blocked", "status": "discovery_failed", "host": "away", "reference": out.Reference})
	require.Contains(t, record["detail"], "no answer")
	for line := range strings.Lines(book.String()) {
		requireOneLine(t, line)
	}
}

// The plan of a record may be masked by a handler that hides secrets.
func TestAPlanCanBeMasked(t *testing.T) {
	var out bytes.Buffer
	mask := func(s string) string { return strings.ReplaceAll(s, "hush", "${SECRET}") }
	log := slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if steps, ok := a.Value.Any().(interface{ Masked(func(string) string) any }); ok {
			return slog.Any(a.Key, steps.Masked(mask))
		}
		return a
	}}))
	s := verdicts(func(inv abi.Invocation) (abi.Result, error) {
		if inv.Name == "fails" {
			return abi.Result{}, errors.New("dial http://x/?key=hush")
		}
		return abi.Result{Type: abi.Validation, Messages: []abi.Message{{Message: "hush"}}}, nil
	}, validation("fails"), validation("says"))
	c := newChain(t, gateway.ChainOptions{Logger: log, LogMessages: true, Hosts: hosts.NewSet([]*hosts.Host{hosts.InProcess("team", s, hosts.Options{})}, hosts.SetOptions{})})
	c.Execute(t.Context(), gateway.Operation{Event: abi.ToolsCall, Payload: json.RawMessage(`{"name":"t"}`)})
	require.NotContains(t, out.String(), "hush")
	require.Equal(t, 2, strings.Count(out.String(), "${SECRET}"))
}
