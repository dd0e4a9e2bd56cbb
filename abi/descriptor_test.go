package abi_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
)

// Every spelling that protocol.md §2 says a reader takes, and the one spelling
// that is written for it.
func TestDescriptorTolerantReaderCanonicalWriter(t *testing.T) {
	for _, tt := range []struct{ name, in, out string }{
		{"canonical stays as it is",
			`{"name":"a","version":"1.2.0","description":"d","type":"validation","hooks":[{"events":["tools/call"],"phase":"request"}],"mode":"audit","failOpen":true,"priorityHint":{"request":-5},"compat":{"minProtocol":"2025-06-18","maxProtocol":"2025-11-25"},"configSchema":{"type":"object"}}`,
			`{"name":"a","version":"1.2.0","description":"d","type":"validation","hooks":[{"events":["tools/call"],"phase":"request"}],"mode":"audit","failOpen":true,"priorityHint":{"request":-5},"compat":{"minProtocol":"2025-06-18","maxProtocol":"2025-11-25"},"configSchema":{"type":"object"}}`},
		{"members in any order",
			`{"hooks":[],"type":"sink","name":"a"}`,
			`{"name":"a","type":"sink","hooks":[]}`},
		{"defaults are left out",
			`{"name":"a","type":"mutation","hooks":[],"mode":"active","failOpen":false,"priorityHint":0,"version":"","description":null,"compat":null,"configSchema":null}`,
			`{"name":"a","type":"mutation","hooks":[]}`},
		{"enforce is active", `{"name":"a","type":"mutation","hooks":[],"mode":"enforce"}`, `{"name":"a","type":"mutation","hooks":[]}`},
		{"empty mode is active", `{"name":"a","type":"sink","hooks":[],"mode":""}`, `{"name":"a","type":"sink","hooks":[]}`},
		{"hook is one object",
			`{"name":"a","type":"sink","hook":{"events":["tools/*"],"phase":"response"}}`,
			`{"name":"a","type":"sink","hooks":[{"events":["tools/*"],"phase":"response"}]}`},
		{"events and phase beside the rest",
			`{"name":"a","type":"sink","events":["*"],"phase":"request"}`,
			`{"name":"a","type":"sink","hooks":[{"events":["*"],"phase":"request"}]}`},
		{"both is two hooks, request first",
			`{"name":"a","type":"sink","hooks":[{"events":["x/y"],"phase":"both"}]}`,
			`{"name":"a","type":"sink","hooks":[{"events":["x/y"],"phase":"request"},{"events":["x/y"],"phase":"response"}]}`},
		{"a scalar hint stays a number", `{"name":"a","type":"mutation","hooks":[],"priorityHint":-7}`, `{"name":"a","type":"mutation","hooks":[],"priorityHint":-7}`},
		{"an object hint stays an object",
			`{"name":"a","type":"mutation","hooks":[],"priorityHint":{"response":0,"request":0}}`,
			`{"name":"a","type":"mutation","hooks":[],"priorityHint":{"request":0,"response":0}}`},
		{"unknown members are ignored", `{"name":"a","type":"sink","hooks":[],"x":[1,{"y":2}]}`, `{"name":"a","type":"sink","hooks":[]}`},
		{"schemas keep their tokens",
			`{"name":"a","type":"sink","hooks":[],"configSchema":{"type":"object","maximum":9007199254740993,"pattern":"<&>"}}`,
			`{"name":"a","type":"sink","hooks":[],"configSchema":{"type":"object","maximum":9007199254740993,"pattern":"<&>"}}`},
		{"names are written with no escape that JSON does not ask for",
			`{"name":"\u00e9\u003c\n","type":"sink","hooks":[]}`, `{"name":"é<\n","type":"sink","hooks":[]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, err := abi.ReadDescriptor([]byte(tt.in))
			require.NoError(t, err)
			require.Equal(t, strings.ReplaceAll(tt.out, "\n", `\n`), string(d.AppendJSON(nil)))

			again, err := abi.ReadDescriptor(d.AppendJSON(nil))
			require.NoError(t, err)
			require.Equal(t, string(d.AppendJSON(nil)), string(again.AppendJSON(nil)), "writing is a fixed point")
		})
	}
}

func TestDescriptorRefuses(t *testing.T) {
	for _, tt := range []struct{ name, in, says string }{
		{"no object", `[]`, "not a JSON object"},
		{"cut off", `{"name":"a"`, "well-formed"},
		{"trailing bytes", `{"name":"a","type":"sink","hooks":[]} x`, "well-formed"},
		{"two names", `{"name":"a","name":"b","type":"sink","hooks":[]}`, "two members"},
		{"no name", `{"type":"sink","hooks":[]}`, `"name" is missing`},
		{"empty name", `{"name":"","type":"sink","hooks":[]}`, `"name" is missing`},
		{"names are compared byte for byte", `{"Name":"a","type":"sink","hooks":[]}`, `"name" is missing`},
		{"unknown type", `{"name":"a","type":"observer","hooks":[]}`, `type "observer"`},
		{"unknown mode", `{"name":"a","type":"sink","hooks":[],"mode":"shadow"}`, `mode "shadow"`},
		{"a sink in audit", `{"name":"a","type":"sink","hooks":[],"mode":"audit"}`, "sink has no audit"},
		{"no hooks", `{"name":"a","type":"sink"}`, `"hooks" is missing`},
		{"hooks is an object", `{"name":"a","type":"sink","hooks":{}}`, "hooks is not an array"},
		{"an unknown phase", `{"name":"a","type":"sink","hooks":[{"events":["*"],"phase":"after"}]}`, `phase "after"`},
		{"an event without a name", `{"name":"a","type":"sink","hooks":[{"events":[""],"phase":"request"}]}`, "no name"},
		{"an event that is a number", `{"name":"a","type":"sink","hooks":[{"events":[1],"phase":"request"}]}`, "not a string"},
		{"a hint with a fraction", `{"name":"a","type":"mutation","hooks":[],"priorityHint":1.5}`, "priorityHint"},
		{"a hint out of range", `{"name":"a","type":"mutation","hooks":[],"priorityHint":3e9}`, "range"},
		{"a hint that is text", `{"name":"a","type":"mutation","hooks":[],"priorityHint":"high"}`, "neither an integer nor an object"},
		{"a hint of a phase that is text", `{"name":"a","type":"mutation","hooks":[],"priorityHint":{"request":"1"}}`, "priorityHint.request"},
		{"compat without its lower end", `{"name":"a","type":"sink","hooks":[],"compat":{}}`, "minProtocol"},
		{"compat that is no date", `{"name":"a","type":"sink","hooks":[],"compat":{"minProtocol":"v2"}}`, "minProtocol"},
		{"compat upside down", `{"name":"a","type":"sink","hooks":[],"compat":{"minProtocol":"2025-06-18","maxProtocol":"2024-11-05"}}`, "below"},
		{"a schema that is no object schema", `{"name":"a","type":"sink","hooks":[],"configSchema":{"type":"array"}}`, "configSchema"},
		{"a schema that is true", `{"name":"a","type":"sink","hooks":[],"configSchema":true}`, "configSchema"},
		{"failOpen that is text", `{"name":"a","type":"sink","hooks":[],"failOpen":"yes"}`, "not a boolean"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := abi.ReadDescriptor([]byte(tt.in))
			require.ErrorContains(t, err, tt.says)
		})
	}
}

func TestDescriptorSaysWhoseItIs(t *testing.T) {
	d, err := abi.ReadDescriptor([]byte(`{"name":"pii","type":"mutation","hooks":[],"priorityHint":1.5}`))
	require.ErrorContains(t, err, `"pii"`)
	require.Equal(t, "pii", d.Name)
}

func TestPriorityHintNumbers(t *testing.T) {
	for in, want := range map[string]int32{
		"5": 5, "-5": -5, "5.0": 5, "50e-1": 5, "5e0": 5, "0.5e1": 5, "-0": 0, "0e999": 0, "0.000": 0,
		"2147483647": 2147483647, "-2147483648": -2147483648, "1E3": 1000,
	} {
		p, err := abi.ReadPriorityHint([]byte(in))
		require.NoError(t, err, in)
		require.Equal(t, want, p.For(abi.Request), in)
		require.Equal(t, want, p.For(abi.Response), in)
	}
	for _, in := range []string{"1.5", "1e-1", "2147483648", "-2147483649", "1e10", "1e999999999", "1e-999999999",
		"1e99999999999999999999", "1.0000000000000000000000000000000001", "true", "[]", `"1"`} {
		_, err := abi.ReadPriorityHint([]byte(in))
		require.Error(t, err, in)
	}
}

func TestPriorityHintIsPerPhaseOrScalar(t *testing.T) {
	req := int32(-10)
	p := abi.PhasePriority(&req, nil)
	require.Equal(t, int32(-10), p.For(abi.Request))
	require.Equal(t, int32(0), p.For(abi.Response))
	require.True(t, p.IsSet())
	require.Equal(t, `{"request":-10}`, string(p.AppendJSON(nil)))
	require.Equal(t, `{}`, string(abi.PhasePriority(nil, nil).AppendJSON(nil)))
	require.False(t, abi.PriorityHint{}.IsSet())
	require.True(t, abi.Priority(0).IsSet(), "0 that was given differs from none for an override")

	var back abi.PriorityHint
	require.NoError(t, json.Unmarshal([]byte(`{"request":-10}`), &back))
	require.Equal(t, p, back)
}

func TestCompatIncludes(t *testing.T) {
	c := &abi.Compat{MinProtocol: "2025-06-18", MaxProtocol: "2025-11-25"}
	for version, want := range map[string]bool{
		"2025-03-26": false, "2025-06-18": true, "2025-11-25": true, "2026-07-28": false, "": true,
	} {
		require.Equal(t, want, c.Includes(version), version)
	}
	require.True(t, (*abi.Compat)(nil).Includes("2024-11-05"))
	require.True(t, (&abi.Compat{MinProtocol: "2025-06-18"}).Includes("2026-07-28"))
}

func FuzzDescriptor(f *testing.F) {
	f.Add(`{"name":"a","type":"sink","hooks":[{"events":["*"],"phase":"both"}]}`)
	f.Add(`{"name":"a","type":"mutation","events":["x/y"],"phase":"request","priorityHint":{"request":1e1}}`)
	f.Add(`{"name":"\ud800","type":"validation","hooks":[],"compat":{"minProtocol":"2025-06-18"},"configSchema":{"type":"object"}}`)
	f.Fuzz(func(t *testing.T, in string) {
		d, err := abi.ReadDescriptor([]byte(in))
		if err != nil {
			return
		}
		out := d.AppendJSON(nil)
		require.True(t, json.Valid(out) || !json.Valid([]byte(in)), "valid in, valid out: %s", out)
		again, err := abi.ReadDescriptor(out)
		require.NoError(t, err, "%s", out)
		require.Equal(t, string(out), string(again.AppendJSON(nil)))
	})
}
