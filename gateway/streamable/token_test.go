package streamable_test

import (
	"strings"
	"testing"
)

// Requests of the stateless era share a backend, and their progress goes by tokens
// that the front mints. A token that the front does not see but a backend may read
// would lead what it says to somebody else's request.
func TestAnAmbiguousProgressTokenIsRefused(t *testing.T) {
	h := newHouse(t, "raw")
	c := h.stateless()
	body := request("7", "tools/call", `"name":"echo","arguments":1`)
	for _, q := range []struct {
		name, meta string
		status     int
	}{
		{"one", `"_meta":{"progressToken":"t",`, 200},
		{"two", `"_meta":{"progressToken":"t","progressToken":1,`, 400},
		{"two, one escaped", `"_meta":{"progressToken":"t","progress\u0054oken":1,`, 400},
		{"two, one in another case", `"_meta":{"progressToken":"t","ProgressToken":1,`, 400},
		{"one in another case", `"_meta":{"progresstoken":1,`, 400},
	} {
		t.Run(q.name, func(t *testing.T) {
			words := `"id":7,"result"`
			if q.status != 200 {
				words = `"id":7,"error":{"code":-32600`
			}
			c.post(strings.Replace(body, `"_meta":{`, q.meta, 1), "Mcp-Method", "tools/call", "Mcp-Name", "echo").is(q.status, words)
		})
	}
	c.post(`{"jsonrpc":"2.0","id":7,"method":"x/y","params":{"_Meta":{"progressToken":1}}}`, "Mcp-Method", "x/y").is(400, `"id":7,"error":{"code":-32600`)
}
