package wire

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMembers(t *testing.T) {
	list := func(in string) (out []string, err error) {
		err = Members([]byte(in), func(name string, raw, value []byte) bool {
			require.Equal(t, len(raw), cap(raw))
			require.Equal(t, len(value), cap(value))
			out = append(out, fmt.Sprintf("%s|%s|%s", name, raw, value))
			return true
		})
		return out, err
	}
	got, err := list(" { \"a\" : 1.0 ,\"\\u0062\":[ {} ]\n, \"a\":\"x\" } ")
	require.NoError(t, err)
	require.Equal(t, []string{`a|"a"|1.0`, `b|"\u0062"|[ {} ]`, `a|"a"|"x"`}, got)
	got, err = list(`{}`)
	require.NoError(t, err)
	require.Empty(t, got)

	for in, code := range map[string]int{
		``: CodeParse, `{`: CodeParse, `{"a"`: CodeParse, `{"a":`: CodeParse, `{"a":1`: CodeParse, `{"a":1,}`: CodeParse,
		`{"a":1}}`: CodeParse, `{a:1}`: CodeParse, `x`: CodeParse, `[`: CodeParse,
		`[]`: CodeInvalid, `1`: CodeInvalid, `null`: CodeInvalid,
		`{"a":` + strings.Repeat("[", MaxDepth): CodeInvalid,
	} {
		_, err := list(in)
		var e *Error
		require.ErrorAs(t, err, &e, in)
		require.Equal(t, code, e.Code, in)
	}

	n := 0
	require.NoError(t, Members([]byte(`{"a":1,"b":2, broken`), func(string, []byte, []byte) bool { n++; return false }))
	require.Equal(t, 1, n, "nothing is read after the caller has enough")
}

func TestElements(t *testing.T) {
	list := func(in string) (out []string, err error) {
		err = Elements([]byte(in), func(i int, value []byte) bool {
			require.Equal(t, len(out), i)
			out = append(out, string(value))
			return true
		})
		return out, err
	}
	got, err := list(" [ 1.0 ,{ \"a\":[] }\n, null ] ")
	require.NoError(t, err)
	require.Equal(t, []string{`1.0`, `{ "a":[] }`, `null`}, got)
	got, err = list(` [ ] `)
	require.NoError(t, err)
	require.Empty(t, got)
	for in, code := range map[string]int{
		``: CodeParse, `[`: CodeParse, `[1`: CodeParse, `[1,`: CodeParse, `[1,]`: CodeParse, `[,]`: CodeParse, `[1 2]`: CodeParse,
		`[1]]`: CodeParse, `[] x`: CodeParse, `[}`: CodeParse,
		`{}`: CodeInvalid, `"x"`: CodeInvalid,
		strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1): CodeInvalid,
	} {
		_, err := list(in)
		var e *Error
		require.ErrorAs(t, err, &e, in)
		require.Equal(t, code, e.Code, in)
	}
	require.NoError(t, Elements([]byte(`[1,2`), func(int, []byte) bool { return false }))
}

func TestGet(t *testing.T) {
	in := []byte(` { "_meta" : { "progressToken": 9007199254740993 }, "t\u0061sk":{"id":null}, "list":[{"a":1}], "s":"_meta" } `)
	for _, c := range []struct {
		path []string
		want string
	}{
		{[]string{"_meta", "progressToken"}, `9007199254740993`},
		{[]string{"_meta"}, `{ "progressToken": 9007199254740993 }`},
		{[]string{"task", "id"}, `null`},
		{[]string{"list"}, `[{"a":1}]`},
		{nil, strings.TrimSpace(string(in))},
		{[]string{"list", "a"}, ""}, {[]string{"list", "0"}, ""}, {[]string{"s", "x"}, ""},
		{[]string{"absent"}, ""}, {[]string{"_meta", "absent"}, ""}, {[]string{"_Meta"}, ""}, {[]string{""}, ""},
	} {
		got, ok := Get(in, c.path...)
		require.Equal(t, c.want != "", ok, c.path)
		require.Equal(t, c.want, string(got), c.path)
		from, to, found := Find(in, c.path...)
		require.Equal(t, ok, found)
		if ok {
			require.Equal(t, c.want, string(in[from:to]))
			require.Equal(t, len(got), cap(got))
		}
	}
	for _, bad := range []string{``, `{`, `{"a"`, `{"a":`, `{"a":1 "b":2}`, `[1]`, `{"x":{},`, `{"b":tru`, "{\"\xff\":1}"} {
		_, ok := Get([]byte(bad), "b")
		require.False(t, ok, bad)
	}
}

func TestGetOfHostileDepth(t *testing.T) {
	path := strings.Split(strings.Repeat("a", MaxDepth+1), "")
	_, ok := Get([]byte(strings.Repeat(`{"a":`, MaxDepth+1)+`1`+strings.Repeat("}", MaxDepth+1)), path...)
	require.False(t, ok)
}

// FuzzMembers: whatever it walks, it must agree with Valid and never panic.
func FuzzMembers(f *testing.F) {
	f.Add([]byte(`{"a":1,"b":{"c":[1,2]}}`))
	f.Add([]byte(`[1,{"a":2}]`))
	f.Fuzz(func(t *testing.T, in []byte) {
		valid := Valid(in)
		first := byte(0)
		if i := space(in, 0); i < len(in) {
			first = in[i]
		}
		err := Members(in, func(name string, raw, value []byte) bool {
			require.NoError(t, Valid(value))
			text, ok := Unquote(raw)
			require.True(t, ok)
			require.Equal(t, text, name)
			got, ok := Get(in, name)
			require.True(t, ok)
			require.NoError(t, Valid(got))
			return true
		})
		require.Equal(t, valid == nil && first == '{', err == nil)
		err = Elements(in, func(_ int, value []byte) bool {
			require.NoError(t, Valid(value))
			return true
		})
		require.Equal(t, valid == nil && first == '[', err == nil)
	})
}
