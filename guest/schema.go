package guest

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// SchemaOf derives a JSON Schema from the exported fields of the config type C,
// a struct. It knows what encoding/json makes of booleans, strings, numbers,
// slices, arrays, maps with string keys, pointers and structs; embedded structs
// are an error. Member names come from the json tag and descriptions from a doc
// tag. Objects take no members that the struct does not have, so that a typing
// error of an operator is an error and not an option silently left at its
// default. Types with an UnmarshalJSON of their own, interfaces and
// json.RawMessage take anything. It is nil for a struct without fields.
//
// For all that it cannot say (patterns, ranges, required members) write a
// schema by hand and put it into [Descriptor].ConfigSchema.
func SchemaOf[C any]() (json.RawMessage, error) {
	t := reflect.TypeFor[C]()
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("%s is not a struct", t)
	}
	if t.NumField() == 0 {
		return nil, nil
	}
	return appendSchema(nil, t, "", nil)
}

var (
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
	rawMessage      = reflect.TypeFor[json.RawMessage]()
)

// appendSchema appends the schema of t. The structs that it is inside of are in
// outer: a type that holds itself takes anything there.
func appendSchema(dst []byte, t reflect.Type, doc string, outer []reflect.Type) ([]byte, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	w := schemaWriter{b: append(dst, '{')}
	var err error
	switch {
	case t == rawMessage, reflect.PointerTo(t).Implements(jsonUnmarshaler), slices.Contains(outer, t):
	case reflect.PointerTo(t).Implements(textUnmarshaler):
		w.text("type", "string")
	default:
		err = w.describe(t, outer)
	}
	if doc != "" {
		w.text("description", doc)
	}
	return append(w.b, '}'), err
}

type schemaWriter struct{ b []byte }

func (w *schemaWriter) describe(t reflect.Type, outer []reflect.Type) (err error) {
	switch t.Kind() {
	case reflect.Bool:
		w.text("type", "boolean")
	case reflect.String:
		w.text("type", "string")
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		w.text("type", "integer")
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		w.text("type", "integer")
		w.key("minimum")
		w.b = append(w.b, '0')
	case reflect.Float32, reflect.Float64:
		w.text("type", "number")
	case reflect.Interface:
	case reflect.Slice, reflect.Array:
		if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
			w.text("type", "string") // encoding/json's base64
			return nil
		}
		w.text("type", "array")
		w.key("items")
		w.b, err = appendSchema(w.b, t.Elem(), "", outer)
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			return fmt.Errorf("%s: only maps with string keys are supported", t)
		}
		w.text("type", "object")
		w.key("additionalProperties")
		w.b, err = appendSchema(w.b, t.Elem(), "", outer)
	case reflect.Struct:
		w.text("type", "object")
		w.key("properties")
		w.b = append(w.b, '{')
		if err = w.properties(t, append(outer, t)); err != nil {
			return err
		}
		w.b = append(w.b, '}')
		w.key("additionalProperties")
		w.b = append(w.b, "false"...)
	default:
		return fmt.Errorf("%s has no JSON form", t)
	}
	return err
}

func (w *schemaWriter) properties(t reflect.Type, outer []reflect.Type) (err error) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag, tagged := f.Tag.Lookup("json")
		name, _, _ := strings.Cut(tag, ",")
		if tag == "-" {
			continue
		}
		if f.Anonymous && name == "" {
			return fmt.Errorf("%s is embedded: name its members one by one, or write the schema by hand", f.Name)
		}
		if !f.IsExported() {
			continue
		}
		if !tagged || name == "" {
			name = f.Name
		}
		w.key(name)
		if w.b, err = appendSchema(w.b, f.Type, f.Tag.Get("doc"), outer); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (w *schemaWriter) key(name string) {
	if w.b[len(w.b)-1] != '{' {
		w.b = append(w.b, ',')
	}
	w.b = append(AppendText(w.b, name), ':')
}

func (w *schemaWriter) text(name, value string) {
	w.key(name)
	w.b = AppendText(w.b, value)
}
