package chain

import (
	"errors"
	"fmt"
	"slices"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/wire"
)

// shape is the least that the params or the result of an event must be so that
// whoever receives them can make sense of them: an object in which these members
// are as they should be. What else is in it is the matter of client and server.
type shape []shaped

// shaped is one member that matters. Kinds are first characters of JSON values.
type shaped struct {
	name     string
	required bool
	kinds    string // of values that will do
	elements string // of the elements that will do, where the value is an array; "" is any
}

// meta is what every params and every result may hold.
var meta = shaped{name: "_meta", kinds: "{"}

func must(name, kinds string) shaped {
	return shaped{name: name, required: true, kinds: kinds, elements: "{"}
}
func may(name, kinds string) shaped { return shaped{name: name, kinds: kinds} }

var requestShapes = map[string]shape{
	abi.ToolsList:          {may("cursor", `"`), meta},
	abi.ToolsCall:          {must("name", `"`), may("arguments", "{"), meta},
	abi.PromptsList:        {may("cursor", `"`), meta},
	abi.PromptsGet:         {must("name", `"`), may("arguments", "{"), meta},
	abi.ResourcesList:      {may("cursor", `"`), meta},
	abi.ResourcesRead:      {must("uri", `"`), meta},
	abi.ResourcesSubscribe: {must("uri", `"`), meta},
	abi.SamplingCreate:     {must("messages", "["), meta},
	abi.ElicitationCreate:  {must("message", `"`), meta},
	abi.LLMCompletion:      {must("messages", "["), meta},
}

var responseShapes = map[string]shape{
	abi.ToolsList:         {must("tools", "["), may("nextCursor", `"`), meta},
	abi.ToolsCall:         {must("content", "["), may("structuredContent", "{"), may("isError", "t"), meta},
	abi.PromptsList:       {must("prompts", "["), may("nextCursor", `"`), meta},
	abi.PromptsGet:        {must("messages", "["), meta},
	abi.ResourcesList:     {must("resources", "["), may("nextCursor", `"`), meta},
	abi.ResourcesRead:     {must("contents", "["), meta},
	abi.SamplingCreate:    {must("role", `"`), must("content", "{["), meta},
	abi.ElicitationCreate: {must("action", `"`), may("content", "{"), meta},
	abi.RootsList:         {must("roots", "["), meta},
	abi.LLMCompletion:     {must("message", "{"), meta},
}

// anyShape is the shape of events that nothing is known of.
var anyShape = shape{meta}

// flaw is what is wrong with one member.
type flaw struct {
	member  string
	kind    byte // of the value that will not do, 0 where the member is missing
	element bool // it is an element of the member
}

func (f flaw) String() string {
	switch {
	case f.kind == 0:
		return fmt.Sprintf("has no %q", f.member)
	case f.element:
		return fmt.Sprintf("has an element in %q that is %s", f.member, kindName(f.kind))
	default:
		return fmt.Sprintf("has a %q that is %s", f.member, kindName(f.kind))
	}
}

// checkShape says why what a mutation made of input is no params or result
// object for its event, or nil. Both are strict JSON.
//
// Only what the mutation brought about counts. Peers send members that are
// missing or of the wrong kind, `"arguments":null` above all, and others live
// with it; an interceptor that leaves such a member as it was, or changes what
// is inside, is not to blame, and blocking there would make a message's fate
// depend on whether somebody redacted it elsewhere.
func checkShape(event string, phase abi.Phase, payload, input []byte) error {
	if kindOf(payload) != '{' {
		return errors.New("the payload is not an object")
	}
	found := flawsOf(event, phase, payload)
	if len(found) == 0 {
		return nil
	}
	before := flawsOf(event, phase, input)
	for _, f := range found {
		if !slices.Contains(before, f) {
			return fmt.Errorf("the payload of %s %v", event, f)
		}
	}
	return nil
}

// flawsOf gives what is wrong with an object as params or result.
func flawsOf(event string, phase abi.Phase, object []byte) (found []flaw) {
	shapes := requestShapes
	if phase == abi.Response {
		if polymorphic(object) {
			return nil
		}
		shapes = responseShapes
	}
	members, ok := shapes[event]
	if !ok {
		members = anyShape
	}
	for i := range members {
		m := &members[i]
		value, ok := wire.Get(object, m.name)
		switch {
		case !ok && m.required:
			found = append(found, flaw{member: m.name})
		case !ok:
		case !fits(value, m.kinds):
			found = append(found, flaw{member: m.name, kind: kindOf(value)})
		case m.elements != "" && kindOf(value) == '[':
			// The text has been checked, so that nothing can go wrong here.
			_ = wire.Elements(value, func(_ int, element []byte) bool {
				if f := (flaw{m.name, kindOf(element), true}); !fits(element, m.elements) && !slices.Contains(found, f) {
					found = append(found, f)
				}
				return true
			})
		}
	}
	return found
}

func fits(value []byte, kinds string) bool {
	kind := kindOf(value)
	for i := range len(kinds) {
		if kinds[i] == kind {
			return true
		}
	}
	return false
}

// polymorphic reports whether a result stands for another one that comes later:
// a task was created, or input is required (protocol.md §3, §6). Such a result
// has the members of its own kind.
func polymorphic(result []byte) bool {
	if v, ok := wire.Get(result, "task"); ok && kindOf(v) == '{' {
		return true
	}
	if v, ok := wire.Get(result, "inputRequests"); ok && kindOf(v) == '{' {
		return true
	}
	kind, ok := wire.Get(result, "resultType")
	if !ok {
		return false
	}
	text, ok := wire.Unquote(kind)
	return ok && text != "complete"
}

// kindOf is the first character of a JSON value, white space aside; all numbers
// count as '0' and both truth values as 't'. It is 0 where there is no value.
func kindOf(raw []byte) byte {
	for _, c := range raw {
		switch c {
		case ' ', '\t', '\n', '\r':
		case 'f':
			return 't'
		case '-', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			return '0'
		default:
			return c
		}
	}
	return 0
}

func kindName(kind byte) string {
	switch kind {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a text"
	case 't':
		return "true or false"
	case 'n':
		return "null"
	default:
		return "a number"
	}
}
