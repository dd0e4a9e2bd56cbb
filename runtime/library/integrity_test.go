package library_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/logbook"
	"github.com/weir-mcp/weir/runtime/library"
	"github.com/weir-mcp/weir/runtime/trust"
)

var opsKey, teamKey, strangerKey = trust.GenerateKey(), trust.GenerateKey(), trust.GenerateKey()

// trusting is a policy that knows ops and team.
func trusting(requireSigned bool) *trust.Policy {
	return trust.NewPolicy(requireSigned, opsKey.Public(), teamKey.Public())
}

func sign(t testing.TB, dir, name, text string, k trust.PrivateKey) {
	t.Helper()
	put(t, dir, name+".sig", k.Sign([]byte(text)).String()+"\n")
}

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

const text = "serves a"

// What is accepted and refused, with the way out; in a folder and as a file.
func TestSignatures(t *testing.T) {
	ops := opsKey.Public().ID()
	for _, c := range []struct {
		name   string
		policy *trust.Policy
		beside func(t *testing.T, dir string)
		signer string
		refuse []string // parts of the refusal; none when it serves
	}{
		{"nobody is trusted: signatures are not looked at", nil, func(t *testing.T, dir string) { put(t, dir, "a.wasm.sig", "rubbish") }, "", nil},
		{"unsigned", trusting(false), nil, "", nil},
		{"signed", trusting(false), func(t *testing.T, dir string) { sign(t, dir, "a.wasm", text, opsKey) }, ops, nil},
		{"signed, and must be", trusting(true), func(t *testing.T, dir string) { sign(t, dir, "a.wasm", text, opsKey) }, ops, nil},
		{"unsigned, and must not be", trusting(true), nil, "",
			[]string{"not signed", "trust.requireSigned", "weir sign", "put a.wasm.sig beside it"}},
		{"signed by a stranger", trusting(false), func(t *testing.T, dir string) { sign(t, dir, "a.wasm", text, strangerKey) }, "",
			[]string{"a.wasm.sig: ", strangerKey.Public().ID(), "not trusted", ops, "weir sign"}},
		{"signed by a stranger, and must be signed", trusting(true), func(t *testing.T, dir string) { sign(t, dir, "a.wasm", text, strangerKey) }, "",
			[]string{"not trusted"}},
		{"the signature of another version", trusting(false), func(t *testing.T, dir string) { sign(t, dir, "a.wasm", "serves b", opsKey) }, "",
			[]string{"of other bytes than the file's (sha256 " + digestOf(text), "put the signed file back"}},
		{"an empty signature", trusting(false), func(t *testing.T, dir string) { put(t, dir, "a.wasm.sig", "") }, "", []string{"a.wasm.sig: no signature"}},
		{"a large signature", trusting(false), func(t *testing.T, dir string) {
			put(t, dir, "a.wasm.sig", strings.Repeat("x", trust.MaxBytes+1))
		}, "", []string{"a.wasm.sig: has 1025 bytes, more than the limit of 1024 for a signature"}},
		{"a folder for a signature", trusting(false), func(t *testing.T, dir string) {
			require.NoError(t, os.Mkdir(filepath.Join(dir, "a.wasm.sig"), 0o700))
		}, "", []string{"a.wasm.sig: "}},
		{"a link to a signature", trusting(true), func(t *testing.T, dir string) {
			elsewhere := t.TempDir()
			sign(t, elsewhere, "b.wasm", text, opsKey)
			require.NoError(t, os.Symlink(filepath.Join(elsewhere, "b.wasm.sig"), filepath.Join(dir, "a.wasm.sig")))
		}, ops, nil},
		{"a link to nothing", trusting(true), func(t *testing.T, dir string) {
			require.NoError(t, os.Symlink(filepath.Join(dir, "none"), filepath.Join(dir, "a.wasm.sig")))
		}, "", []string{"not signed"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, f, book := t.TempDir(), newFakes(), &logbook.Book{}
			put(t, dir, "a.wasm", text)
			if c.beside != nil {
				c.beside(t, dir)
			}
			o := quick(f)
			o.Trust, o.Logger = c.policy, book.Text()
			l := openFolder(t, dir, o)
			single, err := library.OpenFile(t.Context(), filepath.Join(dir, "a.wasm"), o)
			status := l.Status()
			require.Len(t, status, 1)
			if c.refuse == nil {
				require.NoError(t, err)
				defer single.Close(t.Context())
				for _, s := range [][]library.File{status, single.Status()} {
					require.NoError(t, s[0].Err)
					require.Equal(t, c.signer, s[0].Signer)
					require.Equal(t, digestOf(text), s[0].Digest)
				}
				require.Equal(t, 1, book.Count("a module serves", "digest="+digestOf(text)))
				if c.signer != "" {
					require.Equal(t, 1, book.Count("a module serves", "signer="+c.signer))
				}
				return
			}
			require.Empty(t, l.List())
			require.Zero(t, f.loadsOf("a.wasm"), "what is refused is not even parsed")
			for _, part := range c.refuse {
				require.ErrorContains(t, status[0].Err, part)
				require.ErrorContains(t, err, part)
			}
			require.Equal(t, 1, book.Count("level=ERROR", "a.wasm"))
		})
	}
}

// A change of the signature alone is a change of the module.
func TestSignatureThatChanges(t *testing.T) {
	noLeaks(t)
	dir, f, book := t.TempDir(), newFakes(), &logbook.Book{}
	put(t, dir, "a.wasm", text)
	o := quick(f)
	o.Trust, o.Logger = trusting(true), book.Text()
	l := openFolder(t, dir, o)
	require.Empty(t, l.List())
	signer := func() string { return l.Status()[0].Signer }

	sign(t, dir, "a.wasm", text, opsKey)
	rescan(t, l)
	require.Equal(t, []string{"a"}, names(l))
	require.Equal(t, opsKey.Public().ID(), signer())

	sign(t, dir, "a.wasm", text, teamKey)
	rescan(t, l)
	require.Equal(t, teamKey.Public().ID(), signer())
	require.Equal(t, 1, book.Count("signature of a module has changed", teamKey.Public().ID()))
	require.Equal(t, 1, f.loadsOf("a.wasm"), "the same bytes are not loaded again")

	// What is refused leaves the last good version in service, as always.
	sign(t, dir, "a.wasm", text, strangerKey)
	rescan(t, l)
	require.Equal(t, []string{"a"}, names(l))
	require.Contains(t, problems(l)["a.wasm"], "not trusted")
	remove(t, dir, "a.wasm.sig")
	rescan(t, l)
	require.Equal(t, []string{"a"}, names(l))
	require.Contains(t, problems(l)["a.wasm"], "not signed")

	// A new version comes in two steps: it serves after the second.
	const newer = "serves a newer"
	put(t, dir, "a.wasm", newer)
	rescan(t, l)
	require.Equal(t, []string{"a"}, names(l))
	sign(t, dir, "a.wasm", newer, opsKey)
	rescan(t, l)
	require.Equal(t, []string{"a", "newer"}, names(l))
	require.Empty(t, problems(l))
	require.Equal(t, 2, f.loadsOf("a.wasm"))
}

// The signature is watched like the module.
func TestSignatureIsWatched(t *testing.T) {
	for name, way := range map[string]func(o *library.Options){
		"by notification":  func(*library.Options) {},
		"by looking again": func(o *library.Options) { o.Settle, o.Rescan = time.Hour, 5*time.Millisecond },
	} {
		t.Run(name, func(t *testing.T) {
			noLeaks(t)
			dir := t.TempDir()
			put(t, dir, "a.wasm", text)
			o := quick(newFakes())
			o.Trust = trusting(true)
			way(&o)
			l := openFolder(t, dir, o)
			require.Empty(t, l.List())
			sign(t, dir, "a.wasm", text, opsKey)
			eventually(t, func() bool { return len(l.List()) == 1 })
			remove(t, dir, "a.wasm.sig")
			eventually(t, func() bool { return len(problems(l)) == 1 })
		})
	}
}

// A file that is refused for its bytes is read once, not at every look.
func TestRefusedFilesAreNotReadAgain(t *testing.T) {
	dir, book := t.TempDir(), &logbook.Book{}
	put(t, dir, "a.wasm", text)
	sign(t, dir, "a.wasm", text, opsKey)
	o := quick(newFakes())
	o.Trust, o.Logger = trusting(false), book.Text()
	o.Pins = map[string]library.Pin{"a.wasm": {SHA256: digestOf("other"), Source: "weir.yaml:3:5"}}
	o.Retry = time.Millisecond
	l := openFolder(t, dir, o)
	for range 20 {
		rescan(t, l)
	}
	require.Equal(t, 1, book.Count("level=ERROR"), book)
}

func TestPins(t *testing.T) {
	dir, f := t.TempDir(), newFakes()
	put(t, dir, "a.wasm", text)
	put(t, dir, "b.wasm", "serves b")
	put(t, dir, "c.wasm", "serves c")
	o := quick(f)
	o.Pins = map[string]library.Pin{
		"a.wasm": {SHA256: digestOf(text), Source: "weir.yaml:3:5"},
		"b.wasm": {SHA256: digestOf("serves b yesterday"), Source: "weir.yaml:4:5"},
	}
	l := openFolder(t, dir, o)
	require.Equal(t, []string{"a", "c"}, names(l))
	require.Equal(t, map[string]string{"b.wasm": "its SHA-256 is " + digestOf("serves b") + ", but weir.yaml:4:5 pins " +
		digestOf("serves b yesterday") + "; put the pinned file back or change the pin"}, problems(l))
	require.Zero(t, f.loadsOf("b.wasm"), "what is refused is not even parsed")

	put(t, dir, "a.wasm", "serves a trojan")
	rescan(t, l)
	require.Equal(t, []string{"a", "c"}, names(l), "the last good version serves on")
	require.Contains(t, problems(l), "a.wasm")
	_, err := library.OpenFile(t.Context(), filepath.Join(dir, "b.wasm"), o)
	require.ErrorContains(t, err, "weir.yaml:4:5 pins")
}
