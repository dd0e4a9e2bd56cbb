package wire

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPeek(t *testing.T) {
	for _, c := range []struct {
		name, in string
		kind     Kind
		id       string
	}{
		{"request", ` {"jsonrpc":"2.0", "id" : 1 ,"method":"m"}`, Request, `1`},
		{"id at the end", `{"method":"m","params":{"id":2,"x":[{"id":3}]},"id":"x"}`, Request, `"x"`},
		{"quotes and brackets in strings", `{"method":"}\"]{\\","id":"}\"{\\"}`, Request, `"}\"{\\"`},
		{"escaped names", `{"\u0069d":1,"m\u0065thod":"m"}`, Request, `1`},
		{"notification", `{"method":"m"}`, Notification, ``},
		{"cut before an id could come", `{"method":"m","params":{"a":`, Unknown, ``},
		{"cut after the id", `{"id":1,"method":"m","params":{"a":`, Request, `1`},
		{"cut inside the id", `{"method":"m","id":12`, Unknown, ``},
		{"response", `{"id":1,"result":{}}`, Response, `1`},
		{"failure", `{"error":{},"id":null}`, Failure, `null`},
		{"names as values", `{"a":"method","b":"id"}`, Unknown, ``},
		{"variants do not count", `{"ID":1,"Method":"m"}`, Unknown, ``},
		{"two ids", `{"id":1,"id":1,"method":"m"}`, Request, ``},
		{"three ids", `{"id":1,"id":2,"id":3,"method":"m"}`, Request, ``},
		{"id an object", `{"id":{"id":1},"method":"m"}`, Request, ``},
		{"id an array of strings", `{"id":["a",1],"method":"m"}`, Request, ``},
		{"id no JSON", `{"id":01,"method":"m"}`, Request, ``},
		{"id too long", `{"id":"` + strings.Repeat("x", skimLimit) + `","method":"m"}`, Request, ``},
		{"name too long", `{"` + strings.Repeat("x", 2*skimLimit) + `":1,"id":1,"method":"m"}`, Request, `1`},
		{"contradiction", `{"id":1,"method":"m","result":{}}`, Unknown, `1`},
		{"batch", `[{"id":1,"method":"m"}]`, Unknown, ``},
		{"scalar", `1`, Unknown, ``},
		{"nothing", ``, Unknown, ``},
		{"nothing behind the end", `{"method":"m"}{"id":1}`, Notification, ``},
		{"broken params", `{"id":1,"method":"m","params":{"a":}}`, Request, `1`},
		{"broken brackets", `{"id":1,"method":"m","params":]]]]}}}}`, Request, `1`},
	} {
		t.Run(c.name, func(t *testing.T) {
			kind, id := Peek([]byte(c.in))
			require.Equal(t, c.kind, kind)
			require.Equal(t, c.id, id.String())
			var s Skimmer
			for i := range len(c.in) {
				s.Feed([]byte{c.in[i]})
			}
			kind, id = s.Found()
			require.Equal(t, c.kind, kind, "in pieces")
			require.Equal(t, c.id, id.String(), "in pieces")
		})
	}
}

// FuzzPeek: any text, in any pieces, gives the same answer, in bounded memory.
func FuzzPeek(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":"a\"","method":"m","params":{"id":[1]}}`), uint8(3))
	f.Add([]byte(`{"id":{"a":"}"},"error":1}`), uint8(1))
	f.Fuzz(func(t *testing.T, in []byte, step uint8) {
		kind, id := Peek(in)
		var s Skimmer
		for rest := in; len(rest) > 0; {
			n := min(len(rest), int(step)+1)
			s.Feed(rest[:n])
			rest = rest[n:]
		}
		kind2, id2 := s.Found()
		require.Equal(t, kind, kind2)
		require.Equal(t, id.String(), id2.String())
		require.LessOrEqual(t, len(s.word), skimLimit)
	})
}
