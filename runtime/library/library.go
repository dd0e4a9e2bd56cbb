package library

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/runtime/trust"
)

// Errors of [Library.Open], [Library.Register] and [Library.Ready], to be found
// with errors.Is.
var (
	// ErrNoFolder says that the folder is not there or is no folder: wrong
	// usage, exit code 2 (config.md).
	ErrNoFolder = errors.New("no such folder")
	// ErrClosed says that the library was closed.
	ErrClosed = errors.New("the library is closed")
	// ErrLoading says that the first load of the folder takes longer than
	// [Options.FirstLoad].
	ErrLoading = errors.New("the modules are still loading")
)

// Options are how a library works. The zero value is one for native
// interceptors only.
type Options struct {
	// Loader makes modules; nil refuses to open a folder or file.
	Loader Loader
	// Entries are the copies, configs and switches of config.md.
	Entries []Entry
	// Pins are the digests that files must have, by file name.
	Pins map[string]Pin
	// Trust says whose signatures count and whether a file needs one, in FILE.sig
	// beside it; nil looks at no signature.
	Trust *trust.Policy
	// Admit is asked about each module that would serve: the file and the
	// descriptors under the module's own names, which it must not change or keep.
	// What it does not admit is refused whole with its error, and the last good
	// version stays (protocol.md §5). It answers alike for the same module each
	// time, since such bytes are not tried again, and may be called concurrently.
	// Nil admits all.
	Admit func(file string, interceptors []abi.Descriptor) error
	// Logger gets one record for each change of state of a file; nil discards.
	Logger *slog.Logger
	// FileBytes bounds a module file; 0 means 32 MiB (abi.md).
	FileBytes int64
	// Loads bounds how many modules load at the same time; 0 means the number
	// of cores, at least 4, so that one that hangs does not hold up the rest.
	Loads int
	// Settle is how long a folder must be quiet before a change is looked at;
	// 0 means 100 ms.
	Settle time.Duration
	// Rescan is how often the folder is looked at although no change was
	// reported; 0 means 3 s. Network file systems report none.
	Rescan time.Duration
	// Retry is after what time a file that does not load is tried again,
	// doubled each time up to a minute; 0 means 1 s.
	Retry time.Duration
	// FirstLoad is how long Ready waits; 0 means 15 s (abi.md).
	FirstLoad time.Duration
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	orDefault(&o.FileBytes, 32<<20)
	orDefault(&o.Loads, max(4, runtime.NumCPU()))
	orDefault(&o.Settle, 100*time.Millisecond)
	orDefault(&o.Rescan, 3*time.Second)
	orDefault(&o.Retry, time.Second)
	orDefault(&o.FirstLoad, 15*time.Second)
	return o
}

func orDefault[T int | int64 | time.Duration](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}

// Library is a set of interceptors: those of a folder's modules, in the order
// of file names and within a file in the module's own, then the native ones in
// the order of their registration. Copies follow their original.
type Library struct {
	o       Options
	entries entries
	set     atomic.Pointer[set]

	mu        sync.Mutex
	closed    bool
	files     []*served // those that serve, by file name
	problems  map[string]error
	natives   []*native
	listeners map[int]func()
	listener  int
	refused   map[string]bool // complaints about entries that were logged
	closing   sync.WaitGroup  // modules being closed
	folder    *folder         // nil without one
}

// New makes a library with nothing in it.
func New(o Options) *Library {
	l := &Library{
		o: o.withDefaults(), entries: newEntries(o.Entries), problems: map[string]error{},
		listeners: map[int]func(){}, refused: map[string]bool{},
	}
	l.set.Store(&set{})
	return l
}

// Register adds a native interceptor. It refuses a name that is served already,
// a malformed descriptor, one with a scalar and a per-phase priority, and one
// without a handler.
func (l *Library) Register(n Native) error {
	d, err := n.descriptor()
	if err != nil {
		return fmt.Errorf("native interceptor %w", err)
	}
	schema, err := newSchema(d.ConfigSchema)
	if err != nil {
		return fmt.Errorf("native interceptor %q: %w", d.Name, err)
	}
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return ErrClosed
	}
	if by, ok := l.owner(d.Name); ok {
		l.mu.Unlock()
		return fmt.Errorf("native interceptor %q: %s serves this name already", d.Name, by)
	}
	l.natives = append(l.natives, &native{descriptor: d, handler: n.Handler, schema: schema, gate: newGate()})
	notify := l.publish()
	l.mu.Unlock()
	notify()
	return nil
}

// owner says who serves an own name. l.mu is held.
func (l *Library) owner(name string) (string, bool) {
	for _, n := range l.natives {
		if n.descriptor.Name == name {
			return "a native interceptor", true
		}
	}
	for _, f := range l.files {
		if f.has(name) {
			return f.file, true
		}
	}
	return "", false
}

// List is what is served now. The slice is the caller's; what its descriptors
// share with the library must not be changed.
func (l *Library) List() []abi.Descriptor { return slices.Clone(l.set.Load().list) }

// Subscribe has f called after each change of what [Library.List] gives, from
// the goroutine that changed it: f must return at once. Stop ends that.
func (l *Library) Subscribe(f func()) (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listener++
	id := l.listener
	l.listeners[id] = f
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.listeners, id)
	}
}

// File is what became of one file of the folder.
type File struct {
	// Name is the file's name without its folder.
	Name string
	// Digest is the SHA-256 in hex of the bytes that serve; empty when none do.
	Digest string
	// Signer is the id of the key that signed those bytes; empty when nobody
	// did, or nobody is trusted.
	Signer string
	// Interceptors are the module's own names, in its order.
	Interceptors []string
	// Err says why the newest bytes of the file do not serve, or is nil. An
	// older version may serve all the same.
	Err error
}

// Status is the files of the folder, by name.
func (l *Library) Status() []File {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := map[string]File{}
	for _, f := range l.files {
		of[f.file] = File{Name: f.file, Digest: f.module.Digest(), Signer: f.signer, Interceptors: names(f.descriptors)}
	}
	for name, err := range l.problems {
		status := of[name]
		status.Name, status.Err = name, err
		of[name] = status
	}
	files := make([]File, 0, len(of))
	for _, f := range of {
		files = append(files, f)
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return files
}

// Invoke calls an interceptor by its served name. The error is always an
// *abi.Error, by the table of protocol.md §3. A mutation that left its payload
// out with modified:false is given the input's, so that a caller need not know
// of that.
func (l *Library) Invoke(ctx context.Context, inv abi.Invocation) (abi.Result, error) {
	if e := malformed(&inv); e != nil {
		return abi.Result{}, e
	}
	m, release := l.find(inv.Name)
	if m == nil {
		return abi.Result{}, abi.UnknownName(inv.Name)
	}
	defer release()
	if !m.descriptor.Hooks.Match(inv.Event, inv.Phase) {
		return abi.Result{}, abi.NotHooked(&m.descriptor, inv.Event, inv.Phase)
	}
	if inv.Config == nil {
		inv.Config = m.config // checked when it came into force
	} else if e := m.schema.validate(inv.Name, inv.Config); e != nil {
		return abi.Result{}, e
	}
	call := inv
	call.Name = m.own
	r, err := m.invoke(ctx, call)
	if err != nil {
		return abi.Result{}, m.outward(err, &inv)
	}
	r.Interceptor = inv.Name
	if r.Type == abi.Mutation && r.Payload == nil {
		if r.Modified {
			return abi.Result{}, m.outward(abi.Failed(inv.Name, inv.Phase, abi.ReasonBadOutput,
				errors.New("modified:true without a payload")), &inv)
		}
		r.Payload = inv.Payload
	}
	return r, nil
}

// malformed refuses what no reader of params lets through, for callers in this
// process.
func malformed(inv *abi.Invocation) *abi.Error {
	bad := func(path, text string) *abi.Error { return abi.BadParams(inv.Name, path, errors.New(text)) }
	switch {
	case inv.Event == "" || abi.IsPattern(inv.Event):
		return bad("event", "names no single event")
	case !inv.Phase.Valid():
		return bad("phase", "is neither request nor response")
	case len(inv.Payload) == 0:
		return bad("payload", "is missing")
	case inv.Timeout < 0:
		return bad("timeoutMs", "is negative")
	}
	return nil
}

// find gives the member of a served name and keeps its module open until
// release.
func (l *Library) find(name string) (m *member, release func()) {
	for {
		m := l.set.Load().byName[name]
		if m == nil {
			return nil, nil
		}
		if m.gate.enter() {
			return m, m.gate.leave
		}
		// It was replaced between the two lines: the new set is there already.
	}
}

// Ready waits until every file that was in the folder when it was opened has
// been loaded or refused. It returns [ErrLoading] when that takes longer than
// Options.FirstLoad, the error of ctx, or nil; without a folder at once.
func (l *Library) Ready(ctx context.Context) error {
	l.mu.Lock()
	f := l.folder
	l.mu.Unlock()
	if f == nil {
		return nil
	}
	select {
	case <-f.first:
		return nil
	default:
	}
	late := time.NewTimer(time.Until(f.opened.Add(l.o.FirstLoad)))
	defer late.Stop()
	select {
	case <-f.first:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-late.C:
		return ErrLoading
	}
}

// Close stops watching and loading, takes everything off the list and closes
// the modules when their running calls have ended. It returns the error of ctx
// when that ends first; what is left is then closed behind the caller's back.
func (l *Library) Close(ctx context.Context) error {
	l.mu.Lock()
	l.closed = true
	folder := l.folder
	l.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if folder != nil {
			folder.stop()
		}
		l.mu.Lock()
		files, natives := l.files, l.natives
		l.files, l.natives = nil, nil
		notify := l.publish()
		l.mu.Unlock()
		notify()
		for _, f := range files {
			l.retire(f)
		}
		for _, n := range natives {
			<-n.gate.close()
		}
		l.closing.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// retire closes a module, which is in no set any more, once its calls have
// ended.
func (l *Library) retire(f *served) {
	drained := f.gate.close()
	l.closing.Go(func() {
		<-drained
		l.discard(f.file, f.module)
	})
}

// discard closes a module that serves nobody.
func (l *Library) discard(file string, m Module) {
	if err := m.Close(context.Background()); err != nil {
		l.o.Logger.Warn("closing a module failed", "file", file, "digest", m.Digest(), "cause", err)
	}
}
