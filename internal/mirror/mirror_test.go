package mirror

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/wire"
)

func message(t testing.TB, text string) *wire.Message {
	t.Helper()
	m, err := wire.Read([]byte(text))
	require.NoError(t, err)
	return &m
}

func request(method, params string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`
}

func TestVersions(t *testing.T) {
	for version, want := range map[string][2]bool{
		"2026-07-28": {true, true}, "2027-01-01": {true, true}, "2025-11-25": {true, false}, "": {}, "2026-07-28x": {}, "draft": {}, "2026/07/28": {}, "2o26-07-28": {},
	} {
		require.Equal(t, want, [2]bool{IsVersion(version), Applies(version)}, version)
	}
	require.Equal(t, "2026-07-28", Version(message(t, request("ping", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`))))
	require.Empty(t, Version(message(t, `{"jsonrpc":"2.0","method":"x"}`)))
}

func TestSet(t *testing.T) {
	var tools Tools
	tools.Learn([]byte(`{"tools":[{"name":"q","inputSchema":{"properties":{
		"region":{"type":"string","x-mcp-header":"Region"},
		"n":{"type":"integer","x-mcp-header":"N"},
		"b":{"type":"object","properties":{"deep":{"type":"boolean","x-mcp-header":"Deep"}}},
		"bad":{"type":"string","x-mcp-header":"no token"},
		"none":{"type":"string"}}}}]}`))
	for _, c := range []struct{ message, want string }{
		{request("tools/list", `{}`), "Mcp-Method=tools/list"},
		{`{"jsonrpc":"2.0","method":"notifications/x"}`, "Mcp-Method=notifications/x"},
		{request("tools/call", `{"name":"other","arguments":{"region":"eu"}}`), "Mcp-Method=tools/call Mcp-Name=other"},
		{request("prompts/get", `{"name":"a b"}`), "Mcp-Method=prompts/get Mcp-Name=a b"},
		{request("resources/read", `{"uri":"file:///x"}`), "Mcp-Method=resources/read Mcp-Name=file:///x"},
		{request("tools/call", `{"name":1}`), "Mcp-Method=tools/call"},
		{request("tools/call", `{"name":"q","arguments":{"region":"eu","n":5.0,"b":{"deep":true},"bad":"x","none":"x"}}`),
			"Mcp-Method=tools/call Mcp-Name=q Mcp-Param-Deep=true Mcp-Param-N=5 Mcp-Param-Region=eu"},
		{request("tools/call", `{"name":"q","arguments":{"region":"a\r\nX: y","n":9007199254740993,"b":1}}`),
			"Mcp-Method=tools/call Mcp-Name=q Mcp-Param-Region==?base64?YQ0KWDogeQ==?="},
		{request("tools/call", `{"name":"q","arguments":{"region":null,"n":1.5,"b":{"deep":[]}}}`), "Mcp-Method=tools/call Mcp-Name=q"},
		{request("tools/call", `{"name":"q"}`), "Mcp-Method=tools/call Mcp-Name=q"},
	} {
		h := http.Header{"Mcp-Name": {"old"}, "Mcp-Param-Old": {"old"}}
		m := message(t, c.message)
		Set(h, m, &tools)
		var got strings.Builder
		require.NoError(t, h.WriteSubset(&got, nil))
		require.Equal(t, c.want, strings.ReplaceAll(strings.TrimSuffix(strings.ReplaceAll(got.String(), "\r\n", " "), " "), ": ", "="))
		require.Empty(t, Check(h, m), "what is set is right")
	}
}

func TestWithoutToolsTheHeadersOfParametersStay(t *testing.T) {
	h := http.Header{"Mcp-Param-A": {"1"}}
	Set(h, message(t, request("tools/call", `{"name":"q"}`)), nil)
	require.Equal(t, http.Header{"Mcp-Method": {"tools/call"}, "Mcp-Name": {"q"}, "Mcp-Param-A": {"1"}}, h)
}

func TestCheck(t *testing.T) {
	call := request("tools/call", `{"name":"tü"}`)
	for _, c := range []struct {
		name, message string
		header        http.Header
		want          string
	}{
		{"right", call, http.Header{"Mcp-Method": {"tools/call"}, "Mcp-Name": {"tü"}}, ""},
		{"right in base64", call, http.Header{"Mcp-Method": {"tools/call"}, "Mcp-Name": {"=?base64?dMO8?="}}, ""},
		{"no method", call, http.Header{"Mcp-Name": {"tü"}}, "the header Mcp-Method is missing"},
		{"no name", call, http.Header{"Mcp-Method": {"tools/call"}}, "the header Mcp-Name is missing"},
		{"another method", call, http.Header{"Mcp-Method": {"tools/list"}, "Mcp-Name": {"tü"}}, "the header Mcp-Method does not match the body"},
		{"another case", call, http.Header{"Mcp-Method": {"Tools/call"}, "Mcp-Name": {"tü"}}, "the header Mcp-Method does not match the body"},
		{"another name", call, http.Header{"Mcp-Method": {"tools/call"}, "Mcp-Name": {"tu"}}, "the header Mcp-Name does not match the body"},
		{"broken base64", call, http.Header{"Mcp-Method": {"tools/call"}, "Mcp-Name": {"=?base64?dMO8"}}, "the header Mcp-Name does not match the body"},
		{"no base64", call, http.Header{"Mcp-Method": {"tools/call"}, "Mcp-Name": {"=?base64?ü?="}}, "the header Mcp-Name does not match the body"},
		{"two", call, http.Header{"Mcp-Method": {"tools/call", "ping"}, "Mcp-Name": {"tü"}}, "the header Mcp-Method is there twice"},
		{"a name that nothing asks for", request("ping", `{}`), http.Header{"Mcp-Method": {"ping"}, "Mcp-Name": {"x"}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, Check(c.header, message(t, c.message))) })
	}
}

func TestEncode(t *testing.T) {
	for value, want := range map[string]string{
		"eu": "eu", "a b": "a b", "é": "é", "": "=?base64??=", " a": "=?base64?IGE=?=", "a ": "=?base64?YSA=?=",
		"a\nb": "=?base64?YQpi?=", "\x7f": "=?base64?fw==?=", "=?base64?x?=": "=?base64?PT9iYXNlNjQ/eD89?=",
	} {
		require.Equal(t, want, Encode(value))
	}
}

func TestLearnForgetsAndIsBounded(t *testing.T) {
	var tools Tools
	list := func(n int, schema string) []byte {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,{"name":"t%d","inputSchema":%s}`, i, schema)
		}
		return []byte(`{"tools":[` + b.String()[1:] + `]}`)
	}
	annotated := `{"properties":{"a":{"x-mcp-header":"A"}}}`
	tools.Learn(list(maxTools+10, annotated))
	require.Len(t, tools.of, maxTools)
	tools.Learn(list(10, `{}`))
	require.Len(t, tools.of, maxTools-10)
	var many strings.Builder
	for i := range 2 * maxParams {
		many.WriteString(`,"p` + strconv.Itoa(i) + `":{"x-mcp-header":"P` + strconv.Itoa(i) + `"}`)
	}
	tools.Learn(list(1, `{"properties":{`+many.String()[1:]+`}}`))
	require.Len(t, tools.of["t0"], maxParams)
	for _, odd := range []string{``, `[]`, `{"tools":{}}`, `{"tools":[1,{"name":2},{"name":"x","inputSchema":"x-mcp-header"}]}`} {
		tools.Learn([]byte(odd + `"x-mcp-header"`))
	}
}

// The server of go-sdk accepts what Set writes: its own reading of the rules.
func TestServerOfGoSDKAgrees(t *testing.T) {
	s := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)
	ok := func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{}, nil
	}
	schema := `{"type":"object","properties":{"s":{"type":"string","x-mcp-header":"S"},"n":{"type":"integer","x-mcp-header":"N"},
		"o":{"type":"object","properties":{"b":{"type":"boolean","x-mcp-header":"B"}}}}}`
	for _, name := range []string{"t", "tü"} {
		s.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(schema)}, ok)
	}
	server := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: true}))
	defer server.Close()
	var tools Tools
	tools.Learn([]byte(`{"tools":[{"name":"t","inputSchema":` + schema + `},{"name":"tü","inputSchema":` + schema + `}]}`))
	for _, params := range []string{
		`"name":"t"`, `"name":"t","arguments":{}`, `"name":"tü","arguments":{"s":"eu"}`, `"name":"t","arguments":{"s":"é","n":12,"o":{"b":false}}`,
		`"name":"t","arguments":{"s":" x ","n":1e2}`, `"name":"t","arguments":{"s":"a\nb"}`, `"name":"t","arguments":{"s":"=?base64?eA==?="}`, `"name":"t","arguments":{"s":null}`,
	} {
		m := message(t, request("tools/call", `{`+params+`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}`))
		r, err := http.NewRequest(http.MethodPost, server.URL, strings.NewReader(string(m.Raw)))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set(VersionHeader, "2026-07-28")
		Set(r.Header, m, &tools)
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		answer.Body.Close()
		require.Equal(t, http.StatusOK, answer.StatusCode, "%s: %s", params, body)
	}
}

// FuzzEncode: any value arrives as it was, in one header.
func FuzzEncode(f *testing.F) {
	for _, seed := range []string{"", "a", " ", "\r\nX: y", "=?base64?", "ü"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		header := Encode(value)
		require.False(t, strings.ContainsAny(header, "\r\n\x00"))
		require.Equal(t, header, strings.Trim(header, " \t"))
		got, ok := Decode(header)
		require.True(t, ok)
		require.Equal(t, value, got)
	})
}

// FuzzTools: whatever a server lists and a client calls, what is set can be sent
// and passes the check.
func FuzzTools(f *testing.F) {
	f.Add([]byte(`{"tools":[{"name":"t","inputSchema":{"properties":{"a":{"x-mcp-header":"A"}}}}]}`), []byte(`{"name":"t","arguments":{"a":"x"}}`))
	f.Fuzz(func(t *testing.T, list, params []byte) {
		var tools Tools
		if wire.Valid(list) == nil {
			tools.Learn(list)
		}
		m, err := wire.Read([]byte(request("tools/call", string(params))))
		if err != nil {
			return
		}
		h := http.Header{}
		Set(h, &m, &tools)
		require.Empty(t, Check(h, &m))
		for name, values := range h {
			require.NotContains(t, name, "\n")
			require.Len(t, values, 1)
			require.False(t, strings.ContainsAny(values[0], "\r\n\x00"))
		}
	})
}
