package abi

import "encoding/json"

// Unwrap returns the bare payload inside an envelope. A payload is an envelope
// when its only members are "method", equal to event, and optionally "params"
// (protocol.md §3); params that are missing are {}. Anything else is returned
// as it is, with enveloped false.
func Unwrap(event string, payload json.RawMessage) (bare json.RawMessage, enveloped bool) {
	m, err := readObject(payload)
	if err != nil || len(m) == 0 || len(m) > 2 {
		return payload, false
	}
	if method, _, err := m.string(keyMethod); err != nil || method != event {
		return payload, false
	}
	if params, ok := m.raw(keyParams); ok {
		return params, true
	}
	if len(m) == 1 {
		return json.RawMessage("{}"), true
	}
	return payload, false
}

// Wrap is the envelope around a bare payload.
func Wrap(event string, bare json.RawMessage) json.RawMessage {
	o := openObject(make([]byte, 0, len(bare)+len(event)+32))
	o.string(keyMethod, event)
	o.raw(keyParams, bare)
	return o.close()
}
