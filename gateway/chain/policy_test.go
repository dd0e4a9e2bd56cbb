package chain

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
)

func TestPolicyRefuses(t *testing.T) {
	toolsCall := abi.On(abi.Request, abi.ToolsCall)
	for name, c := range map[string]struct {
		entries []Entry
		says    []string
	}{
		"no name":                  {[]Entry{{Source: "f:1"}}, []string{"f:1", "interceptor is missing"}},
		"a pattern as name":        {[]Entry{{Interceptor: "pii-*"}}, []string{"exact name or *"}},
		"as of everything":         {[]Entry{{Interceptor: "*", As: "x"}}, []string{"name it"}},
		"as with a pattern":        {[]Entry{{Interceptor: "v", As: "*"}}, []string{"never a pattern"}},
		"as of its own name":       {[]Entry{{Interceptor: "v", As: "v"}}, []string{"own name"}},
		"required everything":      {[]Entry{{Interceptor: "*", Required: true}}, []string{"required needs the name"}},
		"type of everything":       {[]Entry{{Interceptor: "*", Type: abi.Sink}}, []string{"type needs the name"}},
		"unknown type":             {[]Entry{{Interceptor: "v", Type: "filter"}}, []string{`type "filter"`}},
		"unknown mode":             {[]Entry{{Interceptor: "v", Mode: ptr(abi.Mode("strict"))}}, []string{`mode "strict"`}},
		"sink in audit mode":       {[]Entry{{Interceptor: "v", Type: abi.Sink, Mode: ptr(abi.Audit)}}, []string{"no audit mode"}},
		"timeout 0":                {[]Entry{{Interceptor: "v", Timeout: ptr(time.Duration(0))}}, []string{"not above 0"}},
		"config is no object":      {[]Entry{{Interceptor: "v", Config: json.RawMessage(`[1]`)}}, []string{"config is not an object"}},
		"config is no JSON":        {[]Entry{{Interceptor: "v", Config: json.RawMessage(`{`)}}, []string{"config:"}},
		"config with duplicates":   {[]Entry{{Interceptor: "v", Config: json.RawMessage(`{"a":1,"a":2}`)}}, []string{"config:"}},
		"hook of unknown phase":    {[]Entry{{Interceptor: "v", Hooks: abi.Hooks{{Phase: "both"}}}}, []string{"hooks[0]", `"both"`}},
		"hook of a nameless event": {[]Entry{{Interceptor: "v", Hooks: abi.On(abi.Request, "")}}, []string{"hooks[0]", "no name"}},
		"all that is wrong": {[]Entry{{Source: "f:1"}, {Interceptor: "a*", Source: "f:2"}},
			[]string{"f:1", "f:2"}},

		"same member twice, name": {[]Entry{{Interceptor: "v", FailOpen: ptr(true), Source: "f:1"}, {Interceptor: "v", FailOpen: ptr(true), Source: "f:2"}},
			[]string{"f:2", "failOpen is set already", "f:1"}},
		"same member twice, name and host": {[]Entry{{Interceptor: "v", Host: "h", Mode: ptr(abi.Active), Source: "f:1"}, {Interceptor: "v", Host: "h", Mode: ptr(abi.Audit), Source: "f:2"}},
			[]string{"f:2", "mode is set already", "f:1"}},
		"same member twice, * and host": {[]Entry{{Interceptor: "*", Host: "h", Timeout: ptr(time.Second), Source: "f:1"}, {Interceptor: "*", Host: "h", Timeout: ptr(time.Second), Source: "f:2"}},
			[]string{"f:2", "timeout is set already", "f:1"}},
		"same member twice, *": {[]Entry{{Interceptor: "*", Enabled: ptr(true), Source: "f:1"}, {Interceptor: "*", Enabled: ptr(false), Source: "f:2"}},
			[]string{"f:2", "enabled is set already", "f:1"}},
		"required twice": {[]Entry{{Interceptor: "v", Required: true, Source: "f:1"}, {Interceptor: "v", Required: true, Source: "f:2"}},
			[]string{"required is set already"}},

		"two copies of one name": {[]Entry{{Interceptor: "v", As: "x", Source: "f:1"}, {Interceptor: "w", As: "x", Source: "f:2"}},
			[]string{"f:2", "f:1", "copy of that name already"}},
		"two copies of one name on two hosts": {[]Entry{{Interceptor: "v", Host: "a", As: "x", Source: "f:1"}, {Interceptor: "v", Host: "b", As: "x", Source: "f:2"}},
			[]string{"f:2", "f:1"}},
		"a copy that another entry addresses": {[]Entry{{Interceptor: "x", Mode: ptr(abi.Audit), Source: "f:1"}, {Interceptor: "v", As: "x", Source: "f:2"}},
			[]string{"f:1", "f:2", "no other entry addresses"}},
		"a copy of a copy": {[]Entry{{Interceptor: "v", As: "x", Source: "f:1"}, {Interceptor: "x", As: "y", Source: "f:2"}},
			[]string{"f:1", "f:2"}},

		"required and disabled":                   {[]Entry{{Interceptor: "v", Required: true, Enabled: ptr(false), Source: "f:1"}}, []string{"f:1", "disabled"}},
		"required and disabled elsewhere":         {[]Entry{{Interceptor: "v", Required: true, Source: "f:1"}, {Interceptor: "v", Host: "h", Enabled: ptr(false), Source: "f:2"}}, []string{"f:1", "f:2", "disabled", `host "h"`}},
		"required and disabled with everything":   {[]Entry{{Interceptor: "v", Required: true, Source: "f:1"}, {Interceptor: "*", Enabled: ptr(false), Source: "f:2"}}, []string{"f:1", "f:2", "disabled"}},
		"required and disabled with its host":     {[]Entry{{Interceptor: "v", Host: "h", Required: true, Source: "f:1"}, {Interceptor: "*", Host: "h", Enabled: ptr(false), Source: "f:2"}}, []string{"f:1", "f:2"}},
		"required and audited":                    {[]Entry{{Interceptor: "v", Required: true, Mode: ptr(abi.Audit), Source: "f:1"}}, []string{"f:1", "audit"}},
		"required and audited with everything":    {[]Entry{{Interceptor: "v", Required: true, Source: "f:1"}, {Interceptor: "*", Mode: ptr(abi.Audit), Source: "f:2"}}, []string{"f:1", "f:2", "audit"}},
		"required and hooks nothing":              {[]Entry{{Interceptor: "v", Required: true, Hooks: abi.Hooks{}, Source: "f:1"}}, []string{"narrowed away"}},
		"required and narrowed on a host":         {[]Entry{{Interceptor: "v", Required: true, Hooks: toolsCall, Source: "f:1"}, {Interceptor: "v", Host: "h", Hooks: abi.On(abi.Request, abi.PromptsGet), Source: "f:2"}}, []string{"f:1", "f:2", "narrowed away"}},
		"required everywhere and narrowed":        {[]Entry{{Interceptor: "v", Required: true, Source: "f:1"}, {Interceptor: "v", Hooks: toolsCall, Source: "f:2"}}, []string{"f:1", "f:2", "narrowed away"}},
		"required copy, disabled with everything": {[]Entry{{Interceptor: "v", As: "x", Required: true, Source: "f:1"}, {Interceptor: "*", Enabled: ptr(false), Source: "f:2"}}, []string{"f:1", "f:2", "disabled"}},
		"required copy, audited":                  {[]Entry{{Interceptor: "v", As: "x", Required: true, Mode: ptr(abi.Audit), Source: "f:1"}}, []string{`as "x"`, "audit"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewPolicy(c.entries)
			require.Error(t, err)
			for _, text := range c.says {
				require.ErrorContains(t, err, text)
			}
		})
	}
}

func TestPolicyAccepts(t *testing.T) {
	for name, entries := range map[string][]Entry{
		"nothing": nil,
		"two entries of one rank with different members": {
			{Interceptor: "v", FailOpen: ptr(true)}, {Interceptor: "v", Mode: ptr(abi.Audit)}},
		"one member at four ranks": {
			{Interceptor: "v", Host: "h", FailOpen: ptr(true)}, {Interceptor: "v", FailOpen: ptr(false)},
			{Interceptor: "*", Host: "h", FailOpen: ptr(true)}, {Interceptor: "*", FailOpen: ptr(false)}},
		"two copies and the original": {
			{Interceptor: "v"}, {Interceptor: "v", As: "x", Mode: ptr(abi.Audit)}, {Interceptor: "v", As: "y", Mode: ptr(abi.Audit)}},
		"required and narrowed where it is required": {
			{Interceptor: "v", Required: true, Hooks: abi.On(abi.Request, abi.ToolsCall)}},
		"required on one host, disabled on another": {
			{Interceptor: "v", Host: "a", Required: true}, {Interceptor: "v", Host: "b", Enabled: ptr(false)}},
		"required, and enabled where all is disabled": {
			{Interceptor: "*", Enabled: ptr(false)}, {Interceptor: "v", Required: true, Enabled: ptr(true)}},
		"a required sink, and all audited": {
			{Interceptor: "v", Required: true, Type: abi.Sink}, {Interceptor: "*", Mode: ptr(abi.Audit)}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewPolicy(entries)
			require.NoError(t, err)
		})
	}
}

// TestPolicyKeepsItsOwnCopy: what the caller does with its entries afterwards
// is no matter.
func TestPolicyKeepsItsOwnCopy(t *testing.T) {
	entries := []Entry{{Interceptor: "v", Config: json.RawMessage(`{"a":1}`), Hooks: abi.On(abi.Request, abi.ToolsCall), FailOpen: ptr(true)}}
	p, err := NewPolicy(entries)
	require.NoError(t, err)
	entries[0].Config[2] = 'b'
	entries[0].Hooks[0].Events[0] = abi.PromptsGet
	*entries[0].FailOpen = false
	plan := NewPlan(listings([]*mock{host("h", validator("v", pass))}, nil), p, abi.ToolsCall, abi.Request, abi.Sending, "")
	require.Len(t, plan.Steps(), 1)
	require.JSONEq(t, `{"a":1}`, string(plan.Steps()[0].Config.Value))
	require.True(t, plan.Steps()[0].FailOpen.Value)
}
