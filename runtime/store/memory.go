package store

import (
	"container/heap"
	"context"
	"math"
	"strconv"
	"sync"
	"time"
)

// Memory is a [Store] in this process's memory, bounded by its [Limits]. What
// it holds ends with the process, and every process has its own: two replicas
// count apart.
//
// Values whose time has come go with the next write; nothing runs by itself.
// Methods do not block and do not look at their context.
type Memory struct {
	limits Limits

	mu       sync.Mutex
	spaces   map[Space]*space
	files    map[file]*usage
	total    usage
	expiring expiring
}

var _ Store = (*Memory)(nil)

// NewMemory returns an empty store.
func NewMemory(l Limits) *Memory {
	return &Memory{limits: l.orDefaults(), spaces: map[Space]*space{}, files: map[file]*usage{}}
}

type file struct{ host, name string }

// space is a space that has entries.
type space struct {
	of      Space
	entries map[string]*entry
	used    usage
	file    *usage
}

type entry struct {
	space   *space
	key     string
	value   []byte    // replaced, never written to
	expires time.Time // zero for never
	index   int       // in expiring, -1 when it does not expire
}

func (e *entry) expired(now time.Time) bool { return e.index >= 0 && !now.Before(e.expires) }

// Get implements [Store].
func (m *Memory) Get(_ context.Context, s Space, key string) ([]byte, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.find(s, key); e != nil && !e.expired(time.Now()) {
		return e.value, true, nil
	}
	return nil, false, nil
}

// Set implements [Store].
func (m *Memory) Set(_ context.Context, s Space, key string, value []byte, ttl time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	m.expire(now)
	e, err := m.put(s, key, append([]byte{}, value...))
	if err == nil {
		m.keep(e, now, ttl)
	}
	return err
}

// Add implements [Store].
func (m *Memory) Add(_ context.Context, s Space, key string, delta int64, ttl time.Duration) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	m.expire(now)
	before := int64(0)
	old := m.find(s, key)
	if old != nil {
		var ok bool
		if before, ok = counter(old.value); !ok {
			return 0, ErrNotNumber
		}
	}
	if delta > 0 && before > math.MaxInt64-delta || delta < 0 && before < math.MinInt64-delta {
		return 0, ErrOverflow
	}
	e, err := m.put(s, key, strconv.AppendInt(nil, before+delta, 10))
	if err != nil {
		return 0, err
	}
	if old == nil {
		m.keep(e, now, ttl)
	}
	return before + delta, nil
}

// counter reads the text of a counter.
func counter(text []byte) (int64, bool) {
	if len(text) == 0 || text[0] == '+' {
		return 0, false
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	return n, err == nil
}

// Delete implements [Store].
func (m *Memory) Delete(_ context.Context, s Space, key string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expire(time.Now())
	e := m.find(s, key)
	if e == nil {
		return false, nil
	}
	m.remove(e)
	return true, nil
}

func (m *Memory) find(s Space, key string) *entry {
	if in := m.spaces[s]; in != nil {
		return in.entries[key]
	}
	return nil
}

// put makes an entry or replaces the value of one, where there is room.
func (m *Memory) put(s Space, key string, value []byte) (*entry, error) {
	in, used := m.spaces[s], m.files[file{s.Host, s.File}]
	if used == nil {
		used = &usage{}
	}
	if in == nil {
		in = &space{of: s, entries: map[string]*entry{}, file: used}
	}
	e := in.entries[key]
	more := usage{bytes: costOf(key, value)}
	if e == nil {
		more.entries = 1
	} else {
		more.bytes -= costOf(key, e.value)
	}
	owner := m.limits.Owner
	if s.Scope == Module {
		owner = m.limits.File
	}
	if !in.used.fits(more, owner) || !used.fits(more, m.limits.File) || !m.total.fits(more, m.limits.Total) {
		return nil, ErrFull
	}
	if e == nil {
		e = &entry{space: in, key: key, index: -1}
		in.entries[key] = e
		m.spaces[s], m.files[file{s.Host, s.File}] = in, used
	}
	e.value = value
	m.count(in, more)
	return e, nil
}

// keep sets when an entry ends.
func (m *Memory) keep(e *entry, now time.Time, ttl time.Duration) {
	if e.index >= 0 {
		heap.Remove(&m.expiring, e.index)
	}
	e.expires = time.Time{}
	if ttl > 0 {
		e.expires = now.Add(ttl)
		heap.Push(&m.expiring, e)
	}
}

// expire removes what has ended.
func (m *Memory) expire(now time.Time) {
	for len(m.expiring) > 0 && m.expiring[0].expired(now) {
		m.remove(m.expiring[0])
	}
}

func (m *Memory) remove(e *entry) {
	if e.index >= 0 {
		heap.Remove(&m.expiring, e.index)
	}
	in := e.space
	delete(in.entries, e.key)
	m.count(in, usage{-1, -costOf(e.key, e.value)})
	if len(in.entries) == 0 {
		delete(m.spaces, in.of)
	}
	if in.file.entries == 0 {
		delete(m.files, file{in.of.Host, in.of.File})
	}
}

func (m *Memory) count(in *space, more usage) {
	in.used.add(more)
	in.file.add(more)
	m.total.add(more)
}

// expiring is a heap of entries by the time when they end.
type expiring []*entry

// Len implements heap.Interface.
func (x expiring) Len() int { return len(x) }

// Less implements heap.Interface.
func (x expiring) Less(i, j int) bool { return x[i].expires.Before(x[j].expires) }

// Swap implements heap.Interface.
func (x expiring) Swap(i, j int) {
	x[i], x[j] = x[j], x[i]
	x[i].index, x[j].index = i, j
}

// Push implements heap.Interface.
func (x *expiring) Push(v any) {
	e := v.(*entry)
	e.index = len(*x)
	*x = append(*x, e)
}

// Pop implements heap.Interface.
func (x *expiring) Pop() any {
	last := len(*x) - 1
	e := (*x)[last]
	(*x)[last] = nil
	*x, e.index = (*x)[:last], -1
	return e
}
