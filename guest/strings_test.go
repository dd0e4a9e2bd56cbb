package guest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/guest"
)

func upper(_ guest.Path, s string) string { return strings.ToUpper(s) }

func TestEditStrings(t *testing.T) {
	for _, c := range []struct{ name, in, out string }{
		{"a lone string", `"a"`, `"A"`},
		{"space around it stays", " \t\r\n\"a\" \n", " \t\r\n\"A\" \n"},
		{"values at any depth", `{"a":["b",{"c":"d"}],"e":"f"}`, `{"a":["B",{"c":"D"}],"e":"F"}`},
		{"names stay", `{"name":1,"é":{"x":[]}}`, `{"name":1,"é":{"x":[]}}`},
		{"numbers and literals stay as spelled", `[1.0e+02,-0,9007199254740993,1e400,true,false,null,"a"]`, `[1.0e+02,-0,9007199254740993,1e400,true,false,null,"A"]`},
		{"white space stays", "{ \"a\" :\t[ \"b\" ,\r\n1 ] , \"c\":{ } }", "{ \"a\" :\t[ \"B\" ,\r\n1 ] , \"c\":{ } }"},
		{"a string that did not change keeps its odd spelling", `["\u0041\/\u00c9","a"]`, `["\u0041\/\u00c9","A"]`},
		{"half a surrogate pair stays in a string that did not change", `["\ud83d","\ude00\ud83d","A\ud83dX","a"]`, `["\ud83d","\ude00\ud83d","A\ud83dX","A"]`},
		{"and is U+FFFD in one that did", `"a\ud83d"`, "\"A\uFFFD\""},
		{"a whole pair is one character", `"a\ud83d\ude00"`, `"A😀"`},
		{"two high halves", `"a\ud83d\ud83d\ude00"`, "\"A\uFFFD😀\""},
		{"a half and another escape", `"a\ud83d\n"`, "\"A\uFFFD\\n\""},
		{"a half and a plain escape of four digits", `"a\ud83d\u0041"`, "\"A\uFFFDA\""},
		{"what must be escaped is", `"a\"\\\b\f\n\r\t\u0000\u001f"`, `"A\"\\\u0008\u000c\n\r\t\u0000\u001f"`},
		{"what need not be is not", `"a\u003c\u003e\u0026\u2028\u007f"`, "\"A<>&\u2028\u007f\""},
		{"empty things", `{"a":{},"b":[],"c":""}`, `{"a":{},"b":[],"c":""}`},
		{"duplicate names are left to others", `{"a":"x","a":"y"}`, `{"a":"X","a":"Y"}`},
		{"first and last byte", `["a",1,"b"]`, `["A",1,"B"]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := strings.Clone(c.in)
			raw := json.RawMessage(c.in)
			out, changed, err := guest.EditStrings(raw, upper)
			require.NoError(t, err)
			require.Equal(t, c.out, string(out))
			require.Equal(t, c.in != c.out, changed)
			require.Equal(t, before, string(raw), "the input is not written to")
		})
	}
}

func TestEditStringsReturnsItsInputWhereNothingChanged(t *testing.T) {
	raw := json.RawMessage(`{"a":"B"}`)
	out, changed, err := guest.EditStrings(raw, upper)
	require.NoError(t, err)
	require.False(t, changed)
	require.Same(t, &raw[0], &out[0])
}

func TestEditStringsRefusesWhatIsNotJSON(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for name, in := range map[string]string{
		"nothing":                 "",
		"space":                   "  ",
		"two values":              `"a" "b"`,
		"an open string":          `"a`,
		"an open object":          `{"a":"b"`,
		"an open array":           `["a"`,
		"the wrong bracket":       `["a"}`,
		"a comma at the end":      `["a",]`,
		"a comma in an object":    `{"a":"b",}`,
		"no comma":                `["a" "b"]`,
		"no colon":                `{"a" "b"}`,
		"no name":                 `{:"b"}`,
		"a name that is none":     `{1:"b"}`,
		"no value":                `{"a":}`,
		"a bad escape":            `"\x"`,
		"a short escape":          `"\u12"`,
		"no hex":                  `"\u12g4"`,
		"an escape at the end":    `"\`,
		"a control character":     "\"\x01\"",
		"a line break":            "\"\n\"",
		"not UTF-8":               "\"\xff\"",
		"an encoded surrogate":    "\"\xed\xa0\x80\"",
		"not UTF-8 in a name":     "{\"\xff\":1}",
		"a leading zero":          `[01]`,
		"a bare minus":            `[-]`,
		"a bare point":            `[1.]`,
		"a bare exponent":         `[1e+]`,
		"a plus":                  `[+1]`,
		"a literal":               `[nul]`,
		"a longer literal":        `[nullx]`,
		"NaN":                     `[NaN]`,
		"a comment":               `["a"/**/]`,
		"a byte-order mark":       "\uFEFF[]",
		"one level too deep":      deep(guest.MaxDepth + 1),
		"a hundred thousand deep": strings.Repeat(`[{"a":`, 100_000),
	} {
		t.Run(name, func(t *testing.T) {
			out, changed, err := guest.EditStrings(json.RawMessage(in), upper)
			require.Error(t, err)
			require.False(t, changed)
			require.Equal(t, in, string(out))
			require.Error(t, guest.WalkStrings(json.RawMessage(in), func(guest.Path, string) bool { return true }))
		})
	}
	_, _, err := guest.EditStrings(json.RawMessage(deep(guest.MaxDepth)), upper)
	require.NoError(t, err)
}

func TestEditStringsCanEditNamesToo(t *testing.T) {
	var names []string
	out, changed, err := guest.EditStrings(json.RawMessage(`{"a":{"\u0062":"c"},"d":["e"]}`), func(p guest.Path, s string) string {
		if p.IsName() {
			names = append(names, p.String())
		}
		return strings.ToUpper(s)
	}, guest.AndNames())
	require.NoError(t, err)
	require.True(t, changed)
	require.Equal(t, `{"A":{"B":"C"},"D":["E"]}`, string(out))
	require.Equal(t, []string{"$.a", "$.a.b", "$.d"}, names)
}

func TestPath(t *testing.T) {
	type place struct {
		path, name string
		depth      int
	}
	got := map[string]place{}
	raw := `{
		"content": [{"type": "1"}, {"text": "2"}, ["3", ["4"]]],
		"we ird": {"q\"uote": "5", "\u0061b": "6", "": "7", "0a": "8", "é": "9", "_m0": "10"},
		"last": "11"
	}`
	require.NoError(t, guest.WalkStrings(json.RawMessage(raw), func(p guest.Path, s string) bool {
		got[s] = place{p.String(), p.Name(), p.Depth()}
		return true
	}))
	require.Equal(t, map[string]place{
		"1":  {"$.content[0].type", "type", 3},
		"2":  {"$.content[1].text", "text", 3},
		"3":  {"$.content[2][0]", "content", 3},
		"4":  {"$.content[2][1][0]", "content", 4},
		"5":  {`$["we ird"]["q\"uote"]`, `q"uote`, 2},
		"6":  {`$["we ird"].ab`, "ab", 2},
		"7":  {`$["we ird"][""]`, "", 2},
		"8":  {`$["we ird"]["0a"]`, "0a", 2},
		"9":  {`$["we ird"]["é"]`, "é", 2},
		"10": {`$["we ird"]._m0`, "_m0", 2},
		"11": {"$.last", "last", 1},
	}, got)

	require.NoError(t, guest.WalkStrings(json.RawMessage(`"x"`), func(p guest.Path, _ string) bool {
		require.Equal(t, "$", p.String())
		require.Empty(t, p.Name())
		return true
	}))
}

func TestWalkStringsStopsWhenToldTo(t *testing.T) {
	var seen []string
	require.NoError(t, guest.WalkStrings(json.RawMessage(`["a","b","c"`), func(_ guest.Path, s string) bool {
		seen = append(seen, s)
		return s != "b"
	}))
	require.Equal(t, []string{"a", "b"}, seen)
}

func TestStringsThatAreKeptStayWhatTheyWere(t *testing.T) {
	raw := json.RawMessage(`["keep me"]`)
	var kept string
	require.NoError(t, guest.WalkStrings(raw, func(_ guest.Path, s string) bool { kept = s; return true }))
	clear(raw)
	require.Equal(t, "keep me", kept)
}

// Strings without escapes cost no allocation each: the walker, its copy of the
// text and what closures need are all there is, however long the payload.
func TestWalkStringsDoesNotAllocatePerString(t *testing.T) {
	few := document(1 << 10)
	many := document(64 << 10)
	count := func(raw []byte) float64 {
		return testing.AllocsPerRun(10, func() {
			_ = guest.WalkStrings(raw, func(guest.Path, string) bool { return true })
		})
	}
	require.Equal(t, count(few), count(many))
}

// document is a tool result of about n bytes.
func document(n int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"content":[`)
	for i := 0; b.Len() < n; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"type":"text","text":"Line %d: the quick brown fox mails jane.doe@example.com and jumps over it","n":%d}`, i, i*31)
	}
	b.WriteString(`],"isError":false}`)
	return b.Bytes()
}

func FuzzEditStrings(f *testing.F) {
	for _, s := range []string{
		`{}`, `"a"`, `{"a":["b",{"c":"d\n"}],"e":1.5e-3}`, `"\ud83d\ude00"`, `"\ud83d"`, "[\"\xff\"]", ` [ ] `, `{"a":"b","a":"c"}`, `[[[[`, `nul`,
	} {
		f.Add([]byte(s), "x")
	}
	f.Fuzz(func(t *testing.T, raw []byte, with string) {
		out, changed, err := guest.EditStrings(raw, func(_ guest.Path, s string) string { return s })
		require.False(t, changed)
		require.Equal(t, string(raw), string(out))
		// The standard library takes bytes that are not UTF-8; JSON does not.
		// Its depth limit is another one.
		if err != nil {
			if json.Valid(raw) && utf8.Valid(raw) && bytes.Count(raw, []byte{'['})+bytes.Count(raw, []byte{'{'}) <= guest.MaxDepth {
				t.Fatalf("refused: %v", err)
			}
			return
		}
		require.True(t, json.Valid(raw))

		var texts []string
		require.NoError(t, guest.WalkStrings(raw, func(p guest.Path, s string) bool {
			require.True(t, utf8.ValidString(s))
			require.True(t, strings.HasPrefix(p.String(), "$"))
			texts = append(texts, s)
			return true
		}, guest.AndNames()))
		n := 0
		rng := rand.New(rand.NewPCG(1, uint64(len(raw))))
		edited, _, err := guest.EditStrings(raw, func(_ guest.Path, s string) string {
			require.Equal(t, texts[n], s)
			n++
			if rng.IntN(2) == 0 {
				return s
			}
			return s + with
		}, guest.AndNames())
		require.NoError(t, err)
		require.Equal(t, len(texts), n)
		require.True(t, json.Valid(edited), "%q", edited)
		require.Equal(t, withoutStrings(raw), withoutStrings(edited))
	})
}

// withoutStrings is valid JSON with all strings emptied, by other means than
// the package's own.
func withoutStrings(raw []byte) string {
	var b strings.Builder
	for i := 0; i < len(raw); i++ {
		b.WriteByte(raw[i])
		if raw[i] != '"' {
			continue
		}
		for i++; raw[i] != '"'; i++ {
			if raw[i] == '\\' {
				i++
			}
		}
		b.WriteByte('"')
	}
	return b.String()
}

func BenchmarkEditStrings(b *testing.B) {
	for _, size := range []int{1 << 10, 100 << 10} {
		raw := document(size)
		b.Run(fmt.Sprintf("%dKB/unchanged", size>>10), func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				_, _, _ = guest.EditStrings(raw, func(_ guest.Path, s string) string { return s })
			}
		})
		b.Run(fmt.Sprintf("%dKB/redacted", size>>10), func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				_, _, _ = guest.EditStrings(raw, func(_ guest.Path, s string) string {
					return strings.ReplaceAll(s, "jane.doe@example.com", "[email]")
				})
			}
		})
		b.Run(fmt.Sprintf("%dKB/encoding-json-valid", size>>10), func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				_ = json.Valid(raw)
			}
		})
	}
}
