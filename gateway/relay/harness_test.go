package relay

import (
	"bufio"
	"context"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/wire"
)

const patience = 10 * time.Second

// far is the test's side of an end: what a client or a backend would be.
type far struct {
	t     *testing.T
	w     io.WriteCloser
	lines chan string
}

func newFar(t *testing.T, limit int) (*far, *LineEnd) {
	toRelay, fromFar := io.Pipe()
	toFar, fromRelay := io.Pipe()
	f := &far{t: t, w: fromFar, lines: make(chan string, 10_000)}
	go func() {
		defer close(f.lines)
		r := bufio.NewReader(toFar)
		for {
			line, err := r.ReadString('\n')
			if line != "" {
				f.lines <- strings.TrimSuffix(line, "\n")
			}
			if err != nil {
				return
			}
		}
	}()
	return f, Lines(toRelay, fromRelay, limit)
}

func (f *far) send(messages ...string) {
	f.t.Helper()
	for _, m := range messages {
		_, err := io.WriteString(f.w, m+"\n")
		require.NoError(f.t, err)
	}
}

func (f *far) next() string {
	f.t.Helper()
	select {
	case line, ok := <-f.lines:
		require.True(f.t, ok, "the relay closed the end")
		return line
	case <-time.After(patience):
		require.FailNow(f.t, "nothing arrived")
		return ""
	}
}

// gets demands exactly these messages next, byte for byte.
func (f *far) gets(messages ...string) {
	f.t.Helper()
	for _, m := range messages {
		require.Equal(f.t, m, f.next())
	}
}

func (f *far) getsEnd() {
	f.t.Helper()
	select {
	case line, ok := <-f.lines:
		require.False(f.t, ok, "unexpected message %s", line)
	case <-time.After(patience):
		require.FailNow(f.t, "the end stays open")
	}
}

func (f *far) close() { f.w.Close() }

// rule is what the scripted governor does for one event and phase.
type rule func(ctx context.Context, op Operation) Decision

// script is a governor. Its keys are "event phase".
type script struct {
	rules map[string]rule
	mu    sync.Mutex
	seen  []Operation
}

func (s *script) Governs(sc Scope) bool {
	if sc.Event != AnyEvent {
		return s.rules[sc.Event+" "+string(sc.Phase)] != nil
	}
	for key := range s.rules {
		if strings.HasSuffix(key, " "+string(sc.Phase)) {
			return true
		}
	}
	return false
}

func (s *script) Govern(ctx context.Context, op Operation) Decision {
	s.mu.Lock()
	s.seen = append(s.seen, op)
	s.mu.Unlock()
	return s.rules[op.Event+" "+string(op.Phase)](ctx, op)
}

func (s *script) operations() []Operation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Operation(nil), s.seen...)
}

func pass(context.Context, Operation) Decision { return Decision{} }

func replace(payload string) rule {
	return func(context.Context, Operation) Decision { return Decision{Payload: []byte(payload)} }
}

func edit(old, new string) rule {
	return func(_ context.Context, op Operation) Decision {
		return Decision{Payload: []byte(strings.ReplaceAll(string(op.Payload), old, new))}
	}
}

func block(reason, interceptor string, messages ...abi.Message) rule {
	return func(context.Context, Operation) Decision {
		return Decision{Block: &Block{Reason: abi.Status(reason), Interceptor: interceptor, Messages: messages}}
	}
}

// watcher keeps what the relay reports.
type watcher struct {
	mu       sync.Mutex
	records  []Record
	discards []Discard
	arrived  []string
}

func (w *watcher) Governed(r Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.records = append(w.records, r)
}

func (w *watcher) Arrived(from Side, kind wire.Kind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.arrived = append(w.arrived, from.String()+" "+kind.String())
}

func (w *watcher) Discarded(d Discard) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.discards = append(w.discards, d)
}

func (w *watcher) causes() []Cause {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []Cause
	for _, d := range w.discards {
		all = append(all, d.Cause)
	}
	return all
}

// scene is a running relay with both its peers in the test's hand.
type scene struct {
	t               *testing.T
	client, backend *far
	governor        *script
	watcher         *watcher
	cancel          context.CancelCauseFunc
	done            chan error
}

func start(t *testing.T, rules map[string]rule, adapt ...func(*Options)) *scene {
	t.Helper()
	before := runtime.NumGoroutine()
	client, clientEnd := newFar(t, 1<<20)
	backend, backendEnd := newFar(t, 1<<20)
	sc := &scene{t: t, client: client, backend: backend, governor: &script{rules: rules}, watcher: &watcher{}, done: make(chan error, 1)}
	o := Options{Governor: sc.governor, Observer: sc.watcher, Grace: patience / 2, Session: "s1"}
	for _, f := range adapt {
		f(&o)
	}
	var ctx context.Context
	ctx, sc.cancel = context.WithCancelCause(context.Background())
	go func() { sc.done <- Run(ctx, clientEnd, backendEnd, o) }()
	t.Cleanup(func() {
		client.close()
		backend.close()
		select {
		case err := <-sc.done:
			sc.done <- err
		case <-time.After(patience):
			require.FailNow(t, "the relay does not end")
		}
		sc.cancel(nil)
		noneLeft(t, before)
	})
	return sc
}

// noneLeft demands that there are no more goroutines than before.
func noneLeft(t *testing.T, before int) {
	t.Helper()
	for deadline := time.Now().Add(patience); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			require.FailNow(t, "goroutines are left", string(stacks[:runtime.Stack(stacks, true)]))
		}
	}
}

// ends waits for Run to return.
func (sc *scene) ends() error {
	sc.t.Helper()
	select {
	case err := <-sc.done:
		sc.done <- err
		return err
	case <-time.After(patience):
		require.FailNow(sc.t, "the relay does not end")
		return nil
	}
}

// ping sends a request across and back, so that all that was sent before it has
// been dealt with, plans aside.
func (sc *scene) ping(id string) {
	sc.t.Helper()
	request, response := `{"jsonrpc":"2.0","id":`+id+`,"method":"ping"}`, `{"jsonrpc":"2.0","id":`+id+`,"result":{}}`
	sc.client.send(request)
	sc.backend.gets(request)
	sc.backend.send(response)
	sc.client.gets(response)
}

func call(id, params string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":` + params + `}`
}

func result(id, result string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"result":` + result + `}`
}

func failure(id, code, text string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":` + code + `,"message":"` + text + `"}}`
}

func notification(method, params string) string {
	return `{"jsonrpc":"2.0","method":"` + method + `","params":` + params + `}`
}
