package library_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/logbook"
	"github.com/weir-mcp/weir/runtime/library"
)

func withSchema(name, schema string) library.Native {
	return library.Native{
		Name: name, Type: abi.Validation, Hooks: onCalls, ConfigSchema: json.RawMessage(schema),
		Handler: func(_ context.Context, inv *abi.Invocation) (abi.Result, error) {
			return abi.Result{Valid: true, Info: inv.Config}, nil
		},
	}
}

// What is refused before anything is called (protocol.md §3).
func TestInvokeRefuses(t *testing.T) {
	l := registered(t, library.Validator("n", onCalls, allow))
	rows := []struct {
		name   string
		change func(inv *abi.Invocation)
		data   string
	}{
		{"an unknown name", func(inv *abi.Invocation) { inv.Name = "m" }, `{"name":"m"}`},
		{"an event it does not hook", func(inv *abi.Invocation) { inv.Event = "tools/list" },
			`{"name":"n","event":"tools/list","phase":"request","advertisedHooks":[{"events":["tools/call"],"phase":"request"}]}`},
		{"a phase it does not hook", func(inv *abi.Invocation) { inv.Phase = abi.Response },
			`{"name":"n","event":"tools/call","phase":"response","advertisedHooks":[{"events":["tools/call"],"phase":"request"}]}`},
		{"a pattern", func(inv *abi.Invocation) { inv.Event = "tools/*" }, `{"name":"n","reason":"params","path":"event"}`},
		{"no event", func(inv *abi.Invocation) { inv.Event = "" }, `{"name":"n","reason":"params","path":"event"}`},
		{"no phase", func(inv *abi.Invocation) { inv.Phase = "" }, `{"name":"n","reason":"params","path":"phase"}`},
		{"no payload", func(inv *abi.Invocation) { inv.Payload = nil }, `{"name":"n","reason":"params","path":"payload"}`},
		{"a negative timeout", func(inv *abi.Invocation) { inv.Timeout = -1 }, `{"name":"n","reason":"params","path":"timeoutMs"}`},
		{"a config that is no object", func(inv *abi.Invocation) { inv.Config = json.RawMessage(` []`) }, `{"name":"n","reason":"config","path":"config"}`},
		{"a config that is no JSON", func(inv *abi.Invocation) { inv.Config = json.RawMessage(`{`) }, `{"name":"n","reason":"config","path":"config"}`},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			inv := call("n")
			row.change(&inv)
			_, err := l.Invoke(t.Context(), inv)
			e := failure(t, err)
			require.Equal(t, abi.CodeInvalidParams, e.Code())
			require.Equal(t, row.data, string(e.AppendData(nil)))
		})
	}
}

func TestConfigAgainstItsSchema(t *testing.T) {
	const schema = `{"type":"object","required":["deny"],"additionalProperties":false,"properties":{
		"deny":{"type":"array","items":{"$ref":"#/$defs/rule"}},
		"depth":{"type":"integer","maximum":9007199254740993},
		"a/b":{"properties":{"c":{"type":"string"}}}
	},"$defs":{"rule":{"type":"object","properties":{"name":{"type":"string","pattern":"^[a-z]+$"}},"required":["name"]}}}`
	rows := []struct{ config, path string }{
		{`{"deny":[]}`, ""},
		{`{"deny":[{"name":"a"}],"depth":3,"a/b":{"c":"x"}}`, ""},
		{`{}`, "config"},
		{`{"deny":1}`, "config.deny"},
		{`{"deny":[{"name":"A"}]}`, "config.deny[].name"},
		{`{"deny":[{}]}`, "config.deny[]"},
		{`{"deny":[],"depth":1.5}`, "config.depth"},
		{`{"deny":[],"depth":1e400}`, "config"},
		{`{"deny":[],"a/b":{"c":1}}`, "config.a/b.c"},
		{`{"deny":[],"other":1}`, "config"},
		{`{"deny":[],"deny":[]}`, "config"},
	}
	l := registered(t, withSchema("n", schema))
	for _, row := range append(rows, rows...) { // what is remembered changes nothing
		inv := call("n")
		inv.Config = json.RawMessage(row.config)
		r, err := l.Invoke(t.Context(), inv)
		if row.path == "" {
			require.NoError(t, err, row.config)
			require.Equal(t, row.config, string(r.Info), "passed on as spelled")
			continue
		}
		e := failure(t, err)
		require.Equal(t, abi.ReasonConfig, e.Reason, row.config)
		require.Equal(t, row.path, e.Path, row.config)
	}
	_, err := l.Invoke(t.Context(), call("n"))
	require.NoError(t, err, "no config is none, not an empty one")
}

// A schema is a stranger's and validation cannot be interrupted.
func TestHostileSchemas(t *testing.T) {
	var doubling strings.Builder // 2^40 parts when written out
	for i := range 40 {
		fmt.Fprintf(&doubling, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	rows := map[string]string{
		"refers to itself":          `{"type":"object","$ref":"#"}`,
		"refers to itself by turns": `{"type":"object","$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`,
		"refers to what it is in":   `{"type":"object","properties":{"a":{"properties":{"b":{"$ref":"#/properties/a"}}}}}`,
		"doubles":                   `{"type":"object","$ref":"#/$defs/d0","$defs":{` + doubling.String() + `"d40":{}}}`,
		"is remote":                 `{"type":"object","properties":{"a":{"$ref":"http://169.254.169.254/latest"}}}`,
		"is a file":                 `{"type":"object","$ref":"file:///etc/passwd"}`,
		"is relative":               `{"type":"object","$id":"https://example.com/","$ref":"other"}`,
		"is dynamic":                `{"type":"object","$dynamicAnchor":"x","properties":{"a":{"$dynamicRef":"#x"}}}`,
		"leads nowhere":             `{"type":"object","$ref":"#/$defs/x"}`,
		"ref of a number":           `{"type":"object","$ref":5}`,
		"of another draft":          `{"type":"object","$schema":"http://json-schema.org/draft-07/schema#"}`,
		"bad pattern":               `{"type":"object","properties":{"a":{"pattern":"("}}}`,
		"deep":                      `{"type":"object","properties":{"a":` + strings.Repeat(`{"not":`, 500) + `{}` + strings.Repeat(`}`, 500) + `}}`,
		"large":                     `{"type":"object","description":"` + strings.Repeat("x", 300<<10) + `"}`,
		"keyword of a wrong type":   `{"type":"object","properties":5}`,
	}
	for name, schema := range rows {
		t.Run(name, func(t *testing.T) {
			require.ErrorContains(t, library.New(library.Options{}).Register(withSchema("n", schema)), "configSchema")
		})
	}
	l := registered(t, withSchema("n", `{"type":"object","additionalProperties":{"anyOf":[`+strings.Repeat(`{"type":"null"},`, 3000)+`{"type":"array"}]}}`))
	inv := call("n")
	inv.Config = json.RawMessage(`{"a":"` + strings.Repeat("x", 1<<20) + `"}`)
	_, err := l.Invoke(t.Context(), inv)
	require.Equal(t, abi.ReasonConfig, failure(t, err).Reason)
}

func FuzzSchema(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"type":"integer"}}}`, `{"a":1}`)
	f.Add(`{"type":"object","$ref":"#"}`, `{}`)
	f.Add(`{"type":"object","if":{"required":["a"]},"then":{"not":{}},"unevaluatedProperties":false}`, `{"a":[1,1]}`)
	f.Add(`{"type":"object","properties":{"a":{"multipleOf":0,"uniqueItems":true,"contains":{}}}}`, `{"a":3}`)
	f.Fuzz(func(t *testing.T, schema, config string) {
		l := library.New(library.Options{})
		if l.Register(withSchema("n", schema)) != nil {
			return
		}
		inv := call("n")
		inv.Config = json.RawMessage(config)
		if _, err := l.Invoke(context.Background(), inv); err != nil {
			require.Equal(t, abi.CodeInvalidParams, failure(t, err).Code())
		}
	})
}

// The cause names the file and its digest, for the log; the outside does not.
func TestFailureOfAModule(t *testing.T) {
	dir, f := t.TempDir(), newFakes()
	put(t, dir, "a.wasm", "serves a")
	l := openFolder(t, dir, quick(f))
	rows := []struct {
		err    error
		reason abi.Reason
	}{
		{abi.Failed("a", abi.Request, abi.ReasonTrap, errors.New("boom")), abi.ReasonTrap},
		{abi.Failed("a", abi.Request, abi.ReasonBusy, nil), abi.ReasonBusy},
		{abi.TimedOut("a", abi.Request, time.Second, nil), abi.ReasonTimeout},
		{errors.New("boom"), abi.ReasonUnavailable},
		{context.Canceled, abi.ReasonCancelled},
	}
	for _, row := range rows {
		f.invoke = func(context.Context, abi.Invocation) (abi.Result, error) { return abi.Result{}, row.err }
		_, err := l.Invoke(t.Context(), call("a"))
		e := failure(t, err)
		require.Equal(t, row.reason, e.Reason)
		require.Contains(t, e.Error(), "a.wasm (sha256 "+l.Status()[0].Digest)
		require.NotContains(t, e.Message()+string(e.AppendData(nil)), "wasm")
	}
}

// Copies, configs and switches of config.md, for weir serve --config.
func TestEntries(t *testing.T) {
	const schema = `{"type":"object","properties":{"deny":{"type":"array"}}}`
	on, off := new(true), new(false)
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	type want map[string]string // config in force by served name
	rows := []struct {
		name      string
		entries   []library.Entry
		want      want
		complaint string
	}{
		{"none", nil, want{"a": "", "b": ""}, ""},
		{"a config", []library.Entry{{Interceptor: "a", Config: raw(`{"deny":[1]}`)}}, want{"a": `{"deny":[1]}`, "b": ""}, ""},
		{"a config for all", []library.Entry{{Interceptor: "*", Config: raw(`{"x":1}`)}, {Interceptor: "a", Config: raw(`{"deny":[]}`)}},
			want{"a": `{"deny":[]}`, "b": `{"x":1}`}, ""},
		{"switched off", []library.Entry{{Interceptor: "a", Enabled: off}}, want{"b": ""}, ""},
		{"all but one switched off", []library.Entry{{Interceptor: "*", Enabled: off}, {Interceptor: "a", Enabled: on}}, want{"a": ""}, ""},
		{"members of two entries", []library.Entry{{Interceptor: "a", Enabled: on}, {Interceptor: "a", Config: raw(`{}`)}, {Interceptor: "*", Enabled: off}},
			want{"a": `{}`}, ""},
		{"copies hide the original", []library.Entry{
			{Interceptor: "a", As: "a1", Config: raw(`{"deny":[1]}`)}, {Interceptor: "a", As: "a2", Config: raw(`{"deny":[2]}`)},
		}, want{"a1": `{"deny":[1]}`, "a2": `{"deny":[2]}`, "b": ""}, ""},
		{"unless it has an entry of its own", []library.Entry{{Interceptor: "a", As: "a1"}, {Interceptor: "a"}}, want{"a": "", "a1": "", "b": ""}, ""},
		{"beneath a copy only * applies", []library.Entry{
			{Interceptor: "a", As: "a1"}, {Interceptor: "a", Config: raw(`{"deny":[1]}`)}, {Interceptor: "a1", Enabled: off}, {Interceptor: "*", Config: raw(`{"z":0}`)},
		}, want{"a": `{"deny":[1]}`, "a1": `{"z":0}`, "b": `{"z":0}`}, ""},
		{"a copy under a taken name", []library.Entry{{Interceptor: "a", As: "b", Source: "weir.yaml:7:3"}}, want{"b": ""}, "weir.yaml:7:3"},
		{"two copies of one name", []library.Entry{{Interceptor: "a", As: "c"}, {Interceptor: "b", As: "c", Source: "weir.yaml:8:3"}}, want{"c": ""}, "weir.yaml:8:3"},
		{"a config against the schema", []library.Entry{{Interceptor: "a", Config: raw(`{"deny":1}`), Source: "weir.yaml:9:3"}}, want{"b": ""}, "config.deny"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			book := &logbook.Book{}
			l := library.New(library.Options{Entries: row.entries, Logger: book.Text()})
			a, b := withSchema("a", schema), withSchema("b", schema)
			require.NoError(t, l.Register(a))
			require.NoError(t, l.Register(b))
			got := want{}
			for _, name := range names(l) {
				r, err := l.Invoke(t.Context(), call(name))
				require.NoError(t, err)
				require.Equal(t, name, r.Interceptor, "under its served name")
				got[name] = string(r.Info)
			}
			require.Equal(t, row.want, got)
			if row.complaint != "" {
				require.Equal(t, 1, book.Count("level=ERROR", row.complaint), book)
			} else {
				require.Empty(t, book.String())
			}
		})
	}
}

// The guest of a copy is called by its own name (abi.md), and an invocation's
// config comes before the entry's.
func TestCopyOfAModule(t *testing.T) {
	dir, f := t.TempDir(), newFakes()
	put(t, dir, "m.wasm", "serves a")
	o := quick(f)
	o.Entries = []library.Entry{{Interceptor: "a", As: "copy", Config: json.RawMessage(`{"from":"entry"}`)}}
	l := openFolder(t, dir, o)
	var called []string
	f.invoke = func(_ context.Context, inv abi.Invocation) (abi.Result, error) {
		called = append(called, inv.Name+string(inv.Config))
		if inv.Payload == nil || string(inv.Payload) == `{}` {
			return abi.Result{}, abi.Failed(inv.Name, inv.Phase, abi.ReasonGuest, nil)
		}
		return abi.Result{Type: abi.Validation, Interceptor: inv.Name, Phase: inv.Phase, Valid: true}, nil
	}
	inv := call("copy")
	r, err := l.Invoke(t.Context(), inv)
	require.NoError(t, err)
	require.Equal(t, "copy", r.Interceptor)
	inv.Config = json.RawMessage(`{"from":"caller"}`)
	_, err = l.Invoke(t.Context(), inv)
	require.NoError(t, err)
	inv.Payload = json.RawMessage(`{}`)
	_, err = l.Invoke(t.Context(), inv)
	require.Equal(t, "copy", failure(t, err).Interceptor)
	require.Equal(t, []string{`a{"from":"entry"}`, `a{"from":"caller"}`, `a{"from":"caller"}`}, called)
}
