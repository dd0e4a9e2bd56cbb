package chain

import (
	"time"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/wire"
)

// AppendJSON appends the outcome as one JSON object, the payloads included: it
// is for whoever may see those, and not for a log. Raw JSON in it is spelled as
// it came.
func (o *Outcome) AppendJSON(dst []byte) []byte {
	w := wire.OpenObject(dst)
	w.String("status", string(o.Status))
	w.String("event", o.Event)
	w.String("phase", string(o.Phase))
	w.String("direction", o.Direction.String())
	w.List("results", len(o.Results), func(b []byte, i int) []byte { return o.Results[i].appendJSON(b) })
	if o.FinalPayload != nil {
		w.Raw("finalPayload", o.FinalPayload)
	}
	if o.Modified {
		w.Bool("modified", true)
	}
	w.Object("validationSummary", func(w *wire.ObjectWriter) {
		w.Int("errors", o.Validation.Errors)
		w.Int("warnings", o.Validation.Warnings)
		w.Int("infos", o.Validation.Infos)
	})
	duration(&w, "totalDurationMs", o.TotalDuration)
	if a := o.Aborted; a != nil {
		w.Object("abortedAt", func(w *wire.ObjectWriter) {
			w.OptString("interceptor", a.Interceptor)
			w.OptString("host", a.Host)
			w.OptString("type", string(a.Type))
			w.String("reason", a.Reason)
			w.OptString("detail", a.Detail)
		})
	}
	return w.Close()
}

// MarshalJSON writes what [Outcome.AppendJSON] appends.
func (o Outcome) MarshalJSON() ([]byte, error) { return o.AppendJSON(nil), nil }

func (r *StepResult) appendJSON(dst []byte) []byte {
	w := wire.OpenObject(dst)
	w.String("interceptor", r.Name)
	w.String("host", r.Host)
	w.String("type", string(r.Type))
	if r.Mode == abi.Audit {
		w.String("mode", string(r.Mode))
	}
	if r.FailOpen {
		w.Bool("failOpen", true)
	}
	w.String("effect", string(r.Effect))
	duration(&w, "durationMs", r.Duration)
	if r.Result != nil {
		w.Append("result", r.Result.AppendJSON)
	}
	if r.Err != nil {
		w.Object("error", func(w *wire.ObjectWriter) {
			w.String("reason", string(r.Err.Reason))
			w.String("message", r.Err.Message())
			if r.Err.Limit > 0 {
				duration(w, "timeoutMs", r.Err.Limit)
			}
			if r.Err.Cause != nil {
				w.String("cause", r.Err.Cause.Error())
			}
		})
	}
	return w.Close()
}

// AppendJSON appends the plan as one JSON object: the steps in order with what
// holds for each and where it came from, what was left out and why, and what
// blocks it. Every step has every setting; null is none.
func (p *Plan) AppendJSON(dst []byte) []byte {
	w := wire.OpenObject(dst)
	w.String("event", p.event)
	w.String("phase", string(p.phase))
	w.String("direction", p.direction.String())
	w.OptString("protocolVersion", p.protocolVersion)
	w.Bool("blocked", p.Blocked())
	w.List("steps", len(p.steps), func(b []byte, i int) []byte { return p.steps[i].appendJSON(b) })
	w.List("leftOut", len(p.leftOut), func(b []byte, i int) []byte {
		return p.leftOut[i].appendJSON(b)
	})
	w.List("discoveryFailures", len(p.failures), func(b []byte, i int) []byte {
		f := &p.failures[i]
		return appendAbsent(b, f.Interceptor, f.Host, f.Type, string(f.Reason), f.Detail)
	})
	return w.Close()
}

// MarshalJSON writes what [Plan.AppendJSON] appends.
func (p *Plan) MarshalJSON() ([]byte, error) { return p.AppendJSON(nil), nil }

// MarshalJSON writes it as a plan does.
func (l LeftOut) MarshalJSON() ([]byte, error) { return l.appendJSON(nil), nil }

func (l *LeftOut) appendJSON(dst []byte) []byte {
	return appendAbsent(dst, l.Name, l.Host, l.Type, string(l.Reason), l.Detail)
}

// appendAbsent appends who has no part in a plan, or blocks it, and why.
func appendAbsent(dst []byte, name, host string, typ abi.Type, reason, detail string) []byte {
	w := wire.OpenObject(dst)
	w.OptString("interceptor", name)
	w.OptString("host", host)
	w.OptString("type", string(typ))
	w.String("reason", reason)
	w.OptString("detail", detail)
	return w.Close()
}

func (s *Step) appendJSON(dst []byte) []byte {
	w := wire.OpenObject(dst)
	w.String("interceptor", s.Name)
	if s.Name != s.Interceptor {
		w.String("copyOf", s.Interceptor)
	}
	w.String("host", s.Host)
	w.String("type", string(s.Type))
	w.OptString("version", s.Version)
	if s.Compat != nil {
		w.Object("compat", func(w *wire.ObjectWriter) {
			w.String("minProtocol", s.Compat.MinProtocol)
			w.OptString("maxProtocol", s.Compat.MaxProtocol)
		})
	}
	setting(&w, "mode", s.Mode.From, func(v *wire.ObjectWriter) { v.String("value", string(s.Mode.Value)) })
	setting(&w, "failOpen", s.FailOpen.From, func(v *wire.ObjectWriter) { v.Bool("value", s.FailOpen.Value) })
	setting(&w, "priority", s.Priority.From, func(v *wire.ObjectWriter) { v.Int("value", int(s.Priority.Value)) })
	setting(&w, "timeoutMs", s.Timeout.From, func(v *wire.ObjectWriter) {
		if s.Timeout.Value > 0 {
			duration(v, "value", s.Timeout.Value)
		} else {
			v.Raw("value", null)
		}
	})
	setting(&w, "config", s.Config.From, func(v *wire.ObjectWriter) {
		if s.Config.Value != nil {
			v.Raw("value", s.ConfigShown)
		} else {
			v.Raw("value", null)
		}
	})
	setting(&w, "hooks", s.Hooks.From, func(v *wire.ObjectWriter) { v.Append("value", s.Hooks.Value.AppendJSON) })
	setting(&w, "required", s.Required.From, func(v *wire.ObjectWriter) { v.Bool("value", s.Required.Value) })
	if s.Refused != nil {
		w.String("refused", s.Refused.Error())
	}
	return w.Close()
}

var null = []byte("null")

func setting(w *wire.ObjectWriter, name string, from From, value func(*wire.ObjectWriter)) {
	w.Object(name, func(w *wire.ObjectWriter) {
		value(w)
		w.String("from", from.String())
	})
}

// duration writes milliseconds to the microsecond.
func duration(w *wire.ObjectWriter, name string, d time.Duration) {
	w.Float(name, float64(d.Microseconds())/1000)
}
