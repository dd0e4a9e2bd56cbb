package chain

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
)

// wantsDeny is a schema check for tests: a config without "deny" is refused.
func wantsDeny(calls *int) ConfigCheck {
	return func(d *abi.Descriptor, config json.RawMessage) error {
		*calls++
		if string(d.ConfigSchema) == "" || string(config) == `{"deny":[]}` {
			return nil
		}
		return abi.BadConfig(d.Name, "deny", errors.New("is missing"))
	}
}

// TestCheckConfigs: a config that is not of its schema is a failure of that
// interceptor, under its own mode and failOpen, without a call.
func TestCheckConfigs(t *testing.T) {
	schema := func(d *abi.Descriptor) { d.ConfigSchema = json.RawMessage(`{"type":"object","required":["deny"]}`) }
	bad := Entry{Interceptor: "v", Config: json.RawMessage(`{}`), Source: "f:1"}
	good := Entry{Interceptor: "v", Config: json.RawMessage(`{"deny":[]}`), Source: "f:1"}
	for name, c := range map[string]struct {
		entry   Entry
		host    *mock
		effects string
		aborted string
	}{
		"fits":               {good, host("h", validator("v", pass, schema)), "v=passed", ""},
		"no schema":          {bad, host("h", validator("v", pass)), "v=passed", ""},
		"no config":          {Entry{Interceptor: "v"}, host("h", validator("v", pass, schema)), "v=passed", ""},
		"does not fit":       {bad, host("h", validator("v", pass, schema)), "v=blocked", "v:config"},
		"does not, but open": {bad, host("h", validator("v", pass, schema, failOpen)), "v=ignored", ""},
		"does not, audited":  {bad, host("h", validator("v", pass, schema, audit)), "v=audited", ""},
		"does not, a sink":   {bad, host("h", sink("v", recorded, schema)), "v=lost", ""},
		"does not, required": {Entry{Interceptor: "v", Config: bad.Config, Required: true, Source: "f:1"}, host("h", validator("v", pass, schema, failOpen)), "", "v:refused"},
		"of everything":      {Entry{Interceptor: "*", Config: bad.Config, Source: "f:1"}, host("h", validator("v", pass, schema)), "v=blocked", "v:config"},
		"of a copy":          {Entry{Interceptor: "v", As: "c", Config: bad.Config, Source: "f:1"}, host("h", validator("v", pass, schema)), "c=blocked", "c:config"},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			p, err := NewPolicy([]Entry{c.entry})
			require.NoError(t, err)
			p = p.CheckConfigs(wantsDeny(&calls))
			ls := listings([]*mock{c.host}, nil)
			var plan *Plan
			for range 5 {
				plan = NewPlan(ls, p, abi.ToolsCall, abi.Request, abi.Sending, "")
			}
			require.LessOrEqual(t, calls, 1, "one config is checked once")
			out := NewExecutor(Options{}).Execute(t.Context(), plan, Operation{Payload: input})
			require.Equal(t, c.effects, effects(&out))
			require.Equal(t, c.aborted, aborted(&out))
			if c.aborted != "" {
				require.Empty(t, c.host.All(), "nobody is called")
			}
			for _, s := range plan.Steps() {
				if s.Refused != nil {
					require.ErrorContains(t, s.Refused, "its config in the entry at f:1 is refused")
					require.ErrorContains(t, s.Refused, "is missing")
				}
			}
		})
	}
	calls := 0
	require.False(t, NewPlan(listings([]*mock{host("h", validator("v", pass, schema))}, nil), (*Policy)(nil).CheckConfigs(wantsDeny(&calls)),
		abi.ToolsCall, abi.Request, abi.Sending, "").Blocked(), "no policy is one, too")
}

// TestCheckedConfigsAreBounded: a host that lists ever new schemas does not fill
// the memory.
func TestCheckedConfigsAreBounded(t *testing.T) {
	calls := 0
	p, err := NewPolicy([]Entry{{Interceptor: "v", Config: json.RawMessage(`{}`)}})
	require.NoError(t, err)
	p = p.CheckConfigs(wantsDeny(&calls))
	for i := range 3 * mostChecked {
		h := host("h", validator("v", pass, func(d *abi.Descriptor) {
			d.ConfigSchema, _ = json.Marshal(map[string]any{"type": "object", "maxProperties": i})
		}))
		NewPlan(listings([]*mock{h}, nil), p, abi.ToolsCall, abi.Request, abi.Sending, "")
	}
	require.Equal(t, 3*mostChecked, calls)
	require.LessOrEqual(t, len(p.configs.known), mostChecked)
}

func TestCheckConfigsHammer(t *testing.T) {
	p, err := NewPolicy([]Entry{{Interceptor: "*", Config: json.RawMessage(`{"deny":[]}`)}})
	require.NoError(t, err)
	p = p.CheckConfigs(func(d *abi.Descriptor, _ json.RawMessage) error {
		if d.Name == "bad" {
			return errors.New("bad")
		}
		return nil
	})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 400 {
				ls := listings([]*mock{host("h", validator(fmt.Sprint(i, j%300), pass), validator("bad", pass))}, nil)
				plan := NewPlan(ls, p, abi.ToolsCall, abi.Request, abi.Sending, "")
				if s := plan.Steps(); s[0].Refused != nil || s[1].Refused == nil {
					t.Error("one answer is another's")
				}
			}
		})
	}
	all.Wait()
}
