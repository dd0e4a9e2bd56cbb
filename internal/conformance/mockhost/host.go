package mockhost

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/weir-mcp/weir/abi"
)

// Interceptor is a descriptor with a behaviour.
type Interceptor struct {
	abi.Descriptor
	Does Behaviour
}

// Host is a scripted host. Its fields are set before it is used; its methods are
// safe for concurrent use.
type Host struct {
	Label        string // the configured name
	Interceptors []Interceptor
	// Bad are descriptors as they stand on the wire, which nobody can use. They
	// are listed behind the others.
	Bad []string
	// Down says that the host cannot be listed, and why.
	Down error
	// FailOpen lets operations go on while it is down.
	FailOpen bool
	// PageSize splits the list into pages of that many descriptors. 0 is one page.
	PageSize int
	// Endless repeats the cursor of the first page for ever.
	Endless bool
	// Hold is called before each page of the list is answered. It may be nil.
	Hold func()
	// Record is told of each call before it runs, besides the host's own record. It
	// may be nil.
	Record func(abi.Invocation)

	mu    sync.Mutex
	calls []abi.Invocation
}

// New makes a host.
func New(label string, list ...Interceptor) *Host { return &Host{Label: label, Interceptors: list} }

// Name is the label.
func (h *Host) Name() string { return h.Label }

// Invoke records the call and does what the interceptor is told to: the first of
// that name whose descriptor is valid. What is no result on the wire ([Raw]) is
// bad output here as well.
func (h *Host) Invoke(ctx context.Context, inv abi.Invocation) (abi.Result, error) {
	r, err := h.run(ctx, inv)
	raw, ok := errors.AsType[rawAnswer](err)
	if !ok {
		return r, err
	}
	if r, err = abi.ReadResult([]byte(raw)); err != nil {
		return abi.Result{}, abi.Failed(inv.Name, inv.Phase, abi.ReasonBadOutput, err)
	}
	return r, nil
}

func (h *Host) run(ctx context.Context, inv abi.Invocation) (abi.Result, error) {
	h.mu.Lock()
	h.calls = append(h.calls, inv)
	h.mu.Unlock()
	if h.Record != nil {
		h.Record(inv)
	}
	for i := range h.Interceptors {
		if it := &h.Interceptors[i]; it.Name == inv.Name && it.Validate() == nil {
			return it.Does(ctx, inv)
		}
	}
	return abi.Result{}, abi.UnknownName(inv.Name)
}

// All gives the calls so far, in the order in which they came.
func (h *Host) All() []abi.Invocation {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.calls)
}

// Calls gives the calls of one interceptor.
func (h *Host) Calls(name string) (calls []abi.Invocation) {
	for _, c := range h.All() {
		if c.Name == name {
			calls = append(calls, c)
		}
	}
	return calls
}

// Page is the page of the list behind a cursor, as it goes over the wire.
func (h *Host) Page(cursor string) ([]byte, error) {
	var all []string
	for i := range h.Interceptors {
		all = append(all, string(h.Interceptors[i].AppendJSON(nil)))
	}
	all = append(all, h.Bad...)
	from, to, next := 0, len(all), ""
	if h.PageSize > 0 {
		if cursor != "" {
			if _, err := fmt.Sscanf(cursor, "from %d", &from); err != nil || from > len(all) {
				return nil, abi.BadParams("", "cursor", errors.New("no such page"))
			}
		}
		if to = min(from+h.PageSize, len(all)); to < len(all) {
			next = fmt.Sprint("from ", to)
		}
	}
	if h.Endless {
		from, to, next = 0, len(all), "from 0"
	}
	page := fmt.Appendf(nil, `{"interceptors":[%s]`, strings.Join(all[from:to], ","))
	if next != "" {
		page = fmt.Appendf(page, `,"nextCursor":%q`, next)
	}
	return append(page, '}'), nil
}
