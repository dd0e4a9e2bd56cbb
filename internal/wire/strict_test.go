package wire

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
)

func TestStrict(t *testing.T) {
	for _, c := range []struct {
		name, in string
		code     int
	}{
		{"scalars", `"x"`, 0}, {"number", ` -0.5e+10 `, 0}, {"true", `true`, 0}, {"null", `null`, 0},
		{"distinct names", `{"a":1,"b":{"a":1},"c":[{"a":1},{"a":1}]}`, 0},
		{"case is another name", `{"a":1,"A":2}`, 0},
		{"empty names", `{"":1}`, 0},
		{"surrogates apart", `{"\ud800":1,"\ud801":2,"\udc00":3,"\ud800\udc00":4,"\ufffd":5}`, 0},

		{"duplicates", `{"a":1,"a":2}`, CodeInvalid},
		{"empty names twice", `{"":1,"":2}`, CodeInvalid},
		{"duplicates at depth", `[[{"x":{"a":1,"b":{},"a":2}}]]`, CodeInvalid},
		{"duplicates around an object", `{"a":{"b":1,"c":2},"a":2}`, CodeInvalid},
		{"escaped duplicate", `{"a":1,"\u0061":2}`, CodeInvalid},
		{"solidus", `{"a/b":1,"a\/b":2}`, CodeInvalid},
		{"pair spelled twice", `{"😀":1,"\ud83d\ude00":2}`, CodeInvalid},
		{"lone surrogate in two cases", `{"\ud800":1,"\uD800":2}`, CodeInvalid},
		{"many members", `{` + members(1000) + `,"k0":1}`, CodeInvalid},
		{"at the border of the two ways", `{` + members(fewNames) + `,"k3":1}`, CodeInvalid},
		{"below it", `{` + members(fewNames-1) + `,"k3":1}`, CodeInvalid},
		{"as deep as may be", strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth), 0},
		{"deeper", strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1), CodeInvalid},

		{"deeper, of objects", strings.Repeat(`{"a":`, MaxDepth+1) + `1`, CodeInvalid},

		{"duplicate, but no JSON", `{"a":1,"a":2}}`, CodeParse},
		{"nothing", ``, CodeParse}, {"two values", `1 2`, CodeParse}, {"brackets crossed", `[{]}`, CodeParse},
		{"leading zero", `01`, CodeParse}, {"plus", `+1`, CodeParse}, {"point at the end", `1.`, CodeParse},
		{"no digit", `-`, CodeParse}, {"sign only", `-x`, CodeParse}, {"empty exponent", `1e+`, CodeParse}, {"hex", `0x1`, CodeParse}, {"NaN", `NaN`, CodeParse},
		{"cut literal", `tru`, CodeParse}, {"wrong literal", `nulL`, CodeParse}, {"literal run on", `truee`, CodeParse},
		{"bad escape", `"\x"`, CodeParse}, {"short escape", `"\u12"`, CodeParse}, {"cut escape", `"\`, CodeParse}, {"no hex", `"\u00g0"`, CodeParse},
		{"control", "\"a\nb\"", CodeParse}, {"control late", "\"aaaaaaaaaaaaaaaaaaaa\x00\"", CodeParse}, {"NUL outside", "\x00", CodeParse},
		{"form feed", "\f1", CodeParse}, {"no-break space", "\u00a01", CodeParse},
		{"unquoted name", `{a:1}`, CodeParse}, {"no colon", `{"a" 1}`, CodeParse}, {"comment", `/**/1`, CodeParse}, {"single quotes", `'a'`, CodeParse},
		{"UTF-8: overlong", "\"\xe0\x80\x80\"", CodeParse}, {"UTF-8: above the last", "\"\xf4\x90\x80\x80\"", CodeParse},
		{"UTF-8: overlong of four", "\"\xf0\x80\x80\x80\"", CodeParse}, {"UTF-8: five bytes", "\"\xf8\x88\x80\x80\x80\"", CodeParse},
		{"UTF-8: alone", "\"\x80\"", CodeParse}, {"UTF-8: in a name", "{\"\xff\":1}", CodeParse},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := Strict([]byte(c.in))
			if c.code == 0 {
				require.NoError(t, err)
				return
			}
			var e *Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, c.code, e.Code, e.Reason)
		})
	}
}

// Every string position must be judged alike, in the eight bytes at a time and
// in what is left of them.
func TestStringsAtEveryAlignment(t *testing.T) {
	for n := range 40 {
		pad := strings.Repeat("a", n)
		for _, bad := range []string{"\x00", "\x1f", "\x80", "\xff", "\xc3(", "\\q"} {
			for m := range 10 {
				require.Error(t, Strict([]byte(`"`+pad+bad+strings.Repeat("b", m)+`"`)))
			}
		}
		for _, good := range []string{"\x20", "\x7f", "é", "水", "😀", `\"`, `\\`, "\u2028"} {
			require.NoError(t, Strict([]byte(`"`+pad+good+`cdefghijkl"`)))
		}
	}
}

// hasLoneSurrogate, and what follows, bridge the one difference to jsontext: it
// refuses an escaped surrogate that is no half of a pair, which RFC 8259 allows
// and weir passes on.
func hasLoneSurrogate(in []byte) bool {
	_, found := withoutLoneSurrogates(in)
	return found
}

var surrogateEscapes = regexp.MustCompile(`\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[dD][89a-fA-F][0-9a-fA-F]{2}|[^u]|u)`)

// withoutLoneSurrogates writes lone surrogates as escapes of the private use
// area, one for one: \ud8ab becomes \ue0ab.
func withoutLoneSurrogates(in []byte) (out []byte, found bool) {
	out = surrogateEscapes.ReplaceAllFunc(in, func(m []byte) []byte {
		if len(m) != 6 {
			return m
		}
		found = true
		v, _ := strconv.ParseUint(string(m[2:]), 16, 16)
		return []byte(`\u` + strconv.FormatUint(v-0xD800+0xE000, 16))
	})
	return out, found
}

func hasPrivateUse(in []byte) bool {
	return bytes.ContainsFunc(in, func(r rune) bool { return r >= 0xE000 && r < 0xE800 }) ||
		regexp.MustCompile(`\\u[eE][0-7]`).Match(in)
}

// jsonAsWeHaveIt is what jsontext calls JSON, lone surrogates allowed.
func jsonAsWeHaveIt(in []byte) bool {
	in, _ = withoutLoneSurrogates(in)
	return jsontext.Value(in).IsValid(jsontext.AllowDuplicateNames(true))
}

// FuzzStrict holds Strict against jsontext's decoder, which refuses duplicate
// names too. The differences are the depth limit (10,000 there) and lone
// surrogates, which are put aside.
func FuzzStrict(f *testing.F) {
	for _, seed := range []string{
		`{"a":1,"b":[true,false,null,"x",-1.5e+3,{}],"c":{"a":[]}}`,
		`{"a":1,"\u0061":2}`, `{"a\/":1,"a/":2}`, `"\ud83d\ude00\ud800"`, `{"\ud800":1,"\uD800":2}`,
		"[1 , 2\n,\t3]", `{"a":{"b":{"c":{}}}}`, "\"\xf0\x9f\x98\x80\"", `[01]`, `{"":1,"":2}`,
		`{` + members(20) + `,"k19":0}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		err := Strict(in)
		var e *Error
		if err != nil {
			require.ErrorAs(t, err, &e)
			if e.Reason == reasonDepth {
				return
			}
			require.LessOrEqual(t, e.Offset, len(in))
		}
		tame, changed := withoutLoneSurrogates(in)
		require.Equal(t, jsontext.Value(tame).IsValid(jsontext.AllowDuplicateNames(true)), err == nil || e.Code == CodeInvalid)
		if changed && hasPrivateUse(in) {
			return
		}
		require.Equal(t, jsontext.Value(tame).IsValid(jsontext.AllowDuplicateNames(false)), err == nil)
		require.Equal(t, err == nil || e.Code == CodeInvalid, Valid(in) == nil)
	})
}

func TestAsError(t *testing.T) {
	require.Nil(t, AsError(nil))
	require.Equal(t, reasonDuplicate, AsError(Strict([]byte(`{"a":1,"a":1}`))).Reason)
	require.Equal(t, CodeParse, AsError(fmt.Errorf("line 1: %w", Valid([]byte(`{`)))).Code)
	require.Equal(t, CodeInvalid, AsError(io.ErrUnexpectedEOF).Code)
}
