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

// FuzzRespell: what is put back is one JSON value in the place of another, and
// whatever stood there does not matter.
func FuzzRespell(f *testing.F) {
	f.Add([]byte(`{"_meta":{"progressToken":17}}`), []byte(`"tok"`))
	f.Add([]byte(`{"_meta":{"progressToken":"17"},"progressToken":17}`), []byte(`1e0`))
	f.Fuzz(func(t *testing.T, object, raw []byte) {
		id, ok := wire.ParseID(raw)
		if !ok || wire.Strict(object) != nil {
			return
		}
		minted := replaced(object, []byte("17"), "_meta", "progressToken")
		require.NoError(t, wire.Strict(minted))
		back, ok := respell(minted, "17", id, "_meta", "progressToken")
		if _, had := wire.Get(object, "_meta", "progressToken"); !had {
			require.False(t, ok)
			return
		}
		require.True(t, ok)
		got, _ := wire.Get(back, "_meta", "progressToken")
		require.Equal(t, string(id.Raw()), string(got))
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
