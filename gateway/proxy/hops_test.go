package proxy

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A header that Connection names ends here (RFC 9110 §7.6.1), so one that is about
// the message may not be named: it would be checked, and then be gone.
func TestConnectionNamesNoHeaderOfTheMessage(t *testing.T) {
	for _, named := range []string{"Mcp-Method", "mcp-session-id", "close, Mcp-Name", "Content-Type", "Mcp-Param-Region", "Last-Event-ID"} {
		backend, got := answering(200, typeJSON, result("1", `{}`))
		s := stage(t, nil, backend)
		res := s.do("POST", call("1", `{"name":"t"}`), "Connection: "+named, "Mcp-Method: tools/call")
		require.Equal(t, 400, res.StatusCode, named)
		require.Empty(t, got)
	}
	backend, got := answering(200, typeJSON, result("1", `{}`))
	s := stage(t, nil, backend)
	s.posts(call("1", `{"name":"t"}`), 200, result("1", `{}`), "Connection: X-Own", "X-Own: 1", "X-Other: 2")
	r := take(t, got)
	require.Empty(t, r.Header.Get("X-Own"))
	require.Equal(t, "2", r.Header.Get("X-Other"))
}
