package guest_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/guest"
)

const params = `{ "name" : "t", "arguments":{"path":"/x","n":1.0, "deep":{"\u0061":[1, "two"]}}, "_meta":null }`

func TestGet(t *testing.T) {
	for _, c := range []struct {
		name, in string
		path     []string
		want     string
		ok       bool
	}{
		{"nothing on the path is the whole", `{"a":1}`, nil, `{"a":1}`, true},
		{"as spelled", params, []string{"arguments", "n"}, "1.0", true},
		{"without the space around it", params, []string{"name"}, `"t"`, true},
		{"null is a value", params, []string{"_meta"}, "null", true},
		{"names are decoded", params, []string{"arguments", "deep", "a"}, `[1, "two"]`, true},
		{"and compared exactly", `{"Name":1}`, []string{"name"}, "", false},
		{"absent", params, []string{"x"}, "", false},
		{"through what is no object", params, []string{"name", "x"}, "", false},
		{"through an array", `[{"a":1}]`, []string{"a"}, "", false},
		{"twice", `{"a":1,"\u0061":2}`, []string{"a"}, "", false},
		{"twice elsewhere", `{"a":1,"b":2,"b":3}`, []string{"a"}, "1", true},
		{"not JSON behind it", `{"a":1,`, []string{"a"}, "", false},
		{"something behind it", `{"a":1}}`, []string{"a"}, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := guest.Get(json.RawMessage(c.in), c.path...)
			require.Equal(t, c.ok, ok)
			require.Equal(t, c.want, string(got))
		})
	}
}

func TestGetText(t *testing.T) {
	s, ok := guest.GetText(json.RawMessage(params), "arguments", "path")
	require.True(t, ok)
	require.Equal(t, "/x", s)
	_, ok = guest.GetText(json.RawMessage(params), "arguments", "n")
	require.False(t, ok)
	_, ok = guest.GetText(json.RawMessage(params), "nothing")
	require.False(t, ok)
}

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		`"a"`: "a", ` "a" `: "a", `""`: "", `"\u00e9\ud83d\ude00\n\/"`: "é😀\n/", `"\ud800"`: "\uFFFD",
	} {
		got, ok := guest.Text([]byte(in))
		require.True(t, ok, in)
		require.Equal(t, want, got)
	}
	for _, in := range []string{``, `a`, `1`, `null`, `"a`, `"a" "b"`, `"\q"`, "\"\xff\""} {
		_, ok := guest.Text([]byte(in))
		require.False(t, ok, in)
	}
}

func TestAppendTextIsJSON(t *testing.T) {
	for _, s := range []string{"", "plain", "é😀", "<>&", "\"\\\n\r\t\x00\x1f\x7f", "a\xffb\xc3", "\uFFFD"} {
		b := guest.AppendText([]byte("x:"), s)
		var back string
		require.NoError(t, json.Unmarshal(b[2:], &back), "%q", b)
		require.Equal(t, string([]rune(s)), back)
	}
	require.Equal(t, `"<>&"`, string(guest.AppendText(nil, "<>&")))
}

func TestMembers(t *testing.T) {
	var names, values []string
	collect := func(in string, most int) {
		names, values = nil, nil
		for n, v := range guest.Members(json.RawMessage(in)) {
			names, values = append(names, n), append(values, string(v))
			if len(names) == most {
				break
			}
		}
	}
	collect(`{"b":1, "\u0061" : {"x":[]} ,"b":null}`, 9)
	require.Equal(t, []string{"b", "a", "b"}, names)
	require.Equal(t, []string{"1", `{"x":[]}`, "null"}, values)
	collect(`{"b":1,"a":2}`, 1)
	require.Equal(t, []string{"b"}, names)
	for _, in := range []string{`{}`, ` { } `, `[]`, `[1]`, `"a"`, `null`, ``, `{1:2}`} {
		collect(in, 9)
		require.Empty(t, names, in)
	}
	collect(`{"a":1,"b":}`, 9)
	require.Equal(t, []string{"a"}, names)
}

func TestElements(t *testing.T) {
	var values []string
	collect := func(in string, most int) {
		values = nil
		for i, v := range guest.Elements(json.RawMessage(in)) {
			require.Equal(t, len(values), i)
			if values = append(values, string(v)); len(values) == most {
				break
			}
		}
	}
	collect(` [ 1.0 , "a" ,[2], {"b":3} ] `, 9)
	require.Equal(t, []string{"1.0", `"a"`, "[2]", `{"b":3}`}, values)
	collect(`[1,2,3]`, 2)
	require.Equal(t, []string{"1", "2"}, values)
	for _, in := range []string{`[]`, `[ ]`, `{}`, `1`, ``, `[`} {
		collect(in, 9)
		require.Empty(t, values, in)
	}
	collect(`[1,nul]`, 9)
	require.Equal(t, []string{"1"}, values)
}

func TestSet(t *testing.T) {
	for _, c := range []struct {
		name, in, value string
		path            []string
		want            string
	}{
		{"replaces a value and nothing else", `{ "a" : 1.0 , "b":[1, 2] }`, `"x"`, []string{"b"}, `{ "a" : 1.0 , "b":"x" }`},
		{"goes down", `{"a":{"b":{"c":1}}}`, `2`, []string{"a", "b", "c"}, `{"a":{"b":{"c":2}}}`},
		{"adds a member as the last", `{"a":1 }`, `2`, []string{"b"}, `{"a":1,"b":2 }`},
		{"to an empty object", ` { } `, `2`, []string{"b"}, ` {"b":2 } `},
		{"with objects on the way", `{"a":{}}`, `true`, []string{"a", "b", "c d"}, `{"a":{"b":{"c d":true}}}`},
		{"stamps _meta", `{"name":"t"}`, `"v"`, []string{"_meta", "example.com/stamp"}, `{"name":"t","_meta":{"example.com/stamp":"v"}}`},
		{"finds a name spelled with escapes", `{"\u0061":1}`, `2`, []string{"a"}, `{"\u0061":2}`},
		{"without a path is the value", `[1]`, `{}`, nil, `{}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := guest.Set(json.RawMessage(c.in), json.RawMessage(c.value), c.path...)
			require.NoError(t, err)
			require.Equal(t, c.want, string(got))
		})
	}
	for name, c := range map[string]struct {
		in, value string
		path      []string
	}{
		"a value that is not JSON":         {`{}`, `nope`, []string{"a"}},
		"a value that is two":              {`{}`, `1,"b":2`, []string{"a"}},
		"no value":                         {`{}`, ``, []string{"a"}},
		"an array":                         {`[]`, `1`, []string{"a"}},
		"null on the way":                  {`{"a":null}`, `1`, []string{"a", "b"}},
		"a member that stands there twice": {`{"a":1,"a":2}`, `1`, []string{"a"}},
		"an object that does not end":      {`{"a":1`, `1`, []string{"b"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := guest.Set(json.RawMessage(c.in), json.RawMessage(c.value), c.path...)
			require.Error(t, err)
		})
	}
}

func TestRemove(t *testing.T) {
	for _, c := range []struct {
		name, in string
		path     []string
		want     string
	}{
		{"the first", `{ "a":1 , "b":2}`, []string{"a"}, `{ "b":2}`},
		{"the last", `{"a":1 , "b":2 }`, []string{"b"}, `{"a":1 }`},
		{"one between", `{"a":1,"b":2,"c":3}`, []string{"b"}, `{"a":1,"c":3}`},
		{"the only one", `{ "a":1 }`, []string{"a"}, `{  }`},
		{"down below", `{"x":{"a":1,"b":2},"y":0}`, []string{"x", "b"}, `{"x":{"a":1},"y":0}`},
		{"what is not there", `{"a":1}`, []string{"b"}, `{"a":1}`},
		{"below what is not there", `{"a":1}`, []string{"b", "c"}, `{"a":1}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := guest.Remove(json.RawMessage(c.in), c.path...)
			require.NoError(t, err)
			require.Equal(t, c.want, string(got))
		})
	}
	for name, c := range map[string]struct {
		in   string
		path []string
	}{
		"twice":            {`{"a":1,"a":2}`, []string{"a"}},
		"twice on the way": {`{"a":{},"a":{}}`, []string{"a", "b"}},
		"no object":        {`[]`, []string{"a"}},
		"no path":          {`{}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := guest.Remove(json.RawMessage(c.in), c.path...)
			require.Error(t, err)
		})
	}
}

func FuzzSetAndRemove(f *testing.F) {
	f.Add([]byte(`{"a":1,"b":{"c":2}}`), "b", "c")
	f.Add([]byte(`{}`), "a", "")
	f.Add([]byte(` { "a" : [ ] , "\u0062":null } `), "b", "x")
	f.Fuzz(func(t *testing.T, raw []byte, a, b string) {
		a, b = string([]rune(a)), string([]rune(b)) // names are UTF-8
		set, err := guest.Set(raw, []byte(`"new"`), a, b)
		if err != nil {
			return
		}
		require.True(t, json.Valid(set), "%q", set)
		got, ok := guest.GetText(set, a, b)
		require.True(t, ok)
		require.Equal(t, "new", got)
		without, err := guest.Remove(set, a, b)
		require.NoError(t, err)
		require.True(t, json.Valid(without), "%q", without)
		_, ok = guest.Get(without, a, b)
		require.False(t, ok)
	})
}
