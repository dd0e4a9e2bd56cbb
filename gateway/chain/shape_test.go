package chain

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
)

// TestShapes is "a payload that is no valid params/result object for that
// event" (protocol.md §5), event by event.
func TestShapes(t *testing.T) {
	const anything = "acme/thing"
	for _, c := range []struct {
		event string
		phase abi.Phase
		good  []string
		bad   []string
	}{
		{abi.ToolsList, abi.Request, []string{`{}`, `{"cursor":"x"}`, ` { } `}, []string{`null`, `[]`, `"x"`, `7`, `{"cursor":1}`, `{"cursor":null}`, `{"_meta":1}`}},
		{abi.ToolsCall, abi.Request, []string{`{"name":"t"}`, `{"name":"t","arguments":{}}`, `{"_meta":{},"name":"t","task":{}}`},
			[]string{`{}`, `{"name":null}`, `{"name":1}`, `{"name":"t","arguments":[]}`, `{"name":"t","arguments":null}`, `{"Name":"t"}`}},
		{abi.PromptsList, abi.Request, []string{`{}`}, []string{`{"cursor":{}}`}},
		{abi.PromptsGet, abi.Request, []string{`{"name":"p"}`}, []string{`{}`, `{"name":"p","arguments":"x"}`}},
		{abi.ResourcesList, abi.Request, []string{`{}`}, []string{`true`}},
		{abi.ResourcesRead, abi.Request, []string{`{"uri":"file:///x"}`}, []string{`{}`, `{"uri":[]}`}},
		{abi.ResourcesSubscribe, abi.Request, []string{`{"uri":"file:///x"}`}, []string{`{}`}},
		{abi.SamplingCreate, abi.Request, []string{`{"messages":[],"maxTokens":1}`}, []string{`{}`, `{"messages":{}}`, `{"messages":["x"]}`}},
		{abi.ElicitationCreate, abi.Request, []string{`{"message":"m","requestedSchema":{}}`, `{"message":"m","mode":"url"}`}, []string{`{}`, `{"message":1}`}},
		{abi.RootsList, abi.Request, []string{`{}`, `{"_meta":{}}`}, []string{`[]`}},
		{abi.LLMCompletion, abi.Request, []string{`{"messages":[]}`}, []string{`{}`}},
		{anything, abi.Request, []string{`{}`, `{"a":1}`}, []string{`null`, `[]`}},

		{abi.ToolsList, abi.Response, []string{`{"tools":[]}`}, []string{`{}`, `{"tools":{}}`, `{"tools":["t"]}`, `{"tools":[],"nextCursor":7}`, `[]`, `{"resultType":"complete"}`, `{"resultType":1}`}},
		{abi.ToolsCall, abi.Response, []string{`{"content":[]}`, `{"content":[],"structuredContent":{},"isError":true}`, `{"task":{"taskId":"1"}}`,
			`{"resultType":"input_required","inputRequests":{}}`, `{"inputRequests":{}}`, `{"resultType":"complete","content":[]}`},
			[]string{`{}`, `{"content":{}}`, `{"content":[],"isError":"no"}`, `{"content":[],"structuredContent":[]}`, `{"content":[[]]}`, `{"task":1}`, `{"inputRequests":[]}`}},
		{abi.PromptsList, abi.Response, []string{`{"prompts":[]}`}, []string{`{}`}},
		{abi.PromptsGet, abi.Response, []string{`{"messages":[]}`}, []string{`{}`}},
		{abi.ResourcesList, abi.Response, []string{`{"resources":[]}`}, []string{`{}`}},
		{abi.ResourcesRead, abi.Response, []string{`{"contents":[]}`}, []string{`{"content":[]}`}},
		{abi.ResourcesSubscribe, abi.Response, []string{`{}`}, []string{`null`}},
		{abi.SamplingCreate, abi.Response, []string{`{"role":"assistant","content":{}}`, `{"role":"assistant","content":[]}`}, []string{`{}`, `{"role":"assistant"}`, `{"role":"assistant","content":"x"}`}},
		{abi.ElicitationCreate, abi.Response, []string{`{"action":"accept"}`, `{"action":"accept","content":{}}`}, []string{`{}`, `{"action":"accept","content":[]}`}},
		{abi.RootsList, abi.Response, []string{`{"roots":[]}`}, []string{`{}`}},
		{abi.LLMCompletion, abi.Response, []string{`{"message":{}}`}, []string{`[]`, `{}`, `{"message":"m"}`}},
		{anything, abi.Response, []string{`{}`}, []string{`1`}},
	} {
		for _, payload := range c.good {
			require.NoError(t, checkShape(c.event, c.phase, []byte(payload), []byte(c.good[0])), "%s %s %s", c.event, c.phase, payload)
			require.Empty(t, flawsOf(c.event, c.phase, []byte(payload)), "%s %s %s", c.event, c.phase, payload)
		}
		for _, payload := range c.bad {
			require.Error(t, checkShape(c.event, c.phase, []byte(payload), []byte(c.good[0])), "%s %s %s", c.event, c.phase, payload)
		}
	}
}

// TestShapesBlameTheMutation: what was wrong before, and still is in the same
// way, is no fault of an interceptor. What is wrong in another way is.
func TestShapesBlameTheMutation(t *testing.T) {
	for name, c := range map[string]struct {
		event         string
		phase         abi.Phase
		input, output string
		wrong         string // what the error says, empty for none
	}{
		"null arguments stay":                  {abi.ToolsCall, abi.Request, `{"name":"t","arguments":null}`, `{"name":"u","arguments":null}`, ""},
		"null arguments go":                    {abi.ToolsCall, abi.Request, `{"name":"t","arguments":null}`, `{"name":"t"}`, ""},
		"null arguments are put right":         {abi.ToolsCall, abi.Request, `{"name":"t","arguments":null}`, `{"name":"t","arguments":{}}`, ""},
		"null arguments come":                  {abi.ToolsCall, abi.Request, `{"name":"t","arguments":{}}`, `{"name":"t","arguments":null}`, `has a "arguments" that is null`},
		"null arguments come from nowhere":     {abi.ToolsCall, abi.Request, `{"name":"t"}`, `{"name":"t","arguments":null}`, `"arguments"`},
		"null arguments become a list":         {abi.ToolsCall, abi.Request, `{"name":"t","arguments":null}`, `{"name":"t","arguments":[]}`, `has a "arguments" that is an array`},
		"what is inside a wrong kind changes":  {abi.ToolsCall, abi.Response, `{"content":[],"structuredContent":["secret"]}`, `{"content":[],"structuredContent":["***"]}`, ""},
		"a number of the wrong kind changes":   {abi.ToolsList, abi.Request, `{"cursor":1}`, `{"cursor":-2}`, ""},
		"a result without content stays one":   {abi.ToolsCall, abi.Response, `{"structuredContent":{"a":"secret"}}`, `{"structuredContent":{"a":"***"}}`, ""},
		"content goes":                         {abi.ToolsCall, abi.Response, `{"content":[]}`, `{}`, `has no "content"`},
		"an element of another kind stays":     {abi.ToolsCall, abi.Response, `{"content":["secret",{}]}`, `{"content":[{},"***"]}`, ""},
		"an element of another kind comes":     {abi.ToolsCall, abi.Response, `{"content":[{}]}`, `{"content":[{},7]}`, `an element in "content" that is a number`},
		"one more kind of elements comes":      {abi.ToolsCall, abi.Response, `{"content":["x"]}`, `{"content":["x",true]}`, `true or false`},
		"the name goes, as it never was there": {abi.ToolsCall, abi.Request, `{}`, `{"arguments":{}}`, ""},
		"the rest is judged all the same":      {abi.ToolsCall, abi.Request, `{"arguments":null,"name":"t"}`, `{"arguments":null}`, `has no "name"`},
		"a task needs no content":              {abi.ToolsCall, abi.Response, `{"task":{}}`, `{"task":{},"_meta":{}}`, ""},
		"a task that goes leaves nothing":      {abi.ToolsCall, abi.Response, `{"task":{}}`, `{}`, `has no "content"`},
		"meta of another kind":                 {"acme/thing", abi.Request, `{}`, `{"_meta":[]}`, `has a "_meta" that is an array`},
		"an object it must be":                 {"acme/thing", abi.Request, `[]`, `[]`, "not an object"},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkShape(c.event, c.phase, []byte(c.output), []byte(c.input))
			if c.wrong == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.wrong)
		})
	}
}

// FuzzCheckResult: whatever a host answers, judging it neither panics nor lets
// a changed payload pass as unchanged bytes.
func FuzzCheckResult(f *testing.F) {
	for _, payload := range []string{`{"name":"t"}`, `{"name":"u"}`, ``, `null`, `{`, `{"name":"t","name":"t"}`, "\xff", `{"n":1e99999999999}`} {
		f.Add(payload, true)
		f.Add(payload, false)
	}
	step := &Step{Name: "m", Interceptor: "m", Type: abi.Mutation}
	f.Fuzz(func(t *testing.T, payload string, modified bool) {
		inv := abi.Invocation{Name: "m", Event: abi.ToolsCall, Phase: abi.Request, Payload: input}
		r := echo(abi.Mutation, inv)
		r.Modified, r.Payload = modified, []byte(payload)
		err := checkResult(step, &inv, &r)
		if err == nil && modified && (kindOf(r.Payload) != '{' || len(flawsOf(inv.Event, inv.Phase, r.Payload)) > 0) {
			t.Errorf("%q passes as the params of a call", payload)
		}
	})
}
