package relay

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pipe is a pipe of the system.
func pipe(b *testing.B) (*os.File, *os.File) {
	r, w, err := os.Pipe()
	require.NoError(b, err)
	b.Cleanup(func() {
		r.Close()
		w.Close()
	})
	return r, w
}

// bare copies lines and looks at nothing: what a relay costs at least.
func bare(in io.Reader, out io.Writer) {
	r := bufio.NewReaderSize(in, 64<<10)
	var buf []byte
	for {
		part, err := r.ReadSlice('\n')
		buf = append(buf, part...)
		if err == bufio.ErrBufferFull {
			continue
		}
		if err != nil {
			return
		}
		if _, err := out.Write(buf); err != nil {
			return
		}
		buf = buf[:0]
	}
}

// echo answers every line with the same result.
func echo(in io.Reader, out io.Writer, answer []byte) {
	r := bufio.NewReaderSize(in, 128<<10)
	for {
		if _, err := r.ReadSlice('\n'); err == bufio.ErrBufferFull {
			continue
		} else if err != nil {
			return
		}
		if _, err := out.Write(answer); err != nil {
			return
		}
	}
}

// BenchmarkCall is one tools/call to a raw echo backend and back, over pipes:
// direct, through a bare line relay, and through the relay with no plan, and
// with plans that change nothing.
func BenchmarkCall(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10} {
		text := `{"text":"` + strings.Repeat("x", size) + `"}`
		request, answer := []byte(call("1", text)+"\n"), []byte(result("1", text)+"\n")
		for _, kind := range []string{"direct", "bare", "relay", "governed"} {
			b.Run(fmt.Sprintf("%dKiB/%s", size>>10, kind), func(b *testing.B) {
				in, w := pipe(b)
				r, out := pipe(b)
				if kind == "direct" {
					go echo(in, out, answer)
				} else {
					backendIn, toBackend := pipe(b)
					fromBackend, backendOut := pipe(b)
					go echo(backendIn, backendOut, answer)
					if kind == "bare" {
						go bare(in, toBackend)
						go bare(fromBackend, out)
					} else {
						var rules map[string]rule
						if kind == "governed" {
							rules = map[string]rule{"tools/call request": pass, "tools/call response": pass}
						}
						o := Options{Governor: forgetful{&script{rules: rules}}, Grace: 1}
						go Run(b.Context(), Lines(in, out, 1<<20), Lines(fromBackend, toBackend, 1<<20), o)
					}
				}
				lines := bufio.NewReaderSize(r, 128<<10)
				b.SetBytes(int64(2 * size))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := w.Write(request); err != nil {
						b.Fatal(err)
					}
					if _, err := lines.ReadSlice('\n'); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// forgetful keeps no record of what it has seen.
type forgetful struct{ *script }

func (f forgetful) Govern(ctx context.Context, op Operation) Decision {
	return f.rules[op.Event+" "+string(op.Phase)](ctx, op)
}
