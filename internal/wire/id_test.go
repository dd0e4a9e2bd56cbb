package wire

import (
	"bytes"
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func id(t testing.TB, raw string) ID {
	t.Helper()
	id, ok := ParseID([]byte(raw))
	require.True(t, ok, raw)
	require.Equal(t, raw, id.String())
	return id
}

// reused_id: ids are compared as decimal values and as text.
func TestIDsAreValues(t *testing.T) {
	long := strings.Repeat("7", 300)
	classes := [][]string{
		{`1`, `1.0`, `1e0`, `1E+0`, `10e-1`, `0.1e1`, `0.01E2`, `1.000e-000`},
		{`-1`, `-1.0`, `-10e-1`},
		{`0`, `-0`, `0.0`, `0e999999999999999999999999`, `-0.00e-5`},
		{`10`, `1e1`, `100e-1`, `10.0`},
		{`100`, `1e2`},
		{`0.5`, `5e-1`, `0.50`},
		{`12.5`, `125e-1`, `0.0125e3`, `1.25e1`},
		{`9007199254740993`, `9007199254740993.0`, `9.007199254740993e15`},
		{`9007199254740992`},
		{`9007199254740994`},
		{`1e400`, `10e399`, `0.1e401`},
		{`1e401`},
		{`1e-400`, `0.1e-399`},
		{`1` + strings.Repeat("0", 40), `1e40`, `1` + strings.Repeat("0", 40) + `.0`},
		{`1` + strings.Repeat("0", 39), `1e39`},
		{long, long + `.0`, `0.` + long + `e300`},
		{long + `1`},
		{`1e999999999999998`, `10e999999999999997`},
		{`1e1000000000000000000000000`, `1e1000000000000000000000001`, `1e99999999999999999999999999999999999`},
		{`1e-1000000000000000000000000`, `1e-1000000000000000000000001`},
		{`2e1000000000000000000000000`},
		{`"1"`, `"\u0031"`},
		{`"1.0"`},
		{`""`},
		{`"a/b"`, `"a\/b"`, `"\u0061/b"`},
		{`"A/b"`},
		{`"null"`},
		{`"é"`, `"\u00e9"`, `"\u00E9"`},
		{`"e\u0301"`},
		{`"\ud800"`, `"\uD800"`},
		{`"\ufffd"`, `"` + "\ufffd" + `"`},
		{`"` + long + `"`, `"\u0037` + long[1:] + `"`},
		{`"` + long + `7"`},
		{`null`},
		{`"#"`},
	}
	for i, class := range classes {
		for _, a := range class {
			x := id(t, a)
			require.LessOrEqual(t, len(x.Key()), longKey)
			for j, other := range classes {
				for _, b := range other {
					y := id(t, b)
					require.Equal(t, i == j, x.Equal(y), "%s and %s", a, b)
					require.Equal(t, i == j, x.Key() == y.Key(), "keys of %s and %s: %q %q", a, b, x.Key(), y.Key())
				}
			}
		}
	}
}

func TestIDZero(t *testing.T) {
	require.True(t, ID{}.IsZero())
	require.Empty(t, ID{}.Key())
	require.Empty(t, ID{}.String())
	require.Nil(t, ID{}.Raw())
	require.Nil(t, ID{}.Clone().Raw())
	require.True(t, ID{}.Equal(ID{}))
	require.False(t, ID{}.Equal(id(t, `""`)))
	require.False(t, ID{}.Equal(id(t, `null`)))
	require.True(t, id(t, `null`).IsNull())
	require.False(t, id(t, `"null"`).IsNull())
	require.False(t, id(t, `1`).IsZero())
}

func TestParseIDTakesStringsAndNumbersOnly(t *testing.T) {
	for _, raw := range []string{``, ` `, ` 1`, `1 `, `01`, `1.`, `-`, `true`, `{}`, `[]`, `"a`, `"a"b`, `nul`, `nulll`, "\"\xff\"", `1,2`} {
		_, ok := ParseID([]byte(raw))
		require.False(t, ok, raw)
	}
}

func TestIDCloneOutlivesItsMessage(t *testing.T) {
	raw := []byte(`"abc"`)
	alias, _ := ParseID(raw)
	kept, key := alias.Clone(), alias.Key()
	copy(raw, `"xyz"`)
	require.Equal(t, `"abc"`, kept.String())
	require.Equal(t, kept.Key(), key)
}

// A number as long as a message, or of an exponent as long, costs no more than
// reading it.
func TestIDsOfHostileSize(t *testing.T) {
	huge := strings.Repeat("9", 1<<20)
	a, b := id(t, huge+"e"+huge), id(t, huge+"e-"+huge)
	require.False(t, a.Equal(b))
	require.NotEqual(t, a.Key(), b.Key())
	require.True(t, id(t, `0e`+huge).Equal(id(t, `0`)))
}

// FuzzID compares ids with big rational numbers, and Key with Equal.
func FuzzID(f *testing.F) {
	for _, seed := range [][2]string{
		{`1`, `1.0`}, {`9007199254740993`, `9007199254740992`}, {`1e400`, `10e399`}, {`"a"`, `"\u0061"`}, {`-0`, `0`},
		{`0.001e3`, `1`}, {`1e40`, `1` + strings.Repeat("0", 40)}, {`null`, `"null"`}, {`1e99999999999999999999`, `1e99999999999999999998`},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		x, ok := ParseID(a)
		y, ok2 := ParseID(b)
		if !ok || !ok2 {
			return
		}
		equal := x.Equal(y)
		require.Equal(t, equal, y.Equal(x))
		require.True(t, x.Equal(x.Clone()))
		require.Equal(t, equal, x.Key() == y.Key())
		require.LessOrEqual(t, len(x.Key()), longKey)
		p, small := rational(a)
		q, small2 := rational(b)
		if small && small2 {
			require.Equal(t, p.Cmp(q) == 0, equal)
		}
	})
}

// rational is the number raw spells, unless its exponent is large.
func rational(raw []byte) (*big.Rat, bool) {
	if !isNumber(raw[0]) {
		return nil, false
	}
	if i := bytes.IndexAny(raw, "eE"); i >= 0 {
		exp, ok := new(big.Int).SetString(strings.TrimPrefix(string(raw[i+1:]), "+"), 10)
		if !ok || !exp.IsInt64() || exp.Int64() > 2000 || exp.Int64() < -2000 {
			return nil, false
		}
	}
	return new(big.Rat).SetString(string(raw))
}
