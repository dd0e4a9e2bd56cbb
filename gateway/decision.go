package gateway

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/chain"
	"github.com/weir-mcp/weir/internal/wire"
)

// What a record may hold of what others say, so that nobody can make a line
// long: a word and a message in bytes, a reason of a failure in bytes as long as
// those of one record together leave room, the messages of one step and the steps
// of one record in number. A step is in a record whole or not at all.
const (
	longWord     = 256
	longError    = 8 << 10 // it ends with what a guest said last before it died
	longErrors   = 32 << 10
	mostMessages = 16
	mostSteps    = 256
)

// clip makes a stranger's word fit for a record: short, in UTF-8, on one line
// wherever lines are told apart, and with nothing that moves a terminal's cursor
// or turns the direction of text.
func clip(s string) string { return oneLine(s, longWord) }

// oneLine is s in at most limit bytes and an ellipsis, with a space for whatever
// is white, line breaks included, and U+FFFD for what cannot be seen.
func oneLine(s string, limit int) string {
	visible := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsPrint(r):
			return r
		}
		return unicode.ReplacementChar
	}, wire.Clip(s, limit))
	return wire.Clip(visible, limit+len("…"))
}

// logDecision writes the record of one governed phase: never a payload, and of
// a request no more than what it is about.
func (c *Chain) logDecision(op *Operation, out *Outcome) {
	level, text := slog.LevelInfo, "released"
	switch {
	case out.Status == abi.StatusCancelled:
		text = "cancelled"
	case !out.Released():
		level, text = slog.LevelWarn, "blocked"
	}
	if !c.log.Enabled(context.Background(), level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("reference", clip(op.Reference)),
		slog.String("event", clip(op.Event)),
		slog.String("phase", string(op.Phase)),
		slog.String("direction", op.Direction.String()),
		slog.String("initiator", op.Initiator.String()),
	}
	if about := subject(op); about != "" {
		attrs = append(attrs, slog.String("name", about))
	}
	if op.Server != "" {
		attrs = append(attrs, slog.String("server", serverName(op.Server)))
	}
	if v := op.Context; v != nil {
		if v.SessionID != "" {
			attrs = append(attrs, slog.String("session", shortHash(v.SessionID)))
		}
		if v.Principal != nil {
			attrs = append(attrs, slog.String("principal", clip(v.Principal.Type+":"+v.Principal.ID)))
		}
		if v.TraceID != "" {
			attrs = append(attrs, slog.String("trace", clip(v.TraceID)))
		}
	}
	attrs = append(attrs, slog.String("status", string(out.Status)))
	if a := out.Aborted; a != nil {
		attrs = append(attrs, slog.String("interceptor", clip(a.Interceptor)), slog.String("host", clip(a.Host)), slog.String("reason", a.Reason))
		if severity := severityOf(out); severity != "" {
			attrs = append(attrs, slog.String("severity", severity))
		}
		if a.Detail != "" {
			attrs = append(attrs, slog.String("detail", clip(a.Detail)))
		}
	}
	attrs = append(attrs,
		slog.Bool("modified", out.Modified),
		slog.Any("plan", c.steps(out)),
	)
	if more := len(out.Results) - mostSteps; more > 0 {
		attrs = append(attrs, slog.Int("stepsNotShown", more))
	}
	attrs = append(attrs,
		slog.Float64("ms", ms(out.TotalDuration)),
		slog.Int("bytes", len(op.Payload)),
	)
	c.log.LogAttrs(context.Background(), level, text, attrs...)
}

// severityOf is that of the verdict that stopped an operation: empty where it was
// none. A "no" without a severity is an error (protocol.md §5).
func severityOf(out *Outcome) string {
	if out.Aborted.Reason != chain.ReasonRejected {
		return ""
	}
	for i := range out.Results {
		r := &out.Results[i]
		if r.Effect == chain.EffectBlocked && r.Result != nil && r.Name == out.Aborted.Interceptor && r.Host == out.Aborted.Host {
			return cmp.Or(clip(string(r.Result.Severity)), string(abi.SeverityError))
		}
	}
	return ""
}

// logSink writes what went wrong with a sink after its operation.
func (c *Chain) logSink(r chain.SinkReport) {
	if r.Effect != chain.EffectLost {
		return
	}
	attrs := []slog.Attr{
		slog.String("interceptor", clip(r.Name)), slog.String("host", clip(r.Host)),
		slog.String("event", clip(r.Event)), slog.String("phase", string(r.Phase)), slog.Float64("ms", ms(r.Duration)),
	}
	if r.Err != nil {
		attrs = append(attrs, slog.String("error", oneLine(r.Err.Error(), longError)))
	}
	c.log.LogAttrs(context.Background(), slog.LevelWarn, "a sink did not record", attrs...)
}

// step is one interceptor's part in a decision. Valid is what a validator said,
// nil where it said nothing, and MessagesNotShown how many messages there are
// besides those that are shown.
type step struct {
	Interceptor      string   `json:"interceptor"`
	Host             string   `json:"host"`
	Type             string   `json:"type"`
	Mode             string   `json:"mode,omitempty"`
	Effect           string   `json:"effect"`
	Valid            *bool    `json:"valid,omitempty"`
	Severity         string   `json:"severity,omitempty"`
	Error            string   `json:"error,omitempty"`
	Messages         []string `json:"messages,omitempty"`
	MessagesNotShown int      `json:"messagesNotShown,omitempty"`
	Ms               float64  `json:"ms"`
}

// steps is an array of objects in JSON logs and one line of words in text.
type steps []step

// MarshalJSON writes an array of objects.
func (s steps) MarshalJSON() ([]byte, error) { return json.Marshal([]step(s)) }

// MarshalText writes the steps in plan order, apart by arrows.
func (s steps) MarshalText() ([]byte, error) {
	var b strings.Builder
	for i, st := range s {
		if i > 0 {
			b.WriteString(" → ")
		}
		fmt.Fprintf(&b, "%s@%s %s %s %.1fms", st.Interceptor, st.Host, st.Type, st.Effect, st.Ms)
		if st.Error != "" {
			b.WriteString(" (" + st.Error + ")")
		}
	}
	return []byte(b.String()), nil
}

// Masked is the steps with mask applied to whatever text others have put into
// them, for handlers that hide secrets.
func (s steps) Masked(mask func(string) string) any {
	all := slices.Clone(s)
	for i := range all {
		st := &all[i]
		st.Interceptor, st.Error = mask(st.Interceptor), mask(st.Error)
		st.Messages = slices.Clone(st.Messages)
		for j := range st.Messages {
			st.Messages[j] = mask(st.Messages[j])
		}
	}
	return all
}

func (c *Chain) steps(out *Outcome) steps {
	all := make(steps, min(len(out.Results), mostSteps))
	room := longErrors
	for i := range all {
		r := &out.Results[i]
		st := step{Interceptor: clip(r.Name), Host: clip(r.Host), Type: string(r.Type), Effect: string(r.Effect), Ms: ms(r.Duration)}
		if r.Mode == abi.Audit {
			st.Mode = string(r.Mode)
		}
		if r.Err != nil {
			st.Error = oneLine(r.Err.Error(), max(longWord, min(longError, room)))
			room -= len(st.Error)
		}
		if r.Result != nil {
			if r.Type == abi.Validation {
				st.Valid = &r.Result.Valid
			}
			st.Severity = clip(string(r.Result.Severity))
			if c.o.LogMessages {
				shown := min(len(r.Result.Messages), mostMessages)
				for _, m := range r.Result.Messages[:shown] {
					st.Messages = append(st.Messages, clip(m.Message))
				}
				st.MessagesNotShown = len(r.Result.Messages) - shown
			}
		}
		all[i] = st
	}
	return all
}

// shortHash names a session in the log without giving its id away: the first
// twelve hexadecimal digits of its SHA-256. Whoever was told the id, as
// context.sessionId, finds the records by it.
func shortHash(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:6])
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
