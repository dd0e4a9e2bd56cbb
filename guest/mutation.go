package guest

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/weir-mcp/weir/abi"
)

// Mutation is what a mutator answers. The zero value is none: a handler that
// returns it has failed.
type Mutation struct {
	given   bool
	payload json.RawMessage // nil: unchanged
	info    json.RawMessage
}

// Unchanged keeps the payload.
func Unchanged() Mutation { return Mutation{given: true} }

// Replace puts a payload in place of the one that was given: a JSON object, the
// whole of the params or of the result. Bytes equal to the given payload's are
// the same as [Unchanged], so an edit that may have found nothing to change can
// be returned as it is. The handler must not change the bytes afterwards.
func Replace(payload json.RawMessage) Mutation {
	if payload == nil {
		return Mutation{}
	}
	return Mutation{given: true, payload: payload}
}

// WithInfo attaches any JSON value, for the invoker's records.
func (m Mutation) WithInfo(info json.RawMessage) Mutation {
	m.info = info
	return m
}

func (m Mutation) result(input json.RawMessage) (abi.Result, error) {
	switch {
	case !m.given:
		return abi.Result{}, errors.New("the handler returned neither a payload nor that it is unchanged")
	case m.payload == nil || bytes.Equal(m.payload, input):
		return abi.Result{Info: m.info}, nil
	}
	return abi.Result{Modified: true, Payload: m.payload, Info: m.info}, nil
}
