package main

import (
	"io"
	"log/slog"
	"os"
)

// newLogger logs to stderr: text on a terminal, JSON otherwise (config.md).
// Quiet commands, whose stdout is the point, log warnings and worse only.
func newLogger(to io.Writer, level slog.Level) *slog.Logger { return newMaskedLogger(to, level, nil) }

// newMaskedLogger is newLogger with every text masked, unless mask is nil.
func newMaskedLogger(to io.Writer, level slog.Level, mask func(string) string) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if mask != nil {
		options.ReplaceAttr = func(_ []string, a slog.Attr) slog.Attr {
			if err, ok := a.Value.Any().(error); ok {
				return slog.String(a.Key, mask(err.Error()))
			}
			if steps, ok := a.Value.Any().(interface {
				Masked(mask func(string) string) any
			}); ok { // the plan of a decision
				return slog.Any(a.Key, steps.Masked(mask))
			}
			if a.Value.Kind() == slog.KindString {
				return slog.String(a.Key, mask(a.Value.String()))
			}
			return a
		}
	}
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
