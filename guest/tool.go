package guest

import (
	"encoding/json"
	"errors"
	"fmt"
)

// ToolCall is the params of tools/call.
type ToolCall struct {
	// Name is the tool's, never empty.
	Name string
	// Arguments is an object as spelled, or nil.
	Arguments json.RawMessage
	// Meta is the member _meta, an object as spelled, or nil.
	Meta json.RawMessage
}

// Argument returns the argument at a path of member names, as [Get] does.
func (c *ToolCall) Argument(path ...string) (json.RawMessage, bool) {
	if c.Arguments == nil {
		return nil, false
	}
	return Get(c.Arguments, path...)
}

// ToolCall reads the params of tools/call: the payload in the request phase,
// the request that the payload answers in the response phase. It fails for any
// other event, for params that are malformed, and in the response phase where
// the host does not have the request.
func (o *Operation) ToolCall() (ToolCall, error) {
	raw := o.Payload
	if o.Phase == Response {
		raw = o.Request
	}
	var c ToolCall
	switch {
	case o.Event != ToolsCall:
		return c, fmt.Errorf("%s has no tool call", o.Event)
	case raw == nil:
		return c, errors.New("the host did not say which request this answers")
	}
	seen := ""
	err := readOnce(raw, func(name string, value json.RawMessage) (err error) {
		switch name {
		case "name":
			if seen, err = wantText(value); err == nil && seen == "" {
				err = errors.New("is empty")
			}
			c.Name = seen
		case "arguments":
			c.Arguments, err = wantObject(value)
		case "_meta":
			c.Meta, err = wantObject(value)
		}
		return err
	})
	if err == nil && c.Name == "" {
		err = errors.New(`"name" is missing`)
	}
	if err != nil {
		return ToolCall{}, fmt.Errorf("tools/call params: %w", err)
	}
	return c, nil
}

// ToolResult is the result of tools/call. A result that is no tool result (a
// task that was created, a demand for input) has none of these members.
type ToolResult struct {
	Content []Content
	// StructuredContent is any JSON as spelled, or nil.
	StructuredContent json.RawMessage
	IsError           bool
	// Meta is the member _meta, an object as spelled, or nil.
	Meta json.RawMessage
}

// Content is one block of a tool's result.
type Content struct {
	// Type is "text", "image", "audio", "resource_link", "resource" or one that
	// a later version of MCP adds.
	Type string
	// Text is the block's member "text", which blocks of type "text" have.
	Text string
	// Raw is the block as spelled.
	Raw json.RawMessage
}

// ToolResult reads the result of tools/call. It fails for any other event, in
// the request phase, and for a result that is malformed. To look at every
// string of a result, whatever its kind, use [WalkStrings] on the payload.
func (o *Operation) ToolResult() (ToolResult, error) {
	var r ToolResult
	if o.Event != ToolsCall || o.Phase != Response {
		return r, fmt.Errorf("the %s of %s has no tool result", o.Phase, o.Event)
	}
	err := readOnce(o.Payload, func(name string, value json.RawMessage) (err error) {
		switch name {
		case "content":
			r.Content, err = readContent(value)
		case "structuredContent":
			r.StructuredContent = value
		case "isError":
			r.IsError, err = wantBool(value)
		case "_meta":
			r.Meta, err = wantObject(value)
		}
		return err
	})
	if err != nil {
		return ToolResult{}, fmt.Errorf("tools/call result: %w", err)
	}
	return r, nil
}

func readContent(raw json.RawMessage) ([]Content, error) {
	if len(raw) == 0 || raw[0] != '[' {
		return nil, errors.New("is not an array")
	}
	list := []Content{}
	for i, block := range Elements(raw) {
		c := Content{Raw: block}
		err := readOnce(block, func(name string, value json.RawMessage) (err error) {
			switch name {
			case "type":
				c.Type, err = wantText(value)
			case "text":
				c.Text, err = wantText(value)
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
		list = append(list, c)
	}
	return list, nil
}

// readOnce reads an object whose members that read understands may not stand
// there twice. An error of read is put under the member's name.
func readOnce(raw json.RawMessage, read func(name string, value json.RawMessage) error) error {
	seen := make(map[string]struct{}, 8)
	return readMembers(raw, func(_ span, name string, value span) error {
		if _, twice := seen[name]; twice {
			return fmt.Errorf("%q %w", name, errTwice)
		}
		seen[name] = struct{}{}
		if err := read(name, value.of(raw)); err != nil {
			return fmt.Errorf("%q %w", name, err)
		}
		return nil
	})
}

func wantText(raw json.RawMessage) (string, error) {
	s, ok := Text(raw)
	if !ok {
		return "", errors.New("is not a string")
	}
	return s, nil
}

func wantBool(raw json.RawMessage) (bool, error) {
	switch string(raw) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, errors.New("is not a boolean")
}

// wantObject takes null for an absent member.
func wantObject(raw json.RawMessage) (json.RawMessage, error) {
	switch {
	case string(raw) == "null":
		return nil, nil
	case len(raw) == 0 || raw[0] != '{':
		return nil, errors.New("is not an object")
	}
	return raw, nil
}
