package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

type logLine struct {
	Level, Msg, Source, Module      string
	Dropped, DroppedBytes, CutLines int
}

// logging runs the function with a log that allows 3 lines of 8 bytes.
func logging(t *testing.T, f func(g *guestLog)) (lines []logLine) {
	var b bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug}))
	g := newGuestLog(logger, Limits{LogLines: 3, LogLineBytes: 8}, []slog.Attr{slog.String("module", "guest.wasm")})
	f(&g)
	g.end(context.Background())
	for text := range strings.Lines(b.String()) {
		var l logLine
		require.NoError(t, json.Unmarshal([]byte(text), &l))
		require.Equal(t, "guest.wasm", l.Module)
		lines = append(lines, l)
	}
	return lines
}

func texts(lines []logLine) (list []string) {
	for _, l := range lines {
		list = append(list, l.Msg)
	}
	return list
}

const summary = "the guest logged more than its limits allow"

func TestGuestLog(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]struct {
		write func(g *guestLog)
		want  []string
		sum   logLine // of the summary, when there is one
	}{
		"a message a line": {
			write: func(g *guestLog) { g.message(ctx, slog.LevelInfo, []byte("one\ntwo\r\n")) },
			want:  []string{"one", "two"},
		},
		"an empty message": {
			write: func(g *guestLog) { g.message(ctx, slog.LevelInfo, nil) },
		},
		"exactly the limit": {
			write: func(g *guestLog) {
				for range 3 {
					g.message(ctx, slog.LevelInfo, []byte("12345678"))
				}
			},
			want: []string{"12345678", "12345678", "12345678"},
		},
		"too many lines": {
			write: func(g *guestLog) { g.message(ctx, slog.LevelInfo, []byte("1\n2\n3\n4\n5\n")) },
			want:  []string{"1", "2", "3", summary},
			sum:   logLine{Dropped: 1, DroppedBytes: 4},
		},
		"too many messages": {
			write: func(g *guestLog) {
				for range 1000 {
					g.message(ctx, slog.LevelInfo, []byte("ab"))
				}
			},
			want: []string{"ab", "ab", "ab", summary},
			sum:  logLine{Dropped: 997, DroppedBytes: 2 * 997},
		},
		"too long a line": {
			write: func(g *guestLog) { g.message(ctx, slog.LevelInfo, []byte("123456789")) },
			want:  []string{"12345678", summary},
			sum:   logLine{CutLines: 1},
		},
		"cut between characters": {
			write: func(g *guestLog) { g.message(ctx, slog.LevelInfo, []byte("1234567é")) },
			want:  []string{"1234567", summary},
			sum:   logLine{CutLines: 1},
		},
		"far more than the limits": {
			write: func(g *guestLog) { g.message(ctx, slog.LevelInfo, bytes.Repeat([]byte("x"), 1000)) },
			want:  []string{"xxxxxxxx", summary},
			sum:   logLine{Dropped: 1, DroppedBytes: 1000 - 24, CutLines: 1},
		},
		"not UTF-8": {
			write: func(g *guestLog) { g.message(ctx, slog.LevelInfo, []byte("a\xff\xfeb")) },
			want:  []string{"a\uFFFDb"},
		},
		"a stream is split into lines": {
			write: func(g *guestLog) {
				for _, s := range []string{"on", "e\ntw", "o", "\nend"} {
					g.write(ctx, stderr, []byte(s))
				}
			},
			want: []string{"one", "two", "end"},
		},
		"two streams do not mix": {
			write: func(g *guestLog) {
				g.write(ctx, stdout, []byte("out"))
				g.write(ctx, stderr, []byte("err"))
				g.write(ctx, stdout, []byte("put\n"))
			},
			want: []string{"output", "err"},
		},
		"a stream's line is cut": {
			write: func(g *guestLog) {
				for range 12 {
					g.write(ctx, stdout, []byte("a"))
				}
				g.write(ctx, stdout, []byte("\nb\n"))
			},
			want: []string{"aaaaaaaa", "b", summary},
			sum:  logLine{CutLines: 1},
		},
		"a stream's last line without room": {
			write: func(g *guestLog) {
				g.write(ctx, stdout, []byte("1"))
				g.message(ctx, slog.LevelInfo, []byte("1\n2\n3"))
			},
			want: []string{"1", "2", "3", summary},
			sum:  logLine{Dropped: 1, DroppedBytes: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			lines := logging(t, c.write)
			require.Equal(t, c.want, texts(lines))
			if len(lines) > 0 && lines[len(lines)-1].Msg == summary {
				last := lines[len(lines)-1]
				require.Equal(t, []int{c.sum.Dropped, c.sum.DroppedBytes, c.sum.CutLines}, []int{last.Dropped, last.DroppedBytes, last.CutLines})
				require.Equal(t, "WARN", last.Level)
			}
		})
	}
}

func TestGuestLogLevels(t *testing.T) {
	lines := logging(t, func(g *guestLog) {
		g.message(context.Background(), slog.LevelDebug, []byte("m"))
		g.write(context.Background(), stdout, []byte("o\n"))
		g.write(context.Background(), stderr, []byte("e\n"))
	})
	require.Equal(t, []string{"DEBUG log", "INFO stdout", "WARN stderr"},
		[]string{lines[0].Level + " " + lines[0].Source, lines[1].Level + " " + lines[1].Source, lines[2].Level + " " + lines[2].Source})
}

func FuzzGuestLog(f *testing.F) {
	f.Add([]byte("one\ntwo\xff\r\n\n\néééééé"), uint8(3))
	f.Fuzz(func(t *testing.T, text []byte, pieces uint8) {
		lines := logging(t, func(g *guestLog) {
			for rest := text; len(rest) > 0; {
				n := min(len(rest), int(pieces)+1)
				g.write(context.Background(), stdout, rest[:n])
				rest = rest[n:]
			}
			g.message(context.Background(), slog.LevelInfo, text)
		})
		logged := 0
		for _, l := range lines {
			if l.Msg == summary {
				continue
			}
			logged++
			require.True(t, utf8.ValidString(l.Msg))
			require.LessOrEqual(t, len(strings.ReplaceAll(l.Msg, "\uFFFD", "")), 8)
			require.NotContains(t, l.Msg, "\n")
		}
		require.LessOrEqual(t, logged, 3)
	})
}
