package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/chain"
	"github.com/weir-mcp/weir/internal/wire"
)

// longWord bounds a word of a peer in the log, in bytes.
const longWord = 256

func clip(s string) string { return wire.Clip(s, longWord) }

// longError bounds why an interceptor has no result, in bytes. It is longer than a
// word, since it ends with what a guest said last before it died.
const longError = 8 << 10

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
		slog.String("reference", op.Reference),
		slog.String("event", clip(op.Event)),
		slog.String("phase", string(op.Phase)),
		slog.String("direction", op.Direction.String()),
		slog.String("initiator", op.Initiator.String()),
	}
	if about := subject(op); about != "" {
		attrs = append(attrs, slog.String("name", about))
	}
	if op.Server != "" {
		attrs = append(attrs, slog.String("server", clip(op.Server)))
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
		attrs = append(attrs, slog.String("interceptor", clip(a.Interceptor)), slog.String("host", a.Host), slog.String("reason", a.Reason))
		if a.Detail != "" {
			attrs = append(attrs, slog.String("detail", clip(a.Detail)))
		}
	}
	attrs = append(attrs,
		slog.Bool("modified", out.Modified),
		slog.Any("plan", c.steps(out)),
		slog.Float64("ms", ms(out.TotalDuration)),
		slog.Int("bytes", len(op.Payload)),
	)
	c.log.LogAttrs(context.Background(), level, text, attrs...)
}

// logSink writes what went wrong with a sink after its operation.
func (c *Chain) logSink(r chain.SinkReport) {
	if r.Effect != chain.EffectLost {
		return
	}
	attrs := []slog.Attr{
		slog.String("interceptor", clip(r.Name)), slog.String("host", r.Host),
		slog.String("event", clip(r.Event)), slog.String("phase", string(r.Phase)), slog.Float64("ms", ms(r.Duration)),
	}
	if r.Err != nil {
		attrs = append(attrs, slog.String("error", wire.Clip(r.Err.Error(), longError)))
	}
	c.log.LogAttrs(context.Background(), slog.LevelWarn, "a sink did not record", attrs...)
}

// step is one interceptor's part in a decision.
type step struct {
	Interceptor string   `json:"interceptor"`
	Host        string   `json:"host"`
	Type        string   `json:"type"`
	Mode        string   `json:"mode,omitempty"`
	Effect      string   `json:"effect"`
	Severity    string   `json:"severity,omitempty"`
	Error       string   `json:"error,omitempty"`
	Messages    []string `json:"messages,omitempty"`
	Ms          float64  `json:"ms"`
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

func (c *Chain) steps(out *Outcome) steps {
	all := make(steps, len(out.Results))
	for i := range out.Results {
		r := &out.Results[i]
		st := step{Interceptor: clip(r.Name), Host: r.Host, Type: string(r.Type), Effect: string(r.Effect), Ms: ms(r.Duration)}
		if r.Mode == abi.Audit {
			st.Mode = string(r.Mode)
		}
		if r.Err != nil {
			st.Error = wire.Clip(r.Err.Error(), longError)
		}
		if r.Result != nil {
			st.Severity = clip(string(r.Result.Severity))
			if c.o.LogMessages {
				for _, m := range r.Result.Messages {
					st.Messages = append(st.Messages, clip(m.Message))
				}
			}
		}
		all[i] = st
	}
	return all
}

// subject is the tool, prompt or resource that an operation is about. A URI is
// shown without userinfo, query and fragment, where secrets stand.
func subject(op *Operation) string {
	params := op.params()
	switch op.Event {
	case abi.ToolsCall, abi.PromptsGet:
		raw, _ := wire.Get(params, "name")
		name, _ := wire.Unquote(raw)
		return clip(name)
	case abi.ResourcesRead, abi.ResourcesSubscribe:
		raw, _ := wire.Get(params, "uri")
		text, _ := wire.Unquote(raw)
		u, err := url.Parse(text)
		if err != nil {
			return "(not a URI)"
		}
		u.User, u.RawQuery, u.Fragment, u.RawFragment, u.ForceQuery = nil, "", "", "", false
		if u.Opaque != "" {
			// What follows the scheme may be anything, a data: body included.
			u.Opaque = "…"
		}
		return clip(u.String())
	default:
		return ""
	}
}

// shortHash names a session in the log without giving its id away: the first
// twelve hexadecimal digits of its SHA-256. Whoever was told the id, as
// context.sessionId, finds the records by it.
func shortHash(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:6])
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
