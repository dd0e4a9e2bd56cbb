package runtime

import (
	"bytes"
	"context"
	"log/slog"
	"strconv"
	"strings"
	"unicode/utf8"
)

// guestLog takes what one run of a guest logs (abi.md "Limits"): lines, cut at
// a length and bounded in number; what is over is dropped and counted, and the
// count is logged once at the end. It looks at no more bytes than the limits
// allow to be logged, however much the guest writes.
type guestLog struct {
	logger *slog.Logger
	attrs  []slog.Attr

	lines     int // may still be logged
	lineBytes int
	scan      int64 // bytes that may still be looked at

	streams [2]stream // stdout, stderr

	tail []byte // the last of all that was logged or dropped, at most twice tailBytes

	cutLines     int
	dropped      int // messages and writes of which something was dropped
	droppedBytes int64
}

// stream gathers what a guest writes to stdout or stderr into lines.
type stream struct {
	name    string
	level   slog.Level
	partial []byte // at most lineBytes+1, of a line that has no end yet
}

const (
	stdout = 0
	stderr = 1
)

func newGuestLog(logger *slog.Logger, limits Limits, attrs []slog.Attr) guestLog {
	return guestLog{
		logger:    logger,
		attrs:     attrs,
		lines:     limits.LogLines,
		lineBytes: limits.LogLineBytes,
		scan:      int64(limits.LogLines) * int64(limits.LogLineBytes),
		streams:   [2]stream{{name: "stdout", level: slog.LevelInfo}, {name: "stderr", level: slog.LevelWarn}},
	}
}

// tailBytes is how much of a guest's last words is kept for its failure.
const tailBytes = 2 << 10

// remember keeps the end of the text.
func (g *guestLog) remember(text []byte) {
	g.tail = append(g.tail, text[max(0, len(text)-tailBytes):]...)
	if over := len(g.tail) - tailBytes; over > tailBytes {
		g.tail = append(g.tail[:0], g.tail[over:]...)
	}
}

// lastWords gives the last lines that the guest logged, whether they were let
// through or not, in quotes; empty when it logged nothing.
func (g *guestLog) lastWords() string {
	const most = 10
	text := strings.TrimRight(string(g.tail[max(0, len(g.tail)-tailBytes):]), "\r\n")
	if text == "" {
		return ""
	}
	lines := strings.Split(text, "\n")
	if len(g.tail) > tailBytes && len(lines) > 1 {
		lines = lines[1:] // it was cut
	}
	lines = lines[max(0, len(lines)-most):]
	for i, line := range lines {
		lines[i] = strconv.Quote(strings.TrimSuffix(line, "\r"))
	}
	return strings.Join(lines, " ")
}

// message logs the lines of one call of weir.log and returns how many bytes it
// has looked at.
func (g *guestLog) message(ctx context.Context, level slog.Level, text []byte) (seen int) {
	g.remember(text)
	g.remember([]byte("\n"))
	text = g.admit(text)
	seen = len(text)
	for len(text) > 0 && g.lines > 0 {
		line, rest, _ := bytes.Cut(text, []byte("\n"))
		g.line(ctx, level, "log", line)
		text = rest
	}
	g.drop(len(text))
	return seen
}

// write takes what the guest writes to stdout or stderr and returns how many
// bytes it has looked at.
func (g *guestLog) write(ctx context.Context, to int, text []byte) (seen int) {
	s := &g.streams[to]
	g.remember(text)
	text = g.admit(text)
	seen = len(text)
	for len(text) > 0 && g.lines > 0 {
		line, rest, ended := bytes.Cut(text, []byte("\n"))
		s.partial = append(s.partial, line[:min(len(line), g.lineBytes+1-len(s.partial))]...)
		if ended {
			g.line(ctx, s.level, s.name, s.partial)
			s.partial = s.partial[:0]
		}
		text = rest
	}
	g.drop(len(text))
	return seen
}

// admit returns the part of text that may still be looked at.
func (g *guestLog) admit(text []byte) []byte {
	if g.lines == 0 || g.scan == 0 {
		g.drop(len(text))
		return nil
	}
	n := min(int64(len(text)), g.scan)
	g.scan -= n
	g.drop(len(text) - int(n))
	return text[:n]
}

func (g *guestLog) drop(bytes int) {
	if bytes > 0 {
		g.dropped++
		g.droppedBytes += int64(bytes)
	}
}

// line logs one line, made valid UTF-8 and cut between characters.
func (g *guestLog) line(ctx context.Context, level slog.Level, source string, line []byte) {
	g.lines--
	line = bytes.TrimSuffix(line, []byte("\r"))
	if len(line) > g.lineBytes {
		g.cutLines++
		line = line[:g.lineBytes]
		for i := 1; i < utf8.UTFMax && i <= len(line); i++ {
			if last := line[len(line)-i:]; utf8.RuneStart(last[0]) {
				if !utf8.FullRune(last) {
					line = line[:len(line)-i]
				}
				break
			}
		}
	}
	if !g.logger.Enabled(ctx, level) {
		return
	}
	g.logger.LogAttrs(ctx, level, strings.ToValidUTF8(string(line), "\uFFFD"), append(g.attrs, slog.String("source", source))...)
}

// end logs what had no line end yet and what was dropped.
func (g *guestLog) end(ctx context.Context) {
	for i := range g.streams {
		s := &g.streams[i]
		if len(s.partial) == 0 {
			continue
		}
		if g.lines > 0 {
			g.line(ctx, s.level, s.name, s.partial)
		} else {
			g.drop(len(s.partial))
		}
		s.partial = nil
	}
	if g.dropped > 0 || g.cutLines > 0 {
		g.logger.LogAttrs(ctx, slog.LevelWarn, "the guest logged more than its limits allow", append(g.attrs,
			slog.Int("dropped", g.dropped), slog.Int64("droppedBytes", g.droppedBytes), slog.Int("cutLines", g.cutLines))...)
	}
}
