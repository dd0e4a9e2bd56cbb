package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/wasmtest"
	"github.com/weir-mcp/weir/runtime/trust"
)

// keyPair makes a pair with weir keygen and returns its name and its key id.
func keyPair(t testing.TB, dir, name string) (path, id string) {
	t.Helper()
	path = filepath.Join(dir, name)
	o := weir(t, "", "keygen", "--out", path)
	require.Equal(t, exitDone, o.code, o.errors)
	text, err := os.ReadFile(path + ".pub")
	require.NoError(t, err)
	key, err := trust.ParsePublicKey(text)
	require.NoError(t, err)
	require.Contains(t, o.out, "key "+key.ID()+": ")
	return path, key.ID()
}

func TestKeygen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, _ := keyPair(t, dir, "ops")
	private, err := os.ReadFile(path + ".key")
	require.NoError(t, err)
	if runtime.GOOS != "windows" {
		info, err := os.Stat(path + ".key")
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}
	o := weir(t, "", "keygen", "--out", path)
	require.Equal(t, exitUsage, o.code)
	require.Contains(t, o.errors, "never overwritten")
	require.NotContains(t, o.out+o.errors, strings.Fields(string(private))[1])
	again, err := os.ReadFile(path + ".key")
	require.NoError(t, err)
	require.Equal(t, private, again)

	// Half a pair is not left behind.
	write(t, dir, "half.pub", "taken")
	require.Equal(t, exitUsage, weir(t, "", "keygen", "--out", filepath.Join(dir, "half")).code)
	require.NoFileExists(t, filepath.Join(dir, "half.key"))
	require.Equal(t, exitUsage, weir(t, "", "keygen", "--out", filepath.Join(dir, "none", "ops")).code)
	require.Equal(t, exitUsage, weir(t, "", "keygen", "--out", "").code)
}

func TestSign(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ops, id := keyPair(t, dir, "ops")
	module := placeModule(t, dir, "a", wasmtest.Allowing("a"))
	o := weir(t, "", "sign", "--key", ops+".key", module)
	require.Equal(t, exitDone, o.code, o.errors)
	require.Equal(t, module+".sig: signed with key "+id+"\n", o.out)
	require.Empty(t, o.errors)
	text, err := os.ReadFile(module + ".sig")
	require.NoError(t, err)
	s, err := trust.ParseSignature(text)
	require.NoError(t, err)
	require.Equal(t, id, s.KeyID())
	require.Equal(t, exitDone, weir(t, "", "sign", "--key", ops+".key", module).code, "again")
	left, err := filepath.Glob(filepath.Join(dir, ".*"))
	require.NoError(t, err)
	require.Empty(t, left, "nothing temporary stays")

	if runtime.GOOS != "windows" {
		require.NoError(t, os.Chmod(ops+".key", 0o644))
		o = weir(t, "", "sign", "--key", ops+".key", module)
		require.Equal(t, exitDone, o.code)
		require.Contains(t, o.errors, "chmod 600")
	}
	text2 := write(t, dir, "notes.txt", "no module")
	for name, args := range map[string][]string{
		"weir keygen makes a pair": {"sign", "--key", filepath.Join(dir, "none.key"), module},
		"no private key":           {"sign", "--key", ops + ".pub", module},
		"no WebAssembly module":    {"sign", "--key", ops + ".key", text2},
		"no such file":             {"sign", "--key", ops + ".key", filepath.Join(dir, "none.wasm")},
		"is no regular file":       {"sign", "--key", ops + ".key", dir},
		"one file":                 {"sign", "--key", ops + ".key"},
	} {
		o := weir(t, "", args...)
		require.Equal(t, exitUsage, o.code, "%v", args)
		require.Contains(t, o.errors, name)
	}
}

// trusting writes a weir.yaml beside a folder "modules" and returns both.
func trusting(t testing.TB, settings string) (dir, conf string) {
	t.Helper()
	top := t.TempDir()
	dir = filepath.Join(top, "modules")
	require.NoError(t, os.Mkdir(dir, 0o700))
	return dir, write(t, top, "weir.yaml", "version: 1\nhosts:\n  - {name: local, modules: ./modules}\n"+settings)
}

func listed(t testing.TB, conf, target string) map[string]file {
	t.Helper()
	o := weir(t, "", "list", "--json", "--config", conf, target)
	require.Equal(t, exitDone, o.code, o.errors)
	var l listing
	require.NoError(t, json.Unmarshal([]byte(o.out), &l))
	files := map[string]file{}
	for _, f := range l.Files {
		files[f.File] = f
	}
	return files
}

// TestTrust is the whole way: keys, signatures, what is served and what not.
func TestTrust(t *testing.T) {
	t.Parallel()
	keys := t.TempDir()
	ops, id := keyPair(t, keys, "ops")
	stranger, _ := keyPair(t, keys, "stranger")
	fill := func(t *testing.T, dir string) {
		for _, name := range []string{"signed", "unsigned", "foreign", "tampered"} {
			path := placeModule(t, dir, name, wasmtest.Allowing(name))
			switch name {
			case "signed", "tampered":
				require.Equal(t, exitDone, weir(t, "", "sign", "--key", ops+".key", path).code)
			case "foreign":
				require.Equal(t, exitDone, weir(t, "", "sign", "--key", stranger+".key", path).code)
			}
		}
		placeModule(t, dir, "tampered", wasmtest.Allowing("trojan"))
	}
	for _, c := range []struct {
		require bool
		serve   []string
	}{{false, []string{"signed", "unsigned"}}, {true, []string{"signed"}}} {
		t.Run(fmt.Sprintf("requireSigned: %v", c.require), func(t *testing.T) {
			t.Parallel()
			dir, conf := trusting(t, fmt.Sprintf("trust: {keys: [%q], requireSigned: %v}\n", ops+".pub", c.require))
			fill(t, dir)
			files := listed(t, conf, dir)
			require.Equal(t, id, files["signed.wasm"].Signer)
			require.Len(t, files["signed.wasm"].SHA256, 64)
			require.Contains(t, files["foreign.wasm"].Error, "not trusted")
			require.Contains(t, files["tampered.wasm"].Error, "of other bytes")
			if c.require {
				require.Contains(t, files["unsigned.wasm"].Error, "trust.requireSigned")
			} else {
				require.Empty(t, files["unsigned.wasm"].Error)
				require.Empty(t, files["unsigned.wasm"].Signer)
			}
			o := weir(t, "", "list", "--config", conf, dir)
			require.Contains(t, o.out, "signed (signed with "+id+")")

			s := serveOverStdio(t, dir, "--config", conf)
			require.Equal(t, c.serve, s.names())
			require.Contains(t, s.log(), `"signer":"`+id+`"`)
			require.Contains(t, s.log(), `"digest":"`+files["signed.wasm"].SHA256+`"`)
			o = weir(t, "", "plan", "--config", conf, "--event", "tools/call", "--phase", "request")
			require.Equal(t, exitDone, o.code, o.errors)
			for _, name := range []string{"foreign", "trojan"} {
				require.NotContains(t, o.out, "  "+name+" ", "what is refused is in no plan")
			}
			for _, file := range []string{"foreign.wasm", "tampered.wasm"} {
				require.Contains(t, o.out, "warning: "+file+" on local is refused: "+file+".sig: ")
			}
			o = weir(t, "", "invoke", "foreign", "--event", "tools/call", "--phase", "request", "--settings", conf, filepath.Join(dir, "foreign.wasm"))
			require.Equal(t, exitFailed, o.code)
			require.Contains(t, o.errors, "not trusted")

			// A signature that appears beside a module that waits for it.
			require.Equal(t, exitDone, weir(t, "", "sign", "--key", ops+".key", filepath.Join(dir, "foreign.wasm")).code)
			s.await(append([]string{"foreign"}, c.serve...)...)
		})
	}
	t.Run("without keys signatures are not looked at", func(t *testing.T) {
		t.Parallel()
		dir, conf := trusting(t, "")
		fill(t, dir)
		for name, f := range listed(t, conf, dir) {
			require.Empty(t, f.Error+f.Signer, name)
		}
	})
}

// A configuration whose keys cannot be read does not start anything.
func TestTrustThatCannotBeRead(t *testing.T) {
	t.Parallel()
	keys := t.TempDir()
	ops, _ := keyPair(t, keys, "ops")
	empty, large := write(t, keys, "empty.pub", ""), write(t, keys, "large.pub", strings.Repeat("x", 2000))
	for path, says := range map[string]string{
		ops + ".none": "no such file",
		ops + ".key":  "a private key where a public one belongs",
		empty:         "one line that begins with",
		large:         "more than 1024",
		keys:          "is a directory",
	} {
		dir, conf := trusting(t, fmt.Sprintf("trust: {keys: [%q, %q]}\n", ops+".pub", path))
		for _, args := range [][]string{{"serve", dir}, {"list", dir}, {"plan"}} {
			o := weir(t, "", append(args, "--config", conf)...)
			require.Equal(t, exitUsage, o.code, "%v: %s", args, o.errors)
			require.Contains(t, o.errors, conf+":4:1: trust.keys[1]")
			if runtime.GOOS != "windows" {
				require.Contains(t, o.errors, says)
			}
		}
	}
}

func TestPinnedModules(t *testing.T) {
	t.Parallel()
	dir, conf := trusting(t, "")
	placeModule(t, dir, "a", wasmtest.Allowing("a"))
	digest := listed(t, conf, dir)["a.wasm"].SHA256
	pin := func(digest string) string {
		return write(t, filepath.Dir(conf), "pinned.yaml", "version: 1\nhosts:\n  - name: local\n    modules: ./modules\n    files:\n      a.wasm: {sha256: "+digest+"}\n")
	}
	require.Empty(t, listed(t, pin(digest), dir)["a.wasm"].Error)
	require.Empty(t, listed(t, pin(strings.ToUpper(digest)), dir)["a.wasm"].Error)
	wrong := pin(strings.Repeat("0", 64))
	require.Contains(t, listed(t, wrong, dir)["a.wasm"].Error, "its SHA-256 is "+digest+", but "+wrong+":6:7 pins 0000")
}
