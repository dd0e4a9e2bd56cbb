//lint:file-ignore SA1019 roots are deprecated, and governed for as long as a peer may use them

package middleware

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/wire"
)

// isNil says that there is nothing in v, a nil pointer included.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
}

// payloadOf is params or a result as JSON, {} for none (protocol.md §3).
func payloadOf(v any) (json.RawMessage, error) {
	if isNil(v) {
		return json.RawMessage("{}"), nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("governed payload: %w", err)
	}
	return plain(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), nil
}

// htmlEscapes are what encoding/json writes for HTML's sake, in the SDK's own
// marshalers too: an interceptor that looks for "<script" is to find it.
var htmlEscapes = map[string]string{"003c": "<", "003e": ">", "0026": "&", "2028": "\u2028", "2029": "\u2029"}

// plain takes those escapes out of JSON.
func plain(b []byte) []byte {
	at := bytes.Index(b, []byte(`\u`))
	if at < 0 {
		return b
	}
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' || i+1 >= len(b) {
			out = append(out, b[i])
			continue
		}
		if b[i+1] == 'u' && i+6 <= len(b) {
			if c, ok := htmlEscapes[string(b[i+2:i+6])]; ok {
				out = append(out, c...)
				i += 5
				continue
			}
		}
		out = append(out, b[i], b[i+1])
		i++
	}
	return out
}

// optionalParams are the types of params that a request may go without.
var optionalParams = map[string]func() mcp.Params{
	abi.ToolsList:     func() mcp.Params { return &mcp.ListToolsParams{} },
	abi.PromptsList:   func() mcp.Params { return &mcp.ListPromptsParams{} },
	abi.ResourcesList: func() mcp.Params { return &mcp.ListResourcesParams{} },
	abi.RootsList:     func() mcp.Params { return &mcp.ListRootsParams{} },
}

// withParams is req with params that say what now says, where was is what they
// said before. req is not changed: its params belong to whoever made them.
func withParams(req mcp.Request, method string, was, now json.RawMessage, outgoing bool) (mcp.Request, error) {
	params := req.GetParams()
	if isNil(params) {
		if make := optionalParams[method]; make != nil {
			params = make()
		} else if t := reflect.ValueOf(req).Elem().FieldByName("Params").Type(); t.Kind() == reflect.Pointer {
			params = reflect.New(t.Elem()).Interface().(mcp.Params)
		} else {
			return nil, errors.New("the request has no params to change")
		}
	}
	changed, err := merged(params, was, now, outgoing)
	if err != nil {
		return nil, err
	}
	return carrying(req, changed)
}

// carrying is a copy of req with other params.
func carrying(req mcp.Request, params mcp.Params) (mcp.Request, error) {
	old := reflect.ValueOf(req).Elem() // *ClientRequest or *ServerRequest, of any params
	copied := reflect.New(old.Type())
	copied.Elem().Set(old)
	field := copied.Elem().FieldByName("Params")
	if !reflect.TypeOf(params).AssignableTo(field.Type()) {
		return nil, fmt.Errorf("params of type %T do not fit the request", params)
	}
	field.Set(reflect.ValueOf(params))
	return copied.Interface().(mcp.Request), nil
}

// merged is a copy of v, a pointer to one of the SDK's structs, that says what
// now says. Members whose spelling is as it was keep the values that v has:
// reading JSON back loses what JSON cannot say, such as a Go type, and what
// float64 cannot hold. Where the copy is written to the wire, untyped members
// that did change keep their spelling.
func merged[T any](v T, was, now json.RawMessage, outgoing bool) (T, error) {
	var none T
	if at := reflect.ValueOf(v); at.Kind() != reflect.Pointer || at.Elem().Kind() != reflect.Struct {
		return none, fmt.Errorf("a %T cannot be changed: it is no pointer to a struct", v)
	}
	old := reflect.ValueOf(v).Elem()
	if err := checkNames(old.Type(), now); err != nil {
		return none, err
	}
	fresh := reflect.New(old.Type())
	if err := read(now, fresh.Interface()); err != nil {
		return none, err
	}
	copied := reflect.New(old.Type())
	copied.Elem().Set(old)
	for _, f := range members(old.Type()) {
		before, wasThere := wire.Get(was, f.name)
		after, isThere := wire.Get(now, f.name)
		if wasThere == isThere && bytes.Equal(before, after) {
			continue
		}
		value := fresh.Elem().FieldByIndex(f.index)
		if outgoing && isThere {
			var err error
			if value, err = exact(value, after); err != nil {
				return none, err
			}
		}
		copied.Elem().FieldByIndex(f.index).Set(value)
	}
	return copied.Interface().(T), nil
}

// read is json.Unmarshal, whose panic is an error: what an interceptor gives back
// goes into unmarshalers of the SDK and of the program, and some of the SDK's do
// not expect null ("inputRequests":{"a":null}).
func read(b []byte, into any) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("reading it panicked: %v", v)
		}
	}()
	return json.Unmarshal(b, into)
}

// exact is value without the losses of float64, where its type allows.
func exact(value reflect.Value, spelled []byte) (reflect.Value, error) {
	t := value.Type()
	switch {
	case t.Kind() == reflect.Interface && t.NumMethod() == 0:
		return reflect.ValueOf(json.RawMessage(bytes.Clone(spelled))), nil
	case t.Kind() == reflect.Map && t.Elem().Kind() == reflect.Interface && t.Elem().NumMethod() == 0:
		m := reflect.New(t)
		dec := json.NewDecoder(bytes.NewReader(spelled))
		dec.UseNumber()
		err := dec.Decode(m.Interface())
		return m.Elem(), err
	}
	return value, nil
}

// member is a field of a struct by its name in JSON.
type member struct {
	name  string
	index []int
}

// members lists the fields of a struct that JSON has, those of embedded structs
// included.
func members(t reflect.Type) (all []member) {
	for _, f := range reflect.VisibleFields(t) {
		tag := f.Tag.Get("json")
		name, _, _ := strings.Cut(tag, ",")
		switch {
		case !f.IsExported(), name == "-", f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct, throughUnexported(t, f.Index):
			continue
		case name == "":
			name = f.Name
		}
		all = append(all, member{name, f.Index})
	}
	return all
}

// throughUnexported says that the field lies in an embedded struct of an
// unexported type or behind a pointer, which reflection cannot set.
func throughUnexported(t reflect.Type, index []int) bool {
	for _, i := range index[:len(index)-1] {
		f := t.Field(i)
		if !f.IsExported() || f.Type.Kind() != reflect.Struct {
			return true
		}
		t = f.Type
	}
	return false
}

// checkNames refuses a payload with a name that is a field's in other letters:
// encoding/json would take it for that field, and nobody else.
func checkNames(t reflect.Type, payload json.RawMessage) error {
	fields := members(t)
	var bad error
	err := wire.Members(payload, func(name string, _, _ []byte) bool {
		for _, f := range fields {
			if name != f.name && strings.EqualFold(name, f.name) {
				bad = fmt.Errorf("member %q is %q in other letters", name, f.name)
			}
		}
		return bad == nil
	})
	return errors.Join(bad, err)
}

// uncached is a list's result that says that it must not be kept for others. What
// is not there is not added.
func uncached(res mcp.Result) mcp.Result {
	old := reflect.Indirect(reflect.ValueOf(res))
	if old.Kind() != reflect.Struct || !old.CanAddr() {
		return res
	}
	field := old.FieldByName("Cacheable")
	if !field.IsValid() || field.Type() != reflect.TypeFor[mcp.Cacheable]() {
		return res
	}
	copied := reflect.New(old.Type())
	copied.Elem().Set(old)
	c := field.Interface().(mcp.Cacheable)
	c.TTLMs = 0
	if c.CacheScope != "" {
		c.CacheScope = "private"
	}
	copied.Elem().FieldByName("Cacheable").Set(reflect.ValueOf(c))
	return copied.Interface().(mcp.Result)
}
