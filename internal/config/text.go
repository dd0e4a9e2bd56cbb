package config

import (
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/weir-mcp/weir/internal/wire"
)

// Text is a value of the file that may hold expanded variables. It prints as it
// was written, "Bearer ${TOKEN}", by every way that fmt, encoding/json and slog
// have; [Text.Reveal] gives the value. The zero Text is empty.
type Text struct{ written, value string }

// Plain is a Text that hides nothing: value was written as it is.
func Plain(value string) Text { return Text{written: value, value: value} }

// Reveal returns the value, with variables expanded.
func (t Text) Reveal() string { return t.value }

// IsZero reports whether t was not set.
func (t Text) IsZero() bool { return t == Text{} }

// String returns the text as written.
func (t Text) String() string { return t.written }

// Format prints the text as written, whatever the verb.
func (t Text) Format(s fmt.State, verb rune) { fmt.Fprintf(s, fmt.FormatString(s, verb), t.written) }

// MarshalJSON writes the text as written, as a JSON string.
func (t Text) MarshalJSON() ([]byte, error) { return wire.AppendString(nil, t.written), nil }

// LogValue is the text as written.
func (t Text) LogValue() slog.Value { return slog.StringValue(t.written) }

// JSON is a JSON value that may hold expanded variables in its strings. Like
// [Text] it prints as it was written. The zero JSON is not set.
type JSON struct{ written, value string }

// Reveal returns the value, with variables expanded, or nil when not set. The
// caller owns the bytes.
func (j JSON) Reveal() json.RawMessage {
	if j.IsZero() {
		return nil
	}
	return json.RawMessage(j.value)
}

// IsZero reports whether j was not set.
func (j JSON) IsZero() bool { return j == JSON{} }

// String returns the value as written.
func (j JSON) String() string { return j.written }

// Format prints the value as written, whatever the verb.
func (j JSON) Format(s fmt.State, verb rune) { fmt.Fprintf(s, fmt.FormatString(s, verb), j.written) }

// MarshalJSON writes the value as written, null when not set.
func (j JSON) MarshalJSON() ([]byte, error) {
	if j.IsZero() {
		return []byte("null"), nil
	}
	return []byte(j.written), nil
}

// LogValue is the value as written.
func (j JSON) LogValue() slog.Value { return slog.StringValue(j.written) }
