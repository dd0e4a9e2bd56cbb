package proxy

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/mirror"
	"github.com/weir-mcp/weir/internal/wire"
)

// What headers say of a message after a mutation is what the message says: whoever
// routes by them is not told something else.
func FuzzFollow(f *testing.F) {
	f.Add(`{"name":"a","arguments":{"region":"eu","n":1}}`, `{"name":"b","arguments":{"region":"us","n":1}}`, "a", "Region", "eu")
	f.Add(`{"name":"a","arguments":{"o":{"region":"eu"}}}`, `{"name":"a","arguments":{}}`, "a", "Region", "eu")
	f.Add(`{"name":"ä","arguments":{"n":1.0}}`, `{"name":"=?base64?","arguments":{"n":1e0}}`, "=?base64?w6Q=?=", "N", "1")
	f.Add(`{"name":"a"}`, `{"name":null}`, "a", "X", "")
	f.Fuzz(func(t *testing.T, before, after, name, header, value string) {
		m, err := wire.Read([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + before + `}`))
		if err != nil || m.Params == nil {
			return
		}
		now, err := wire.Read([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + after + `}`))
		if err != nil || now.Params == nil {
			return
		}
		h := http.Header{mirror.NameHeader: {name}, mirror.ParamPrefix + header: {value}}
		if contradiction(h, &m) != "" {
			return
		}
		if text := follow(h, &m, now.Params); text != "" {
			require.NotContains(t, text, value+"\x00", "generic")
			return
		}
		require.Empty(t, contradiction(h, &now), "%v", h)
		for _, values := range h {
			require.Len(t, values, 1)
			require.False(t, strings.ContainsAny(values[0], "\r\n\x00"), "%q splits the header", values[0])
		}
	})
}
