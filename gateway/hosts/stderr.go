package hosts

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"time"
)

// Bounds on what a command may write into the log.
const (
	maxLogLine        = 4 << 10 // bytes
	maxLinesPerSecond = 100
)

// logLines logs what r gives, line by line, until it ends. Lines that are too
// long are cut, those too many are counted.
func logLines(log *slog.Logger, r io.Reader) {
	lines := bufio.NewReaderSize(r, maxLogLine)
	second, count, dropped := time.Now(), 0, 0
	for {
		line, err := lines.ReadSlice('\n')
		text := strings.TrimRight(string(line), "\r\n")
		cut := errors.Is(err, bufio.ErrBufferFull)
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = lines.ReadSlice('\n')
		}
		if now := time.Now(); now.Sub(second) >= time.Second {
			if dropped > 0 {
				log.Warn("lines of the host's standard error were dropped", "lines", dropped)
			}
			second, count, dropped = now, 0, 0
		}
		switch {
		case text == "":
		case count >= maxLinesPerSecond:
			dropped++
		default:
			count++
			attrs := []slog.Attr{slog.String("line", text)}
			if cut {
				attrs = append(attrs, slog.Bool("cut", true))
			}
			log.LogAttrs(context.Background(), slog.LevelInfo, "the host writes", attrs...)
		}
		if err != nil {
			if dropped > 0 {
				log.Warn("lines of the host's standard error were dropped", "lines", dropped)
			}
			return
		}
	}
}
