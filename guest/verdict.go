package guest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/weir-mcp/weir/abi"
)

// Verdict is what a validator answers. The zero value is none: a handler that
// returns it has failed. Verdicts are values; the methods return a changed copy.
type Verdict struct {
	given       bool
	valid       bool
	messages    []Message
	suggestions []abi.Suggestion
	info        json.RawMessage
}

// Allow lets the operation go on.
func Allow() Verdict { return Verdict{given: true, valid: true} }

// Deny blocks the operation, with a reason formatted as by fmt.Sprintf. The
// reason may reach the requester: it must not hold what the verdict protects.
func Deny(format string, args ...any) Verdict {
	return Judge(Message{Message: fmt.Sprintf(format, args...), Severity: SeverityError})
}

// Flag lets the operation go on and puts a warning on record.
func Flag(format string, args ...any) Verdict {
	return Judge(Message{Message: fmt.Sprintf(format, args...), Severity: SeverityWarn})
}

// Judge is a verdict on findings: it allows when there are none, and is as
// grave as the gravest of them otherwise, so that one finding of
// [SeverityError], or of no severity, blocks.
func Judge(findings ...Message) Verdict {
	return Verdict{given: true, valid: len(findings) == 0, messages: slices.Clone(findings)}
}

// At says where in the payload the last finding lies, as [Path.String] does.
func (v Verdict) At(path string) Verdict {
	if len(v.messages) > 0 {
		v.messages = slices.Clone(v.messages)
		v.messages[len(v.messages)-1].Path = path
	}
	return v
}

// And adds the findings of w to those of v, so that several checks make one
// verdict. Of two that were not given it is not given.
func (v Verdict) And(w Verdict) Verdict {
	if !v.given || !w.given {
		return Verdict{}
	}
	v.valid = v.valid && w.valid
	v.messages = slices.Concat(v.messages, w.messages)
	v.suggestions = slices.Concat(v.suggestions, w.suggestions)
	if w.info != nil {
		v.info = w.info
	}
	return v
}

// Suggest names a value, as JSON, that the validator would accept at a path.
func (v Verdict) Suggest(path string, value json.RawMessage) Verdict {
	v.suggestions = append(slices.Clone(v.suggestions), abi.Suggestion{Path: path, Value: value})
	return v
}

// WithInfo attaches any JSON value, for the invoker's records.
func (v Verdict) WithInfo(info json.RawMessage) Verdict {
	v.info = info
	return v
}

func (v Verdict) result() (abi.Result, error) {
	if !v.given {
		return abi.Result{}, errors.New("the handler returned no verdict")
	}
	r := abi.Result{Valid: v.valid, Messages: slices.Clone(v.messages), Suggestions: v.suggestions, Info: v.info}
	if !v.valid {
		r.Severity = gravest(v.messages)
	}
	for i := range r.Messages {
		if r.Messages[i].Severity == "" {
			r.Messages[i].Severity = SeverityError
		}
	}
	return r, nil
}

// gravest counts everything that is neither warn nor info as error, as an
// invoker does (protocol.md §5).
func gravest(messages []Message) Severity {
	worst := SeverityInfo
	for _, m := range messages {
		switch m.Severity {
		case SeverityInfo:
		case SeverityWarn:
			worst = SeverityWarn
		default:
			return SeverityError
		}
	}
	return worst
}
