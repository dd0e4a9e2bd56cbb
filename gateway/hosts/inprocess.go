package hosts

import (
	"context"

	"github.com/weir-mcp/weir/abi"
)

// Interceptors is a set of interceptors in this process, such as a
// *library.Library.
type Interceptors interface {
	// List is what is offered now; the slice is the caller's.
	List() []abi.Descriptor
	// Invoke runs one of them and returns when ctx ends. The error is an
	// [*abi.Error].
	Invoke(ctx context.Context, inv abi.Invocation) (abi.Result, error)
	// Ready returns nil as soon as the set is whole, and an error while it is not
	// and ctx or the set's own patience ends. A set that is still loading counts
	// as one that cannot be listed: what it may guard does not pass without it.
	Ready(ctx context.Context) error
	// Subscribe has changed called after each change of the list.
	Subscribe(changed func()) (stop func())
}

// InProcess is a host in this process. Closing it leaves the set as it is. A
// response that it invokes on carries the request that it answers
// ([abi.Invocation.Request]).
func InProcess(name string, set Interceptors, o Options) *Host {
	h := newHost(name, o)
	h.source = &inProcess{set: set, stop: set.Subscribe(func() {
		h.changes.Add(1)
		h.wake()
	})}
	return h
}

type inProcess struct {
	set  Interceptors
	stop func()
}

func (p *inProcess) list(ctx context.Context) (offer, error) {
	if err := p.set.Ready(ctx); err != nil {
		return offer{}, err
	}
	return offer{interceptors: p.set.List()}, nil
}

func (p *inProcess) invoke(ctx context.Context, inv abi.Invocation) (abi.Result, error) {
	// The plans that run at once are bounded, and so are the sinks: a burst of
	// calls is to wait for a module, not to be blocked by it.
	inv.Patient = true
	return p.set.Invoke(ctx, inv)
}

func (p *inProcess) valid() bool { return true }

func (p *inProcess) wayOut() string {
	return "its modules are still loading; the log says of each what became of it"
}

func (p *inProcess) close(context.Context) error {
	p.stop()
	return nil
}
