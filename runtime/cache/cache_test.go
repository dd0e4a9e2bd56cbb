package cache

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// open opens a cache and collects what it logs.
func open(t testing.TB, dir string, maxBytes int64) (*Cache, *logs) {
	t.Helper()
	log := &logs{}
	c, err := Open(Options{Dir: dir, MaxBytes: maxBytes, Logger: slog.New(slog.NewTextHandler(log, nil))})
	require.NoError(t, err)
	return c, log
}

type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.FieldsFunc(l.b.String(), func(r rune) bool { return r == '\n' })
}

func keyOf(s string) Key { return sha256.Sum256([]byte(s)) }

func texts(parts [][]byte) (list []string) {
	for _, p := range parts {
		list = append(list, string(p))
	}
	return list
}

// entries are the names of the cache's entries.
func entries(t testing.TB, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, d := range list {
		if isKey(d.Name()) {
			names = append(names, d.Name())
		}
	}
	return names
}

func TestPutAndGet(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "by", "weir")
	c, log := open(t, dir, 0)
	_, ok := c.Get(keyOf("a"))
	require.False(t, ok)
	for name, parts := range map[string][]string{
		"some": {"facts", "binary", "code"}, "empty parts": {"", "", ""}, "one": {"x"}, "none": nil,
		"large": {strings.Repeat("large ", 1<<18), "small"},
	} {
		var b [][]byte
		for _, p := range parts {
			b = append(b, []byte(p))
		}
		c.Put(keyOf(name), b...)
		again, _ := open(t, dir, 0) // as the next process
		for _, c := range []*Cache{c, again} {
			got, ok := c.Get(keyOf(name))
			require.True(t, ok, name)
			require.Equal(t, parts, texts(got), name)
		}
	}
	c.Put(keyOf("one"), []byte("another"))
	got, ok := c.Get(keyOf("one"))
	require.True(t, ok)
	require.Equal(t, []string{"another"}, texts(got))
	require.Empty(t, log.lines())
}

// Whatever happens to an entry, it is never taken for what it is not: it is
// removed, with one line in the log, and can be put again.
func TestDamages(t *testing.T) {
	sealedUnder := func(t *testing.T, name string) []byte {
		dir := filepath.Join(t.TempDir(), "other")
		c, _ := open(t, dir, 0)
		c.Put(keyOf(name), []byte("evil"))
		b, err := os.ReadFile(c.path(keyOf(name)))
		require.NoError(t, err)
		return b
	}
	const name = "entry"
	damages := map[string]func(t *testing.T, c *Cache, path string, whole []byte){
		"empty":       func(t *testing.T, _ *Cache, path string, _ []byte) { write(t, path, nil) },
		"magic only":  func(t *testing.T, _ *Cache, path string, _ []byte) { write(t, path, []byte(magic)) },
		"header only": func(t *testing.T, _ *Cache, path string, whole []byte) { write(t, path, whole[:lengthAt]) },
		"half":        func(t *testing.T, _ *Cache, path string, whole []byte) { write(t, path, whole[:len(whole)/2]) },
		"last byte":   func(t *testing.T, _ *Cache, path string, whole []byte) { write(t, path, whole[:len(whole)-1]) },
		"longer":      func(t *testing.T, _ *Cache, path string, whole []byte) { write(t, path, append(whole, 0)) },
		"foreign file": func(t *testing.T, _ *Cache, path string, _ []byte) {
			write(t, path, bytes.Repeat([]byte("not an entry at all "), 50))
		},
		"huge and sparse": func(t *testing.T, _ *Cache, path string, _ []byte) {
			require.NoError(t, os.Truncate(path, DefaultMaxBytes+1))
		},
		"another secret": func(t *testing.T, _ *Cache, path string, _ []byte) { write(t, path, sealedUnder(t, name)) },
		"another entry, copied": func(t *testing.T, c *Cache, path string, _ []byte) {
			c.Put(keyOf("second"), []byte("evil"))
			b, err := os.ReadFile(c.path(keyOf("second")))
			require.NoError(t, err)
			write(t, path, b)
		},
		"a folder": func(t *testing.T, _ *Cache, path string, _ []byte) {
			require.NoError(t, os.Remove(path))
			require.NoError(t, os.MkdirAll(filepath.Join(path, "with", "more"), 0o700))
		},
	}
	for damage, do := range systemDamages() {
		damages[damage] = do
	}
	for damage, do := range damages {
		t.Run(damage, func(t *testing.T) {
			c, log := open(t, filepath.Join(t.TempDir(), "cache"), 0)
			path := c.path(keyOf(name))
			c.Put(keyOf(name), []byte("right"), []byte("parts"))
			whole, err := os.ReadFile(path)
			require.NoError(t, err)
			do(t, c, path, whole)

			_, ok := c.Get(keyOf(name))
			require.False(t, ok)
			require.Len(t, log.lines(), 1)
			require.Contains(t, log.lines()[0], "made anew")
			_, err = os.Lstat(path)
			require.ErrorIs(t, err, os.ErrNotExist)

			c.Put(keyOf(name), []byte("right"))
			got, ok := c.Get(keyOf(name))
			require.True(t, ok)
			require.Equal(t, []string{"right"}, texts(got))
			require.Len(t, log.lines(), 1)
		})
	}
}

// There is no bit of an entry whose change goes unseen.
func TestEveryBitCounts(t *testing.T) {
	c, _ := open(t, t.TempDir()+"/cache", 0)
	c.Put(keyOf("a"), []byte("facts"), []byte("code"))
	path := c.path(keyOf("a"))
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	for i := range len(whole) * 8 {
		bent := slices.Clone(whole)
		bent[i/8] ^= 1 << (i % 8)
		write(t, path, bent)
		_, err := c.read(keyOf("a"), path)
		require.ErrorIs(t, err, errSeal, "bit %d", i)
	}
}

func write(t testing.TB, path string, b []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, b, 0o600))
}

// The secret is made once, and replaced, with all entries, when it is none.
func TestSecrets(t *testing.T) {
	damages := map[string]func(t *testing.T, path string){
		"missing": func(t *testing.T, path string) { require.NoError(t, os.Remove(path)) },
		"cut":     func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, 31)) },
		"longer":  func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, 33)) },
		"another": func(t *testing.T, path string) { write(t, path, bytes.Repeat([]byte("k"), 32)) },
		"a folder": func(t *testing.T, path string) {
			require.NoError(t, os.Remove(path))
			require.NoError(t, os.Mkdir(path, 0o700))
		},
	}
	for damage, do := range systemSecretDamages() {
		damages[damage] = do
	}
	for damage, do := range damages {
		t.Run(damage, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "cache")
			c, _ := open(t, dir, 0)
			c.Put(keyOf("a"), []byte("right"))
			do(t, filepath.Join(dir, secretFile))

			c, log := open(t, dir, 0)
			_, ok := c.Get(keyOf("a"))
			require.False(t, ok)
			require.Contains(t, strings.Join(log.lines(), "\n"), "made anew")
			c.Put(keyOf("a"), []byte("right"))
			c, log = open(t, dir, 0)
			got, ok := c.Get(keyOf("a"))
			require.True(t, ok)
			require.Equal(t, []string{"right"}, texts(got))
			require.Empty(t, log.lines())
		})
	}
}

func TestTheSecretIsOneForAll(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	secrets := make([][]byte, 8)
	var wg sync.WaitGroup
	for i := range secrets {
		wg.Go(func() {
			c, err := Open(Options{Dir: dir})
			if err != nil {
				t.Error(err)
				return
			}
			secrets[i] = c.secret
		})
	}
	wg.Wait()
	for _, s := range secrets {
		require.Len(t, s, secretBytes)
		require.Equal(t, secrets[0], s)
	}
}

func TestFoldersThatCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, nil)
	_, err := Open(Options{Dir: file})
	require.ErrorContains(t, err, "compile cache: ")
}

// age makes an entry as old as that.
func age(t *testing.T, path string, old time.Duration) {
	t.Helper()
	then := time.Now().Add(-old)
	require.NoError(t, os.Chtimes(path, then, then))
}

func TestEviction(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	kib := bytes.Repeat([]byte("x"), 1000)
	c, log := open(t, dir, 4500)
	put := func(name string) { c.Put(keyOf(name), kib) }
	has := func(name string) bool {
		_, err := os.Stat(c.path(keyOf(name)))
		return err == nil
	}
	for i, name := range []string{"a", "b", "c", "d"} {
		put(name)
		age(t, c.path(keyOf(name)), time.Duration(10-i)*time.Minute)
	}
	require.Len(t, entries(t, dir), 4)
	_, ok := c.Get(keyOf("a")) // which makes it the youngest
	require.True(t, ok)

	// What is not the cache's stays; what a dead process left goes.
	foreign, left, writing := filepath.Join(dir, "README"), filepath.Join(dir, tmpPrefix+"1"), filepath.Join(dir, tmpPrefix+"2")
	for _, path := range []string{foreign, left, writing} {
		write(t, path, bytes.Repeat(kib, 10))
	}
	age(t, foreign, 2*abandoned)
	age(t, left, 2*abandoned)

	put("e")
	require.False(t, has("b"), "the one that was not used for the longest time")
	for _, name := range []string{"a", "c", "d", "e"} {
		require.True(t, has(name), name)
	}
	require.NoFileExists(t, left)
	require.FileExists(t, foreign)
	require.FileExists(t, writing)

	// What is put stays, whatever its age; what alone passes the bound is not.
	small, _ := open(t, dir, 1500)
	small.Put(keyOf("f"), kib)
	require.Equal(t, []string{filepath.Base(c.path(keyOf("f")))}, entries(t, dir))
	small.Put(keyOf("g"), bytes.Repeat(kib, 2))
	require.Equal(t, []string{filepath.Base(c.path(keyOf("f")))}, entries(t, dir))
	require.Empty(t, log.lines())
}

// Readers, writers and evictions at once: what is found is right.
func TestHammer(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	var wg sync.WaitGroup
	var all []*logs
	for worker := range 4 {
		c, log := open(t, dir, 60_000)
		all = append(all, log)
		wg.Go(func() {
			for i := range 150 {
				hammer(t, c, (i*7+worker)%20)
			}
		})
	}
	wg.Wait()
	for _, log := range all {
		require.Empty(t, log.lines())
	}
	for _, name := range entries(t, dir) {
		b, _ := hex.DecodeString(name)
		c, _ := open(t, dir, 0)
		_, ok := c.Get(Key(b))
		require.True(t, ok)
	}
}

func hammer(t testing.TB, c *Cache, n int) {
	name := strconv.Itoa(n)
	want := []string{name, strings.Repeat(name, 4000)}
	if parts, ok := c.Get(keyOf(name)); ok && !slices.Equal(want, texts(parts)) {
		t.Errorf("%s: another entry", name)
	}
	c.Put(keyOf(name), []byte(want[0]), []byte(want[1]))
}

const childDir = "WEIR_CACHE_TEST_DIR"

// Processes that put and get the same entries at once, the cache's making
// included, all find only what is right.
func TestProcesses(t *testing.T) {
	if dir := os.Getenv(childDir); dir != "" {
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // all start at once
		c, log := open(t, dir, 60_000)
		for i := range 100 {
			hammer(t, c, i%20)
		}
		require.Empty(t, log.lines())
		return
	}
	dir := filepath.Join(t.TempDir(), "cache")
	var all []*exec.Cmd
	for range 3 {
		child := exec.Command(os.Args[0], "-test.run=^TestProcesses$")
		child.Env = append(os.Environ(), childDir+"="+dir)
		stdin, err := child.StdinPipe()
		require.NoError(t, err)
		out := &bytes.Buffer{}
		child.Stdout, child.Stderr = out, out
		require.NoError(t, child.Start())
		all = append(all, child)
		t.Cleanup(func() { stdin.Close() })
		defer func() { require.NoError(t, child.Wait(), out.String()) }()
		defer fmt.Fprintln(stdin)
	}
	require.Len(t, all, 3)
}

func FuzzSplit(f *testing.F) {
	c := &Cache{secret: []byte("s")}
	for _, parts := range [][][]byte{nil, {{}}, {[]byte("a"), []byte("bc")}} {
		f.Add(append(c.seal(Key{}, parts), bytes.Join(parts, nil)...)[countAt:])
	}
	f.Add(binary.LittleEndian.AppendUint32(nil, 1<<31))
	f.Fuzz(func(t *testing.T, b []byte) {
		parts, err := split(b)
		if err != nil {
			return
		}
		again := append(c.seal(Key{}, parts), bytes.Join(parts, nil)...)[countAt:]
		require.Equal(t, b, again, "there is one way to write an entry")
	})
}

func ExampleOpen() {
	dir, _ := os.MkdirTemp("", "weir")
	defer os.RemoveAll(dir)
	c, err := Open(Options{Dir: filepath.Join(dir, "code")})
	if err != nil {
		fmt.Println(err)
		return
	}
	key := sha256.Sum256([]byte("all that the entry depends on"))
	c.Put(key, []byte("metered binary"), []byte("machine code"))
	parts, ok := c.Get(key)
	fmt.Println(ok, len(parts))
	// Output: true 2
}
