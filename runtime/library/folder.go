package library

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-mcp/weir/abi"
)

// load makes a module of bytes and checks what it says about itself.
func (l *Library) load(ctx context.Context, name string, c *candidate) (s *served, err error) {
	m, err := l.o.Loader.Load(ctx, name, c.wasm)
	if err != nil {
		return nil, err
	}
	if m.Digest() != c.digest {
		err = fmt.Errorf("the loader made a module of other bytes (sha256 %s instead of %s)", m.Digest(), c.digest)
	} else {
		s, err = admit(name, m)
	}
	if err == nil && l.o.Admit != nil {
		if refused := l.o.Admit(name, slices.Clone(s.descriptors)); refused != nil {
			err = &unadmitted{refused}
		}
	}
	if err != nil {
		l.discard(name, m)
		return nil, err
	}
	s.signer = c.signer
	return s, nil
}

// folder keeps a library in step with a folder. One goroutine, run, owns all
// that is below the channels.
type folder struct {
	l      *Library
	dir    string
	opened time.Time
	first  chan struct{} // closed after the first load

	ctx     context.Context
	cancel  context.CancelFunc
	stopped chan struct{} // closed when run has returned
	rescans chan chan struct{}
	results chan loaded
	workers sync.WaitGroup

	files    map[string]*file
	queue    []string // files to load, in the order in which they are
	running  int
	starting bool // until the first load is done
	waiting  []chan struct{}
	missing  bool // the folder has gone, and that was logged
}

// file is what run knows of one file.
type file struct {
	name     string
	seen     stamp // what was last read, or is to be
	queued   bool
	loading  bool
	digest   string    // of the bytes being loaded
	again    bool      // changed while it was loading
	problem  string    // the complaint that was logged last, without digits; empty when all is well
	rival    string    // the file that the last refusal was on account of
	failures int       // attempts on the same bytes
	retry    time.Time // zero when there is nothing to retry
}

// loaded is the outcome of one load.
type loaded struct {
	name   string
	served *served
	err    error
}

func newFolder(l *Library, dir string) *folder {
	f := &folder{
		l: l, dir: dir, opened: time.Now(), first: make(chan struct{}), stopped: make(chan struct{}),
		rescans: make(chan chan struct{}), results: make(chan loaded),
		files: map[string]*file{}, starting: true,
	}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	return f
}

// stop ends run and waits for it and for the loads.
func (f *folder) stop() {
	f.cancel()
	<-f.stopped
}

func (f *folder) run() {
	defer close(f.stopped)
	w := newWatch(f.dir, f.l.o.Logger)
	defer w.close()
	defer f.abandon()

	rescan := time.NewTicker(f.l.o.Rescan)
	defer rescan.Stop()
	settled, retry := stoppedTimer(), stoppedTimer()
	defer settled.Stop()
	defer retry.Stop()
	touched := map[string]bool{}

	f.scan(nil)
	if len(f.files) == 0 && !f.missing {
		f.l.o.Logger.Warn("the folder has no modules; those that appear are picked up", "folder", f.dir)
	}
	for {
		f.next()
		f.scheduleRetry(retry)
		select {
		case <-f.ctx.Done():
			return
		case name := <-w.changed:
			if name = moduleOf(name); name != "" {
				touched[name] = true
			}
			settled.Reset(f.l.o.Settle)
		case <-settled.C:
			f.scan(touched)
			clear(touched)
			w.renew()
		case <-rescan.C:
			f.scan(nil)
			w.renew()
		case <-retry.C:
			f.retryDue()
		case done := <-f.rescans:
			f.scan(touched)
			clear(touched)
			f.waiting = append(f.waiting, done)
		case r := <-f.results:
			f.apply(r)
		}
	}
}

func stoppedTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// abandon waits for the loads that still run and closes what they bring.
func (f *folder) abandon() {
	go func() {
		f.workers.Wait()
		close(f.results)
	}()
	for r := range f.results {
		if r.served != nil {
			f.l.discard(r.name, r.served.module)
		}
	}
}

// scan compares the folder with what is known and queues what is new, has
// another stamp or is named in touched.
func (f *folder) scan(touched map[string]bool) {
	found, err := modulesIn(f.dir, f.l.o.Trust != nil)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if !f.missing {
			f.l.o.Logger.Warn("the folder of modules has gone; nothing of it is served until it is back", "folder", f.dir)
		}
		f.missing = true
	case err != nil:
		// It is there but cannot be read: what serves goes on serving.
		if !f.missing {
			f.l.o.Logger.Warn("the folder of modules cannot be read; its modules serve on", "folder", f.dir, "cause", err)
		}
		f.missing = true
		return
	case f.missing:
		f.missing = false
		f.l.o.Logger.Info("the folder of modules is back", "folder", f.dir)
	}
	for name := range f.files {
		if _, ok := found[name]; !ok {
			f.remove(name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		k := f.files[name]
		if k == nil {
			k = &file{name: name}
			f.files[name] = k
		} else if k.seen.same(found[name]) && !touched[name] {
			continue
		}
		k.seen, k.failures = found[name], 0
		f.enqueue(k)
	}
}

// remove takes a file off the list at once.
func (f *folder) remove(name string) {
	delete(f.files, name)
	f.queue = slices.DeleteFunc(f.queue, func(n string) bool { return n == name })
	f.l.mu.Lock()
	if f.replace(name, nil, nil) {
		f.l.o.Logger.Info("a module was removed", "file", name)
	}
	f.reconsider(name)
}

func (f *folder) enqueue(k *file) {
	k.retry = time.Time{}
	switch {
	case k.loading:
		k.again = true
	case !k.queued:
		k.queued = true
		f.queue = append(f.queue, k.name)
	}
}

// next starts as many loads as may run, and tells those who wait when there is
// nothing left to do. Files are read here, one after the other in the order of
// their names, so that of equal ones the first is the first.
func (f *folder) next() {
	for len(f.queue) > 0 && f.running < f.l.o.Loads {
		k := f.files[f.queue[0]]
		f.queue = f.queue[1:]
		k.queued = false
		f.start(k)
	}
	if f.running > 0 || len(f.queue) > 0 {
		return
	}
	if f.starting {
		f.starting = false
		close(f.first)
	}
	for _, done := range f.waiting {
		close(done)
	}
	f.waiting = nil
}

// start reads a file and loads it beside.
func (f *folder) start(k *file) {
	c, err := f.l.read(filepath.Join(f.dir, k.name))
	if err != nil {
		f.refuse(k, err)
		return
	}
	k.seen = c.at
	if f.servedDigest(k.name) == c.digest {
		f.resign(k, c.signer)
		f.settle(k) // touched, or back to what it was
		return
	}
	if first := f.twin(k.name, c.digest); first != "" {
		f.refuse(k, &collision{by: first, text: fmt.Sprintf("has the same bytes as %s, which serves; remove one of them", first)})
		return
	}
	k.loading, k.digest = true, c.digest
	f.running++
	name := k.name
	f.workers.Go(func() {
		s, err := f.l.load(f.ctx, name, &c)
		f.results <- loaded{name: name, served: s, err: err}
	})
}

// resign notes who has signed the bytes that serve already.
func (f *folder) resign(k *file, signer string) {
	f.l.mu.Lock()
	defer f.l.mu.Unlock()
	for _, s := range f.l.files {
		if s.file == k.name && s.signer != signer {
			f.l.o.Logger.Info("the signature of a module has changed", "file", k.name, "digest", s.module.Digest(), "signer", signer, "before", s.signer)
			s.signer = signer
		}
	}
}

func (f *folder) servedDigest(name string) string {
	f.l.mu.Lock()
	defer f.l.mu.Unlock()
	for _, s := range f.l.files {
		if s.file == name {
			return s.module.Digest()
		}
	}
	return ""
}

// twin names another file with these bytes that serves or is being loaded.
func (f *folder) twin(name, digest string) string {
	for _, k := range f.files {
		if k.name != name && k.loading && k.digest == digest {
			return k.name
		}
	}
	f.l.mu.Lock()
	defer f.l.mu.Unlock()
	for _, s := range f.l.files {
		if s.file != name && s.module.Digest() == digest {
			return s.file
		}
	}
	return ""
}

// apply puts a loaded module in service, or says why not.
func (f *folder) apply(r loaded) {
	f.running--
	k := f.files[r.name]
	if k == nil { // removed meanwhile
		if r.served != nil {
			f.l.discard(r.name, r.served.module)
		}
		return
	}
	k.loading = false
	if k.again {
		k.again = false
		f.enqueue(k)
	}
	if r.err == nil {
		r.err = f.serve(r.served)
	}
	if r.err != nil {
		f.refuse(k, r.err)
		return
	}
	d := r.served.module.Digest()
	attrs := []any{"file", k.name, "digest", d, "interceptors", names(r.served.descriptors)}
	if r.served.signer != "" {
		attrs = append(attrs, "signer", r.served.signer)
	}
	f.l.o.Logger.Info("a module serves", attrs...)
	f.settle(k)
}

func names(descriptors []abi.Descriptor) []string {
	list := make([]string, 0, len(descriptors))
	for _, d := range descriptors {
		list = append(list, d.Name)
	}
	return list
}

// serve swaps a module in unless a name of it is served by somebody else.
// During the first load, where the order of completion is chance, a file gives
// way to one with a smaller name.
func (f *folder) serve(s *served) error {
	f.l.mu.Lock()
	yield, err := f.rivals(s)
	if err != nil {
		f.l.mu.Unlock()
		f.l.discard(s.file, s.module)
		return err
	}
	f.replace(s.file, s, yield)
	f.reconsider(s.file)
	for _, o := range yield {
		i := slices.IndexFunc(s.descriptors, func(d abi.Descriptor) bool { return o.has(d.Name) })
		f.refuse(f.files[o.file], sharedName(s.descriptors[i].Name, s.file))
	}
	return nil
}

// rivals finds who serves names of s: an error when one of them stays, else
// those that give way. l.mu is held.
func (f *folder) rivals(s *served) (yield []*served, err error) {
	for _, d := range s.descriptors {
		for _, n := range f.l.natives {
			if n.descriptor.Name == d.Name {
				return nil, &collision{text: fmt.Sprintf("the whole module is refused: %q is the name of a native interceptor", d.Name)}
			}
		}
		for _, o := range f.l.files {
			switch {
			case o.file == s.file || !o.has(d.Name):
			case f.starting && s.file < o.file:
				yield = append(yield, o)
			default:
				return nil, sharedName(d.Name, o.file)
			}
		}
	}
	return yield, nil
}

// replace swaps what serves for a file, nil for nothing, in one step with
// taking others off the list. It reports whether something served before. It is
// called with l.mu held and returns without.
func (f *folder) replace(name string, s *served, also []*served) bool {
	l := f.l
	var gone []*served
	l.files = slices.DeleteFunc(l.files, func(o *served) bool {
		if o.file == name || slices.Contains(also, o) {
			gone = append(gone, o)
			return true
		}
		return false
	})
	delete(l.problems, name) // in the same step, so that no status shows what serves as refused
	if s != nil {
		i, _ := slices.BinarySearchFunc(l.files, name, func(o *served, name string) int { return strings.Compare(o.file, name) })
		l.files = slices.Insert(l.files, i, s)
	}
	notify := l.publish()
	l.mu.Unlock()
	notify()
	for _, o := range gone {
		l.retire(o)
	}
	return len(gone) > 0
}

// settle notes that a file serves what is in it.
func (f *folder) settle(k *file) {
	k.problem, k.rival, k.failures = "", "", 0
	f.l.mu.Lock()
	delete(f.l.problems, k.name)
	f.l.mu.Unlock()
}
