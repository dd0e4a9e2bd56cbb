package main

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// config.md: the value of ${NAME} is printed as ${NAME} everywhere, in what the
// system says of it too.
func TestValuesOfVariablesAreNeverPrinted(t *testing.T) {
	const value = "hunter2-and-more"
	t.Setenv("WEIR_TEST_TOKEN", value)
	t.Setenv("WEIR_TEST_SHORTER", "hunter2")
	for name, test := range map[string]struct{ yaml, shows string }{
		"the address of a host": {`hosts: [{name: h, url: "http://127.0.0.1:1/${WEIR_TEST_TOKEN}/${WEIR_TEST_SHORTER}"}]`, "/${WEIR_TEST_TOKEN}/${WEIR_TEST_SHORTER}"},
		"the command of a host": {`hosts: [{name: h, command: ["./${WEIR_TEST_TOKEN}"]}]`, "./${WEIR_TEST_TOKEN}"},
		"the folder of a host":  {`hosts: [{name: h, modules: "./${WEIR_TEST_TOKEN}"}]`, "${WEIR_TEST_TOKEN}"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "weir.yaml")
			require.NoError(t, os.WriteFile(path, []byte("version: 1\n"+test.yaml+"\n"), 0o600))
			for _, args := range [][]string{{"plan"}, {"plan", "--json"}} {
				var out, errs bytes.Buffer
				run(t.Context(), append(args, "--config", path, "--event", "tools/call"), streams{out: ownBuffer{&out}, err: &errs})
				said := out.String() + errs.String()
				require.NotContains(t, said, "hunter2")
				require.Contains(t, said, test.shows)
			}
		})
	}
}

type ownBuffer struct{ *bytes.Buffer }

func (ownBuffer) Close() error { return nil }

func TestTheLogIsMasked(t *testing.T) {
	var out bytes.Buffer
	log := newMaskedLogger(&out, slog.LevelInfo, func(s string) string { return strings.ReplaceAll(s, "hunter2", "${T}") })
	log.Info("of hunter2", "text", "a hunter2", "error", errors.New("no hunter2"), "number", 2)
	require.NotContains(t, out.String(), "hunter2")
	require.Contains(t, out.String(), `"msg":"of ${T}","text":"a ${T}","error":"no ${T}","number":2`)
}

// saidToBeMasked stands for the plan of a decision, which says itself where it has words.
type saidToBeMasked []string

func (p saidToBeMasked) Masked(mask func(string) string) any {
	out := make(saidToBeMasked, len(p))
	for i := range p {
		out[i] = mask(p[i])
	}
	return out
}

func TestALogShowsNoSecret(t *testing.T) {
	var out buffer
	log := newMaskedLogger(&out, slog.LevelInfo, strings.NewReplacer("hush", "${SECRET}").Replace)
	log.Info("x", "text", "a hush", "error", errors.New("b hush"), "plan", saidToBeMasked{"c hush"}, "number", 7)
	require.NotContains(t, out.String(), "hush")
	require.Contains(t, out.String(), `"text":"a ${SECRET}","error":"b ${SECRET}","plan":["c ${SECRET}"],"number":7`)
}
