package library_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/leak"
	"github.com/weir-mcp/weir/runtime/library"
)

// patience is an outer bound for things that take milliseconds.
const patience = 20 * time.Second

// fakes is a loader whose modules are texts: "serves a b" is a module with the
// validators a and b. Everything else is refused.
type fakes struct {
	mu     sync.Mutex
	loads  map[string]int
	open   int
	closed []string
	delay  func(ctx context.Context, name, text string) error
	invoke func(ctx context.Context, inv abi.Invocation) (abi.Result, error)
}

func newFakes() *fakes { return &fakes{loads: map[string]int{}} }

func (f *fakes) Load(ctx context.Context, name string, wasm []byte) (library.Module, error) {
	text := string(wasm)
	f.mu.Lock()
	f.loads[name]++
	delay := f.delay
	f.mu.Unlock()
	if delay != nil {
		if err := delay(ctx, name, text); err != nil {
			return nil, err
		}
	}
	names, ok := strings.CutPrefix(text, "serves ")
	if !ok {
		return nil, fmt.Errorf("not a module: %d bytes", len(wasm))
	}
	sum := sha256.Sum256(wasm)
	m := &fakeModule{f: f, text: text, digest: hex.EncodeToString(sum[:])}
	for _, n := range strings.Fields(names) {
		m.descriptors = append(m.descriptors, descriptorOf(n))
	}
	f.mu.Lock()
	f.open++
	f.mu.Unlock()
	return m, nil
}

// descriptorOf reads "name" or a whole descriptor in JSON without spaces.
func descriptorOf(text string) abi.Descriptor {
	d := abi.Descriptor{Name: text, Type: abi.Validation, Hooks: abi.On(abi.Request, "tools/call")}
	if strings.HasPrefix(text, "{") {
		_ = json.Unmarshal([]byte(text), &d)
	}
	return d
}

func (f *fakes) loadsOf(name string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.loads[name]
}

func (f *fakes) closedTexts() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.closed...)
}

type fakeModule struct {
	f           *fakes
	text        string
	digest      string
	descriptors []abi.Descriptor
	mu          sync.Mutex
	gone        bool
}

func (m *fakeModule) Descriptors() []abi.Descriptor { return m.descriptors }
func (m *fakeModule) Digest() string                { return m.digest }

func (m *fakeModule) Invoke(ctx context.Context, inv abi.Invocation) (abi.Result, error) {
	m.mu.Lock()
	gone := m.gone
	m.mu.Unlock()
	if gone {
		return abi.Result{}, errors.New("called after it was closed")
	}
	if m.f.invoke != nil {
		return m.f.invoke(ctx, inv)
	}
	info, _ := json.Marshal(inv.Name + " of " + m.text)
	return abi.Result{Type: abi.Validation, Interceptor: inv.Name, Phase: inv.Phase, Valid: true, Info: info}, nil
}

func (m *fakeModule) Close(context.Context) error {
	m.mu.Lock()
	m.gone = true
	m.mu.Unlock()
	m.f.mu.Lock()
	defer m.f.mu.Unlock()
	m.f.open--
	m.f.closed = append(m.f.closed, m.text)
	return nil
}

// quick are options for tests: nothing happens by itself within a test's time,
// unless the test wants it.
func quick(loader library.Loader) library.Options {
	return library.Options{Loader: loader, Settle: time.Millisecond, Rescan: time.Hour, Retry: time.Hour}
}

func openFolder(t testing.TB, dir string, o library.Options) *library.Library {
	t.Helper()
	l, err := library.OpenFolder(t.Context(), dir, o)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, l.Close(ctx))
	})
	require.NoError(t, l.Ready(t.Context()))
	return l
}

// put replaces a file in one step.
func put(t testing.TB, dir, name, text string) {
	t.Helper()
	temporary := filepath.Join(dir, ".new-"+name)
	require.NoError(t, os.WriteFile(temporary, []byte(text), 0o600))
	require.NoError(t, os.Rename(temporary, filepath.Join(dir, name)))
}

func remove(t testing.TB, dir, name string) {
	t.Helper()
	require.NoError(t, os.Remove(filepath.Join(dir, name)))
}

func rescan(t testing.TB, l *library.Library) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, l.Rescan(ctx))
}

func names(l *library.Library) []string {
	list := []string{}
	for _, d := range l.List() {
		list = append(list, d.Name)
	}
	return list
}

// problems is the refusals of a library, by file.
func problems(l *library.Library) map[string]string {
	of := map[string]string{}
	for _, f := range l.Status() {
		if f.Err != nil {
			of[f.Name] = f.Err.Error()
		}
	}
	return of
}

func call(name string) abi.Invocation {
	return abi.Invocation{Name: name, Event: abi.ToolsCall, Phase: abi.Request, Payload: json.RawMessage(`{"n":1.0}`)}
}

func failure(t testing.TB, err error) *abi.Error {
	t.Helper()
	var e *abi.Error
	require.ErrorAs(t, err, &e)
	return e
}

func eventually(t testing.TB, what func() bool) {
	t.Helper()
	require.Eventually(t, what, patience, 2*time.Millisecond)
}

// noLeaks fails the test when goroutines or descriptors are left behind it.
func noLeaks(t testing.TB) {
	t.Helper()
	leak.Goroutines(t, "weir/runtime/library.", "fsnotify.")
	leak.Descriptors(t)
}
