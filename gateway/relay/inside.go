package relay

import (
	"errors"
	"slices"
	"strings"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/wire"
)

// This file finds what is governed inside other messages: the requests that an
// input-required result or a task carries, the answers to them, and the results
// of tasks (protocol.md §6 "No way round").

const (
	methodTaskPrefix       = "tasks/"
	methodTaskResult       = "tasks/result"
	methodTaskGet          = "tasks/get"
	notificationTaskPrefix = "notifications/tasks"

	memberInputRequests  = "inputRequests"
	memberInputResponses = "inputResponses"
	memberResult         = "result"
	memberTask           = "task"
	memberTaskID         = "taskId"
	memberResultType     = "resultType"
	memberMethod         = "method"
	memberParams         = "params"
)

// part is a payload that lies inside another one, at [from, to). Where the
// params of a request are missing both stand where they would be written, and
// lead is what is written before them.
type part struct {
	from, to int
	lead     string
	// events are what it is governed as, one after the other.
	events    []string
	phase     abi.Phase
	initiator Side
	// parts finds what is governed inside it in turn, or is nil.
	parts func([]byte) ([]part, error)
}

var (
	errMalformed     = errors.New("malformed")
	errUnknownAnswer = errors.New("an answer that fits no request")
	errTaskTaken     = errors.New("the id of its task is that of a task of another method, or too long")
)

// each is [wire.Members] with offsets of the values.
func each(b []byte, yield func(name string, from, to int) bool) error {
	if len(b) == 0 {
		return errMalformed
	}
	at := 0
	return wire.Members(b, func(name string, rawName, value []byte) bool {
		// Between a value and the next name stand white space, a comma or the
		// brace; between a name and its value white space and the colon.
		for b[at] != '"' {
			at++
		}
		at += len(rawName)
		for b[at] == ':' || b[at] <= ' ' {
			at++
		}
		from := at
		at += len(value)
		return yield(name, from, at)
	})
}

// span is a value inside an object; there is none where to is 0.
type span struct{ from, to int }

func (v span) in(b []byte) []byte { return b[v.from:v.to] }
func (v span) is() bool           { return v.to > 0 }

// find gives the named members of an object, in the order of names. A name that
// differs from a wanted one in case only is malformed: to a lenient reader it
// would be that one.
func find(b []byte, names ...string) ([]span, error) {
	at := make([]span, len(names))
	malformed := false
	err := each(b, func(name string, from, to int) bool {
		for i, want := range names {
			switch {
			case name == want:
				malformed = malformed || at[i].is()
				at[i] = span{from, to}
			case strings.EqualFold(name, want):
				malformed = true
			}
		}
		return !malformed
	})
	if err != nil || malformed {
		return at, errMalformed
	}
	return at, nil
}

func isObject(b []byte) bool { return len(b) > 0 && b[0] == '{' }

// text gives a JSON string's text, empty for anything else.
func text(b []byte) string {
	s, _ := wire.Unquote(b)
	return s
}

// shift moves parts that were found in a value to where that value stands.
func shift(parts []part, by int) []part {
	for i := range parts {
		parts[i].from += by
		parts[i].to += by
	}
	return parts
}

// requestParts gives the requests of an inputRequests object. They are those of
// a server, whoever holds them.
func (s *Session) requestParts(b []byte) ([]part, error) {
	var parts []part
	bad := false
	err := each(b, func(name string, from, to int) bool {
		p, err := s.requestPart(name, b[from:to])
		bad = err != nil
		if p != nil {
			parts = append(parts, shift([]part{*p}, from)...)
		}
		return !bad
	})
	if err != nil || bad {
		return nil, errMalformed
	}
	return parts, nil
}

func (s *Session) requestPart(name string, b []byte) (*part, error) {
	if !isObject(b) {
		return nil, errMalformed
	}
	at, err := find(b, memberMethod, memberParams)
	if err != nil {
		return nil, err
	}
	method, ok := wire.Unquote(at[0].in(b))
	if !ok {
		return nil, errMalformed
	}
	if !s.names.addInput(name, method) {
		return nil, errMalformed
	}
	if !abi.IsEvent(method) {
		return nil, nil
	}
	p := &part{events: []string{method}, phase: abi.Request, initiator: Backend}
	if at[1].is() {
		p.from, p.to = at[1].from, at[1].to
	} else {
		// There is at least the method before it.
		p.from, p.lead = len(b)-1, `,"params":`
		p.to = p.from
	}
	return p, nil
}

// answerParts gives the answers of an inputResponses member in params. What an
// answer is governed as is known from the request of that name, else from its
// shape.
func (s *Session) answerParts(params []byte) ([]part, error) {
	at, err := find(params, memberInputResponses)
	if err != nil || !at[0].is() {
		return nil, err
	}
	answers := at[0].in(params)
	var parts []part
	var bad error
	err = each(answers, func(name string, from, to int) bool {
		answer := answers[from:to]
		if !isObject(answer) {
			bad = errMalformed
			return false
		}
		events := s.names.input(name)
		if len(events) == 0 {
			if events, bad = answerShape(answer); bad != nil {
				return false
			}
		}
		events = slices.DeleteFunc(slices.Clone(events), func(e string) bool { return !abi.IsEvent(e) })
		parts = append(parts, part{from: from, to: to, events: events, phase: abi.Response, initiator: Backend})
		return true
	})
	switch {
	case bad != nil:
		return nil, bad
	case err != nil:
		return nil, errMalformed
	}
	return shift(parts, at[0].from), nil
}

func answerShape(answer []byte) ([]string, error) {
	at, err := find(answer, "roots", "action", "role")
	if err != nil {
		return nil, err
	}
	var events []string
	for i, event := range []string{abi.RootsList, abi.ElicitationCreate, abi.SamplingCreate} {
		if at[i].is() {
			events = append(events, event)
		}
	}
	if len(events) == 0 {
		return nil, errUnknownAnswer
	}
	return events, nil
}

// carrier says which members of a payload carry something.
type carrier struct {
	// result is the event whose response phase a member "result" is, or empty.
	result    string
	initiator Side
	// requests says that "inputRequests" counts.
	requests bool
}

// parts gives what the payload carries.
func (s *Session) parts(c carrier) func([]byte) ([]part, error) {
	return func(b []byte) ([]part, error) {
		var parts []part
		if c.requests {
			at, err := findObject(b, memberInputRequests)
			if err != nil {
				return nil, err
			}
			if at.is() {
				if parts, err = s.requestParts(at.in(b)); err != nil {
					return nil, err
				}
				shift(parts, at.from)
			}
		}
		if c.result != "" {
			at, err := findObject(b, memberResult)
			if err != nil {
				return nil, err
			}
			if at.is() {
				parts = append(parts, part{
					from: at.from, to: at.to, events: []string{c.result}, phase: abi.Response, initiator: c.initiator,
					parts: s.parts(carrier{requests: c.requests}),
				})
			}
		}
		slices.SortFunc(parts, func(a, b part) int { return a.from - b.from })
		return parts, nil
	}
}

// findObject is find for one member that must be an object if it is there.
func findObject(b []byte, name string) (span, error) {
	at, err := find(b, name)
	if err == nil && at[0].is() && !isObject(at[0].in(b)) {
		err = errMalformed
	}
	return at[0], err
}

// taskOf gives the id of the task that a result says was created: in the form
// of 2025-11-25, {"task":{"taskId":…}}, or flat with a resultType. It is an error
// when a reader who does not care for case, or for which of two members counts,
// would find a task that this one does not.
func taskOf(result []byte) (string, error) {
	at, err := find(result, memberTask, memberTaskID, memberResultType)
	if err != nil {
		if looksLikeTask(result) {
			return "", errMalformed
		}
		return "", nil
	}
	switch {
	case isObject(at[0].in(result)):
		id, err := find(at[0].in(result), memberTaskID)
		if err != nil {
			return "", err
		}
		return text(id[0].in(at[0].in(result))), nil
	case text(at[2].in(result)) == memberTask:
		return text(at[1].in(result)), nil
	default:
		return "", nil
	}
}

// looksLikeTask says that some member, in whatever spelling, makes the result
// one that creates a task.
func looksLikeTask(result []byte) (is bool) {
	_ = wire.Members(result, func(name string, _, value []byte) bool {
		switch {
		case strings.EqualFold(name, memberResultType):
			is = strings.EqualFold(text(value), memberTask)
		case strings.EqualFold(name, memberTask) && isObject(value):
			_ = wire.Members(value, func(name string, _, _ []byte) bool {
				is = strings.EqualFold(name, memberTaskID)
				return !is
			})
		}
		return !is
	})
	return is
}
