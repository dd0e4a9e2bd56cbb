package main

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/bench/guests"
	"github.com/weir-mcp/weir/bench/guests/go/redact"
	"github.com/weir-mcp/weir/internal/need"
	"github.com/weir-mcp/weir/runtime"
	"github.com/weir-mcp/weir/runtime/memory"
)

const wayOut = "apt-get install clang lld rustc libstd-rust-dev-wasm32"

// needGuests builds the guests, of which the Rust and the C one need compilers.
func needGuests(t *testing.T) []guests.Guest {
	for _, program := range []string{"clang", "wasm-ld", "rustc"} {
		need.Command(t, program, wayOut)
	}
	built, err := guests.Build(t.Context(), ".")
	require.NoError(t, err)
	return built
}

// documents are payloads that are hard on a scanner of bytes, and what becomes
// of them.
var documents = []struct{ name, in, out string }{
	{"nothing to find", `{"a":"b"}`, ``},
	{"empty", `{}`, ``},
	{"an address", `{"a":"ann@example.com"}`, `{"a":"[email]"}`},
	{"white space stays", "{ \"a\" :\n\t\"to ann@example.com.\" }", "{ \"a\" :\n\t\"to [email].\" }"},
	{"names stay", `{"ann@example.com":"ann@example.com"}`, `{"ann@example.com":"[email]"}`},
	{"names before white space stay", "{\"ann@example.com\" \r\n:1}", ``},
	{"many", `["a@b.cc","a@b.cc, d@e.ff;g@h.ii"]`, `["[email]","[email], [email];[email]"]`},
	{"an escape before it", `["line\nann@example.com"]`, `["line\n[email]"]`},
	{"an escape of six before it", `["\u0041nn@example.com"]`, `["\u0041[email]"]`},
	{"an escape after it", `["ann@example.com\n"]`, `["[email]\n"]`},
	{"quotes", `["\"ann@example.com\"","\\"]`, `["\"[email]\"","\\"]`},
	{"a backslash before it", `["\\ann@example.com"]`, `["\\[email]"]`},
	{"no local part", `["@example.com"]`, ``},
	{"no domain", `["ann@","ann@example","ann@.com","ann@example.c","ann@1.2"]`, ``},
	{"two at signs", `["a@b@example.com"]`, `["a@[email]"]`},
	{"a domain that ends in a dash", `["ann@example.com-"]`, `["[email]-"]`},
	{"braces in strings", `{"a":"}{","payload":"]","b":["ann@example.com"]}`, `{"a":"}{","payload":"]","b":["[email]"]}`},
	{"numbers as they are spelled", `{"n":1.0e+2,"a":"ann@example.com"}`, `{"n":1.0e+2,"a":"[email]"}`},
	{"not ASCII", `["é ann@example.com ünn@example.com"]`, `["é [email] ü[email]"]`},
}

// invocationOf hides the payload among members that resemble it.
func invocationOf(doc string) *abi.Invocation {
	return &abi.Invocation{Name: "redact", Event: "tools/call", Phase: abi.Request, Payload: json.RawMessage(doc),
		Context: &abi.Context{SessionID: `"payload":{`, Principal: &abi.Principal{Type: abi.PrincipalUser, ID: `}]"payload"`}}}
}

func TestTheJob(t *testing.T) {
	for _, d := range documents {
		out, found := redact.Append(nil, []byte(d.in))
		if d.out == "" {
			require.Zero(t, found, d.name)
			require.Equal(t, d.in, string(out), d.name)
			continue
		}
		require.Equal(t, d.out, string(out), d.name)
		require.Positive(t, found, d.name)
	}
}

// The Rust and the C guest, which speak the ABI by hand, give what the Go guest
// gives, byte by byte, however their instances are put back.
func TestGuestsOfAllLanguagesAgree(t *testing.T) {
	built := needGuests(t)
	cache := filepath.Join(t.TempDir(), "cache")
	for _, way := range []memory.Way{memory.Auto, memory.FullCopy, memory.Fresh} {
		t.Run(way.String(), func(t *testing.T) {
			r, err := weirRuntime(cache, way)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, r.Close(context.Background())) })
			for _, g := range built {
				if g.Name == guests.GoAny || way != memory.Auto && g.Name == guests.GoSDK {
					continue
				}
				m, err := loadSettled(t.Context(), r, g.Weir, runtime.Limits{CallTime: time.Minute})
				require.NoError(t, err, g.Name)
				require.Contains(t, m.Reset(), max(way, memory.Best()).String(), g.Name)
				require.Len(t, m.Descriptors(), 1)
				require.Equal(t, abi.Mutation, m.Descriptors()[0].Type)
				for range 3 {
					for _, d := range documents {
						if g.Name == guests.GoSDK && strings.Contains(d.in, `\u`) {
							continue // it sees texts, not how they are spelled
						}
						result, err := m.Invoke(t.Context(), *invocationOf(d.in))
						require.NoError(t, err, "%s: %s", g.Name, d.name)
						require.Equal(t, d.out != "", result.Modified, "%s: %s", g.Name, d.name)
						require.Equal(t, d.out, string(result.Payload), "%s: %s", g.Name, d.name)
					}
				}
				// From an input that fills the memory back to a small one.
				big := `{"a":"` + strings.Repeat("ann@example.com ", 100_000) + `"}`
				for _, doc := range []string{big, documents[2].in, big} {
					require.NoError(t, agrees(func(inv *abi.Invocation) (abi.Result, error) { return m.Invoke(t.Context(), *inv) }, invocationOf(doc)), g.Name)
				}
			}
		})
	}
}

// Everything is measured once, and every row does the job.
func TestEverythingIsMeasured(t *testing.T) {
	needGuests(t)
	var out bytes.Buffer
	require.NoError(t, measure(t.Context(), &out, ".", size{rounds: 1, turn: time.Millisecond, many: 3, only: sections, guests: regexp.MustCompile("")}))
	for _, want := range []string{nameUnsafe, nameWeir, nameExtism, "nothing cached", "tight loop", "two goroutines"} {
		require.Contains(t, strings.ToLower(out.String()), strings.ToLower(want))
	}
}

// A section can be measured by itself, and the calls of some guests only.
func TestSectionsCanBeChosen(t *testing.T) {
	needGuests(t)
	var out bytes.Buffer
	require.NoError(t, measure(t.Context(), &out, ".", size{rounds: 1, turn: time.Millisecond, only: []string{"calls"}, guests: regexp.MustCompile("^C$")}))
	require.Contains(t, out.String(), nameWeir)
	for _, other := range []string{guests.GoSDK, "nothing cached", "tight loop", "two goroutines", "map any"} {
		require.NotContains(t, out.String(), other)
	}
}

func TestPayloadsAreJSONOfTheirSize(t *testing.T) {
	for _, size := range sizes {
		inv := call(size)
		require.True(t, json.Valid(inv.Payload), strconv.Itoa(size))
		require.InDelta(t, size, len(inv.Payload), 150)
	}
}
