package guesttest

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/guest"
)

func init() {
	guest.Mutator(guest.Descriptor{Name: "echo", Hooks: guest.OnRequest("tools/*")}, func(c *guest.Call[struct {
		Answer json.RawMessage `json:"answer"`
	}]) (guest.Mutation, error) {
		guest.Log.Infof("echo")
		if c.Config.Answer == nil {
			return guest.Unchanged(), nil
		}
		return guest.Replace(c.Config.Answer), nil
	})
}

func TestGolden(t *testing.T) {
	CaptureLog(t)
	Golden(t, "testdata")
}

func TestCall(t *testing.T) {
	log := CaptureLog(t)
	inv := abi.Invocation{Name: "echo", Event: "tools/call", Phase: abi.Request, Payload: json.RawMessage(`{"name":"t"}`)}
	r := Invoke(t, inv)
	require.False(t, r.Modified)
	require.Equal(t, abi.Mutation, r.Type)
	require.Equal(t, []string{"info: echo"}, log.Lines())

	var failure *abi.Error
	unknown := inv
	unknown.Name = "nobody"
	_, err := Call(unknown)
	require.ErrorAs(t, err, &failure)
	require.True(t, failure.Unknown)

	elsewhere := inv
	elsewhere.Event = "prompts/get"
	_, err = Call(elsewhere)
	require.ErrorAs(t, err, &failure)
	require.True(t, failure.Unhooked)

	for _, answer := range []string{`[1]`, `null`, `1`} {
		inv.Config = json.RawMessage(`{"answer":` + answer + `}`)
		_, err = Call(inv)
		require.ErrorContains(t, err, "not an object")
	}
	require.Len(t, Descriptors(t), 2, "echo, and the no-shell of the examples")
}

func TestCasesThatMakeNoSenseAreRefused(t *testing.T) {
	const rest = `"interceptor":"i","event":"tools/call","phase":"request","payload":{},"want":{"valid":true}`
	for in, want := range map[string]string{
		`{` + rest + `,"payloda":1}`:        `unknown field "payloda"`,
		`{` + rest + `}{}`:                  "something follows",
		`{`:                                 "EOF",
		`[{` + rest + `},{}]`:               `case 2: "interceptor" is missing`,
		`{"interceptor":"i"}`:               `"event" is missing`,
		`{"interceptor":"i","event":"e/f"}`: `phase "" is neither`,
		`{"interceptor":"i","event":"e/f","phase":"request"}`:                            `"payload" is missing`,
		`{"interceptor":"i","event":"e/f","phase":"request","payload":1}`:                `"want" is missing`,
		`{"interceptor":"i","event":"e/f","phase":"request","payload":1,"want":{}}`:      `"want" is missing`,
		`{"interceptor":"i","event":"e/f","phase":"request","payload":1,"want":{"x":1}}`: `unknown field "x"`,
		`{` + rest + `,"config":[]}`:                                                     "", // the interceptor's business
		`{` + rest + `,"context":{"principal":{"type":"x"}}}`:                            "context",
		`{` + rest + `,"context":{"traceId":"t"}}`:                                       "",
		`[{` + rest + `}]`: "",
	} {
		_, err := parseCases([]byte(in))
		if want == "" {
			require.NoError(t, err, in)
		} else {
			require.ErrorContains(t, err, want, in)
		}
	}
	_, err := ReadCases(t.TempDir())
	require.ErrorContains(t, err, "holds no golden cases")
}

func TestCasesAreNamed(t *testing.T) {
	dir := t.TempDir()
	const c = `{"interceptor":"i","event":"e/f","phase":"request","payload":{},"context":{"sessionId":"s"},"want":{"valid":true}}`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "b.json"), []byte("["+c+","+c+"]"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.json"), []byte("\n "+c), 0o600))
	cases, err := ReadCases(dir)
	require.NoError(t, err)
	var names []string
	for _, c := range cases {
		names = append(names, c.Name)
		inv, err := c.Invocation()
		require.NoError(t, err)
		require.Equal(t, "s", inv.Context.SessionID)
		require.Equal(t, "i", inv.Name)
	}
	require.Equal(t, []string{"a", "b 1", "b 2"}, names)
}

func TestCheck(t *testing.T) {
	verdict := abi.Result{Type: abi.Validation, Severity: "error", Messages: []abi.Message{{Path: "$.a", Message: "secret found", Severity: "error"}}}
	mutation := abi.Result{Type: abi.Mutation, Modified: true, Payload: json.RawMessage(`{"a": 1.0}`), Info: json.RawMessage(`[1]`)}
	unchanged := abi.Result{Type: abi.Mutation}
	record := abi.Result{Type: abi.Sink, Recorded: true, Metrics: json.RawMessage(`{"n":1}`)}
	failed := errors.New("it broke")
	for _, c := range []struct {
		name   string
		result abi.Result
		err    error
		want   string // the case's "want", with "never" beside it
		wrong  string
	}{
		{"a verdict", verdict, nil, `{"valid":false,"severity":"error","messages":[{"path":"$.a"}]}`, ""},
		{"another verdict", verdict, nil, `{"valid":true}`, "valid is false, want true"},
		{"another severity", verdict, nil, `{"severity":"warn"}`, "severity"},
		{"another path", verdict, nil, `{"messages":[{"path":"$.b"}]}`, "messages[0].path"},
		{"more messages", verdict, nil, `{"messages":[]}`, "1 messages, want 0"},
		{"a mutation where a verdict is wanted", mutation, nil, `{"valid":true}`, "type is mutation, want validation"},
		{"a verdict where a mutation is wanted", verdict, nil, `{"modified":false}`, "type is validation, want mutation"},
		{"a verdict where a record is wanted", verdict, nil, `{"recorded":false}`, "type is validation, want sink"},
		{"a payload, in other white space", mutation, nil, `{"modified":true,"payload":{"a":1.0},"info":[1]}`, ""},
		{"a payload in another spelling", mutation, nil, `{"payload":{"a":1}}`, "payload is"},
		{"a payload where nothing changed", unchanged, nil, `{"payload":{"a":1}}`, "the payload is unchanged"},
		{"nothing changed", unchanged, nil, `{"modified":false}`, ""},
		{"a record", record, nil, `{"recorded":true,"metrics":{"n":1}}`, ""},
		{"other metrics", record, nil, `{"metrics":{"n":2}}`, "metrics is"},
		{"a failure", record, failed, `{"error":"broke"}`, ""},
		{"another failure", record, failed, `{"error":"burnt"}`, "failed with"},
		{"a failure that is not wanted", record, failed, `{"recorded":true}`, "failed: it broke"},
		{"no failure", record, nil, `{"error":"broke"}`, "did not fail"},
		{"a secret that is nowhere", verdict, nil, `{"valid":false}, "never":["hunter2"]`, ""},
		{"a secret in a message", verdict, nil, `{"valid":false}, "never":["secret"]`, `"secret" is in the answer`},
		{"a secret in an error", record, failed, `{"error":"it"}, "never":["broke"]`, `"broke" is in the answer`},
	} {
		t.Run(c.name, func(t *testing.T) {
			cases, err := parseCases([]byte(`{"interceptor":"i","event":"e/f","phase":"request","payload":{},"want":` + c.want + `}`))
			require.NoError(t, err)
			err = cases[0].Check(c.result, c.err)
			if c.wrong == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.wrong)
			}
		})
	}
}

// What is wrong with a payload both bare and in an envelope is reported once;
// the second call is mentioned where it differs.
func TestWhatIsWrongIsReportedOnce(t *testing.T) {
	deny := func(abi.Invocation) (abi.Result, error) { return abi.Result{Type: abi.Validation}, nil }
	denyBare := func(inv abi.Invocation) (abi.Result, error) {
		_, enveloped := abi.Unwrap(inv.Event, inv.Payload)
		return abi.Result{Type: abi.Validation, Valid: enveloped}, nil
	}
	denyEnveloped := func(inv abi.Invocation) (abi.Result, error) {
		r, err := denyBare(inv)
		r.Valid = !r.Valid
		return r, err
	}
	unwrap := func(inv abi.Invocation) (abi.Result, error) {
		payload, _ := abi.Unwrap(inv.Event, inv.Payload)
		return abi.Result{Type: abi.Mutation, Modified: true, Payload: payload}, nil
	}
	const denied, enveloped = "valid is false, want true", `with the same payload in an envelope, {"method":…,"params":…}: `
	for _, c := range []struct {
		name          string
		payload, want string
		call          func(abi.Invocation) (abi.Result, error)
		wrong         []string
	}{
		{"both", `{}`, `{"valid":true}`, deny, []string{denied}},
		{"the bare one", `{}`, `{"valid":true}`, denyBare, []string{denied}},
		{"the one in an envelope", `{}`, `{"valid":true}`, denyEnveloped, []string{enveloped + denied}},
		{"neither", `{}`, `{"valid":false}`, deny, nil},
		{"a payload that is no object", `1`, `{"valid":true}`, deny, []string{denied}},
		{"a payload that is an envelope", `{"method":"e/f"}`, `{"valid":false}`, denyBare, []string{"valid is true, want false"}},
		{"an envelope that is not given back", `{"a":1}`, `{"payload":{"a":1}}`, unwrap, []string{enveloped + `answered without one: {"a":1}`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cases, err := parseCases([]byte(`{"interceptor":"i","event":"e/f","phase":"request","payload":` + c.payload + `,"want":` + c.want + `}`))
			require.NoError(t, err)
			inv, err := cases[0].Invocation()
			require.NoError(t, err)
			var wrong []string
			for _, err := range cases[0].run(inv, c.call) {
				wrong = append(wrong, err.Error())
			}
			require.Equal(t, c.wrong, wrong)
		})
	}
}
