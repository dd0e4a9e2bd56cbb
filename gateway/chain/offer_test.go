package chain

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
)

func TestOffers(t *testing.T) {
	off, limit := false, 50*time.Millisecond
	both := abi.OnBoth("tools/call")
	listed := func(name string) abi.Descriptor {
		return abi.Descriptor{Name: name, Type: abi.Validation, Hooks: both}
	}
	policy, err := NewPolicy([]Entry{
		{Interceptor: "off", Enabled: &off},
		{Interceptor: "guard", As: "one", Config: json.RawMessage(`{"n":1}`), Timeout: &limit},
		{Interceptor: "guard", As: "two", Hooks: abi.Hooks{{Events: []string{"tools/call"}, Phase: abi.Response}}},
		{Interceptor: "other", Type: abi.Mutation},
		{Interceptor: "wide", Hooks: abi.OnBoth("prompts/get")},
	})
	require.NoError(t, err)
	first, second := host("first"), host("second")
	offers := Offers([]Listing{
		{Host: first, Interceptors: []abi.Descriptor{listed("plain"), listed("off"), listed("guard")}},
		{Host: host("down"), Err: errors.New("no answer"), Interceptors: []abi.Descriptor{listed("late")}},
		{Err: errors.New("no host")},
		{Host: second, Interceptors: []abi.Descriptor{listed("other"), listed("wide"), listed("plain")}},
	}, policy)

	type brief struct {
		listed, host, own, config string
		timeout                   time.Duration
		hooks                     int
	}
	var got []brief
	for _, o := range offers {
		got = append(got, brief{o.Descriptor.Name, o.Host.Name(), o.Interceptor, string(o.Config), o.Timeout, len(o.Descriptor.Hooks)})
	}
	require.Equal(t, []brief{
		{"plain", "first", "plain", "", 0, 2},
		{"one", "first", "guard", `{"n":1}`, limit, 2},
		{"two", "first", "guard", "", 0, 1},
		{"plain", "second", "plain", "", 0, 2},
	}, got, "what is disabled, renamed, of another type, hooked wider than its author did or down is not offered")
	require.Empty(t, Offers(nil, nil))
}
