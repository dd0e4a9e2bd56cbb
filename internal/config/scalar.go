package config

import (
	"regexp"
	"strings"
)

// scalarType is what a plain scalar stands for.
type scalarType uint8

const (
	isString scalarType = iota
	isNull
	isBool
	isNumber
	// isForeign is a value that YAML knows and JSON does not: a date, .inf, or a
	// number in hexadecimal, in octal, with underscores or with a plus sign.
	isForeign
)

var (
	jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)
	// Text that some YAML reader would take for a number or a date: what it
	// means must not depend on who reads it.
	foreign = regexp.MustCompile(`^(?i:[-+]?\.(inf|nan)|[-+]?0[xob][0-9a-f_]+|[-+]?[0-9][0-9_]*(\.[0-9_]*)?(e[-+]?[0-9]+)?|[-+]?\.[0-9][0-9_]*(e[-+]?[0-9]+)?|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([t ].*)?)$`)
)

// typeOf resolves a plain scalar. It is stricter than YAML and independent of
// the parser's own ideas, which round numbers.
func typeOf(text string) scalarType {
	switch text {
	case "", "~", "null", "Null", "NULL":
		return isNull
	case "true", "false", "True", "False", "TRUE", "FALSE":
		return isBool
	}
	// Digits, signs and dots are all that numbers and dates begin with.
	if !strings.ContainsRune("+-.0123456789", rune(text[0])) {
		return isString
	}
	switch {
	case jsonNumber.MatchString(text):
		return isNumber
	case foreign.MatchString(text):
		return isForeign
	default:
		return isString
	}
}
