package chain

import (
	"strconv"
	"time"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/wire"
)

// AppendJSON appends the outcome as one JSON object, payloads included. Raw
// JSON in it is spelled as it came.
func (o *Outcome) AppendJSON(dst []byte) []byte { return o.appendJSON(dst, true) }

// MarshalJSON writes what [Outcome.AppendJSON] appends.
func (o Outcome) MarshalJSON() ([]byte, error) { return o.AppendJSON(nil), nil }

// AppendRecord appends the outcome without the final payload, without those of
// mutations and without suggested values, on one line: what may go to a log.
func (o *Outcome) AppendRecord(dst []byte) []byte { return o.appendJSON(dst, false) }

func (o *Outcome) appendJSON(dst []byte, payloads bool) []byte {
	w := open(dst)
	w.string("status", string(o.Status))
	w.string("event", o.Event)
	w.string("phase", string(o.Phase))
	w.string("direction", o.Direction.String())
	w.list("results", len(o.Results), func(b []byte, i int) []byte { return o.Results[i].appendJSON(b, payloads) })
	if payloads && o.FinalPayload != nil {
		w.key("finalPayload")
		w.b = append(w.b, o.FinalPayload...)
	}
	if o.Modified {
		w.bool("modified", true)
	}
	w.key("validationSummary")
	s := open(w.b)
	s.int("errors", o.Validation.Errors)
	s.int("warnings", o.Validation.Warnings)
	s.int("infos", o.Validation.Infos)
	w.b = s.close()
	w.duration("totalDurationMs", o.TotalDuration)
	if a := o.Aborted; a != nil {
		w.key("abortedAt")
		v := open(w.b)
		v.optString("interceptor", a.Interceptor)
		v.optString("host", a.Host)
		v.optString("type", string(a.Type))
		v.string("reason", a.Reason)
		v.optString("detail", a.Detail)
		w.b = v.close()
	}
	return w.close()
}

func (r *StepResult) appendJSON(dst []byte, payloads bool) []byte {
	w := open(dst)
	w.string("interceptor", r.Name)
	w.string("host", r.Host)
	w.string("type", string(r.Type))
	if r.Mode == abi.Audit {
		w.string("mode", string(r.Mode))
	}
	if r.FailOpen {
		w.bool("failOpen", true)
	}
	w.string("effect", string(r.Effect))
	w.duration("durationMs", r.Duration)
	if r.Result != nil {
		result := *r.Result
		if !payloads {
			result.Payload, result.Suggestions = nil, nil
			result.Info, result.Metrics = wire.Flat(nil, result.Info), wire.Flat(nil, result.Metrics)
		}
		w.key("result")
		w.b = result.AppendJSON(w.b)
	}
	if r.Err != nil {
		w.key("error")
		v := open(w.b)
		v.string("reason", string(r.Err.Reason))
		v.string("message", r.Err.Message())
		if r.Err.Limit > 0 {
			v.duration("timeoutMs", r.Err.Limit)
		}
		if r.Err.Cause != nil {
			v.string("cause", r.Err.Cause.Error())
		}
		w.b = v.close()
	}
	return w.close()
}

// AppendJSON appends the report of a sink as one JSON object on one line, as
// it may go to a log.
func (r *SinkReport) AppendJSON(dst []byte) []byte {
	w := open(dst)
	w.string("event", r.Event)
	w.string("phase", string(r.Phase))
	w.string("direction", r.Direction.String())
	w.key("result")
	w.b = r.StepResult.appendJSON(w.b, false)
	return w.close()
}

// AppendJSON appends the plan as one JSON object: the steps in order with what
// holds for each and where it came from, what was left out and why, and what
// blocks it.
func (p *Plan) AppendJSON(dst []byte) []byte {
	w := open(dst)
	w.string("event", p.event)
	w.string("phase", string(p.phase))
	w.string("direction", p.direction.String())
	w.optString("protocolVersion", p.protocolVersion)
	w.bool("blocked", p.Blocked())
	w.list("steps", len(p.steps), func(b []byte, i int) []byte { return p.steps[i].appendJSON(b) })
	w.list("leftOut", len(p.leftOut), func(b []byte, i int) []byte {
		l := &p.leftOut[i]
		v := open(b)
		v.optString("interceptor", l.Name)
		v.string("host", l.Host)
		v.optString("type", string(l.Type))
		v.string("reason", string(l.Reason))
		v.optString("detail", l.Detail)
		return v.close()
	})
	w.list("discoveryFailures", len(p.failures), func(b []byte, i int) []byte {
		f := &p.failures[i]
		v := open(b)
		v.optString("interceptor", f.Interceptor)
		v.optString("host", f.Host)
		v.optString("type", string(f.Type))
		v.string("reason", string(f.Reason))
		v.optString("detail", f.Detail)
		return v.close()
	})
	return w.close()
}

// MarshalJSON writes what [Plan.AppendJSON] appends.
func (p *Plan) MarshalJSON() ([]byte, error) { return p.AppendJSON(nil), nil }

func (s *Step) appendJSON(dst []byte) []byte {
	w := open(dst)
	w.string("interceptor", s.Name)
	if s.Name != s.Interceptor {
		w.string("copyOf", s.Interceptor)
	}
	w.string("host", s.Host)
	w.string("type", string(s.Type))
	w.optString("version", s.Version)
	setting(&w, "mode", s.Mode.From, func(v *writer) { v.string("value", string(s.Mode.Value)) })
	setting(&w, "failOpen", s.FailOpen.From, func(v *writer) { v.bool("value", s.FailOpen.Value) })
	if s.Type == abi.Mutation {
		setting(&w, "priority", s.Priority.From, func(v *writer) { v.int("value", int(s.Priority.Value)) })
	}
	if s.Timeout.Value > 0 {
		setting(&w, "timeoutMs", s.Timeout.From, func(v *writer) { v.duration("value", s.Timeout.Value) })
	}
	if s.Config.Value != nil {
		setting(&w, "config", s.Config.From, func(v *writer) { v.key("value"); v.b = append(v.b, s.ConfigShown...) })
	}
	setting(&w, "hooks", s.Hooks.From, func(v *writer) { v.key("value"); v.b = s.Hooks.Value.AppendJSON(v.b) })
	if s.Refused != nil {
		w.string("refused", s.Refused.Error())
	}
	return w.close()
}

func setting(w *writer, name string, from From, value func(*writer)) {
	w.key(name)
	v := open(w.b)
	value(&v)
	v.string("from", from.String())
	w.b = v.close()
}

// writer appends an object member by member.
type writer struct {
	b     []byte
	first bool
}

func open(dst []byte) writer { return writer{append(dst, '{'), true} }

func (w *writer) close() []byte { return append(w.b, '}') }

func (w *writer) key(name string) {
	if !w.first {
		w.b = append(w.b, ',')
	}
	w.first = false
	w.b = append(wire.AppendString(w.b, name), ':')
}

func (w *writer) string(name, v string) {
	w.key(name)
	w.b = wire.AppendString(w.b, v)
}

func (w *writer) optString(name, v string) {
	if v != "" {
		w.string(name, v)
	}
}

func (w *writer) bool(name string, v bool) {
	w.key(name)
	w.b = strconv.AppendBool(w.b, v)
}

func (w *writer) int(name string, v int) {
	w.key(name)
	w.b = strconv.AppendInt(w.b, int64(v), 10)
}

// list writes an array of n items.
func (w *writer) list(name string, n int, item func([]byte, int) []byte) {
	w.key(name)
	w.b = append(w.b, '[')
	for i := range n {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		w.b = item(w.b, i)
	}
	w.b = append(w.b, ']')
}

// duration writes milliseconds to the microsecond.
func (w *writer) duration(name string, d time.Duration) {
	w.key(name)
	w.b = strconv.AppendFloat(w.b, float64(d.Microseconds())/1000, 'f', -1, 64)
}
