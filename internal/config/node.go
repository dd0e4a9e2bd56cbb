package config

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds on the text itself. They hold before the YAML parser sees it, since it
// recurses with the nesting and spends quadratic time on it.
const (
	// MaxFileBytes is the largest file that is read.
	MaxFileBytes = 1 << 20
	// MaxNesting is how deep values nest in the file, and inside "config" too.
	MaxNesting = 64

	maxIndent = 4 * MaxNesting
)

type kind uint8

const (
	scalar kind = iota
	sequence
	mapping
)

type position struct{ line, column int }

// node is the file as a tree: what YAML says, without what weir.yaml has no use
// for (anchors, tags, several documents).
type node struct {
	kind kind
	at   position
	// Of a scalar: its text, with escapes and folding resolved, and whether it
	// was written in quotes or as a block, which makes it a string whatever it
	// looks like.
	text   string
	quoted bool

	items   []*node  // of a sequence
	members []member // of a mapping
}

type member struct {
	name  string
	at    position
	value *node
}

// isNull reports whether n is a plain scalar that stands for nothing.
func (n *node) isNull() bool {
	return n.kind == scalar && !n.quoted && (n.text == "" || n.text == "~" || n.text == "null" || n.text == "Null" || n.text == "NULL")
}

// what is the kind of n in words.
func (n *node) what() string {
	switch {
	case n.kind == sequence:
		return "a list"
	case n.kind == mapping:
		return "a mapping"
	case n.isNull():
		return "empty"
	default:
		return "a single value"
	}
}

// readTree parses one YAML document. A file without content gives an empty
// mapping.
func (l *loader) readTree(data []byte) *node {
	text := strings.TrimPrefix(string(data), "\ufeff")
	if !l.readable(text) {
		return nil
	}
	tokens := lexer.Tokenize(text)
	if !l.admit(tokens) {
		return nil
	}
	file, err := parse(tokens)
	if err != nil {
		at, what := position{}, err.Error()
		var syntax yaml.Error
		if errors.As(err, &syntax) {
			what = syntax.GetMessage()
			if tk := syntax.GetToken(); tk != nil && tk.Position != nil {
				at = placeOf(tk)
			}
		}
		l.fail(at, "this is not YAML: "+what, "")
		return nil
	}
	for _, doc := range file.Docs {
		if doc.Body != nil {
			return l.convert(doc.Body, 0)
		}
	}
	return &node{kind: mapping}
}

// readable refuses what is not UTF-8, and characters that YAML has none of. The
// parser puts others in their place without a word, so that a pattern in another
// encoding would be a guard that never finds anything.
func (l *loader) readable(text string) bool {
	at := position{1, 1}
	for i, r := range text {
		switch {
		case r == '\n':
			at = position{at.line + 1, 0}
		case r == utf8.RuneError:
			if _, n := utf8.DecodeRuneInString(text[i:]); n == 1 {
				l.fail(at, "the file is not UTF-8 from here on", "save it as UTF-8")
				return false
			}
		case unicode.IsControl(r) && r != '\t' && r != '\r' && r != '\u0085':
			l.fail(at, fmt.Sprintf("the character %U cannot stand in YAML", r), fmt.Sprintf(`write it in double quotes as "\x%02x"`, r))
			return false
		}
		at.column++
	}
	return true
}

// parse shields the process from the parser: the file is not worth a crash.
func parse(tokens token.Tokens) (file *ast.File, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the parser gave up: %v", r)
		}
	}()
	return parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
}

// admit refuses what weir.yaml does not have, and nesting without bound, before
// anything recurses over the tokens.
func (l *loader) admit(tokens token.Tokens) bool {
	before := len(l.errs)
	depth, line, onLine := 0, 0, 0
	content := false
	for _, tk := range tokens {
		at := placeOf(tk)
		if at.line != line {
			line, onLine = at.line, 0
			if depth == 0 && at.column > maxIndent && tk.Type != token.CommentType {
				l.fail(at, "this is nested too deeply", "")
				return false
			}
		}
		switch tk.Type {
		case token.AnchorType, token.AliasType, token.MergeKeyType:
			l.fail(at, "anchors, aliases and merge keys are not supported", "write the value out")
		case token.TagType:
			l.fail(at, "tags are not supported", "write the value without the tag; quote it to make it a string")
		case token.MappingKeyType:
			l.fail(at, "complex keys are not supported", `write "key: value"`)
		case token.DirectiveType:
			l.fail(at, "directives are not supported", "leave the line out")
			return false
		case token.DocumentHeaderType:
			if content {
				l.fail(at, "the file has several documents", "keep one")
				return false
			}
		case token.SequenceStartType, token.MappingStartType:
			if depth++; depth > MaxNesting {
				l.fail(at, "this is nested too deeply", "")
				return false
			}
		case token.SequenceEndType, token.MappingEndType:
			depth = max(0, depth-1)
		case token.SequenceEntryType, token.MappingValueType:
			if onLine++; depth == 0 && onLine > MaxNesting {
				l.fail(at, "this is nested too deeply", "")
				return false
			}
		}
		content = content || tk.Type != token.CommentType && tk.Type != token.DocumentHeaderType
		if len(l.errs)-before >= maxErrors {
			return false
		}
	}
	return len(l.errs) == before
}

func placeOf(tk *token.Token) position {
	if tk == nil || tk.Position == nil {
		return position{}
	}
	return position{tk.Position.Line, max(tk.Position.Column, 1)}
}

func (l *loader) convert(n ast.Node, depth int) *node {
	at := placeOf(n.GetToken())
	if depth > MaxNesting {
		l.fail(at, "this is nested too deeply", "")
		return &node{at: at}
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		return l.convertMapping(at, n.IsFlowStyle, n.Values, depth)
	case *ast.MappingValueNode:
		return l.convertMapping(at, false, []*ast.MappingValueNode{n}, depth)
	case *ast.SequenceNode:
		out := &node{kind: sequence, at: at}
		for _, v := range n.Values {
			out.items = append(out.items, l.convertValue(v, at, depth))
		}
		return out
	case *ast.LiteralNode:
		return &node{at: at, text: n.Value.Value, quoted: true}
	case *ast.StringNode:
		quoted := n.Token.Type == token.SingleQuoteType || n.Token.Type == token.DoubleQuoteType
		return &node{at: at, text: n.Value, quoted: quoted}
	case *ast.NullNode:
		return &node{at: at}
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return &node{at: at, text: strings.TrimSpace(n.GetToken().Value)}
	default:
		l.fail(at, "this kind of YAML is not supported: "+n.Type().String(), "")
		return &node{at: at}
	}
}

// convertValue gives an absent value the place of what it belongs to.
func (l *loader) convertValue(n ast.Node, owner position, depth int) *node {
	if n == nil {
		return &node{at: owner}
	}
	return l.convert(n, depth+1)
}

func (l *loader) convertMapping(at position, flow bool, values []*ast.MappingValueNode, depth int) *node {
	out := &node{kind: mapping, at: at}
	seen := make(map[string]position, len(values))
	for i, v := range values {
		key, ok := v.Key.(ast.Node)
		if !ok || key == nil {
			l.fail(at, "a key is missing", "")
			continue
		}
		keyAt := placeOf(key.GetToken())
		if i == 0 && !flow {
			out.at = keyAt // a block has no token of its own
		}
		k := l.convert(key, depth+1)
		if k.kind != scalar || !k.quoted && typeOf(k.text) != isString {
			l.fail(keyAt, "a key must be a string", "put it in quotes")
			continue
		}
		if first, twice := seen[k.text]; twice {
			l.fail(keyAt, fmt.Sprintf("%q is there twice, first in line %d", k.text, first.line), "keep one")
			continue
		}
		seen[k.text] = keyAt
		out.members = append(out.members, member{name: k.text, at: keyAt, value: l.convertValue(v.Value, keyAt, depth)})
	}
	return out
}
