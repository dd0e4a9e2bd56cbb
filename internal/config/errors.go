package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Error is one thing that is wrong with the configuration.
type Error struct {
	// File is the path as given; Line and Column count from 1 and are 0 when
	// the complaint is about the file as a whole, or about a flag.
	File         string
	Line, Column int
	// What is wrong, and the way out where there is one to tell.
	What, WayOut string
}

// Error is "file:line:column: what; way out" on one line.
func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File)
		if e.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
		}
		b.WriteString(": ")
	}
	b.WriteString(e.What)
	if e.WayOut != "" {
		b.WriteString("; " + e.WayOut)
	}
	return b.String()
}

// Errors are all errors of one file, in the order of their places; never empty
// where it is returned.
type Errors []*Error

// Error is one line for each error.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the single errors.
func (es Errors) Unwrap() []error {
	list := make([]error, len(es))
	for i, e := range es {
		list[i] = e
	}
	return list
}

func (es Errors) sort() {
	slices.SortStableFunc(es, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}
