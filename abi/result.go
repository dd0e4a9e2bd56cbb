package abi

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// Result is what an interceptor answers, in one flat shape for all three types
// (protocol.md §3). Which members count is decided by Type.
type Result struct {
	Type        Type
	Interceptor string
	Phase       Phase
	// DurationMs is milliseconds; nil when not told. Hosts write whole ones.
	DurationMs *float64
	Info       json.RawMessage // any JSON value, or nil

	// Of a validation.
	Valid       bool
	Severity    Severity // as sent; may be empty or unknown
	Messages    []Message
	Suggestions []Suggestion

	// Of a mutation. Payload is nil when the result had none, which with
	// Modified false means "the input".
	Modified bool
	Payload  json.RawMessage

	// Of a sink.
	Recorded bool
	Metrics  json.RawMessage // an object of numbers, or nil
}

// Message is one finding of a validation.
type Message struct {
	Path     string // where in the payload; may be empty
	Message  string
	Severity Severity
}

// Suggestion is a value that a validator would accept at a path.
type Suggestion struct {
	Path  string
	Value json.RawMessage
}

// Blocks reports whether the verdict of an active validator blocks: not valid,
// and the severity is "error", absent or unknown. The severity of single
// messages does not matter (protocol.md §5).
func (r *Result) Blocks() bool {
	return r.Type == Validation && !r.Valid && r.Severity != SeverityWarn && r.Severity != SeverityInfo
}

// ReadResult reads a result as it travels over interceptor/invoke: "type",
// "interceptor" and "phase" must be there.
func ReadResult(raw []byte) (Result, error) {
	m, err := readObject(raw)
	if err != nil {
		return Result{}, err
	}
	r, err := readResult(m)
	if err != nil {
		return Result{}, err
	}
	switch {
	case r.Type == "":
		return Result{}, errors.New(`"type" is missing`)
	case r.Interceptor == "":
		return Result{}, errors.New(`"interceptor" is missing`)
	case r.Phase == "":
		return Result{}, errors.New(`"phase" is missing`)
	}
	return r, r.readBody(m)
}

// readResult reads the members that all types share, each of which may be
// missing in a module's answer.
func readResult(m object) (r Result, err error) {
	typ, _, err := m.string(keyType)
	if err != nil {
		return r, err
	}
	if r.Type = Type(typ); r.Type != "" && !r.Type.Valid() {
		return r, fmt.Errorf("type %q is none of validation, mutation and sink", typ)
	}
	if r.Interceptor, _, err = m.string(keyInterceptor); err != nil {
		return r, err
	}
	phase, _, err := m.string(keyPhase)
	if err != nil {
		return r, err
	}
	if r.Phase = Phase(phase); r.Phase != "" && !r.Phase.Valid() {
		return r, fmt.Errorf("phase %q is neither request nor response", phase)
	}
	if raw, ok := m.get(keyDurationMs); ok {
		var ms float64
		if json.Unmarshal(raw, &ms) != nil || ms < 0 || math.IsInf(ms, 0) {
			return r, errors.New("durationMs is not a number of milliseconds")
		}
		r.DurationMs = &ms
	}
	if info, ok := m.get(keyInfo); ok {
		r.Info = info
	}
	return r, nil
}

func (r *Result) readBody(m object) error {
	switch r.Type {
	case Validation:
		return r.readValidation(m)
	case Mutation:
		return r.readMutation(m)
	default:
		return r.readSink(m)
	}
}

func (r *Result) readValidation(m object) (err error) {
	if r.Valid, err = m.mustBool(keyValid); err != nil {
		return err
	}
	severity, _, err := m.string(keySeverity)
	if err != nil {
		return err
	}
	r.Severity = Severity(severity)
	if raw, ok := m.get(keyMessages); ok {
		items, err := readArray(raw, keyMessages)
		if err != nil {
			return err
		}
		for i, item := range items {
			msg, err := readMessage(item)
			if err != nil {
				return fmt.Errorf("messages[%d]: %w", i, err)
			}
			r.Messages = append(r.Messages, msg)
		}
	}
	if raw, ok := m.get(keySuggestions); ok {
		items, err := readArray(raw, keySuggestions)
		if err != nil {
			return err
		}
		for i, item := range items {
			s, err := readSuggestion(item)
			if err != nil {
				return fmt.Errorf("suggestions[%d]: %w", i, err)
			}
			r.Suggestions = append(r.Suggestions, s)
		}
	}
	return nil
}

func readMessage(raw []byte) (msg Message, err error) {
	m, err := readObject(raw)
	if err != nil {
		return msg, err
	}
	if msg.Path, _, err = m.string(keyPath); err != nil {
		return msg, err
	}
	if msg.Message, _, err = m.string(keyMessage); err != nil {
		return msg, err
	}
	severity, _, err := m.string(keySeverity)
	msg.Severity = Severity(severity)
	return msg, err
}

func readSuggestion(raw []byte) (s Suggestion, err error) {
	m, err := readObject(raw)
	if err != nil {
		return s, err
	}
	if s.Path, _, err = m.string(keyPath); err != nil {
		return s, err
	}
	if value, ok := m.raw(keyValue); ok {
		s.Value = value
	}
	return s, nil
}

func (r *Result) readMutation(m object) (err error) {
	if r.Modified, err = m.mustBool(keyModified); err != nil {
		return err
	}
	if payload, ok := m.raw(keyPayload); ok {
		r.Payload = payload
	}
	return nil
}

func (r *Result) readSink(m object) (err error) {
	if r.Recorded, err = m.mustBool(keyRecorded); err != nil {
		return err
	}
	raw, ok := m.get(keyMetrics)
	if !ok {
		return nil
	}
	metrics, err := readObject(raw)
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	for _, v := range metrics {
		if kindOf(v.value) != '0' {
			return fmt.Errorf("metrics: %q is not a number", v.name)
		}
	}
	r.Metrics = raw
	return nil
}

// AppendJSON appends the canonical spelling of r: "type" first, no severity,
// messages or suggestions where there are none. A mutation without a payload
// is written without one.
func (r *Result) AppendJSON(dst []byte) []byte {
	o := openObject(dst)
	o.optString(keyType, string(r.Type))
	o.optString(keyInterceptor, r.Interceptor)
	o.optString(keyPhase, string(r.Phase))
	if r.DurationMs != nil {
		o.float(keyDurationMs, *r.DurationMs)
	}
	o.optRaw(keyInfo, r.Info)
	switch r.Type {
	case Validation:
		r.appendValidation(&o)
	case Mutation:
		o.bool(keyModified, r.Modified)
		o.optRaw(keyPayload, r.Payload)
	case Sink:
		o.bool(keyRecorded, r.Recorded)
		o.optRaw(keyMetrics, r.Metrics)
	}
	return o.close()
}

func (r *Result) appendValidation(o *objectWriter) {
	o.bool(keyValid, r.Valid)
	o.optString(keySeverity, string(r.Severity))
	if len(r.Messages) > 0 {
		b := append(o.key(keyMessages), '[')
		for i, msg := range r.Messages {
			if i > 0 {
				b = append(b, ',')
			}
			w := openObject(b)
			w.optString(keyPath, msg.Path)
			w.string(keyMessage, msg.Message)
			w.optString(keySeverity, string(msg.Severity))
			b = w.close()
		}
		o.b = append(b, ']')
	}
	if len(r.Suggestions) > 0 {
		b := append(o.key(keySuggestions), '[')
		for i, s := range r.Suggestions {
			if i > 0 {
				b = append(b, ',')
			}
			w := openObject(b)
			w.string(keyPath, s.Path)
			w.optRaw(keyValue, s.Value)
			b = w.close()
		}
		o.b = append(b, ']')
	}
}

// MarshalJSON writes what [Result.AppendJSON] appends.
func (r Result) MarshalJSON() ([]byte, error) { return r.AppendJSON(nil), nil }
