package abi_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
)

func TestCompletionRequest(t *testing.T) {
	warm := 0.7
	for _, c := range []struct {
		name, in string
		want     abi.CompletionRequest
	}{
		{"all of it", `{"model":"m-1","messages":[{"role":"system","content":"be kind"},{"role":"user","content":"h\u00e9"}],"maxTokens":100,"temperature":0.7,"metadata":{"n":1.0}}`,
			abi.CompletionRequest{Model: "m-1", MaxTokens: 100, Temperature: &warm, Metadata: json.RawMessage(`{"n":1.0}`), Messages: []abi.CompletionMessage{
				{Role: "system", Content: json.RawMessage(`"be kind"`)}, {Role: "user", Content: json.RawMessage(`"h\u00e9"`)}}}},
		{"the least", `{"messages":[]}`, abi.CompletionRequest{Messages: []abi.CompletionMessage{}}},
		{"null is absent", `{"messages":[],"model":null,"maxTokens":null,"temperature":null,"metadata":null}`,
			abi.CompletionRequest{Messages: []abi.CompletionMessage{}, Other: nil}},
		{"whole numbers in other words", `{"messages":[],"maxTokens":1.5e3}`, abi.CompletionRequest{Messages: []abi.CompletionMessage{}, MaxTokens: 1500}},
		{"what it does not know", `{"tools":[{"a":1e2}],"messages":[{"name":"x","role":"tool","content":[]}],"topP":0.10}`,
			abi.CompletionRequest{
				Messages: []abi.CompletionMessage{{Role: "tool", Content: json.RawMessage(`[]`), Other: []abi.Member{{Name: "name", Value: json.RawMessage(`"x"`)}}}},
				Other:    []abi.Member{{Name: "tools", Value: json.RawMessage(`[{"a":1e2}]`)}, {Name: "topP", Value: json.RawMessage(`0.10`)}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := abi.ReadCompletionRequest(json.RawMessage(c.in))
			require.NoError(t, err)
			require.Equal(t, c.want, got)
			again, err := abi.ReadCompletionRequest(got.AppendJSON(nil))
			require.NoError(t, err)
			require.Equal(t, got, again, "nothing is lost by writing it")
		})
	}
	for in, want := range map[string]string{
		`[]`:                                    "is not a JSON object",
		`{}`:                                    `"messages" is missing`,
		`{"messages":{}}`:                       `"messages" is not an array`,
		`{"messages":["hi"]}`:                   `"messages", element 0: is not a JSON object`,
		`{"messages":[{"role":1}]}`:             `"role" is not a string`,
		`{"messages":[{"content":7}]}`:          `"content" is neither a string nor blocks`,
		`{"messages":[],"model":[]}`:            `"model" is not a string`,
		`{"messages":[],"maxTokens":-1}`:        `"maxTokens" is not a whole number`,
		`{"messages":[],"maxTokens":1.5}`:       `"maxTokens" is not a whole number`,
		`{"messages":[],"maxTokens":1e300}`:     `"maxTokens" is not a whole number`,
		`{"messages":[],"maxTokens":"9"}`:       `"maxTokens" is not a whole number`,
		`{"messages":[],"temperature":"hot"}`:   `"temperature" is not a number`,
		`{"messages":[],"temperature":1e999}`:   `"temperature" is not a number`,
		`{"messages":[],"metadata":[]}`:         `"metadata" is not an object`,
		`{"messages":[],"model":"a","model":1}`: "two members",
	} {
		_, err := abi.ReadCompletionRequest(json.RawMessage(in))
		require.ErrorContains(t, err, want, in)
		require.ErrorContains(t, err, "llm/completion request")
	}
}

func TestCompletionResponse(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     abi.CompletionResponse
	}{
		{"all of it", `{"model":"m-1","message":{"role":"assistant","content":"hi"},"stopReason":"end","usage":{"inputTokens":3,"outputTokens":4,"cached":1},"metadata":{}}`,
			abi.CompletionResponse{Model: "m-1", Message: abi.CompletionMessage{Role: "assistant", Content: json.RawMessage(`"hi"`)}, StopReason: "end",
				Usage:    &abi.CompletionUsage{InputTokens: 3, OutputTokens: 4, Other: []abi.Member{{Name: "cached", Value: json.RawMessage(`1`)}}},
				Metadata: json.RawMessage(`{}`)}},
		{"the least", `{"message":{}}`, abi.CompletionResponse{}},
		{"what it does not know", `{"message":{"role":"a"},"id":1.0}`,
			abi.CompletionResponse{Message: abi.CompletionMessage{Role: "a"}, Other: []abi.Member{{Name: "id", Value: json.RawMessage(`1.0`)}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := abi.ReadCompletionResponse(json.RawMessage(c.in))
			require.NoError(t, err)
			require.Equal(t, c.want, got)
			again, err := abi.ReadCompletionResponse(got.AppendJSON(nil))
			require.NoError(t, err)
			require.Equal(t, got, again, "nothing is lost by writing it")
		})
	}
	for in, want := range map[string]string{
		`7`:                              "is not a JSON object",
		`{}`:                             `"message" is missing`,
		`{"message":"hi"}`:               `"message" is not a JSON object`,
		`{"message":{},"usage":3}`:       `"usage" is not a JSON object`,
		`{"message":{},"stopReason":{}}`: `"stopReason" is not a string`,
		`{"message":{},"usage":{"inputTokens":-1}}`:   `"inputTokens" is not a whole number`,
		`{"message":{},"usage":{"outputTokens":"2"}}`: `"outputTokens" is not a whole number`,
	} {
		_, err := abi.ReadCompletionResponse(json.RawMessage(in))
		require.ErrorContains(t, err, want, in)
		require.ErrorContains(t, err, "llm/completion response")
	}
}

func TestCompletionText(t *testing.T) {
	for content, want := range map[string]string{
		`"a\nb"`: "a\nb",
		`[{"type":"text","text":"a"},{"type":"image","data":"x"},{"type":"text","text":"b"}]`: "a\nb",
		`{"type":"text","text":"one"}`: "one",
		`["a",{"text":"b"}]`:           "a\nb",
		`[{"text":7}]`:                 "",
		``:                             "",
	} {
		m := abi.CompletionMessage{Content: json.RawMessage(content)}
		require.Equal(t, want, m.Text(), content)
	}
	m := abi.CompletionMessage{Content: abi.TextContent("<a> \"b\"\n")}
	require.Equal(t, "<a> \"b\"\n", m.Text())
}

func FuzzCompletion(f *testing.F) {
	f.Add(`{"model":"m","messages":[{"role":"user","content":[{"text":"a"}]}],"maxTokens":1,"temperature":-0.5e1,"metadata":{},"x":[]}`)
	f.Add(`{"message":{"role":"assistant","content":"hi"},"usage":{"inputTokens":1}}`)
	f.Fuzz(func(t *testing.T, in string) {
		if r, err := abi.ReadCompletionRequest(json.RawMessage(in)); err == nil && json.Valid([]byte(in)) {
			out := r.AppendJSON(nil)
			require.True(t, json.Valid(out), "%q became %q", in, out)
			again, err := abi.ReadCompletionRequest(out)
			require.NoError(t, err)
			require.Equal(t, len(r.Messages), len(again.Messages))
			require.Equal(t, r.MaxTokens, again.MaxTokens)
			for i := range r.Messages {
				require.Equal(t, r.Messages[i].Text(), again.Messages[i].Text(), strconv.Itoa(i))
			}
		}
		if r, err := abi.ReadCompletionResponse(json.RawMessage(in)); err == nil && json.Valid([]byte(in)) {
			require.True(t, json.Valid(r.AppendJSON(nil)))
		}
	})
}

func ExampleCompletionRequest() {
	r := abi.CompletionRequest{Model: "m-1", MaxTokens: 100, Messages: []abi.CompletionMessage{{Role: "user", Content: abi.TextContent("Hello")}}}
	fmt.Println(string(r.AppendJSON(nil)))
	// Output: {"model":"m-1","messages":[{"role":"user","content":"Hello"}],"maxTokens":100}
}
