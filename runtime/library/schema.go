package library

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/wire"
)

// A schema comes from a module and a config from a caller, and the validator
// can be interrupted by neither. So what a schema may cost is bounded before it
// is used: it does not refer to itself, its references point into itself, and
// written out in full it has at most maxSchemaSize parts. The cost of a
// validation is then at most parts times bytes.
const (
	maxSchemaBytes   = 256 << 10
	maxSchemaSize    = 10_000
	maxSchemaDepth   = 100
	maxValidation    = 256 << 20 // parts of the schema x bytes of the config
	maxComplaintText = 2 << 10
)

// schema is a configSchema, resolved once.
type schema struct {
	resolved *jsonschema.Resolved
	size     int
	// passed is a config that was found valid last. An invoker sends the same
	// one with every call.
	passed atomic.Pointer[[]byte]
}

// maxPassed bounds what is kept in passed, in bytes.
const maxPassed = 64 << 10

// newSchema resolves a configSchema; nil gives nil.
func newSchema(raw json.RawMessage) (*schema, error) {
	if raw == nil {
		return nil, nil
	}
	if len(raw) > maxSchemaBytes {
		return nil, fmt.Errorf("configSchema: has %d bytes, more than %d", len(raw), maxSchemaBytes)
	}
	var root any
	if err := json.Unmarshal(raw, &root); err != nil {
		return nil, fmt.Errorf("configSchema: %w", err)
	}
	e := expansion{root: root, of: map[string]int{}}
	size := e.measure("#", root, 0)
	if e.err != nil {
		return nil, fmt.Errorf("configSchema: %w", e.err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("configSchema: %w", err)
	}
	if s.Schema != "" && strings.TrimSuffix(s.Schema, "#") != "https://json-schema.org/draft/2020-12/schema" {
		return nil, fmt.Errorf("configSchema: $schema is %q; draft 2020-12 is the one that is read", s.Schema)
	}
	// Without a loader a remote reference is an error, never a request.
	resolved, err := resolve(&s)
	if err != nil {
		return nil, fmt.Errorf("configSchema: %w", err)
	}
	return &schema{resolved: resolved, size: size}, nil
}

// resolve keeps a panic of the schema library, whose input is a stranger's, to
// the schema that caused it.
func resolve(s *jsonschema.Schema) (r *jsonschema.Resolved, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("cannot be resolved: %v", p)
		}
	}()
	return s.Resolve(nil)
}

// CheckConfig reports what is wrong with a config for the interceptor that d
// describes, before anybody invokes it: nil when it is an object of d's
// ConfigSchema. A schema that cannot be used is the interceptor's fault and
// reported too.
func CheckConfig(d *abi.Descriptor, config json.RawMessage) *abi.Error {
	s, err := newSchema(d.ConfigSchema)
	if err != nil {
		return abi.BadConfig(d.Name, "configSchema", err)
	}
	return s.validate(d.Name, config)
}

// validate checks a config. A failure is an *abi.Error of the named interceptor
// with the path of the failing member where it can be told.
func (s *schema) validate(name string, config json.RawMessage) (failure *abi.Error) {
	if s != nil {
		if passed := s.passed.Load(); passed != nil && bytes.Equal(*passed, config) {
			return nil
		}
	}
	if err := wire.Strict(config); err != nil {
		return abi.BadConfig(name, "config", err)
	}
	if config = bytes.TrimLeft(config, " \t\r\n"); config[0] != '{' {
		return abi.BadConfig(name, "config", errors.New("is not an object"))
	}
	if s == nil {
		return nil
	}
	if int64(s.size)*int64(len(config)) > maxValidation {
		return abi.BadConfig(name, "config", fmt.Errorf("a config of %d bytes is too large for a schema of %d parts", len(config), s.size))
	}
	defer func() {
		if p := recover(); p != nil {
			failure = abi.BadConfig(name, "config", fmt.Errorf("the schema cannot be applied: %v", p))
		}
	}()
	var value any
	if err := json.Unmarshal(config, &value); err != nil {
		return abi.BadConfig(name, "config", err)
	}
	if err := s.resolved.Validate(value); err != nil {
		return abi.BadConfig(name, failingMember(err), errors.New(wire.Clip(err.Error(), maxComplaintText)))
	}
	if len(config) <= maxPassed {
		passed := bytes.Clone(config)
		s.passed.Store(&passed)
	}
	return nil
}

// failingMember reads out of the chain of errors, each of which names the part
// of the schema that it stands for, which member of the config failed:
// "config.rules[].name". It stops where the chain branches.
func failingMember(err error) string {
	path, at := "config", ""
	for ; err != nil; err = errors.Unwrap(err) {
		inner := errors.Unwrap(err)
		if inner == nil {
			break
		}
		part, ok := strings.CutPrefix(strings.TrimSuffix(err.Error(), ": "+inner.Error()), "validating ")
		if !ok {
			continue
		}
		if part == "root" {
			part = ""
		}
		// Behind a reference the part stands elsewhere in the schema, and for
		// the same member.
		if step, ok := strings.CutPrefix(part, at+"/"); ok {
			path += memberOf(step)
		}
		at = part
	}
	return path
}

// memberOf turns a step in the schema into one in the instance.
func memberOf(step string) string {
	keyword, rest, _ := strings.Cut(step, "/")
	switch keyword {
	case "properties":
		return "." + strings.NewReplacer("~1", "/", "~0", "~").Replace(rest)
	case "items", "prefixItems", "additionalItems", "unevaluatedItems", "contains":
		return "[]"
	case "additionalProperties", "patternProperties", "unevaluatedProperties":
		return ".*"
	default:
		return ""
	}
}

// expansion measures a schema with its references written out.
type expansion struct {
	root any
	of   map[string]int // by pointer; visiting while it is being measured
	err  error
}

const visiting = -1

func (e *expansion) fail(format string, args ...any) int {
	if e.err == nil {
		e.err = fmt.Errorf(format, args...)
	}
	return 0
}

// measure counts the parts of value, which stands at pointer when that is not
// empty.
func (e *expansion) measure(pointer string, value any, depth int) (size int) {
	if e.err != nil {
		return 0
	}
	if depth > maxSchemaDepth {
		return e.fail("is nested more than %d deep", maxSchemaDepth)
	}
	if pointer != "" {
		switch size, ok := e.of[pointer]; {
		case size == visiting:
			return e.fail("%s refers to itself; write it out to the depth you need", pointer)
		case ok:
			return size
		}
		e.of[pointer] = visiting
		defer func() { e.of[pointer] = size }()
	}
	size = 1
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			size += e.measure("", item, depth+1)
		}
	case map[string]any:
		for key, member := range v {
			size += e.member(key, member, depth+1)
		}
	}
	if size > maxSchemaSize {
		return e.fail("has more than %d parts with its references written out", maxSchemaSize)
	}
	return size
}

func (e *expansion) member(key string, value any, depth int) int {
	switch key {
	case "$ref":
		ref, ok := value.(string)
		if !ok {
			return e.fail("$ref is no string")
		}
		target, ok := e.find(ref)
		if !ok {
			return e.fail("$ref %q: only references to a part of the same schema, such as #/$defs/name, are followed", ref)
		}
		return e.measure(ref, target, depth)
	case "$dynamicRef", "$recursiveRef":
		return e.fail("%s is not supported", key)
	case "$id":
		if depth > 1 {
			return e.fail("$id below the top is not supported")
		}
		return 1
	case "$defs", "definitions", "enum", "const", "default", "examples":
		// Counted where they are referred to, or plain data.
		return 1
	default:
		return e.measure("", value, depth)
	}
}

// find looks up a JSON pointer in a fragment.
func (e *expansion) find(ref string) (any, bool) {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil, false
	}
	at := e.root
	if pointer == "" {
		return at, true
	}
	if pointer[0] != '/' {
		return nil, false
	}
	for _, step := range strings.Split(pointer[1:], "/") {
		members, ok := at.(map[string]any)
		if !ok {
			return nil, false
		}
		if at, ok = members[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]; !ok {
			return nil, false
		}
	}
	return at, true
}
