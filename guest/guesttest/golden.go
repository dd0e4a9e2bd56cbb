//go:build !wasip1

package guesttest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-mcp/weir/abi"
)

// Case is one golden case: an invocation and what is wanted of it. A file of
// cases holds one of them or an array, in JSON, with the members that the tags
// say; one that is not known is an error. What is given as payload, request,
// config and context goes to the interceptor as spelled.
type Case struct {
	// File is where the case was read from.
	File string `json:"-"`
	// Name is a sentence; the file's name, with the case's number where there
	// are several, when it is left out.
	Name        string          `json:"name"`
	Interceptor string          `json:"interceptor"`
	Event       string          `json:"event"`
	Phase       abi.Phase       `json:"phase"`
	Payload     json.RawMessage `json:"payload"`
	Request     json.RawMessage `json:"request"`
	Config      json.RawMessage `json:"config"`
	Context     json.RawMessage `json:"context"`
	Want        Want            `json:"want"`
	// Never lists texts that may be nowhere in the result, nor in the error:
	// the secret that a finding is about.
	Never []string `json:"never"`
}

// Want is what a [Case] wants. What is left out is not looked at. JSON values
// are compared as they are spelled, white space outside strings excepted: what
// an interceptor had no reason to change must come back as it was sent.
type Want struct {
	// Error is a part of the message of a failure. Where it is left out, the
	// interceptor must not fail.
	Error    string        `json:"error"`
	Valid    *bool         `json:"valid"`
	Severity *abi.Severity `json:"severity"`
	// Messages are all the findings, in order; of each, what is given counts.
	Messages *[]WantMessage `json:"messages"`
	Modified *bool          `json:"modified"`
	// Payload is the payload of a mutation; wanting it wants modified:true.
	Payload  json.RawMessage `json:"payload"`
	Recorded *bool           `json:"recorded"`
	Metrics  json.RawMessage `json:"metrics"`
	Info     json.RawMessage `json:"info"`
}

// WantMessage is what a [Case] wants of one finding.
type WantMessage struct {
	Path     *string       `json:"path"`
	Message  *string       `json:"message"`
	Severity *abi.Severity `json:"severity"`
}

// ReadCases reads all files "*.json" of a folder, in the order of their names.
// A folder without one is an error.
func ReadCases(dir string) ([]Case, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s holds no golden cases: put a .json file there", dir)
	}
	var all []Case
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		cases, err := parseCases(raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		base := strings.TrimSuffix(filepath.Base(file), ".json")
		for i := range cases {
			cases[i].File = file
			if cases[i].Name == "" {
				cases[i].Name = base
				if len(cases) > 1 {
					cases[i].Name = fmt.Sprintf("%s %d", base, i+1)
				}
			}
		}
		all = append(all, cases...)
	}
	return all, nil
}

func parseCases(raw []byte) ([]Case, error) {
	var cases []Case
	var into any = &cases
	if one := bytes.TrimLeft(raw, " \t\r\n"); len(one) > 0 && one[0] == '{' {
		cases = make([]Case, 1)
		into = &cases[0]
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("something follows the cases")
	}
	for i := range cases {
		if err := cases[i].complete(); err != nil {
			return nil, fmt.Errorf("case %d: %w", i+1, err)
		}
	}
	return cases, nil
}

func (c *Case) complete() error {
	switch {
	case c.Interceptor == "":
		return errors.New(`"interceptor" is missing`)
	case c.Event == "":
		return errors.New(`"event" is missing`)
	case !c.Phase.Valid():
		return fmt.Errorf("phase %q is neither %q nor %q", c.Phase, abi.Request, abi.Response)
	case c.Payload == nil:
		return errors.New(`"payload" is missing`)
	case reflect.ValueOf(c.Want).IsZero():
		return errors.New(`"want" is missing or wants nothing`)
	}
	_, err := c.Invocation()
	return err
}

// Invocation is the call that the case makes.
func (c *Case) Invocation() (abi.Invocation, error) {
	inv := abi.Invocation{Name: c.Interceptor, Event: c.Event, Phase: c.Phase, Payload: c.Payload, Request: c.Request, Config: c.Config}
	if c.Context == nil {
		return inv, nil
	}
	// abi reads a context as part of an invocation only.
	with := inv
	with.Context, with.Payload, with.Config = nil, json.RawMessage("{}"), nil
	frame := with.AppendJSON(nil)
	frame = append(append(append(frame[:len(frame)-1], `,"context":`...), c.Context...), '}')
	read, err := abi.ReadInvocation(frame)
	if err != nil {
		return inv, err
	}
	inv.Context = read.Context
	return inv, nil
}

// Check returns what is wrong with the result of the case's invocation, or with
// the error that came instead: nil when it is what the case wants.
func (c *Case) Check(r abi.Result, err error) error {
	var problems []error
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	spelled := string(r.AppendJSON(nil))
	if err != nil {
		spelled = err.Error()
	}
	for _, text := range c.Never {
		if strings.Contains(spelled, text) {
			wrong("%q is in the answer: %s", text, spelled)
		}
	}
	switch w := &c.Want; {
	case err != nil && w.Error == "":
		wrong("failed: %w", err)
	case err != nil && !strings.Contains(err.Error(), w.Error):
		wrong("failed with %q, want %q in it", err, w.Error)
	case err == nil && w.Error != "":
		wrong("did not fail, want %q; answered %s", w.Error, spelled)
	case err == nil:
		w.check(&r, wrong)
	}
	return errors.Join(problems...)
}

func (w *Want) check(r *abi.Result, wrong func(string, ...any)) {
	if (w.Valid != nil || w.Severity != nil || w.Messages != nil) && r.Type != abi.Validation {
		wrong("type is %s, want %s", r.Type, abi.Validation)
		return
	}
	if (w.Modified != nil || w.Payload != nil) && r.Type != abi.Mutation {
		wrong("type is %s, want %s", r.Type, abi.Mutation)
		return
	}
	if (w.Recorded != nil || w.Metrics != nil) && r.Type != abi.Sink {
		wrong("type is %s, want %s", r.Type, abi.Sink)
		return
	}
	same(wrong, "valid", w.Valid, r.Valid)
	same(wrong, "severity", w.Severity, r.Severity)
	same(wrong, "modified", w.Modified, r.Modified)
	same(wrong, "recorded", w.Recorded, r.Recorded)
	if w.Payload != nil && !r.Modified {
		wrong("the payload is unchanged, want %s", compact(w.Payload))
	} else {
		sameJSON(wrong, "payload", w.Payload, r.Payload)
	}
	sameJSON(wrong, "metrics", w.Metrics, r.Metrics)
	sameJSON(wrong, "info", w.Info, r.Info)
	if w.Messages == nil {
		return
	}
	if len(*w.Messages) != len(r.Messages) {
		wrong("%d messages, want %d: %+v", len(r.Messages), len(*w.Messages), r.Messages)
		return
	}
	for i, m := range *w.Messages {
		at := fmt.Sprintf("messages[%d].", i)
		same(wrong, at+"path", m.Path, r.Messages[i].Path)
		same(wrong, at+"message", m.Message, r.Messages[i].Message)
		same(wrong, at+"severity", m.Severity, r.Messages[i].Severity)
	}
}

func same[T comparable](wrong func(string, ...any), what string, want *T, got T) {
	if want != nil && *want != got {
		wrong("%s is %#v, want %#v", what, got, *want)
	}
}

func sameJSON(wrong func(string, ...any), what string, want, got json.RawMessage) {
	if want == nil {
		return
	}
	if w, g := compact(want), compact(got); w != g {
		wrong("%s is\n\t%s, want\n\t%s", what, g, w)
	}
}

func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}

// Golden runs all cases of a folder (see [ReadCases]) against the interceptors
// that the program has registered, each one as a subtest. A case whose payload
// is an object is run twice, bare and in an envelope, and must come to the same
// end (protocol.md §3, Payload). Each run begins with an empty store (see [KV]).
func Golden(t *testing.T, dir string) {
	t.Helper()
	cases, err := ReadCases(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			inv, err := c.Invocation()
			if err != nil {
				t.Fatal(err)
			}
			call := func(inv abi.Invocation) (abi.Result, error) {
				KV(t)
				return Call(inv)
			}
			for _, wrong := range c.run(inv, call) {
				t.Errorf("%s: %v", c.File, wrong)
			}
		})
	}
}

// run makes the case's call, twice where the payload is an object, and returns
// what is wrong. What is wrong with both calls is said once.
func (c *Case) run(inv abi.Invocation, call func(abi.Invocation) (abi.Result, error)) (problems []error) {
	bare := c.Check(call(inv))
	if bare != nil {
		problems = append(problems, bare)
	}
	if _, enveloped := abi.Unwrap(inv.Event, inv.Payload); enveloped || inv.Payload[0] != '{' {
		return problems
	}
	inv.Payload = abi.Wrap(inv.Event, inv.Payload)
	const again = `with the same payload in an envelope, {"method":…,"params":…}: `
	r, err := call(inv)
	if err == nil && r.Modified {
		payload, enveloped := abi.Unwrap(inv.Event, r.Payload)
		if !enveloped {
			problems = append(problems, fmt.Errorf(again+"answered without one: %s", r.Payload))
		}
		r.Payload = payload
	}
	if wrong := c.Check(r, err); wrong != nil && (bare == nil || wrong.Error() != bare.Error()) {
		problems = append(problems, fmt.Errorf(again+"%w", wrong))
	}
	return problems
}
