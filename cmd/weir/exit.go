package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/config"
	"github.com/weir-mcp/weir/internal/wire"
	"github.com/weir-mcp/weir/runtime/library"
)

// Exit codes (config.md): done whatever the verdict, failed, wrong usage or
// configuration.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// usageError is an error whose way out is another command line or
// configuration.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// rpcFailure is an answer that is an RPC error. It has been printed as the
// result, so nothing more is said about it.
type rpcFailure struct{ err error }

func (e rpcFailure) Error() string { return e.err.Error() }
func (e rpcFailure) Unwrap() error { return e.err }

// report prints err for a person, unless it is on stdout already, and returns
// the exit code it stands for.
func report(std streams, err error) int {
	if err == nil {
		return exitDone
	}
	if _, printed := errors.AsType[rpcFailure](err); printed {
		return exitFailed
	}
	fmt.Fprintf(std.err, "weir: %v\n", err)
	if isUsage(err) {
		return exitUsage
	}
	return exitFailed
}

func isUsage(err error) bool {
	if _, ok := errors.AsType[usageError](err); ok {
		return true
	}
	if _, ok := errors.AsType[config.Errors](err); ok {
		return true
	}
	return errors.Is(err, library.ErrNoFolder)
}

// appendRPCError appends {"error":{…}} as config.md wants an RPC error on
// stdout.
func appendRPCError(dst []byte, e *abi.Error) []byte {
	w := wire.OpenObject(dst)
	w.Object("error", func(w *wire.ObjectWriter) {
		w.Int("code", e.Code())
		w.String("message", e.Message())
		w.Append("data", e.AppendData)
	})
	return w.Close()
}

// writeJSON prints v on one line, with no escape that JSON does not ask for.
func writeJSON(std streams, v any) error {
	enc := json.NewEncoder(std.out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
