package streamable

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/wire"
)

func TestRespell(t *testing.T) {
	id := func(raw string) wire.ID { got, _ := wire.ParseID([]byte(raw)); return got }
	for _, c := range []struct{ object, id, want string }{
		{`{"x":17,"y":1}`, `1.0`, `{"x":1.0,"y":1}`},
		{`{"x":"17"}`, `1.0`, `{"x":"1.0"}`},
		{`{"x":"17"}`, `"a\u0041"`, `{"x":"a\u0041"}`},
		{`{"x":17}`, `"a"`, `{"x":"a"}`},
		{`{"x":17.0}`, `9007199254740993`, `{"x":9007199254740993}`},
		{`{"x":18}`, `1`, ``},
		{`{"x":[17]}`, `1`, ``},
		{`{"y":17}`, `1`, ``},
	} {
		got, ok := respell([]byte(c.object), "17", id(c.id), "x")
		require.Equal(t, c.want != "", ok, c.object)
		require.Equal(t, c.want, string(got))
	}
	_, ok := respell([]byte(`{"x":17}`), "17", wire.ID{}, "x")
	require.False(t, ok)
}

func TestMinted(t *testing.T) {
	for _, c := range []struct{ request, want string }{
		{`{"id":"a","method":"m"}`, `{"id":17,"method":"m"}`},
		{`{"id" : 1.0,"params":{"_meta":{"progressToken":"t"},"id":3}}`, `{"id" : 17,"params":{"_meta":{"progressToken":17},"id":3}}`},
		{`{"params":{"_meta":{"progressToken":5}},"id":1}`, `{"params":{"_meta":{"progressToken":17}},"id":17}`},
		{`{"method":"m"}`, ``},
	} {
		require.Equal(t, c.want, string(minted([]byte(c.request), []byte("17"))))
	}
}

func TestResultOf(t *testing.T) {
	for _, c := range []struct{ message, id string }{
		{`{"jsonrpc":"2.0","id":1.0,"result":{}}`, "1.0"},
		{"{\n\"id\" : \"a\" ,\r\n \"result\": 1}", `"a"`},
		{`{"jsonrpc":"2.0","id":1,"error":{}}`, ""},
		{`{"jsonrpc":"2.0","id":1,"method":"result"}`, ""},
		{`{"jsonrpc":"2.0","method":"m","id":1}`, ""},
		{`{"jsonrpc":"2.0","result":{},"id":1}`, ""},
		{`{"jsonrpc":"2.0","method":"m"}`, ""},
	} {
		id, ok := resultOf([]byte(c.message))
		require.Equal(t, c.id != "", ok, c.message)
		require.Equal(t, c.id, id.String())
	}
}

// FuzzMinted: what the backend sees is the same message but for its id and token,
// and what it repeats of them is spelled back.
func FuzzMinted(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":"a","method":"m","params":{"_meta":{"progressToken":1.0},"id":2}}`))
	f.Add([]byte(`{"params":{"_meta":{"progressToken":"17"}},"method":"m","id":1e0,"jsonrpc":"2.0"}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{"id":2}}`))
	f.Fuzz(func(t *testing.T, message []byte) {
		m, err := wire.Read(message)
		if err != nil {
			return
		}
		if id, ok := resultOf(m.Raw); ok {
			require.Equal(t, wire.Response, m.Kind)
			require.True(t, id.Equal(m.ID))
		}
		if m.Kind != wire.Request || wire.Strict(m.Raw) != nil {
			return
		}
		seen, err := wire.Read(minted(m.Raw, []byte("17")))
		require.NoError(t, err)
		require.Equal(t, "17", seen.ID.String())
		require.Equal(t, m.Method, seen.Method)
		params := seen.Params
		if raw, had := wire.Get(m.Params, "_meta", "progressToken"); had {
			token, ok := wire.ParseID(raw)
			if !ok {
				return
			}
			params, ok = respell(params, "17", token, "_meta", "progressToken")
			require.True(t, ok)
		}
		require.Equal(t, string(m.Params), string(params))
		if m.Params != nil {
			seen, err = wire.Read(seen.WithParams(params))
			require.NoError(t, err)
		}
		require.Equal(t, string(m.Raw), string(seen.WithID(m.ID.Raw())))
	})
}

// FuzzEventID: an id that a client makes up is one of ours or none.
func FuzzEventID(f *testing.F) {
	f.Add("1-2")
	f.Add("01-2")
	f.Fuzz(func(t *testing.T, id string) {
		if stream, seq, ok := parseEventID(id); ok {
			require.Equal(t, id, eventID(stream, seq))
		}
	})
}
