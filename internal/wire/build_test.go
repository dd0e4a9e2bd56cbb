package wire

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBuiltMessagesAreRead(t *testing.T) {
	id := []byte(`"a\u0062"`)
	for _, c := range []struct {
		got  []byte
		kind Kind
		want string
	}{
		{AppendRequest(nil, id, "tools/call", []byte(`{"a":1}`)), Request, `{"jsonrpc":"2.0","id":"a\u0062","method":"tools/call","params":{"a":1}}`},
		{AppendRequest(nil, []byte(`1.0`), "ping", nil), Request, `{"jsonrpc":"2.0","id":1.0,"method":"ping"}`},
		{AppendRequest(nil, []byte(`1`), `a"b`, nil), Request, `{"jsonrpc":"2.0","id":1,"method":"a\"b"}`},
		{AppendResult(nil, id, []byte(`{"x":"<>&"}`)), Response, `{"jsonrpc":"2.0","id":"a\u0062","result":{"x":"<>&"}}`},
		{AppendResult(nil, id, nil), Response, `{"jsonrpc":"2.0","id":"a\u0062","result":{}}`},
		{AppendFailure(nil, id, CodeInvalid, "no\n", []byte(`{"reason":"x"}`)), Failure, `{"jsonrpc":"2.0","id":"a\u0062","error":{"code":-32600,"message":"no\n","data":{"reason":"x"}}}`},
		{AppendFailure(nil, nil, CodeParse, "no", nil), Failure, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}`},
		{AppendFailure(nil, []byte("null"), CodeParse, "no", nil), Failure, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}`},
	} {
		require.Equal(t, c.want, string(c.got))
		m, err := Read(c.got)
		require.NoError(t, err)
		require.Equal(t, c.kind, m.Kind)
	}
	require.Equal(t, `>{"jsonrpc":"2.0","id":1,"method":"m"}`, string(AppendRequest([]byte(">"), []byte("1"), "m", nil)), "appended, not replaced")
}
