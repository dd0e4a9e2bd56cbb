package relay

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/wire"
)

func TestPassthroughOfNotifications(t *testing.T) {
	for _, c := range []struct {
		name   string
		lets   []string
		method string
		passes bool
	}{
		{"all, by default", nil, "notifications/message", true},
		{"all", []string{"*"}, "notifications/message", true},
		{"none", []string{}, "notifications/message", false},
		{"by name", []string{"notifications/progress"}, "notifications/progress", true},
		{"another name", []string{"notifications/progress"}, "notifications/progressive", false},
		{"by pattern", []string{"notifications/tools/*"}, "notifications/tools/list_changed", true},
		{"the pattern's own stem", []string{"notifications/tools/*"}, "notifications/tools", false},
		{"another stem", []string{"notifications/tools/*"}, "notifications/prompts/list_changed", false},
		{"in another case", []string{"notifications/Progress"}, "notifications/progress", false},
		{"what ends the handshake always does", []string{}, "notifications/initialized", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, from := range []Side{Client, Backend} {
				s, w := newTestSession(t, nil, func(o *Options) { o.Passthrough.Notifications = c.lets })
				raw := notification(c.method, `{"a":1}`)
				lane := hand(t, s, from, raw)
				require.Empty(t, lane.answered)
				if c.passes {
					require.Equal(t, []string{raw}, lane.forwarded)
					require.Empty(t, w.causes())
					continue
				}
				require.Empty(t, lane.forwarded)
				require.Equal(t, []Cause{NotLetThrough}, w.causes())
				require.Equal(t, NotLetThrough, lane.last.Cause)
			}
		})
	}
}

func TestPassthroughAlwaysLetsCancellationsPass(t *testing.T) {
	s, _ := newTestSession(t, nil, func(o *Options) { o.Passthrough.Notifications = []string{} })
	hand(t, s, Client, call("1", "{}"))
	cancelled := notification("notifications/cancelled", `{"requestId":1}`)
	require.Equal(t, []string{cancelled}, hand(t, s, Client, cancelled).forwarded)
}

func TestPassthroughOfErrors(t *testing.T) {
	generic := func(o *Options) { o.Passthrough.GenericErrors = true }
	raw := `{"jsonrpc":"2.0","id":1.0,"error":{"code":-32001,"message":"user ann@example.com not found","data":{"sql":"select"}}}`
	for _, c := range []struct {
		name     string
		from     Side
		adapt    func(*Options)
		raw, got string
	}{
		{"raw", Backend, func(*Options) {}, raw, raw},
		{"generic", Backend, generic, raw, `{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"the backend answered with an error"}}`},
		{"generic, no number for a code", Backend, generic, `{"jsonrpc":"2.0","id":1,"error":{"code":"secret","message":"m"}}`,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the backend answered with an error"}}`},
		{"a client's own error", Client, generic, raw, raw},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := newTestSession(t, nil, c.adapt)
			hand(t, s, s.other(c.from).side, request("1", "x/y", "{}"))
			lane := hand(t, s, c.from, c.raw)
			require.Equal(t, []string{c.got}, lane.forwarded)
			require.Equal(t, wire.Failure, lane.last.Kind)
		})
	}
}
