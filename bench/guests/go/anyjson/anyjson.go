// Package anyjson does the job of package redact as most plugins are written:
// encoding/json into any, a walk, and back. Order of members, spelling of
// numbers and white space are lost on the way.
package anyjson

import (
	"encoding/json"
	"strings"

	"github.com/weir-mcp/weir/bench/guests/go/redact"
)

// Answer reads the frame of a call (abi.md) and returns the frame of the answer.
func Answer(frame []byte) []byte {
	var call map[string]any
	if err := json.Unmarshal(frame, &call); err != nil {
		return failed(err)
	}
	found := 0
	payload := walk(call["payload"], &found)
	result := map[string]any{"modified": found > 0}
	if found > 0 {
		result["payload"] = payload
	}
	answer, err := json.Marshal(map[string]any{"result": result})
	if err != nil {
		return failed(err)
	}
	return answer
}

// Redact redacts a document without a frame around it.
func Redact(doc []byte) ([]byte, error) {
	var v any
	if err := json.Unmarshal(doc, &v); err != nil {
		return nil, err
	}
	found := 0
	return json.Marshal(walk(v, &found))
}

func failed(err error) []byte {
	text, _ := json.Marshal(err.Error())
	return []byte(`{"error":{"message":` + string(text) + `}}`)
}

func walk(v any, found *int) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			v[name] = walk(member, found)
		}
	case []any:
		for i, element := range v {
			v[i] = walk(element, found)
		}
	case string:
		if !strings.Contains(v, "@") {
			return v
		}
		edited, n := redact.AppendText(nil, v)
		*found += n
		return string(edited)
	}
	return v
}
