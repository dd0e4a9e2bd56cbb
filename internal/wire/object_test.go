package wire

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestObjectWriter(t *testing.T) {
	for _, c := range []struct {
		name string
		fill func(*ObjectWriter)
		want string
	}{
		{"nothing", func(*ObjectWriter) {}, `{}`},
		{"texts", func(w *ObjectWriter) {
			w.OptString("none", "")
			w.String("a", "")
			w.OptString(`"b"`, "<&>\n")
		}, `{"a":"","\"b\"":"<&>\n"}`},
		{"booleans and numbers", func(w *ObjectWriter) {
			w.Bool("yes", true)
			w.Bool("no", false)
			w.Int("n", -7)
			w.Float("f", 0.001)
			w.Float("big", 1e21)
		}, `{"yes":true,"no":false,"n":-7,"f":0.001,"big":1000000000000000000000}`},
		{"values as spelled", func(w *ObjectWriter) {
			w.Raw("r", []byte(`{ "x" : 1.0 }`))
			w.Append("s", func(b []byte) []byte { return AppendString(b, "s") })
		}, `{"r":{ "x" : 1.0 },"s":"s"}`},
		{"objects in objects", func(w *ObjectWriter) {
			w.Object("none", func(*ObjectWriter) {})
			w.Object("o", func(w *ObjectWriter) {
				w.Int("a", 1)
				w.Object("p", func(w *ObjectWriter) { w.Int("b", 2) })
			})
			w.Int("c", 3)
		}, `{"none":{},"o":{"a":1,"p":{"b":2}},"c":3}`},
		{"lists", func(w *ObjectWriter) {
			number := func(b []byte, i int) []byte { return strconv.AppendInt(b, int64(i), 10) }
			w.List("none", 0, number)
			w.List("three", 3, number)
		}, `{"none":[],"three":[0,1,2]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := OpenObject([]byte(">"))
			c.fill(&w)
			got := w.Close()
			require.Equal(t, ">"+c.want, string(got), "appended, not replaced")
			require.NoError(t, Strict(got[1:]))
		})
	}
}
