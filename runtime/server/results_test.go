package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/wire"
	"github.com/weir-mcp/weir/runtime/library"
	"github.com/weir-mcp/weir/runtime/server"
)

func resultOf(t testing.TB, answer string) string {
	t.Helper()
	m, err := wire.Read([]byte(answer))
	require.NoError(t, err, answer)
	require.Equal(t, wire.Response, m.Kind, answer)
	return string(m.Result)
}

// invokeMessage asks an interceptor about a request of tools/call.
func invokeMessage(id, name, payload string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"interceptor/invoke","params":{"name":"` + name +
		`","event":"tools/call","phase":"request","payload":` + payload + `}}`
}

// Every token of a payload keeps its spelling and its place, through any
// transport and era, and nothing is added to a result.
func TestPayloadsKeepTheirTokens(t *testing.T) {
	payloads := []string{
		`{}`,
		`{"z":1,"a":2,"m":{"y":[],"b":{}}}`,
		`{"n":[9007199254740993,1.0,1e400,-0,0.1e-7,123456789012345678901234567890]}`,
		`{"s":"<>&\u003c\u2028\/\ud83d\ude00é` + "\u2028" + `"}`,
		`{"":null,"_meta":{"x":true},"ttlMs":5,"resultType":"x"}`,
		`{"deep":` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + `}`,
		`[1,"two"]`, `"text"`, `0`, `null`,
	}
	everywhere(t, desk(t), server.Options{}, func(t *testing.T, c wireClient) {
		for _, payload := range payloads {
			answer := resultOf(t, c.call(t, invokeMessage("1", "echo", payload)))
			require.Regexp(t, `^\{"type":"mutation","interceptor":"echo","phase":"request","durationMs":\d+,"modified":true,"payload":`, answer)
			got, _ := wire.Get([]byte(answer), "payload")
			require.Equal(t, payload, string(got))
			require.True(t, strings.HasSuffix(answer, payload+"}"), "nothing behind it: %s", answer)
		}
	})
}

func TestWhiteSpaceOutsideStringsGoes(t *testing.T) {
	everywhere(t, desk(t), server.Options{}, func(t *testing.T, c wireClient) {
		space := "\r\n"
		if _, ok := c.(interface{ send(testing.TB, string) }); ok {
			space = " \t" // a line has no line breaks
		}
		answer := c.call(t, strings.ReplaceAll(invokeMessage("1", "echo", `{"a": "b\r\n" , "c":1}`), ",", ","+space))
		require.NotContains(t, answer, "\n")
		require.NotContains(t, answer, "\r")
		require.Contains(t, answer, `"b\r\n"`)
	})
}

// The canonical results of protocol.md §3.
func TestResults(t *testing.T) {
	rows := []struct{ name, params, result string }{
		{"a plain pass", `{"name":"no-rm","event":"tools/call","phase":"request","payload":{"name":"ls"}}`,
			`^\{"type":"validation","interceptor":"no-rm","phase":"request","durationMs":\d+,"valid":true\}$`},
		{"a verdict", `{"name":"no-rm","event":"tools/call","phase":"request","payload":{"c":"rm -rf /"}}`,
			`^\{"type":"validation","interceptor":"no-rm","phase":"request","durationMs":\d+,"valid":false,"severity":"error"\}$`},
		{"modified:false is given the input", `{"name":"leave","event":"tools/call","phase":"request","payload":{"b":1.0,"a":2}}`,
			`^\{"type":"mutation","interceptor":"leave","phase":"request","durationMs":\d+,"modified":false,"payload":\{"b":1\.0,"a":2\}\}$`},
		{"a sink", `{"name":"book","event":"tools/list","phase":"response","payload":{"tools":[]}}`,
			`^\{"type":"sink","interceptor":"book","phase":"response","durationMs":\d+,"recorded":true\}$`},
	}
	everywhere(t, desk(t), server.Options{}, func(t *testing.T, c wireClient) {
		for _, row := range rows {
			t.Run(row.name, func(t *testing.T) {
				require.Regexp(t, row.result, resultOf(t, c.call(t, `{"jsonrpc":"2.0","id":1,"method":"interceptor/invoke","params":`+row.params+`}`)))
			})
		}
	})
}

// Ids are echoed as they were spelled; the SDK alone would round and reformat
// them.
func TestIDsAreEchoedAsSpelled(t *testing.T) {
	everywhere(t, desk(t), server.Options{}, func(t *testing.T, c wireClient) {
		for _, id := range []string{
			`1`, `0`, `-3`, `9007199254740993`, `18446744073709551616`, `1.5`, `1e2`, `"1"`, `""`, `"a\u00e9<"`, `"` + strings.Repeat("x", 500) + `"`,
		} {
			answer := c.call(t, invokeMessage(id, "no-rm", "{}"))
			require.True(t, strings.HasPrefix(answer, `{"jsonrpc":"2.0","id":`+id+`,"result":`), answer)
			answer = c.call(t, invokeMessage(id, "nobody", "{}"))
			require.True(t, strings.HasPrefix(answer, `{"jsonrpc":"2.0","id":`+id+`,"error":`), answer)
		}
	})
}

func listMessage(params string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"interceptors/list","params":` + params + `}`
}

func namesOf(t testing.TB, answer string) (names []string, cursor string) {
	t.Helper()
	page, err := abi.ReadPage([]byte(resultOf(t, answer)))
	require.NoError(t, err)
	names = []string{}
	for _, d := range page.Interceptors {
		names = append(names, d.Name)
	}
	return names, page.NextCursor
}

func TestListIsCanonical(t *testing.T) {
	set := library.New(library.Options{})
	all := library.Mutator("all", abi.OnBoth("*"), nilMutation)
	all.RequestPriority = new(int32(-5))
	require.NoError(t, set.Register(all))
	everywhere(t, set, server.Options{}, func(t *testing.T, c wireClient) {
		require.Equal(t, `{"interceptors":[{"name":"all","type":"mutation","hooks":[{"events":["*"],"phase":"request"},{"events":["*"],"phase":"response"}],"priorityHint":{"request":-5}}]}`,
			resultOf(t, c.call(t, listMessage(`{}`))))
	})
}

func TestListFilter(t *testing.T) {
	everywhere(t, desk(t), server.Options{}, func(t *testing.T, c wireClient) {
		rows := map[string][]string{
			"tools/list":  {"echo", "book"},
			"prompts/get": {"echo"},
			"acme/thing":  {"echo"},
			"initialize":  {},
			"tasks/get":   {},
		}
		for event, want := range rows {
			names, _ := namesOf(t, c.call(t, listMessage(`{"event":"`+event+`"}`)))
			require.Equal(t, want, names, event)
		}
		for params, path := range map[string]string{
			`{"event":"tools/*"}`:      "event",
			`{"event":"*"}`:            "event",
			`{"event":5}`:              "event",
			`{"cursor":"nonsense"}`:    "cursor",
			`{"cursor":"MTotMTphYmM"}`: "cursor",
			`{"cursor":7}`:             "cursor",
		} {
			require.Equal(t, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"malformed params","data":{"reason":"params","path":"`+path+`"}}}`,
				c.call(t, listMessage(params)))
		}
	})
}

func TestListPages(t *testing.T) {
	set := library.New(library.Options{})
	var want []string
	for i := range 25 {
		name := fmt.Sprintf("i%02d:ü", i)
		want = append(want, name)
		require.NoError(t, set.Register(library.Mutator(name, abi.On(abi.Request, "tools/call"), nilMutation)))
	}
	everywhere(t, set, server.Options{PageSize: 10}, func(t *testing.T, c wireClient) {
		for _, filter := range []string{``, `"event":"tools/call",`} {
			var got []string
			cursor, pages := "", 0
			for {
				names, next := namesOf(t, c.call(t, listMessage(`{`+filter+`"cursor":"`+cursor+`"}`)))
				got, pages = append(got, names...), pages+1
				if next == "" {
					break
				}
				cursor = next
			}
			require.Equal(t, want, got)
			require.Equal(t, 3, pages)
		}
	})
}

// shrinking is a list that loses its first interceptor after the first page.
func TestListThatChangesBetweenPages(t *testing.T) {
	list := &fixedList{}
	for i := range 10 {
		list.all = append(list.all, abi.Descriptor{Name: fmt.Sprint("i", i), Type: abi.Sink, Hooks: abi.Hooks{}})
	}
	p := dialHTTP(t, server.New(list, server.Options{PageSize: 4}))
	names, cursor := namesOf(t, p.call(t, listMessage(`{}`)))
	require.Equal(t, []string{"i0", "i1", "i2", "i3"}, names)
	list.all = list.all[2:]
	names, _ = namesOf(t, p.call(t, listMessage(`{"cursor":"`+cursor+`"}`)))
	require.Equal(t, []string{"i4", "i5", "i6", "i7"}, names, "none skipped, none twice")
	list.all = nil
	names, next := namesOf(t, p.call(t, listMessage(`{"cursor":"`+cursor+`"}`)))
	require.Empty(t, names)
	require.Empty(t, next)
}

func TestLargeDescriptorsMakeSmallPages(t *testing.T) {
	list := &fixedList{}
	for i := range 6 {
		list.all = append(list.all, abi.Descriptor{
			Name: fmt.Sprint("i", i), Type: abi.Sink, Hooks: abi.Hooks{}, Description: strings.Repeat("x", 600<<10),
		})
	}
	names, cursor := namesOf(t, dialHTTP(t, server.New(list, server.Options{})).call(t, listMessage(`{}`)))
	require.Len(t, names, 2)
	require.NotEmpty(t, cursor)
}
