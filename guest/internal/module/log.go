package module

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Level is a level of the log import (abi.md).
type Level int32

// The levels of the log import.
const (
	LevelDebug Level = iota
	LevelInfo
	LevelWarn
	LevelError
)

// String returns the level's name.
func (l Level) String() string {
	switch l {
	case LevelDebug:
		return "debug"
	case LevelInfo:
		return "info"
	case LevelWarn:
		return "warn"
	default:
		return "error"
	}
}

// maxLine is the longest line, in bytes, that a host keeps by default (abi.md,
// Limits). What it would cut need not be copied out.
const maxLine = 4 << 10

// Logf hands one line to the host.
func Logf(level Level, format string, args ...any) {
	writeLog(level, clip(fmt.Sprintf(format, args...)))
}

// clip makes a line UTF-8 and no longer than maxLine.
func clip(line string) string {
	if len(line) > maxLine {
		n := maxLine
		for n > maxLine-utf8.UTFMax && !utf8.RuneStart(line[n]) {
			n--
		}
		line = line[:n]
	}
	return strings.ToValidUTF8(line, "\uFFFD")
}
