package main

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/bench/guests/go/redact"
)

// agrees checks that a contender gives the result that the job has, compared as
// JSON, since a guest that goes through maps spells it anew.
func agrees(invoke invoke, inv *abi.Invocation) error {
	doc, found := redact.Append(nil, inv.Payload)
	result, err := invoke(inv)
	if err != nil {
		return err
	}
	if result.Modified != (found > 0) {
		return fmt.Errorf("modified is %t for %s", result.Modified, inv.Payload)
	}
	if !result.Modified {
		return nil
	}
	var want, got any
	if err := json.Unmarshal(doc, &want); err != nil {
		return err
	}
	if err := json.Unmarshal(result.Payload, &got); err != nil {
		return err
	}
	if !reflect.DeepEqual(want, got) {
		return fmt.Errorf("the result is\n%s\ninstead of\n%s", result.Payload, doc)
	}
	return nil
}
