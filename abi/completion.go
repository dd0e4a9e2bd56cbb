package abi

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// CompletionRequest is the payload of llm/completion in the request phase, for
// those who make one or look into one. Whoever changes a payload that somebody
// else made edits its JSON (package guest does): AppendJSON keeps every member,
// but not their order.
type CompletionRequest struct {
	Model string
	// Messages is at least empty in JSON.
	Messages []CompletionMessage
	// MaxTokens bounds the answer; 0 is not set.
	MaxTokens int64
	// Temperature is not set when nil.
	Temperature *float64
	// Metadata is a JSON object as spelled, or nil.
	Metadata json.RawMessage
	// Other is the members that this type does not know, in their order.
	Other []Member
}

// CompletionMessage is one turn of a conversation.
type CompletionMessage struct {
	Role string
	// Content is JSON as spelled: a string, or the blocks that some models speak
	// in. See [CompletionMessage.Text] and [TextContent].
	Content json.RawMessage
	Other   []Member
}

// CompletionResponse is the payload of llm/completion in the response phase; see
// [CompletionRequest].
type CompletionResponse struct {
	Model      string
	Message    CompletionMessage
	StopReason string
	// Usage is nil when it is not told.
	Usage *CompletionUsage
	// Metadata is a JSON object as spelled, or nil.
	Metadata json.RawMessage
	Other    []Member
}

// CompletionUsage is what a completion cost, in tokens.
type CompletionUsage struct {
	InputTokens, OutputTokens int64
	Other                     []Member
}

// Member is a member of a JSON object, its value as spelled.
type Member struct {
	Name  string
	Value json.RawMessage
}

// TextContent is a text as the content of a message.
func TextContent(text string) json.RawMessage { return AppendString(nil, text) }

// Text is the text of the message: its content if that is a string, else the
// members "text" of its blocks, a line each. What is no text is left out.
func (m *CompletionMessage) Text() string {
	switch kindOf(m.Content) {
	case '"':
		text, _ := readString(m.Content)
		return text
	case '{':
		return blockText(m.Content)
	case '[':
		blocks, _ := readArray(m.Content, keyContent)
		var lines []string
		for _, b := range blocks {
			if text := blockText(b); text != "" {
				lines = append(lines, text)
			}
		}
		return strings.Join(lines, "\n")
	}
	return ""
}

func blockText(raw json.RawMessage) string {
	if kindOf(raw) == '"' {
		text, _ := readString(raw)
		return text
	}
	o, err := readObject(raw)
	if err != nil {
		return ""
	}
	text, _, _ := o.string(keyText)
	return text
}

// ReadCompletionRequest reads a bare payload. A member of another type than the
// struct has is an error, one that is missing is not, but for messages.
func ReadCompletionRequest(payload json.RawMessage) (CompletionRequest, error) {
	r, err := readCompletionRequest(payload)
	if err != nil {
		return CompletionRequest{}, fmt.Errorf("llm/completion request: %w", err)
	}
	return r, nil
}

func readCompletionRequest(payload json.RawMessage) (r CompletionRequest, err error) {
	o, err := readObject(payload)
	if err != nil {
		return r, err
	}
	if r.Model, _, err = o.string(keyModel); err != nil {
		return r, err
	}
	if r.MaxTokens, err = o.count(keyMaxTokens); err != nil {
		return r, err
	}
	if v, ok := o.get(keyTemperature); ok {
		t, err := strconv.ParseFloat(string(v), 64)
		if kindOf(v) != '0' || err != nil {
			return r, fmt.Errorf("%q is not a number", keyTemperature)
		}
		r.Temperature = &t
	}
	if r.Metadata, err = o.object(keyMetadata); err != nil {
		return r, err
	}
	raw, ok := o.get(keyMessages)
	if !ok {
		return r, fmt.Errorf("%q is missing", keyMessages)
	}
	items, err := readArray(raw, strconv.Quote(keyMessages))
	if err != nil {
		return r, err
	}
	r.Messages = make([]CompletionMessage, len(items))
	for i, item := range items {
		if r.Messages[i], err = readCompletionMessage(item); err != nil {
			return r, fmt.Errorf("%q, element %d: %w", keyMessages, i, err)
		}
	}
	r.Other = o.without(keyModel, keyMessages, keyMaxTokens, keyTemperature, keyMetadata)
	return r, nil
}

func readCompletionMessage(raw json.RawMessage) (m CompletionMessage, err error) {
	o, err := readObject(raw)
	if err != nil {
		return m, err
	}
	if m.Role, _, err = o.string(keyRole); err != nil {
		return m, err
	}
	m.Content, _ = o.get(keyContent)
	switch kindOf(m.Content) {
	case '"', '[', '{', 0:
	default:
		return m, fmt.Errorf("%q is neither a string nor blocks", keyContent)
	}
	m.Other = o.without(keyRole, keyContent)
	return m, nil
}

// ReadCompletionResponse reads a bare payload. A member of another type than the
// struct has is an error, one that is missing is not, but for the message.
func ReadCompletionResponse(payload json.RawMessage) (CompletionResponse, error) {
	r, err := readCompletionResponse(payload)
	if err != nil {
		return CompletionResponse{}, fmt.Errorf("llm/completion response: %w", err)
	}
	return r, nil
}

func readCompletionResponse(payload json.RawMessage) (r CompletionResponse, err error) {
	o, err := readObject(payload)
	if err != nil {
		return r, err
	}
	if r.Model, _, err = o.string(keyModel); err != nil {
		return r, err
	}
	if r.StopReason, _, err = o.string(keyStopReason); err != nil {
		return r, err
	}
	if r.Metadata, err = o.object(keyMetadata); err != nil {
		return r, err
	}
	raw, ok := o.get(keyMessage)
	if !ok {
		return r, fmt.Errorf("%q is missing", keyMessage)
	}
	if r.Message, err = readCompletionMessage(raw); err != nil {
		return r, fmt.Errorf("%q %w", keyMessage, err)
	}
	if usage, ok := o.get(keyUsage); ok {
		if r.Usage, err = readCompletionUsage(usage); err != nil {
			return r, fmt.Errorf("%q %w", keyUsage, err)
		}
	}
	r.Other = o.without(keyModel, keyMessage, keyStopReason, keyUsage, keyMetadata)
	return r, nil
}

func readCompletionUsage(raw json.RawMessage) (*CompletionUsage, error) {
	o, err := readObject(raw)
	if err != nil {
		return nil, err
	}
	u := &CompletionUsage{Other: o.without(keyInputTokens, keyOutputTokens)}
	if u.InputTokens, err = o.count(keyInputTokens); err != nil {
		return nil, err
	}
	u.OutputTokens, err = o.count(keyOutputTokens)
	return u, err
}

// AppendJSON appends the request as JSON.
func (r *CompletionRequest) AppendJSON(dst []byte) []byte {
	o := openObject(dst)
	o.optString(keyModel, r.Model)
	b := append(o.key(keyMessages), '[')
	for i := range r.Messages {
		if i > 0 {
			b = append(b, ',')
		}
		b = r.Messages[i].appendJSON(b)
	}
	o.b = append(b, ']')
	if r.MaxTokens != 0 {
		o.int(keyMaxTokens, r.MaxTokens)
	}
	if r.Temperature != nil {
		o.float(keyTemperature, *r.Temperature)
	}
	o.optRaw(keyMetadata, r.Metadata)
	return o.closeWith(r.Other)
}

func (m *CompletionMessage) appendJSON(dst []byte) []byte {
	o := openObject(dst)
	o.string(keyRole, m.Role)
	o.optRaw(keyContent, m.Content)
	return o.closeWith(m.Other)
}

// AppendJSON appends the response as JSON.
func (r *CompletionResponse) AppendJSON(dst []byte) []byte {
	o := openObject(dst)
	o.optString(keyModel, r.Model)
	o.b = r.Message.appendJSON(o.key(keyMessage))
	o.optString(keyStopReason, r.StopReason)
	if u := r.Usage; u != nil {
		inner := openObject(o.key(keyUsage))
		inner.int(keyInputTokens, u.InputTokens)
		inner.int(keyOutputTokens, u.OutputTokens)
		o.b = inner.closeWith(u.Other)
	}
	o.optRaw(keyMetadata, r.Metadata)
	return o.closeWith(r.Other)
}

func (o *objectWriter) closeWith(other []Member) []byte {
	for _, m := range other {
		o.raw(m.Name, m.Value)
	}
	return o.close()
}

// count reads a whole number that is not negative; 0 when there is none.
func (o object) count(name string) (int64, error) {
	v, ok := o.get(name)
	if !ok {
		return 0, nil
	}
	if n, err := strconv.ParseInt(string(v), 10, 64); err == nil && n >= 0 {
		return n, nil
	}
	// 1e3 and 1000.0 are whole numbers, too.
	f, err := strconv.ParseFloat(string(v), 64)
	if kindOf(v) != '0' || err != nil || f < 0 || f >= 1<<53 || f != float64(int64(f)) {
		return 0, fmt.Errorf("%q is not a whole number of tokens", name)
	}
	return int64(f), nil
}

// object reads a member that is an object; nil when there is none.
func (o object) object(name string) (json.RawMessage, error) {
	v, ok := o.get(name)
	if !ok {
		return nil, nil
	}
	if kindOf(v) != '{' {
		return nil, fmt.Errorf("%q %w", name, errors.New("is not an object"))
	}
	return v, nil
}

// without is the members of other names.
func (o object) without(names ...string) (rest []Member) {
members:
	for _, m := range o {
		for _, name := range names {
			if m.name == name {
				continue members
			}
		}
		rest = append(rest, Member{m.name, m.value})
	}
	return rest
}
