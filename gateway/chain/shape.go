package chain

import (
	"errors"
	"fmt"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/wire"
)

// requiredMember is a member without which params or a result make no sense to
// whoever receives them.
type requiredMember struct {
	name  string
	kinds string // first characters of the JSON values that will do
}

// optionalMember has a kind where it is there.
type optionalMember = requiredMember

// shape is the least that the params or the result of an event must be: an
// object with these members. What else is in them is the matter of client and
// server.
type shape struct {
	required []requiredMember
	optional []optionalMember
}

var (
	cursor    = []optionalMember{{"cursor", `"`}}
	arguments = []optionalMember{{"arguments", "{"}}
)

var requestShapes = map[string]shape{
	abi.ToolsList:          {optional: cursor},
	abi.ToolsCall:          {required: []requiredMember{{"name", `"`}}, optional: arguments},
	abi.PromptsList:        {optional: cursor},
	abi.PromptsGet:         {required: []requiredMember{{"name", `"`}}, optional: arguments},
	abi.ResourcesList:      {optional: cursor},
	abi.ResourcesRead:      {required: []requiredMember{{"uri", `"`}}},
	abi.ResourcesSubscribe: {required: []requiredMember{{"uri", `"`}}},
	abi.SamplingCreate:     {required: []requiredMember{{"messages", "["}}},
	abi.ElicitationCreate:  {required: []requiredMember{{"message", `"`}}},
	abi.LLMCompletion:      {required: []requiredMember{{"messages", "["}}},
}

var responseShapes = map[string]shape{
	abi.ToolsList:         {required: []requiredMember{{"tools", "["}}},
	abi.ToolsCall:         {required: []requiredMember{{"content", "["}}, optional: []optionalMember{{"structuredContent", "{"}, {"isError", "tf"}}},
	abi.PromptsList:       {required: []requiredMember{{"prompts", "["}}},
	abi.PromptsGet:        {required: []requiredMember{{"messages", "["}}},
	abi.ResourcesList:     {required: []requiredMember{{"resources", "["}}},
	abi.ResourcesRead:     {required: []requiredMember{{"contents", "["}}},
	abi.SamplingCreate:    {required: []requiredMember{{"role", `"`}, {"content", "{["}}},
	abi.ElicitationCreate: {required: []requiredMember{{"action", `"`}}},
	abi.RootsList:         {required: []requiredMember{{"roots", "["}}},
}

// checkShape says why a mutated payload is no params or result object for its
// event, or nil. payload is strict JSON.
func checkShape(event string, phase abi.Phase, payload []byte) error {
	if kindOf(payload) != '{' {
		return errors.New("the payload is not an object")
	}
	shapes := requestShapes
	if phase == abi.Response {
		if polymorphic(payload) {
			return nil
		}
		shapes = responseShapes
	}
	s := shapes[event]
	for _, m := range s.required {
		if v, ok := wire.Get(payload, m.name); !ok {
			return fmt.Errorf("the payload of %s has no %q", event, m.name)
		} else if !m.fits(v) {
			return fmt.Errorf("in the payload of %s %q is of the wrong kind", event, m.name)
		}
	}
	for _, m := range s.optional {
		if v, ok := wire.Get(payload, m.name); ok && !m.fits(v) {
			return fmt.Errorf("in the payload of %s %q is of the wrong kind", event, m.name)
		}
	}
	return nil
}

func (m *requiredMember) fits(value []byte) bool {
	kind := kindOf(value)
	for i := range len(m.kinds) {
		if m.kinds[i] == kind {
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

// kindOf is the first character of a JSON value, white space aside.
func kindOf(raw []byte) byte {
	for _, c := range raw {
		if c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return c
		}
	}
	return 0
}
