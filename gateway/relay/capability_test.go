package relay

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const interceptorsKey = `"io.modelcontextprotocol/interceptors"`

func TestCapability(t *testing.T) {
	own := `{"supportedEvents":["*"]}`
	for _, c := range []struct{ name, method, result, passes string }{
		{"beside others", "initialize", `{"capabilities": {"tools":{ }} , "n":1.0}`,
			`{"capabilities": {"extensions":{` + interceptorsKey + `:` + own + `},"tools":{ }} , "n":1.0}`},
		{"beside other extensions", "initialize", `{"capabilities":{"extensions":{"a/b":{}},"x":1}}`,
			`{"capabilities":{"extensions":{` + interceptorsKey + `:` + own + `,"a/b":{}},"x":1}}`},
		{"in place of the backend's own", "server/discover", `{"capabilities":{"extensions":{` + interceptorsKey + `:{"supportedEvents":["a"]},"z":{}}}}`,
			`{"capabilities":{"extensions":{` + interceptorsKey + `:` + own + `,"z":{}}}}`},
		{"where nothing is declared", "server/discover", `{ }`,
			`{"capabilities":{"extensions":{` + interceptorsKey + `:` + own + `}} }`},
		{"into empty objects", "initialize", `{"capabilities":{"extensions":{}}}`, `{"capabilities":{"extensions":{` + interceptorsKey + `:` + own + `}}}`},
		{"never into what is no object", "initialize", `{"capabilities":[],"a":1}`, `{"capabilities":[],"a":1}`},
		{"nor where extensions are none", "initialize", `{"capabilities":{"extensions":"x"}}`, `{"capabilities":{"extensions":"x"}}`},
		{"nor into another answer", "tools/list", `{"capabilities":{}}`, `{"capabilities":{}}`},
		{"nor into a result that is none", "initialize", `7`, `7`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := newTestSession(t, nil, func(o *Options) { o.Capability = func() []byte { return []byte(own) } })
			hand(t, s, Client, request("1", c.method, "{}"))
			require.Equal(t, []string{result("1", c.passes)}, hand(t, s, Backend, result("1", c.result)).forwarded)
		})
	}
	for name, adapt := range map[string]func(*Options){
		"none":    func(*Options) {},
		"not yet": func(o *Options) { o.Capability = func() []byte { return nil } },
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newTestSession(t, nil, adapt)
			hand(t, s, Client, request("1", "initialize", "{}"))
			raw := result("1", `{"capabilities":{}}`)
			require.Equal(t, []string{raw}, hand(t, s, Backend, raw).forwarded)
		})
	}
	t.Run("not into what a client answers", func(t *testing.T) {
		s, _ := newTestSession(t, nil, func(o *Options) { o.Capability = func() []byte { return []byte(own) } })
		hand(t, s, Backend, request("1", "initialize", "{}"))
		raw := result("1", `{"capabilities":{}}`)
		require.Equal(t, []string{raw}, hand(t, s, Client, raw).forwarded)
	})
}
