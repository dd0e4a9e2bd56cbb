package tracecontext_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/tracecontext"
)

const (
	trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	span  = "00f067aa0ba902b7"
)

func ExampleParse() {
	parent, ok := tracecontext.Parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	fmt.Println(parent.TraceID, parent.SpanID, parent.Sampled, ok)
	// Output: 4bf92f3577b34da6a3ce929d0e0e4736 00f067aa0ba902b7 true true
}

func TestWhatIsRead(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		sampled  bool
	}{
		{"sampled", "00-" + trace + "-" + span + "-01", true},
		{"not sampled", "00-" + trace + "-" + span + "-00", false},
		{"flags that nobody knows are no reason", "00-" + trace + "-" + span + "-fe", false},
		{"a later version with the same layout", "cc-" + trace + "-" + span + "-01", true},
		{"a later version that goes on", "01-" + trace + "-" + span + "-01-what-will-be", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := tracecontext.Parse(tt.in)
			require.True(t, ok)
			require.Equal(t, tracecontext.Parent{TraceID: trace, SpanID: span, Sampled: tt.sampled}, got)
		})
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	for _, sampled := range []bool{true, false} {
		want := tracecontext.Parent{TraceID: trace, SpanID: span, Sampled: sampled}
		got, ok := tracecontext.Parse(want.String())
		require.True(t, ok)
		require.Equal(t, want, got)
	}
	for _, bad := range []tracecontext.Parent{{}, {TraceID: trace}, {TraceID: trace + "0", SpanID: span}, {TraceID: trace, SpanID: "x\r\n"}} {
		_, ok := tracecontext.Parse(bad.String())
		require.False(t, ok)
	}
}

func TestWhatIsIgnored(t *testing.T) {
	good := "00-" + trace + "-" + span + "-01"
	for name, in := range map[string]string{
		"nothing":                             "",
		"a flag too few":                      good[:len(good)-1],
		"space before":                        " " + good,
		"space behind":                        good + " ",
		"two of them":                         good + "," + good,
		"capitals":                            strings.ToUpper(good),
		"a capital":                           strings.Replace(good, "4bf", "4Bf", 1),
		"no hexadecimal digit":                strings.Replace(good, "4bf", "4bg", 1),
		"a trace of zeros":                    "00-" + strings.Repeat("0", 32) + "-" + span + "-01",
		"a span of zeros":                     "00-" + trace + "-" + strings.Repeat("0", 16) + "-01",
		"version ff":                          "ff" + good[2:],
		"a version that is none":              "0x" + good[2:],
		"version 00 that goes on":             good + "-00",
		"a later version that runs on":        "01" + good[2:] + "00",
		"flags that are none":                 good[:len(good)-2] + "0g",
		"underscores":                         strings.ReplaceAll(good, "-", "_"),
		"a later version that goes on and on": "01" + good[2:] + "-" + strings.Repeat("x", 1000),
		"ids that change places":              "00-" + span + "-" + trace + "-01",
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := tracecontext.Parse(in)
			require.False(t, ok)
			require.Zero(t, got)
		})
	}
}

// The grammar of the specification, as an oracle.
var grammar = regexp.MustCompile(`\A(00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}|[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-(?s:.*))?)\z`)

func FuzzParse(f *testing.F) {
	f.Add("00-" + trace + "-" + span + "-01")
	f.Add("01-" + trace + "-" + span + "-01-x")
	f.Add("ff-" + trace + "-" + span + "-01")
	f.Add("00-" + strings.Repeat("0", 32) + "-" + span + "-01")
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := tracecontext.Parse(s)
		want := len(s) <= 256 && grammar.MatchString(s) && s[:2] != "ff" && (s[:2] != "00" || len(s) == 55) &&
			s[3:35] != strings.Repeat("0", 32) && s[36:52] != strings.Repeat("0", 16)
		require.Equal(t, want, ok)
		if ok {
			require.Equal(t, s[3:35], got.TraceID)
			require.Equal(t, s[36:52], got.SpanID)
		}
	})
}
