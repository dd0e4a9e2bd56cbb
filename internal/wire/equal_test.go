package wire

import (
	"sort"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
)

func TestEqual(t *testing.T) {
	for _, c := range []struct {
		name, a, b string
		want       bool
	}{
		{"identical", `{"a":1}`, `{"a":1}`, true},
		{"white space", `{"a":[1,2]}`, " { \"a\" : [ 1 ,\n2 ] } ", true},
		{"order of members", `{"a":1,"b":2,"c":3}`, `{"c":3,"a":1,"b":2}`, true},
		{"order at depth", `{"a":{"x":1,"y":[{"p":1,"q":2}]},"b":0}`, `{"b":0,"a":{"y":[{"q":2,"p":1}],"x":1}}`, true},
		{"order of elements", `[1,2]`, `[2,1]`, false},
		{"escapes", `{"\u0061":"\/\ud83d\ude00\n"}`, `{"a":"/😀\u000a"}`, true},
		{"escaped names in another order", `{"\u0061":1,"b":2}`, `{"b":2,"a":1}`, true},
		{"lone surrogates", `"\ud800"`, `"\ud801"`, false},
		{"a lone surrogate is no U+FFFD", `"\ud800"`, `"\ufffd"`, false},
		{"numbers", `[1,1.0,10e-1,0.1e1]`, `[1,1,1,1]`, true},
		{"zero has no sign", `[0,-0,0.0]`, `[-0,0e9,0]`, true},
		{"never through floats", `9007199254740993`, `9007199254740992`, false},
		{"beyond floats", `1e400`, `1e401`, false},
		{"beyond floats, equal", `1e400`, `10E+399`, true},
		{"sign", `1`, `-1`, false},
		{"prefix", `12`, `1.2`, false},
		{"number and string", `1`, `"1"`, false},
		{"null and absent", `{"a":null}`, `{}`, false},
		{"absent and null", `{}`, `{"a":null}`, false},
		{"false and null", `false`, `null`, false},
		{"literals", `[true,false,null]`, `[ true,false,null]`, true},
		{"true and false", `true`, `false`, false},
		{"empty", `[]`, `{}`, false},
		{"one more member", `{"a":1,"b":2}`, `{"b":2}`, false},
		{"one more element", `[1]`, `[1,1]`, false},
		{"other name", `{"a":1}`, `{"b":1}`, false},
		{"names are exact", `{"a":1}`, `{"A":1}`, false},
		{"value in another order", `{"a":1,"b":2}`, `{"b":1,"a":2}`, false},
		{"duplicates keep their order", `{"a":1,"a":2,"b":0}`, `{"b":0,"a":1,"a":2}`, true},
		{"duplicates in another order", `{"a":1,"a":2}`, `{"a":2,"a":1}`, false},
		{"no JSON, identical", `{`, `{`, true},
		{"no JSON", `{"a":1`, `{"a":1}`, false},
		{"no JSON, the other way", `{"a":1}`, `{"a":1} x`, false},
		{"nothing", ``, ` `, false},
		{"invalid UTF-8", "\"\xff\"", "\"\xfe\"", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, Equal([]byte(c.a), []byte(c.b)))
			require.Equal(t, c.want, Equal([]byte(c.b), []byte(c.a)))
		})
	}
}

// Members out of order at every level of a deep value must not be stepped over
// again at each level, and depth beyond the bound ends it.
func TestEqualOfHostileDepth(t *testing.T) {
	nest := func(open, end string, n int) []byte {
		return []byte(strings.Repeat(open, n) + `0` + strings.Repeat(end, n))
	}
	pad := `"` + strings.Repeat("x", 2000) + `"`
	a := nest(`{"p":`+pad+`,"v":`, `}`, MaxDepth)
	b := nest(`{"v":`, `,"p":`+pad+`}`, MaxDepth)
	require.True(t, Equal(a, b))
	require.False(t, Equal(nest(`[`, `]`, MaxDepth+1), nest(`[ `, `]`, MaxDepth+1)))
	require.False(t, Equal([]byte(strings.Repeat(`[`, 1<<20)), []byte(strings.Repeat(`[`, 1<<20)+` `)))
}

func TestEqualOfManyMembers(t *testing.T) {
	const n = 50_000
	names := strings.Split(members(n), ",")
	a := `{` + strings.Join(names, ",") + `}`
	for i, j := 0, n-1; i < j; i, j = i+1, j-1 {
		names[i], names[j] = names[j], names[i]
	}
	b := `{` + strings.Join(names, ",") + `}`
	require.True(t, Equal([]byte(a), []byte(b)))
	require.False(t, Equal([]byte(a), []byte(strings.Replace(b, `"k7":0`, `"k7":1`, 1))))
}

// FuzzEqual holds Equal against a model: the value written again with sorted
// members, canonical strings and rational numbers.
func FuzzEqual(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"a":1,"b":[1,2]}`, `{"b":[1.0,2],"a":1}`}, {`"\u0061"`, `"a"`}, {`[1e2,-0]`, `[100,0]`},
		{`{"a":{"c":1,"b":2},"d":[]}`, `{"d":[],"a":{"b":2,"c":1}}`}, {`{}`, `[]`}, {`{"a":1,"a":2}`, `{"a":2,"a":1}`},
		{`[{"x":[[1]],"y":{}}]`, `[{"y":{},"x":[[1]]}]`},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		got := Equal(a, b)
		require.Equal(t, got, Equal(b, a), "symmetric")
		require.True(t, Equal(a, a), "reflexive")
		if Valid(a) == nil {
			require.True(t, Equal(a, []byte(" "+string(a)+"\n")))
		}
		x, ok := model(a)
		y, ok2 := model(b)
		if ok && ok2 {
			require.Equal(t, x == y, got, "%s\n%s", x, y)
		}
		if !got {
			return
		}
		require.True(t, string(a) == string(b) || Valid(a) == nil && Valid(b) == nil)
	})
}

// model writes a value such that equal values are written alike. It is false
// for what it cannot judge: no JSON, lone surrogates, large exponents.
func model(in []byte) (string, bool) {
	if Valid(in) != nil || hasLoneSurrogate(in) {
		return "", false
	}
	d := jsontext.NewDecoder(strings.NewReader(string(in)), jsontext.AllowDuplicateNames(true))
	return modelValue(d)
}

func modelValue(d *jsontext.Decoder) (string, bool) {
	token, err := d.ReadToken()
	if err != nil {
		return "", false
	}
	switch token.Kind() {
	case '0':
		r, ok := rational([]byte(token.String()))
		if !ok {
			return "", false
		}
		return r.RatString(), true
	case '[':
		out := "["
		for d.PeekKind() != ']' {
			v, ok := modelValue(d)
			if !ok {
				return "", false
			}
			out += v + ","
		}
		_, _ = d.ReadToken()
		return out + "]", true
	case '{':
		byName := map[string]string{}
		for d.PeekKind() != '}' {
			name, _ := d.ReadToken()
			key := string(AppendString(nil, name.String()))
			v, ok := modelValue(d)
			if !ok {
				return "", false
			}
			byName[key] += v + ";"
		}
		_, _ = d.ReadToken()
		names := make([]string, 0, len(byName))
		for name := range byName {
			names = append(names, name)
		}
		sort.Strings(names)
		out := "{"
		for _, name := range names {
			out += name + ":" + byName[name] + ","
		}
		return out + "}", true
	case '"':
		return string(AppendString(nil, token.String())), true
	default:
		return token.String(), true
	}
}
