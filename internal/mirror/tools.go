package mirror

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/weir-mcp/weir/internal/wire"
)

// The bounds of a [Tools].
const (
	maxTools  = 10_000 // tools whose headers are remembered
	maxParams = 32     // headers of one tool
	maxNested = 16     // properties inside properties
	maxHeader = 128    // bytes of a header's name
)

// Tools remembers which arguments of which tools go into headers too. It is safe
// for concurrent use. The zero value knows none.
type Tools struct {
	mu sync.Mutex
	of map[string][]param
}

// param is one argument that goes into a header.
type param struct {
	path   []string
	header string
}

var annotation = []byte(`"x-mcp-header"`)

// Learn takes the result of a tools/list. Tools that are not in it keep what is
// known of them, since a list may have pages. An annotation that is not valid
// counts as none.
func (t *Tools) Learn(result []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.of) == 0 && !bytes.Contains(result, annotation) {
		return
	}
	list, _ := wire.Get(result, "tools")
	_ = wire.Elements(list, func(_ int, tool []byte) bool {
		raw, _ := wire.Get(tool, "name")
		name, ok := wire.Unquote(raw)
		if !ok {
			return true
		}
		delete(t.of, name)
		if schema, ok := wire.Get(tool, "inputSchema"); ok && bytes.Contains(schema, annotation) && len(t.of) < maxTools {
			if params := paramsOf(nil, schema, nil); len(params) > 0 {
				if t.of == nil {
					t.of = map[string][]param{}
				}
				t.of[name] = params
			}
		}
		return true
	})
}

// paramsOf finds the annotated properties of a schema.
func paramsOf(found []param, schema []byte, path []string) []param {
	if len(path) == maxNested {
		return found
	}
	properties, _ := wire.Get(schema, "properties")
	_ = wire.Members(properties, func(name string, _, property []byte) bool {
		here := append(path[:len(path):len(path)], name)
		raw, _ := wire.Get(property, "x-mcp-header")
		if header, ok := wire.Unquote(raw); ok && isToken(header) && len(found) < maxParams {
			found = append(found, param{here, ParamPrefix + header})
		}
		found = paramsOf(found, property, here)
		return true
	})
	return found
}

// isToken says whether a text can be a part of a header's name.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != "" && len(s) <= maxHeader
}

// set writes the headers of one call.
func (t *Tools) set(h http.Header, tool string, params []byte) {
	t.mu.Lock()
	wanted := t.of[tool]
	t.mu.Unlock()
	for _, p := range wanted {
		raw, ok := wire.Get(params, append([]string{"arguments"}, p.path...)...)
		if !ok {
			continue
		}
		if value, ok := primitive(raw); ok {
			h.Set(p.header, value)
		}
	}
}

// safeInteger is the largest whole number that every reader of JSON keeps.
const safeInteger = 1<<53 - 1

// primitive gives a string, boolean or whole number the form of a header.
func primitive(raw []byte) (string, bool) {
	switch {
	case len(raw) == 0 || raw[0] == '{' || raw[0] == '[' || raw[0] == 'n':
		return "", false
	case raw[0] == '"':
		text, ok := wire.Unquote(raw)
		return Encode(text), ok
	case raw[0] == 't' || raw[0] == 'f':
		return string(raw), true
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f > safeInteger || f < -safeInteger || f != float64(int64(f)) {
		return "", false
	}
	return strconv.FormatInt(int64(f), 10), true
}
