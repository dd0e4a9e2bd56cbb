package middleware

import (
	"encoding/json"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

func TestWhatInterceptorsSeeHasNoEscapesForHTML(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"markup", "<script>&", `"<script>&"`},
		{"line separators", "\u2028\u2029", "\"\u2028\u2029\""},
		{"an escape in words", `\u003c`, `"\\u003c"`},
		{"a backslash before an escape", `\<`, `"\\<"`},
		{"other escapes", "\"\x01\n", `"\"\u0001\n"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := payloadOf(&mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: c.text}}})
			require.NoError(t, err)
			require.Equal(t, `{"content":[{"type":"text","text":`+c.want+`}]}`, string(got))
		})
	}
	none, err := payloadOf((*mcp.ListToolsParams)(nil))
	require.NoError(t, err)
	require.Equal(t, "{}", string(none))
}

func TestMergedKeepsWhatWasNotChanged(t *testing.T) {
	type note struct{ N int64 } // a Go type that JSON cannot say
	const big = 9007199254740993
	was := &mcp.CallToolParams{Name: "a", Arguments: note{big}, Meta: mcp.Meta{"n": int64(big)}}
	before, err := payloadOf(was)
	require.NoError(t, err)

	now, err := merged(was, before, json.RawMessage(`{"name":"b","arguments":{"N":9007199254740993},"_meta":{"n":9007199254740993}}`), false)
	require.NoError(t, err)
	require.Equal(t, "b", now.Name)
	require.Equal(t, "a", was.Name, "what the caller gave is the caller's")
	require.Equal(t, note{big}, now.Arguments)
	require.Equal(t, int64(big), now.Meta["n"])
}

func TestMergedKeepsTheSpellingOfWhatLeaves(t *testing.T) {
	was := &mcp.CallToolParams{Name: "a", Arguments: map[string]any{}}
	now, err := merged(was, json.RawMessage(`{"name":"a","arguments":{}}`),
		json.RawMessage(`{"name":"a","arguments":{"n":9007199254740993,"x":1.10},"_meta":{"big":9007199254740993}}`), true)
	require.NoError(t, err)
	got, err := json.Marshal(now)
	require.NoError(t, err)
	require.Equal(t, `{"_meta":{"big":9007199254740993},"name":"a","arguments":{"n":9007199254740993,"x":1.10}}`, string(got))

	res, err := merged(&mcp.CallToolResult{}, json.RawMessage(`{}`), json.RawMessage(`{"structuredContent":{"n":1.10}}`), true)
	require.NoError(t, err)
	require.Equal(t, json.RawMessage(`{"n":1.10}`), res.StructuredContent)
}

func TestMergedTakesMembersAway(t *testing.T) {
	was := &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "a"}}, IsError: true, StructuredContent: map[string]any{"a": 1}}
	now, err := merged(was, json.RawMessage(`{"content":[],"isError":true,"structuredContent":{"a":1}}`), json.RawMessage(`{"content":[]}`), true)
	require.NoError(t, err)
	require.False(t, now.IsError)
	require.Nil(t, now.StructuredContent)
	require.Len(t, now.Content, 1, "spelled as it was, so it is what it was")
}

func TestMergedRefusesWhatDoesNotFit(t *testing.T) {
	params, was := &mcp.CallToolParams{Name: "a"}, json.RawMessage(`{"name":"a"}`)
	for name, now := range map[string]string{
		"another type":            `{"name":7}`,
		"a name in other letters": `{"name":"a","Name":"b"}`,
		"no object":               `[]`,
		"no JSON":                 `{`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := merged(params, was, json.RawMessage(now), true)
			require.Error(t, err)
			require.Equal(t, "a", params.Name)
		})
	}
	_, err := merged(&mcp.CallToolResult{}, json.RawMessage(`{}`), json.RawMessage(`{"inputRequests":{"a":null}}`), true)
	require.ErrorContains(t, err, "panicked")
	_, err = merged(struct{}{}, was, was, true)
	require.ErrorContains(t, err, "no pointer to a struct")
}

// FuzzMerged feeds any payload of an interceptor to the types of the SDK.
func FuzzMerged(f *testing.F) {
	for _, s := range []string{`{}`, `{"content":[{"type":"text","text":"x"}]}`, `{"content":null,"_meta":{"a":1}}`, `{"inputRequests":{"a":{"method":"roots/list"}}}`,
		`{"structuredContent":[1,2.5],"isError":true}`, `{"content":{"type":"text"}}`, `{"Content":[]}`,
		`{"inputRequests":{"a":null}}`, `{"inputRequests":{"a":{"method":"roots/list"},"b":{"method":"elicitation/create","params":null}}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, now []byte) {
		for _, outgoing := range []bool{true, false} {
			was := &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "x"}}}
			before, err := payloadOf(was)
			require.NoError(t, err)
			if res, err := merged(was, before, now, outgoing); err == nil {
				_, err = payloadOf(res)
				require.NoError(t, err)
			}
		}
	})
}
