package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/need"
)

// TestMain lets the test's own program play the roles.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if play := roles[os.Args[1]]; play != nil {
			if play(os.Args[2:]) != nil {
				os.Exit(1)
			}
			return
		}
	}
	os.Exit(m.Run())
}

func needCompilers(t *testing.T) {
	for _, program := range []string{"clang", "wasm-ld", "rustc"} {
		need.Command(t, program, "apt-get install clang lld rustc libstd-rust-dev-wasm32")
	}
}

// Every row over every pair of transports does what it stands for, and is measured.
func TestEverythingIsMeasured(t *testing.T) {
	needCompilers(t)
	var out bytes.Buffer
	require.NoError(t, measure(t.Context(), &out, "..", size{rounds: 1, turn: time.Millisecond, pairs: pairNames, loads: []string{load1K, loadList}, rows: regexp.MustCompile("")}))
	for _, want := range []string{"stdio → stdio", "HTTP → HTTP", "stdio → HTTP", "HTTP → stdio", rowDirect, rowLines, rowReverse, rowWeir, rowOne, rowThree, rowSDK, rowTyped, "within 1.5x of", "list of 10,000 tools"} {
		require.Contains(t, out.String(), want)
	}
	require.NotContains(t, out.String(), "–")
}

func TestRowsPairsAndLoadsCanBeChosen(t *testing.T) {
	needCompilers(t)
	var out bytes.Buffer
	require.NoError(t, measure(t.Context(), &out, "..", size{rounds: 1, turn: time.Millisecond, pairs: []string{stdioToStdio}, loads: loadNames(), rows: regexp.MustCompile("direct|relay")}))
	require.Contains(t, out.String(), "64 KB of JSON")
	require.NotContains(t, out.String(), "HTTP")
}

func TestMessagesAreJSONOfTheirSizeWithIDsOfTheirOwn(t *testing.T) {
	sizes := map[string]int{load1K: 1 << 10, load64K: 64 << 10, loadJSON: 64 << 10, load1M: 1 << 20, loadList: 60}
	for _, l := range loads {
		var seen []float64
		var buf []byte
		for range 3 {
			buf = l.next(buf)
			var m struct {
				ID     float64
				Method string
			}
			require.NoError(t, json.Unmarshal(buf, &m), l.name)
			require.NotContains(t, seen, m.ID)
			require.NotEmpty(t, m.Method)
			seen = append(seen, m.ID)
		}
		require.InDelta(t, sizes[l.name], len(buf), 200, l.name)
		require.True(t, bytes.HasSuffix(buf, []byte("}\n")))
	}
}

func TestTheBackendAnswers(t *testing.T) {
	for _, c := range []struct{ name, in, out string }{
		{"a request it does not know", `{"jsonrpc":"2.0","id":7,"method":"ping"}`, `{"jsonrpc":"2.0","id":7,"result":{}}`},
		{"an id that is text", `{"jsonrpc":"2.0","id":"a-1","method":"ping","params":{}}`, `{"jsonrpc":"2.0","id":"a-1","result":{}}`},
		{"the handshake", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}`, `{"jsonrpc":"2.0","id":0,"result":` + initialized + `}`},
		{"nothing to a notification", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, ``},
		{"nothing to an answer", `{"jsonrpc":"2.0","id":1,"result":{}}`, ``},
	} {
		require.Equal(t, c.out, string(answer(nil, []byte(c.in))), c.name)
	}
	for _, l := range loads {
		out := answer(nil, l.message)
		require.True(t, json.Valid(out), l.name)
		require.NoError(t, checked(out), l.name)
		if l.name != loadList {
			require.InEpsilon(t, len(l.message), len(out), 0.25, l.name)
		}
	}
	var list struct{ Result struct{ Tools []any } }
	require.NoError(t, json.Unmarshal(answer(nil, loadNamed(loadList).message), &list))
	require.Len(t, list.Result.Tools, tools)
}

func TestAnAnswerWithoutAResultCountsAsNone(t *testing.T) {
	require.ErrorIs(t, checked([]byte(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no"}}`)), errNoResult)
}

func TestLinesOfAnyLength(t *testing.T) {
	want := []string{"a\n", "\n", strings.Repeat("b", 200_000) + "\n", "c\n"}
	for name, r := range map[string]io.Reader{
		"at once": strings.NewReader(strings.Join(want, "")), "byte by byte": iotest.OneByteReader(strings.NewReader(strings.Join(want, ""))),
	} {
		l := &lines{r: r}
		for _, line := range want {
			got, err := l.next()
			require.NoError(t, err, name)
			require.Equal(t, line, string(got), name)
		}
		_, err := l.next()
		require.ErrorIs(t, err, io.EOF, name)
	}
}

func TestQuantilesAndProportions(t *testing.T) {
	list := []time.Duration{5, 1, 4, 2, 3}
	require.EqualValues(t, 3, quantile(list, 50))
	require.EqualValues(t, 5, quantile(list, 99))
	require.EqualValues(t, 1, quantile(list[1:2], 99))
	require.True(t, slices.Equal(list, []time.Duration{5, 1, 4, 2, 3}), "the list stays as it was")
	require.EqualValues(t, 2, times([]float64{2, 8, 30}, []float64{1, 4, 10}), "the median of the rounds' own")
}
