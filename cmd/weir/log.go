package main

import (
	"io"
	"log/slog"
	"os"
)

// newLogger logs to stderr: text on a terminal, JSON otherwise (config.md).
// Quiet commands, whose stdout is the point, log warnings and worse only.
func newLogger(to io.Writer, level slog.Level) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if isTerminal(to) {
		return slog.New(slog.NewTextHandler(to, options))
	}
	return slog.New(slog.NewJSONHandler(to, options))
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
