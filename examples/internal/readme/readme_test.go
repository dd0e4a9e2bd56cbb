package readme

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRead(t *testing.T) {
	for name, tt := range map[string]struct {
		block string
		want  []command
	}{
		"nothing":                       {"", nil},
		"a command without output":      {"$ go generate\n", []command{{"go generate", ""}}},
		"output":                        {"$ a\nx\n  y\n", []command{{"a", "x\n  y\n"}}},
		"two commands":                  {"$ a\nx\n$ b\ny\n", []command{{"a", "x\n"}, {"b", "y\n"}}},
		"a command of several lines":    {"$ a \\\n  b \\\n  c\nx\n", []command{{"a \\\n  b \\\n  c", "x\n"}}},
		"output that ends in backslash": {"$ a\nx\\\ny\n", []command{{"a", "x\\\ny\n"}}},
		"one that goes on":              {"$ serve &\n$ ask\nx\n", []command{{"serve &", ""}, {"ask", "x\n"}}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tt.want, read(tt.block)) })
	}
}

func TestBlocks(t *testing.T) {
	page := "# a\n```console\n$ a\n```\n```yaml\nb: 1\n```\n```console\n$ c\n```\n"
	require.Equal(t, []string{"$ a\n", "$ c\n"}, blocks(page, "console"))
	require.Empty(t, blocks(page, "json"))
}

func TestLasting(t *testing.T) {
	one := `{"time":"2026-12-01T05:46:12Z","reference":"TWWF4EKVO4OT5RMGMDY2BGTWQS","session":"d18321935ed8","ms":0.045,"bytes":276} http://127.0.0.1:4711 {\"requestBytes\":1`
	other := `{"time":"2027-01-01T00:00:00Z","reference":"AEOHKMANWJQBRRHVLG7PXPNTJB","session":"000000000000","ms":12,"bytes":1} http://127.0.0.1:1 {\"requestBytes\":2`
	require.Equal(t, lasting(one), lasting(other))
	require.NotEqual(t, lasting(`"event":"a"`), lasting(`"event":"b"`))
}
