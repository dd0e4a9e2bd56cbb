package wire

import (
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
)

func TestReadKinds(t *testing.T) {
	for _, c := range []struct {
		name, in                  string
		kind                      Kind
		id, method, params, value string
	}{
		{"request", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"a":1}}`, Request, `1`, "tools/call", `{"a":1}`, ""},
		{"request without params", `{"jsonrpc":"2.0","id":"x","method":"ping"}`, Request, `"x"`, "ping", "", ""},
		{"members in any order", `{"params":{},"method":"ping","id":-1.5,"jsonrpc":"2.0"}`, Request, `-1.5`, "ping", `{}`, ""},
		{"white space everywhere", " \r\n\t{ \"jsonrpc\" : \"2.0\" ,\n\"id\" : 1 , \"method\" : \"ping\" , \"params\" : { } } \n", Request, `1`, "ping", `{ }`, ""},
		{"escapes in names and method", `{"jsonrpc":"2\u002e0","\u0069d":1,"m\u0065thod":"tools\/call","param\u0073":{}}`, Request, `1`, "tools/call", `{}`, ""},
		{"notification", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, Notification, "", "notifications/initialized", "", ""},
		{"response", `{"jsonrpc":"2.0","id":1,"result":{"x":[1]}}`, Response, `1`, "", "", `{"x":[1]}`},
		{"a null result is there", `{"jsonrpc":"2.0","id":1,"result":null}`, Response, `1`, "", "", `null`},
		{"failure", `{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}`, Failure, `1`, "", "", `{"code":-1,"message":"no"}`},
		{"failure with id null", `{"jsonrpc":"2.0","id":null,"error":{}}`, Failure, `null`, "", "", `{}`},
		{"failure without id", `{"jsonrpc":"2.0","error":{}}`, Failure, "", "", "", `{}`},
		{"unknown members", `{"jsonrpc":"2.0","id":1,"method":"ping","x":[{"id":2},{"ID":3}]}`, Request, `1`, "ping", "", ""},
		{"case variants below the top of params", `{"jsonrpc":"2.0","method":"m","params":{"a":{"b":1,"B":2,"b":3}}}`, Notification, "", "m", `{"a":{"b":1,"B":2,"b":3}}`, ""},
		{"case variants in a result", `{"jsonrpc":"2.0","id":1,"result":{"b":1,"B":2}}`, Response, `1`, "", "", `{"b":1,"B":2}`},
		{"names of the envelope in params", `{"jsonrpc":"2.0","id":1,"method":"m","params":{"ID":1,"Method":2,"jsonrpc":3}}`, Request, `1`, "m", `{"ID":1,"Method":2,"jsonrpc":3}`, ""},
		{"lone surrogates", `{"jsonrpc":"2.0","id":"\ud800","method":"m","params":{"\ud800":1,"\ud801":"\udc00\ud800x"}}`, Request, `"\ud800"`, "m", `{"\ud800":1,"\ud801":"\udc00\ud800x"}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := Read([]byte(c.in))
			require.NoError(t, err)
			require.Equal(t, c.kind, m.Kind)
			require.Equal(t, strings.TrimSpace(c.in), string(m.Raw))
			require.Equal(t, c.id, m.ID.String())
			require.Equal(t, c.method, m.Method)
			require.Equal(t, c.params, string(m.Params))
			require.Equal(t, c.params == "", m.Params == nil)
			require.Equal(t, c.value, string(m.Result)+string(m.Error))
		})
	}
}

func TestReadRefuses(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, c := range []struct {
		name, in string
		code     int
		reason   string
		kind     Kind
		id       string
	}{
		// Not JSON, whatever else is wrong.
		{"nothing", "", CodeParse, reasonEnd, Unknown, ""},
		{"white space", " \n", CodeParse, reasonEnd, Unknown, ""},
		{"cut off", `{"jsonrpc":"2.0","id":1,"method":"m"`, CodeParse, reasonEnd, Request, "1"},
		{"two messages", `{"jsonrpc":"2.0","id":1,"method":"m"}{}`, CodeParse, reasonTrailing, Request, "1"},
		{"bad byte after a duplicate", `{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"m"} x`, CodeParse, reasonTrailing, Request, "1"},
		{"byte order mark", "\ufeff" + `{"jsonrpc":"2.0","method":"m"}`, CodeParse, reasonToken, Unknown, ""},
		{"comma at the end", `{"jsonrpc":"2.0","id":1,"method":"m",}`, CodeParse, reasonToken, Request, "1"},
		{"comma at the end of params", `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1,}}`, CodeParse, reasonToken, Request, "1"},
		{"invalid UTF-8 in params", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{\"a\":\"\xff\"}}", CodeParse, reasonUTF8, Request, "1"},
		{"invalid UTF-8 in a result", "{\"jsonrpc\":\"2.0\",\"id\":\"r\",\"result\":\"\xc0\x80\"}", CodeParse, reasonUTF8, Response, `"r"`},
		{"raw surrogate", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xed\xa0\x80\"}", CodeParse, reasonUTF8, Request, "1"},
		{"character cut off", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xe6\xb0", CodeParse, reasonUTF8, Request, "1"},
		{"invalid UTF-8 outside strings", "{\"jsonrpc\":\"2.0\",\"id\":1,\xff}", CodeParse, reasonUTF8, Unknown, "1"},
		{"batch that is not JSON", `[{"jsonrpc":"2.0","method":"m"}`, CodeParse, reasonEnd, Unknown, ""},

		// duplicate_keys
		{"batch", `[{"jsonrpc":"2.0","id":1,"method":"m"}]`, CodeInvalid, reasonBatch, Unknown, ""},
		{"empty batch", `[]`, CodeInvalid, reasonBatch, Unknown, ""},
		{"not an object", `"x"`, CodeInvalid, reasonNoObject, Unknown, ""},
		{"method twice", `{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}`, CodeInvalid, reasonFold, Request, "1"},
		{"method twice, once escaped", `{"jsonrpc":"2.0","id":1,"method":"a","metho\u0064":"b"}`, CodeInvalid, reasonFold, Request, "1"},
		{"id twice", `{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}`, CodeInvalid, reasonFold, Request, ""},
		{"Method beside method", `{"jsonrpc":"2.0","id":1,"method":"a","Method":"b"}`, CodeInvalid, reasonVariant, Request, "1"},
		{"Method alone", `{"jsonrpc":"2.0","id":1,"Method":"b"}`, CodeInvalid, reasonVariant, Unknown, "1"},
		{"PARAMS alone", `{"jsonrpc":"2.0","id":1,"method":"a","PARAMS":{}}`, CodeInvalid, reasonVariant, Request, "1"},
		{"escaped variant", `{"jsonrpc":"2.0","method":"a","\u0049d":1}`, CodeInvalid, reasonVariant, Notification, ""},
		{"long s in params", `{"jsonrpc":"2.0","method":"a","paramſ":{}}`, CodeInvalid, reasonVariant, Notification, ""},
		{"long s in result, escaped", `{"jsonrpc":"2.0","id":1,"re\u017fult":{}}`, CodeInvalid, reasonVariant, Unknown, "1"},
		{"unknown names that differ in case", `{"jsonrpc":"2.0","method":"a","x":1,"X":2}`, CodeInvalid, reasonFold, Notification, ""},
		{"params: equal names", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"safe","name":"evil"}}`, CodeInvalid, reasonFold, Request, "1"},
		{"params: names that differ in case", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"safe","Name":"evil"}}`, CodeInvalid, reasonFold, Request, "1"},
		{"params: Kelvin sign", `{"jsonrpc":"2.0","id":1,"method":"m","params":{"task":1,"tasK":2}}`, CodeInvalid, reasonFold, Request, "1"},
		{"params: Greek sigma", `{"jsonrpc":"2.0","id":1,"method":"m","params":{"Σ":1,"ς":2}}`, CodeInvalid, reasonFold, Request, "1"},
		{"params: many members", `{"jsonrpc":"2.0","id":1,"method":"m","params":{` + members(100) + `,"K42":0}}`, CodeInvalid, reasonFold, Request, "1"},
		{"params with null value twice", `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":null,"\u0061":null}}`, CodeInvalid, reasonFold, Request, "1"},

		// The envelope.
		{"no jsonrpc", `{"id":1,"method":"m"}`, CodeInvalid, reasonVersion, Request, "1"},
		{"jsonrpc 1.0", `{"jsonrpc":"1.0","id":1,"method":"m"}`, CodeInvalid, reasonVersion, Request, "1"},
		{"jsonrpc a number", `{"jsonrpc":2.0,"id":1,"method":"m"}`, CodeInvalid, reasonVersion, Request, "1"},
		{"id null in a request", `{"jsonrpc":"2.0","id":null,"method":"m"}`, CodeInvalid, reasonNullID, Request, "null"},
		{"id null in a response", `{"jsonrpc":"2.0","id":null,"result":{}}`, CodeInvalid, reasonNullID, Response, "null"},
		{"id true", `{"jsonrpc":"2.0","id":true,"method":"m"}`, CodeInvalid, reasonID, Request, ""},
		{"id an object", `{"jsonrpc":"2.0","id":{"id":1},"method":"m"}`, CodeInvalid, reasonID, Request, ""},
		{"no id in a response", `{"jsonrpc":"2.0","result":{}}`, CodeInvalid, reasonNoID, Response, ""},
		{"method a number", `{"jsonrpc":"2.0","id":1,"method":1}`, CodeInvalid, reasonMethod, Request, "1"},
		{"method null", `{"jsonrpc":"2.0","id":1,"method":null}`, CodeInvalid, reasonMethod, Request, "1"},
		{"params an array", `{"jsonrpc":"2.0","id":1,"method":"m","params":[]}`, CodeInvalid, reasonParams, Request, "1"},
		{"params null", `{"jsonrpc":"2.0","id":1,"method":"m","params":null}`, CodeInvalid, reasonParams, Request, "1"},
		{"params a string", `{"jsonrpc":"2.0","id":1,"method":"m","params":"{}"}`, CodeInvalid, reasonParams, Request, "1"},
		{"params in a response", `{"jsonrpc":"2.0","id":1,"result":{},"params":{}}`, CodeInvalid, reasonStray, Response, "1"},
		{"error a string", `{"jsonrpc":"2.0","id":1,"error":"no"}`, CodeInvalid, reasonErrorObject, Failure, "1"},
		{"error null", `{"jsonrpc":"2.0","id":1,"error":null}`, CodeInvalid, reasonErrorObject, Failure, "1"},
		{"result and error", `{"jsonrpc":"2.0","id":1,"result":{},"error":{}}`, CodeInvalid, reasonBoth, Unknown, "1"},
		{"method and result", `{"jsonrpc":"2.0","id":1,"method":"m","result":{}}`, CodeInvalid, reasonMixed, Unknown, "1"},
		{"method and error", `{"jsonrpc":"2.0","id":1,"method":"m","error":{}}`, CodeInvalid, reasonMixed, Unknown, "1"},
		{"nothing in it", `{"jsonrpc":"2.0","id":1}`, CodeInvalid, reasonNothing, Unknown, "1"},
		{"empty object", `{}`, CodeInvalid, reasonVersion, Unknown, ""},

		// Depth.
		{"too deep", `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":` + deep(MaxDepth-1) + `}}`, CodeInvalid, reasonDepth, Request, "1"},
		{"too deep and never closed", strings.Repeat("[", 1<<20), CodeInvalid, reasonDepth, Unknown, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := Read([]byte(c.in))
			var e *Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, Message{}, m)
			require.Equal(t, c.code, e.Code, e.Reason)
			require.Equal(t, c.reason, e.Reason)
			require.Equal(t, c.kind, e.Kind)
			require.Equal(t, c.id, e.ID.String())
			require.LessOrEqual(t, e.Offset, len(c.in))
			require.Contains(t, e.Error(), c.reason)
		})
	}
	_, err := Read([]byte(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":` + deep(MaxDepth-2) + `}}`))
	require.NoError(t, err, "as deep as may be")
}

// members writes n members k0, k1, …
func members(n int) string {
	var s strings.Builder
	for i := range n {
		if i > 0 {
			s.WriteByte(',')
		}
		s.WriteString(`"k` + strconv.Itoa(i) + `":0`)
	}
	return s.String()
}

func TestReadHostileSizes(t *testing.T) {
	const n = 100_000
	many := members(n)
	_, err := Read([]byte(`{"jsonrpc":"2.0","method":"m","params":{` + many + `}}`))
	require.NoError(t, err)
	_, err = Read([]byte(`{"jsonrpc":"2.0","method":"m","params":{` + many + `,"K99999":1}}`))
	require.Error(t, err)
	_, err = Read([]byte(`{"jsonrpc":"2.0","method":"m",` + many + `}`))
	require.NoError(t, err)
	escaped := strings.ReplaceAll(many, `"k`, `"\u006b`)
	require.NoError(t, Strict([]byte(`{"a":{`+escaped+`},"b":[{`+escaped+`}]}`)))
	// Each object is large enough for the sorted way, and there are many.
	require.NoError(t, Strict([]byte(`[`+strings.Repeat(`{`+members(fewNames+1)+`},`, 5000)+`0]`)))
}

func TestReadAliasesItsInput(t *testing.T) {
	in := []byte(` {"jsonrpc":"2.0","id":"abc","method":"m","params":{"a":1}} `)
	m, err := Read(in)
	require.NoError(t, err)
	for _, part := range [][]byte{m.Raw, m.Params, m.ID.Raw()} {
		require.Equal(t, len(part), cap(part), "appending to a part must not write into the message")
	}
	require.Same(t, &in[1], &m.Raw[0])
}

// Scanners are lent from a pool: readers at the same time, some of which are
// refused half-way, must not see each other's names.
func TestReadersAtTheSameTime(t *testing.T) {
	many := members(500)
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := range 100 {
				n := strconv.Itoa(worker*1000 + i)
				m, err := Read([]byte(`{"jsonrpc":"2.0","id":` + n + `,"method":"m` + n + `","params":{"\u0061` + n + `":1,"B":[{` + many + `}]}}`))
				if err != nil || m.ID.String() != n || m.Method != "m"+n {
					t.Errorf("%v %v %v", m.ID, m.Method, err)
					return
				}
				if _, err := Read([]byte(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1,"A":2,"x":[`)); err == nil {
					t.Error("accepted")
				}
				if Strict(m.Raw) != nil || Strict([]byte(`[{"k":[{"a":1,"\u0061":1}]},{"k":{"a"`)) == nil || Strict([]byte(`[{"k":[{"a":1,"\u0061":1}]}]`)) == nil {
					t.Error("misjudged")
				}
			}
		})
	}
	all.Wait()
}

// untouched_means_untouched: what is not replaced is not touched.
func TestEditsReplaceExactlyOneMember(t *testing.T) {
	const odd = `"_meta":{"progressToken":9007199254740993},"n":[1.0,1e400,-0,0.10],"h":"<>&\u003c\ud83d\ude00\ud800","z":1,"a":2`
	read := func(in string) Message {
		m, err := Read([]byte(in))
		require.NoError(t, err)
		return m
	}
	m := read(` { "x":{` + odd + `} , "params" : {"p":1} ,"id": 1.0e0,"jsonrpc":"2.0","method":"m" } `)
	require.Equal(t, `{ "x":{`+odd+`} , "params" : {"q":[]} ,"id": 1.0e0,"jsonrpc":"2.0","method":"m" }`, string(m.WithParams([]byte(`{"q":[]}`))))
	require.Equal(t, `{ "x":{`+odd+`} , "params" : {"p":1} ,"id": "g7","jsonrpc":"2.0","method":"m" }`, string(m.WithID([]byte(`"g7"`))))
	require.Nil(t, m.WithResult([]byte(`{}`)))

	m = read(`{"jsonrpc":"2.0","method":"m","x":{` + odd + `}}`)
	require.Equal(t, `{"jsonrpc":"2.0","method":"m","x":{`+odd+`},"params":{}}`, string(m.WithParams([]byte(`{}`))), "absent params become the last member")
	require.Nil(t, m.WithID([]byte(`1`)))

	m = read(`{"result": {"r":1} ,"jsonrpc":"2.0","x":{` + odd + `},"id":1}`)
	require.Equal(t, `{"result": {"content":[]} ,"jsonrpc":"2.0","x":{`+odd+`},"id":1}`, string(m.WithResult([]byte(`{"content":[]}`))))
	require.Nil(t, m.WithParams([]byte(`{}`)))

	m = read(`{"jsonrpc":"2.0","id":null,"error":{"code":1}}`)
	require.Nil(t, m.WithResult([]byte(`{}`)), "an error never becomes a success")
}

// FuzzRead holds Read against jsontext: both must agree on what is JSON, and
// every part must be the one that jsontext finds.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`,
		`{"jsonrpc":"2.0","id":"a","result":{}}`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}`,
		`{"jsonrpc":"2.0","method":"m","Method":1}`,
		`{"jsonrpc":"2.0","method":"m","params":{"s":1,"\u017f":2}}`,
		" [ ] ", "{\"a\":\"\xff\"}", `{"id":1e5,"id":"\ud800"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		m, err := Read(in)
		valid := jsontext.Value(in).IsValid(jsontext.AllowDuplicateNames(true))
		if err != nil {
			var e *Error
			require.ErrorAs(t, err, &e)
			require.True(t, e.Code == CodeParse || e.Code == CodeInvalid)
			if e.Reason != reasonDepth {
				require.Equal(t, e.Code == CodeParse, !jsonAsWeHaveIt(in), e.Error())
			}
			if !e.ID.IsZero() {
				_, ok := ParseID(e.ID.Raw())
				require.True(t, ok)
			}
			return
		}
		require.True(t, valid || hasLoneSurrogate(in))
		require.True(t, utf8.Valid(in))
		require.NotEqual(t, Unknown, m.Kind)
		kind, id := Peek(in)
		require.Equal(t, m.Kind, kind, "peeking at a good message must agree")
		if len(m.ID.Raw()) <= skimLimit {
			require.Equal(t, m.ID.String(), id.String())
		}
		require.NoError(t, Members(in, func(name string, rawName, value []byte) bool {
			switch name {
			case "params":
				require.Equal(t, string(m.Params), string(value))
			case "result":
				require.Equal(t, string(m.Result), string(value))
			case "error":
				require.Equal(t, string(m.Error), string(value))
			case "id":
				require.Equal(t, m.ID.String(), string(value))
			}
			return true
		}))
		for _, edited := range [][]byte{m.WithParams([]byte(`{"new":1}`)), m.WithResult([]byte(`[2]`)), m.WithID([]byte(`"id"`))} {
			if edited != nil {
				again, err := Read(edited)
				require.NoError(t, err)
				require.Equal(t, m.Kind, again.Kind)
				require.Equal(t, m.Method, again.Method)
			}
		}
	})
}

func TestErrorsAreErrors(t *testing.T) {
	var e *Error
	require.True(t, errors.As(Strict([]byte(`{`)), &e))
	require.NoError(t, Strict([]byte(`{}`)))
	require.NoError(t, Valid([]byte(`{"a":1,"a":2}`)))
	require.Error(t, Valid([]byte(`{"a":1,}`)))
}

func TestKindsHaveNames(t *testing.T) {
	for k, name := range map[Kind]string{Unknown: "unknown", Request: "request", Notification: "notification", Response: "response", Failure: "failure"} {
		require.Equal(t, name, k.String())
	}
}
