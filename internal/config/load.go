package config

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/weir-mcp/weir/internal/nearest"
)

// maxErrors bounds what is reported at once: who has made so many mistakes
// fixes some and comes back.
const maxErrors = 50

// Load reads the file at path. Folders in it that are relative are taken from
// the file's folder, and its commands run there. A file that cannot be read is
// an error of the os package, wrong content is [Errors].
//
// Whether the hosts that interceptors name exist is not checked until
// [File.With], since the command line may add them.
func Load(path string, lookup LookupEnv) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("the configuration cannot be read: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("the configuration cannot be read: %w", err)
	}
	return Parse(path, data, lookup)
}

// Parse is [Load] for content that was read already; path is used in messages
// and to resolve relative paths, and is not opened.
func Parse(path string, data []byte, lookup LookupEnv) (*File, error) {
	l := &loader{path: path, dir: filepath.Dir(path), lookup: lookup, consumed: make(map[string]struct{})}
	if len(data) > MaxFileBytes {
		l.fail(position{}, fmt.Sprintf("the file is larger than %d bytes", MaxFileBytes), "")
		return nil, l.errs
	}
	f := Default()
	f.Path = path
	if root := l.readTree(data); root != nil && len(l.errs) == 0 {
		l.file(root, f)
	}
	if len(l.errs) > 0 {
		l.errs.sort()
		return nil, l.errs
	}
	f.ConsumedEnv = slices.Sorted(maps.Keys(l.consumed))
	return f, nil
}

type loader struct {
	path, dir string
	lookup    LookupEnv
	consumed  map[string]struct{}
	expanded  int
	errs      Errors
}

// fail records an error, up to a bound.
func (l *loader) fail(at position, what, wayOut string) {
	if len(l.errs) < maxErrors {
		l.errs = append(l.errs, &Error{File: l.path, Line: at.line, Column: at.column, What: what, WayOut: wayOut})
	}
}

// clean reports whether nothing is known to be wrong at a place, so that one
// mistake is not reported twice.
func (l *loader) clean(at position) bool {
	return !slices.ContainsFunc(l.errs, func(e *Error) bool { return e.Line == at.line && e.Column == at.column })
}

func (l *loader) source(at position) Source {
	return Source(fmt.Sprintf("%s:%d:%d", l.path, at.line, at.column))
}

// field is a key with its value. Name is how messages call it, key is how it is
// spelled.
type field struct {
	name, key string
	at        position
	value     *node
}

// entries returns the members of a mapping whose keys are the author's own.
func (l *loader) entries(f field) []field {
	if f.value.kind != mapping {
		l.fail(f.value.at, fmt.Sprintf("%s is %s, not a mapping", f.name, f.value.what()), "write it as {key: value}")
		return nil
	}
	out := make([]field, len(f.value.members))
	for i, m := range f.value.members {
		out[i] = field{name: f.name + "." + m.name, key: m.name, at: m.at, value: m.value}
	}
	return out
}

// keys is what reads each key of one mapping.
type keys map[string]func(field)

// object hands each member of a mapping to what reads it, in the order of the
// file. Later are the keys that config.md knows and this version does not serve.
// It reports whether the value is a mapping.
func (l *loader) object(f field, known keys, later ...string) bool {
	if f.value.kind != mapping {
		l.fail(f.value.at, fmt.Sprintf("%s is %s, not a mapping", called(f.name), f.value.what()), emptyHint(f.value))
		return false
	}
	for _, m := range f.value.members {
		name := m.name
		if f.name != "" {
			name = f.name + "." + m.name
		}
		read, ok := known[m.name]
		switch {
		case ok:
			read(field{name: name, key: m.name, at: m.at, value: m.value})
		case slices.Contains(later, m.name):
			l.fail(m.at, fmt.Sprintf("%s is known, but not in this version of weir", name), "it needs a later version; leave it out")
		default:
			l.fail(m.at, fmt.Sprintf("there is no key %q", name), l.suggest(m.name, known, later))
		}
	}
	return true
}

func called(name string) string {
	if name == "" {
		return "the file"
	}
	return name
}

// suggest names the nearest known key, or all of them when none is near.
func (l *loader) suggest(name string, known keys, later []string) string {
	names := slices.Sorted(maps.Keys(known))
	if near := nearest.Of(name, slices.Concat(names, later)); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "known are " + list(names, "and")
}
