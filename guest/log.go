package guest

import "github.com/weir-mcp/weir/guest/internal/module"

// Log writes to the operator's log, one line a call, formatted as by
// fmt.Sprintf. The host keeps 100 lines of an invocation and 4 KiB of a line
// unless it is configured otherwise (abi.md, Limits). Never log payloads or
// secrets: a log has other readers than the call it tells of.
//
// Natively, outside Wasm, lines go to standard error, or where
// guesttest.CaptureLog says. It is safe for concurrent use.
var Log Logger

// Logger has one method for each level of the log.
type Logger struct{}

// Debugf logs what helps to find a fault.
func (Logger) Debugf(format string, args ...any) { module.Logf(module.LevelDebug, format, args...) }

// Infof logs what an operator may want to know.
func (Logger) Infof(format string, args ...any) { module.Logf(module.LevelInfo, format, args...) }

// Warnf logs what an operator should look at some time.
func (Logger) Warnf(format string, args ...any) { module.Logf(module.LevelWarn, format, args...) }

// Errorf logs what an operator should look at now.
func (Logger) Errorf(format string, args ...any) { module.Logf(module.LevelError, format, args...) }
