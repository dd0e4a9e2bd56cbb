package meter

import (
	"errors"
	"fmt"
	"strings"
)

// The kinds of refusal. Every error of [Parse] and [Module.Rewrite] is
// an [*Error] that wraps exactly one of them; tell them apart with [errors.Is].
var (
	// ErrNotWasm: the bytes do not begin with the magic of a Wasm binary.
	ErrNotWasm = errors.New("not a WebAssembly module")
	// ErrComponent: the bytes are a component of the component model, not a
	// core module.
	ErrComponent = errors.New("a WebAssembly component, not a core module")
	// ErrTruncated: the bytes end before the module does.
	ErrTruncated = errors.New("truncated")
	// ErrUnsupported: the module uses a feature outside the accepted set; the
	// reason begins with the feature's name.
	ErrUnsupported = errors.New("unsupported feature")
	// ErrLimit: the module passes a fixed limit; the reason names the limit
	// and its value.
	ErrLimit = errors.New("over a limit")
	// ErrReserved: the module uses a name that belongs to the host; only
	// [Module.Rewrite] says so.
	ErrReserved = errors.New("reserved name")
	// ErrMalformed: the bytes break the binary format, or an index, a name or
	// a declaration in them is invalid.
	ErrMalformed = errors.New("malformed")
)

// Error says why a module was refused, and where. Its text is for the operator
// who put the module there; it holds nothing that would be unsafe to print.
type Error struct {
	// Kind is one of the Err values of this package.
	Kind error
	// Section names the part of the module: "header", or a section such as
	// "code".
	Section string
	// Function is the index of the function whose body was being read,
	// counting imported ones first as the format does; -1 outside bodies.
	Function int
	// Offset is where in the file it was found, in bytes from its start.
	Offset int
	// Reason says what is wrong and, where there is one, the way out.
	Reason string
}

// Error gives the kind, the place and the reason in one line.
func (e *Error) Error() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%v: %s", e.Kind, e.Section)
	if e.Function >= 0 {
		fmt.Fprintf(&s, ", function %d", e.Function)
	}
	fmt.Fprintf(&s, ", offset %#x: %s", e.Offset, e.Reason)
	return s.String()
}

// Unwrap gives the kind, for [errors.Is].
func (e *Error) Unwrap() error { return e.Kind }
