package wire

import (
	"errors"
	"strconv"
)

// JSON-RPC codes of refusals (protocol.md §6 "What is refused").
const (
	// CodeParse says that the bytes are not JSON or not UTF-8.
	CodeParse = -32700
	// CodeInvalid says that the bytes are JSON, but not a message that weir
	// passes on.
	CodeInvalid = -32600
)

// Error is a refusal. Every error of [Read] and [Strict] is an *Error.
//
// Nothing in it but ID is taken from the input, so Reason may be sent to the
// peer.
type Error struct {
	// Code is [CodeParse] or [CodeInvalid].
	Code int
	// Reason is short and generic. It never holds bytes of the payload.
	Reason string
	// Offset is where in the input the reader noticed, in bytes.
	Offset int
	// ID is the id of the refused message where one could be read, else zero.
	// It is set by [Read] only, and is a copy: it does not alias the input.
	ID ID
	// Kind is what the refused message was going to be as far as that can be
	// told, else [Unknown]. It is set by [Read] only. A refused request is
	// answered, a refused response or failure ends the wait for ID, a refused
	// notification is dropped and counted; something unknown is answered with
	// id null.
	Kind Kind
}

// AsError gives the refusal in an error of [Read], [Strict] and their like, so
// that no caller has to say what it would do with another kind: one that holds
// none is a generic refusal. It is nil for nil.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	if bad, ok := errors.AsType[*Error](err); ok {
		return bad
	}
	return &Error{Code: CodeInvalid, Reason: reasonUnreadable}
}

// Error gives the reason, the offset and the code.
func (e *Error) Error() string {
	return "wire: " + e.Reason + " at byte " + strconv.Itoa(e.Offset) + " (" + strconv.Itoa(e.Code) + ")"
}

const (
	reasonEnd         = "unexpected end of JSON"
	reasonToken       = "unexpected character in JSON"
	reasonTrailing    = "data after the JSON value"
	reasonControl     = "control character in a JSON string"
	reasonEscape      = "invalid escape in a JSON string"
	reasonUTF8        = "invalid UTF-8"
	reasonNumber      = "invalid JSON number"
	reasonLiteral     = "invalid JSON literal"
	reasonDepth       = "JSON nested too deeply"
	reasonDuplicate   = "duplicate member name"
	reasonFold        = "member names that are equal or differ only in case"
	reasonVariant     = "member name of the envelope in other case"
	reasonBatch       = "batches are not supported"
	reasonNoObject    = "not a JSON object"
	reasonNoArray     = "not a JSON array"
	reasonVersion     = `jsonrpc must be "2.0"`
	reasonID          = "id must be a string or a number"
	reasonNullID      = "id must not be null"
	reasonNoID        = "response without id"
	reasonMethod      = "method must be a string"
	reasonParams      = "params must be an object"
	reasonStray       = "params without method"
	reasonErrorObject = "error must be an object"
	reasonBoth        = "both result and error"
	reasonMixed       = "method beside result or error"
	reasonNothing     = "neither method, result nor error"
	reasonUnreadable  = "the message cannot be read"
)
