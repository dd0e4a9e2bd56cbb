package guest

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/guest/internal/module"
)

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		name    string
		verdict Verdict
		want    string // as it travels
		blocks  bool
	}{
		{"allow", Allow(), `{"type":"validation","valid":true}`, false},
		{"deny", Deny("no %s", "way"), `{"type":"validation","valid":false,"severity":"error","messages":[{"message":"no way","severity":"error"}]}`, true},
		{"deny at a place", Deny("no").At("$.a"), `{"type":"validation","valid":false,"severity":"error","messages":[{"path":"$.a","message":"no","severity":"error"}]}`, true},
		{"flag", Flag("odd"), `{"type":"validation","valid":false,"severity":"warn","messages":[{"message":"odd","severity":"warn"}]}`, false},
		{"no findings", Judge(), `{"type":"validation","valid":true}`, false},
		{"findings that only inform", Judge(Message{Message: "fyi", Severity: SeverityInfo}), `{"type":"validation","valid":false,"severity":"info","messages":[{"message":"fyi","severity":"info"}]}`, false},
		{"the gravest finding counts", Judge(Message{Message: "a", Severity: SeverityInfo}, Message{Message: "b"}, Message{Message: "c", Severity: SeverityWarn}),
			`{"type":"validation","valid":false,"severity":"error","messages":[{"message":"a","severity":"info"},{"message":"b","severity":"error"},{"message":"c","severity":"warn"}]}`, true},
		{"two checks", Flag("odd").And(Deny("no")).And(Allow()), `{"type":"validation","valid":false,"severity":"error","messages":[{"message":"odd","severity":"warn"},{"message":"no","severity":"error"}]}`, true},
		{"two that allow", Allow().And(Allow()), `{"type":"validation","valid":true}`, false},
		{"a place needs a finding", Allow().At("$"), `{"type":"validation","valid":true}`, false},
		{"a suggestion and more", Deny("no").Suggest("$.a", json.RawMessage(`1`)).WithInfo(json.RawMessage(`{"x":"<"}`)),
			`{"type":"validation","info":{"x":"<"},"valid":false,"severity":"error","messages":[{"message":"no","severity":"error"}],"suggestions":[{"path":"$.a","value":1}]}`, true},
		{"the info of the later one", Allow().WithInfo(json.RawMessage(`1`)).And(Allow().WithInfo(json.RawMessage(`2`))).And(Allow()), `{"type":"validation","info":2,"valid":true}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := c.verdict.result()
			require.NoError(t, err)
			r.Type = abi.Validation
			require.Equal(t, c.want, string(r.AppendJSON(nil)))
			require.Equal(t, c.blocks, r.Blocks())
		})
	}
	for _, none := range []Verdict{{}, Verdict{}.And(Allow()), Allow().And(Verdict{}), Verdict{}.At("$")} {
		_, err := none.result()
		require.Error(t, err)
	}
}

func TestVerdictsAreValues(t *testing.T) {
	base := Deny("no")
	_ = base.At("$.x")
	_ = base.And(Deny("never"))
	_, err := base.result()
	require.NoError(t, err)
	require.Equal(t, []Message{{Message: "no", Severity: SeverityError}}, base.messages)
}

func TestMutation(t *testing.T) {
	input := json.RawMessage(`{"a":1}`)
	for _, c := range []struct {
		name     string
		mutation Mutation
		modified bool
		payload  string
	}{
		{"unchanged", Unchanged(), false, ""},
		{"replaced", Replace(json.RawMessage(`{"a":2}`)), true, `{"a":2}`},
		{"replaced by the same", Replace(json.RawMessage(`{"a":1}`)), false, ""},
		{"replaced by another spelling", Replace(json.RawMessage(`{ "a":1}`)), true, `{ "a":1}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := c.mutation.WithInfo(json.RawMessage(`5`)).result(input)
			require.NoError(t, err)
			require.Equal(t, c.modified, r.Modified)
			require.Equal(t, c.payload, string(r.Payload))
			require.Equal(t, "5", string(r.Info))
		})
	}
	for _, none := range []Mutation{{}, Replace(nil)} {
		_, err := none.result(input)
		require.Error(t, err)
	}
}

func TestRecord(t *testing.T) {
	r, err := Recorded().Metric("a \"b\"", 1.5).Metric("n", 2).Metric("n", 3e21).WithInfo(json.RawMessage(`{}`)).result()
	require.NoError(t, err)
	require.True(t, r.Recorded)
	require.JSONEq(t, `{"a \"b\"":1.5,"n":3000000000000000000000}`, string(r.Metrics))
	r, err = NotRecorded().result()
	require.NoError(t, err)
	require.False(t, r.Recorded)
	require.Nil(t, r.Metrics)
	for _, bad := range []Record{{}, Recorded().Metric("x", math.NaN()), Recorded().Metric("x", math.Inf(-1))} {
		_, err := bad.result()
		require.Error(t, err)
	}
}

type settings struct {
	Limit int      `json:"limit"`
	Words []string `json:"words"`
}

func (s *settings) SetDefaults() { s.Limit, s.Words = 10, []string{"a"} }

func (s *settings) Check() error {
	if s.Limit < 0 {
		return errors.New("limit is negative")
	}
	return nil
}

func TestConfig(t *testing.T) {
	for _, c := range []struct {
		name, in string
		strict   bool
		want     settings
		err      string
	}{
		{"none", "", true, settings{10, []string{"a"}}, ""},
		{"empty", "{}", true, settings{10, []string{"a"}}, ""},
		{"what is given counts", `{"limit":3}`, true, settings{3, []string{"a"}}, ""},
		{"lists are replaced", `{"words":[]}`, true, settings{10, []string{}}, ""},
		{"a member too many", `{"limt":3}`, true, settings{}, `unknown field "limt"`},
		{"a member too many where the author's schema lets it", `{"limt":3}`, false, settings{10, []string{"a"}}, ""},
		{"a wrong type", `{"limit":"3"}`, true, settings{}, "config: json: cannot unmarshal string"},
		{"refused by the type", `{"limit":-1}`, true, settings{}, "config: limit is negative"},
		{"more than one", `{}{}`, true, settings{}, "something follows"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var raw json.RawMessage
			if c.in != "" {
				raw = json.RawMessage(c.in)
			}
			var got settings
			err := decodeConfig(raw, &got, c.strict)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

type tree struct {
	Leaf     string   `json:"leaf"`
	Children []tree   `json:"children"`
	Parent   *tree    `json:"parent"`
	hidden   struct{} //lint:ignore U1000 it must not come up in the schema
}

type shouting string

func (*shouting) UnmarshalText([]byte) error { return nil }

func TestSchemaOf(t *testing.T) {
	schema := func(raw json.RawMessage, err error) string {
		require.NoError(t, err)
		return string(raw)
	}
	require.Equal(t, "", schema(SchemaOf[NoConfig]()))
	require.Equal(t, `{"type":"object","properties":{`+
		`"b":{"type":"boolean"},"s":{"type":"string","description":"says \"so\""},"i":{"type":"integer"},"u":{"type":"integer","minimum":0},`+
		`"f":{"type":"number"},"p":{"type":"integer"},"list":{"type":"array","items":{"type":"string"}},`+
		`"map":{"type":"object","additionalProperties":{"type":"integer"}},"In":{"type":"object","properties":{"X":{"type":"string"}},"additionalProperties":false},`+
		`"any":{},"raw":{},"bytes":{"type":"string"},"text":{"type":"string"},"Plain":{"type":"boolean"}},"additionalProperties":false}`,
		schema(SchemaOf[struct {
			B       bool           `json:"b"`
			S       string         `json:"s,omitempty" doc:"says \"so\""`
			I       int64          `json:"i"`
			U       uint8          `json:"u"`
			F       float32        `json:"f"`
			P       *int           `json:"p"`
			List    []string       `json:"list"`
			Map     map[string]int `json:"map"`
			In      struct{ X string }
			_       struct{}
			Any     any             `json:"any"`
			Raw     json.RawMessage `json:"raw"`
			Bytes   []byte          `json:"bytes"`
			Text    shouting        `json:"text"`
			Plain   bool            `json:",omitempty"`
			Skipped bool            `json:"-"`
		}]()))
	require.Equal(t, `{"type":"object","properties":{"leaf":{"type":"string"},"children":{"type":"array","items":{}},"parent":{}},"additionalProperties":false}`,
		schema(SchemaOf[tree]()))
	_, err := SchemaOf[map[string]int]()
	require.Error(t, err)
	_, err = SchemaOf[struct{ settings }]()
	require.ErrorContains(t, err, "embedded")
	_, err = SchemaOf[struct{ C chan int }]()
	require.ErrorContains(t, err, "C: chan int has no JSON form")
	_, err = SchemaOf[struct{ M map[int]int }]()
	require.ErrorContains(t, err, "string keys")
}

func allow(*Call[NoConfig]) (abi.Result, error) { return Allow().result() }

func TestRegistrationsThatAreWrongKeepTheModuleFromLoading(t *testing.T) {
	var m module.Module
	register(&m, abi.Validation, Descriptor{Hooks: OnRequest("*")}, allow)
	register(&m, abi.Validation, Descriptor{Name: "a", Hooks: OnRequest("*")}, allow)
	register(&m, abi.Validation, Descriptor{Name: "a", Hooks: OnRequest("*")}, allow)
	register(&m, abi.Sink, Descriptor{Name: "b", Hooks: OnRequest("*"), Mode: abi.Audit}, allow)
	register(&m, abi.Sink, Descriptor{Name: "c", Hooks: OnRequest("*")}, func(*Call[[]int]) (abi.Result, error) { return abi.Result{}, nil })
	register(&m, abi.Sink, Descriptor{Name: "d", Hooks: OnRequest("*"), ConfigSchema: json.RawMessage(`[]`)}, allow)
	_, err := m.Describe()
	require.Error(t, err)
	for _, want := range []string{`"name" is missing`, `"a" is registered twice`, "no audit mode", `"c": config: []int is not a struct`, "configSchema"} {
		require.ErrorContains(t, err, want)
	}
}

func TestWhatAHandlerSees(t *testing.T) {
	var m module.Module
	var got Call[settings]
	register(&m, abi.Validation, Descriptor{Name: "look", Hooks: OnBoth("*")}, func(c *Call[settings]) (abi.Result, error) {
		got = *c
		return Allow().result()
	})
	inv := abi.Invocation{
		Name: "look", Event: ToolsCall, Phase: Response, Payload: json.RawMessage(`{"content":[]}`), Config: json.RawMessage(`{"limit":1}`),
		Request: json.RawMessage(`{"method":"tools/call","params":{"name":"t"}}`),
		Context: &Context{Principal: &Principal{Type: abi.PrincipalUser, ID: "u"}, TraceID: "tr", SpanID: "sp", SessionID: "se", Timestamp: "2026-01-02T03:04:05Z"},
	}
	answer := m.Invoke(abi.AppendCall(nil, &inv))
	require.Equal(t, `{"result":{"type":"validation","interceptor":"look","phase":"response","valid":true}}`, string(answer))
	require.Equal(t, "look", got.Interceptor)
	require.Equal(t, ToolsCall, got.Event)
	require.Equal(t, Response, got.Phase)
	require.Equal(t, `{"content":[]}`, string(got.Payload))
	require.Equal(t, `{"name":"t"}`, string(got.Request), "a request is bare too")
	require.Equal(t, *inv.Context, got.Context)
	require.Equal(t, 1, got.Config.Limit)
	call, err := got.ToolCall()
	require.NoError(t, err)
	require.Equal(t, "t", call.Name)

	m.Invoke([]byte(`{"interceptor":"look","event":"a/b","phase":"request","payload":{"method":"a/b"}}`))
	require.Equal(t, `{}`, string(got.Payload), "an envelope without params holds {}")
	require.Zero(t, got.Context)
	require.Nil(t, got.Request)
}

func TestToolCall(t *testing.T) {
	call := func(phase Phase, event, payload string) (ToolCall, error) {
		o := Operation{Event: event, Phase: phase, Payload: json.RawMessage(payload)}
		return o.ToolCall()
	}
	c, err := call(Request, ToolsCall, `{"_meta":{"progressToken":1},"name":"a\u0062","arguments":{"x":{"y":1e2}},"more":[]}`)
	require.NoError(t, err)
	require.Equal(t, "ab", c.Name)
	require.Equal(t, `{"progressToken":1}`, string(c.Meta))
	v, ok := c.Argument("x", "y")
	require.True(t, ok)
	require.Equal(t, "1e2", string(v))
	c, err = call(Request, ToolsCall, `{"name":"a","arguments":null}`)
	require.NoError(t, err)
	require.Nil(t, c.Arguments)
	_, ok = c.Argument("x")
	require.False(t, ok)
	for in, want := range map[string]string{
		`{}`:                          `"name" is missing`,
		`{"name":""}`:                 `"name" is empty`,
		`{"name":1}`:                  `"name" is not a string`,
		`{"Name":"a"}`:                `"name" is missing`,
		`{"name":"a","name":"b"}`:     `"name" stands there twice`,
		`{"name":"a","x":1,"x":2}`:    `"x" stands there twice`,
		`{"name":"a","arguments":[]}`: `"arguments" is not an object`,
		`[]`:                          "not a JSON object",
		`{"name":"a"`:                 "not JSON",
	} {
		_, err := call(Request, ToolsCall, in)
		require.ErrorContains(t, err, want, in)
	}
	_, err = call(Request, ToolsList, `{"name":"a"}`)
	require.ErrorContains(t, err, "tools/list has no tool call")
	_, err = call(Response, ToolsCall, `{"name":"a"}`)
	require.ErrorContains(t, err, "did not say")
}

func TestToolResult(t *testing.T) {
	result := func(in string) (ToolResult, error) {
		o := Operation{Event: ToolsCall, Phase: Response, Payload: json.RawMessage(in)}
		return o.ToolResult()
	}
	r, err := result(`{"content":[{"type":"text","text":"a"},{"type":"image","data":"x"}],"structuredContent":{"n":1.0},"isError":true,"_meta":{}}`)
	require.NoError(t, err)
	require.Equal(t, ToolResult{
		Content:           []Content{{Type: "text", Text: "a", Raw: json.RawMessage(`{"type":"text","text":"a"}`)}, {Type: "image", Raw: json.RawMessage(`{"type":"image","data":"x"}`)}},
		StructuredContent: json.RawMessage(`{"n":1.0}`), IsError: true, Meta: json.RawMessage(`{}`),
	}, r)
	r, err = result(`{"task":{"taskId":"1"}}`)
	require.NoError(t, err)
	require.Zero(t, r)
	for in, want := range map[string]string{
		`{"content":{}}`:                        `"content" is not an array`,
		`{"content":[1]}`:                       `"content" [0]: not a JSON object`,
		`{"content":[{"text":1}]}`:              `"text" is not a string`,
		`{"content":[{"text":"a","text":"b"}]}`: "twice",
		`{"isError":"true"}`:                    `"isError" is not a boolean`,
		`{"_meta":1}`:                           `"_meta" is not an object`,
		`null`:                                  "not a JSON object",
	} {
		_, err := result(in)
		require.ErrorContains(t, err, want, in)
	}
	o := Operation{Event: ToolsCall, Phase: Request}
	_, err = o.ToolResult()
	require.ErrorContains(t, err, "the request of tools/call has no tool result")
}

func TestRand(t *testing.T) {
	roll := func(seed uint64) [3]uint64 {
		setSeed(seed)
		r := Rand()
		return [3]uint64{r.Uint64(), r.Uint64(), Rand().Uint64()}
	}
	require.Equal(t, roll(1), roll(1))
	require.NotEqual(t, roll(1), roll(2))
	require.NotEqual(t, Rand().Uint64(), Rand().Uint64(), "a new generator goes on where the last one was")

	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				Rand().IntN(10)
			}
		})
	}
	wg.Wait()
}

func TestLog(t *testing.T) {
	var lines []string
	restore := module.CaptureLog(func(l module.Level, line string) { lines = append(lines, l.String()+" "+line) })
	defer restore()
	Log.Debugf("a %d", 1)
	Log.Infof("b")
	Log.Warnf("c\xff")
	Log.Errorf("%s", strings.Repeat("é", 4096))
	require.Equal(t, []string{"debug a 1", "info b", "warn c\uFFFD", "error " + strings.Repeat("é", 2048)}, lines)
	Log.Infof("x%s", strings.Repeat("é", 4096))
	require.Equal(t, "info x"+strings.Repeat("é", 2047), lines[4], "a character is not cut in two")
}
