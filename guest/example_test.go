package guest_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/guest"
	"github.com/weir-mcp/weir/guest/guesttest"
)

type wordConfig struct {
	Word string `json:"word" doc:"what to hide"`
}

func init() {
	guest.Mutator(guest.Descriptor{Name: "hide-word", Hooks: guest.OnBoth("*")}, hideWord)
	guest.Validator(guest.Descriptor{Name: "short", Hooks: guest.OnRequest(guest.ToolsCall)}, short)
}

func hideWord(c *guest.Call[wordConfig]) (guest.Mutation, error) {
	edited, _, err := guest.EditStrings(c.Payload, func(at guest.Path, s string) string {
		return strings.ReplaceAll(s, c.Config.Word, "***")
	})
	if err != nil {
		return guest.Mutation{}, err
	}
	return guest.Replace(edited), nil // the same as Unchanged where nothing was found
}

func short(c *guest.Call[guest.NoConfig]) (guest.Verdict, error) {
	var long []guest.Message
	err := guest.WalkStrings(c.Payload, func(at guest.Path, s string) bool {
		if len(s) > 10 {
			long = append(long, guest.Message{Path: at.String(), Message: fmt.Sprintf("%d bytes", len(s))})
		}
		return true
	})
	return guest.Judge(long...), err
}

// A mutator, called as a host calls it.
func Example() {
	r, err := guesttest.Call(abi.Invocation{
		Name: "hide-word", Event: guest.ToolsCall, Phase: guest.Response,
		Config:  json.RawMessage(`{"word":"secret"}`),
		Payload: json.RawMessage(`{"content":[{"type":"text","text":"a secret"}], "big":9007199254740993}`),
	})
	fmt.Println(r.Modified, err)
	fmt.Println(string(r.Payload))
	// Output:
	// true <nil>
	// {"content":[{"type":"text","text":"a ***"}], "big":9007199254740993}
}

// A validator that says where.
func ExampleJudge() {
	r, err := guesttest.Call(abi.Invocation{
		Name: "short", Event: guest.ToolsCall, Phase: guest.Request,
		Payload: json.RawMessage(`{"name":"t","arguments":{"notes":["brief","rather lengthy"]}}`),
	})
	fmt.Println(r.Valid, r.Messages, err)
	// Output: false [{$.arguments.notes[1] 14 bytes error}] <nil>
}

// What a model is asked, by its type, in a handler of llm/completion.
func ExampleOperation_Completion() {
	o := guest.Operation{Event: guest.LLMCompletion, Phase: guest.Request, Payload: json.RawMessage(
		`{"model":"m-1","messages":[{"role":"user","content":[{"type":"text","text":"Hello"}]}],"maxTokens":100,"topP":0.10}`)}
	asked, err := o.Completion()
	fmt.Println(asked.Model, asked.MaxTokens, asked.Messages[0].Role, asked.Messages[0].Text(), err)
	fmt.Println(asked.Other[0].Name, string(asked.Other[0].Value))
	// Output:
	// m-1 100 user Hello <nil>
	// topP 0.10
}

func ExampleSet() {
	params, err := guest.Set(json.RawMessage(`{ "name": "t" }`), json.RawMessage(`"v1"`), "_meta", "example.com/policy")
	fmt.Println(string(params), err)
	// Output: { "name": "t","_meta":{"example.com/policy":"v1"} } <nil>
}

func ExampleGetText() {
	name, ok := guest.GetText(json.RawMessage(`{"Name":"ls","name":"\u0072m"}`), "name")
	fmt.Println(name, ok)
	// Output: rm true
}

// Every block of Go code in the README stands, as it is, in a file that is
// compiled; every block of JSON is a case.
func TestReadmeIsCompiled(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	sources := ""
	for _, pattern := range []string{"*_test.go", "internal/*/*.go"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, f := range files {
			b, err := os.ReadFile(f)
			require.NoError(t, err)
			sources += unindent(string(b))
		}
	}
	blocks := regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$").FindAllStringSubmatch(string(readme), -1)
	require.NotEmpty(t, blocks)
	for _, b := range blocks {
		switch b[1] {
		case "go":
			require.Contains(t, sources, unindent(b[2]))
		case "json":
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "case.json"), []byte(b[2]), 0o600))
			_, err := guesttest.ReadCases(dir)
			require.NoError(t, err)
		}
	}
}

func unindent(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		b.WriteString(strings.TrimLeft(line, "\t"))
	}
	return b.String()
}
