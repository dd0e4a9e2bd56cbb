package chain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-mcp/weir/abi"
)

// behaviour is what a mock interceptor does when it is invoked.
type behaviour func(ctx context.Context, inv abi.Invocation) (abi.Result, error)

// interceptor is a descriptor with a behaviour.
type interceptor struct {
	abi.Descriptor
	does behaviour
}

// mock is a scriptable host that records every call.
type mock struct {
	name string
	list []interceptor
	err  error // of discovery
	open bool  // may fail open
	skip []abi.Skipped

	mu    sync.Mutex
	calls []abi.Invocation
}

func host(name string, list ...interceptor) *mock { return &mock{name: name, list: list} }

func (m *mock) Name() string { return m.name }

func (m *mock) Invoke(ctx context.Context, inv abi.Invocation) (abi.Result, error) {
	m.mu.Lock()
	m.calls = append(m.calls, inv)
	m.mu.Unlock()
	for _, i := range m.list {
		if i.Name == inv.Name && wellFormed(&i.Descriptor) == nil {
			return i.does(ctx, inv)
		}
	}
	return abi.Result{}, abi.UnknownName(inv.Name)
}

// called gives the calls of one interceptor.
func (m *mock) called(name string) (calls []abi.Invocation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.calls {
		if c.Name == name {
			calls = append(calls, c)
		}
	}
	return calls
}

// promptMock is a mock that may be called inline.
type promptMock struct{ *mock }

func (promptMock) ReturnsPromptly() {}

// listings is what discovery would find, each list in the order that arrange
// puts it into.
func listings(hosts []*mock, arrange func([]abi.Descriptor)) []Listing {
	var ls []Listing
	for _, h := range hosts {
		l := Listing{Host: h, Err: h.err, FailOpen: h.open, Skipped: h.skip}
		for _, i := range h.list {
			l.Interceptors = append(l.Interceptors, i.Descriptor)
		}
		if arrange != nil {
			arrange(l.Interceptors)
		}
		ls = append(ls, l)
	}
	return ls
}

// allCalls counts the calls by host/name.
func allCalls(hosts []*mock) string {
	n := map[string]int{}
	for _, h := range hosts {
		h.mu.Lock()
		for _, c := range h.calls {
			n[h.name+"/"+c.Name]++
		}
		h.mu.Unlock()
	}
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(n)) {
		if n[k] == 1 {
			parts = append(parts, k)
		} else {
			parts = append(parts, fmt.Sprintf("%s*%d", k, n[k]))
		}
	}
	return strings.Join(parts, " ")
}

// option changes a descriptor.
type option func(*abi.Descriptor)

func failOpen(d *abi.Descriptor) { d.FailOpen = true }
func audit(d *abi.Descriptor)    { d.Mode = abi.Audit }
func priority(n int32) option {
	return func(d *abi.Descriptor) { d.PriorityHint = abi.Priority(n) }
}
func hint(h abi.PriorityHint) option { return func(d *abi.Descriptor) { d.PriorityHint = h } }
func hooks(h abi.Hooks) option       { return func(d *abi.Descriptor) { d.Hooks = h } }
func compat(from, to string) option {
	return func(d *abi.Descriptor) { d.Compat = &abi.Compat{MinProtocol: from, MaxProtocol: to} }
}

func describe(typ abi.Type, name string, does behaviour, options []option) interceptor {
	i := interceptor{abi.Descriptor{Name: name, Type: typ, Mode: abi.Active, Hooks: abi.OnBoth("*")}, does}
	for _, o := range options {
		o(&i.Descriptor)
	}
	return i
}

func validator(name string, does behaviour, options ...option) interceptor {
	return describe(abi.Validation, name, does, options)
}

func mutator(name string, does behaviour, options ...option) interceptor {
	return describe(abi.Mutation, name, does, options)
}

func sink(name string, does behaviour, options ...option) interceptor {
	return describe(abi.Sink, name, does, options)
}

// The answers. Each echoes its invocation.

func echo(typ abi.Type, inv abi.Invocation) abi.Result {
	return abi.Result{Type: typ, Interceptor: inv.Name, Phase: inv.Phase}
}

func verdict(valid bool, severity abi.Severity, messages ...abi.Message) behaviour {
	return func(_ context.Context, inv abi.Invocation) (abi.Result, error) {
		r := echo(abi.Validation, inv)
		r.Valid, r.Severity, r.Messages = valid, severity, messages
		return r, nil
	}
}

var (
	pass   = verdict(true, "")
	reject = verdict(false, abi.SeverityError)
)

func unmodified(_ context.Context, inv abi.Invocation) (abi.Result, error) {
	return echo(abi.Mutation, inv), nil
}

func replace(payload string) behaviour {
	return func(_ context.Context, inv abi.Invocation) (abi.Result, error) {
		r := echo(abi.Mutation, inv)
		r.Modified, r.Payload = true, json.RawMessage(payload)
		return r, nil
	}
}

// tag is a mutation that appends the interceptor's name to the tool's name, so
// that a payload tells its own story.
func tag(_ context.Context, inv abi.Invocation) (abi.Result, error) {
	r := echo(abi.Mutation, inv)
	r.Modified = true
	r.Payload = json.RawMessage(strings.Replace(string(inv.Payload), `"}`, "+"+inv.Name+`"}`, 1))
	return r, nil
}

func recorded(_ context.Context, inv abi.Invocation) (abi.Result, error) {
	r := echo(abi.Sink, inv)
	r.Recorded = true
	return r, nil
}

func fails(reason abi.Reason) behaviour {
	return func(_ context.Context, inv abi.Invocation) (abi.Result, error) {
		return abi.Result{}, abi.Failed(inv.Name, inv.Phase, reason, errors.New("scripted"))
	}
}

var broken = fails(abi.ReasonTrap)

// dropped is a connection that is lost during the call.
func dropped(context.Context, abi.Invocation) (abi.Result, error) {
	return abi.Result{}, errors.New("connection reset")
}

// hangs waits for its context.
func hangs(ctx context.Context, _ abi.Invocation) (abi.Result, error) {
	<-ctx.Done()
	return abi.Result{}, ctx.Err()
}

// after waits, unless its context ends first.
func after(d time.Duration, then behaviour) behaviour {
	return func(ctx context.Context, inv abi.Invocation) (abi.Result, error) {
		select {
		case <-time.After(d):
			return then(ctx, inv)
		case <-ctx.Done():
			return abi.Result{}, ctx.Err()
		}
	}
}

// deaf waits without a look at its context.
func deaf(d time.Duration, then behaviour) behaviour {
	return func(ctx context.Context, inv abi.Invocation) (abi.Result, error) {
		time.Sleep(d)
		return then(ctx, inv)
	}
}

// twisted answers as then does and changes the answer.
func twisted(then behaviour, twist func(*abi.Result)) behaviour {
	return func(ctx context.Context, inv abi.Invocation) (abi.Result, error) {
		r, err := then(ctx, inv)
		twist(&r)
		return r, err
	}
}

func ptr[T any](v T) *T { return &v }
