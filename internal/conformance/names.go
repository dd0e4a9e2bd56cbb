package conformance

import (
	"time"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/conformance/mockhost"
)

// The words of the tables, short since they are said so often.

type (
	behaviour = mockhost.Behaviour
	option    = mockhost.Option
)

const second = time.Second

var (
	host                     = mockhost.New
	validator, mutator, sink = mockhost.Validator, mockhost.Mutator, mockhost.Sink
	failOpen, audit          = mockhost.FailOpen, mockhost.Audit
	priority, hint, hooks    = mockhost.Priority, mockhost.Hint, mockhost.Hooks
	compat                   = mockhost.Compat

	pass, reject   = mockhost.Pass, mockhost.Reject
	verdict, deny  = mockhost.Verdict, mockhost.Deny
	tag, replace   = mockhost.Tag, mockhost.Replace
	recorded       = mockhost.Recorded
	broken, fails  = mockhost.Broken, mockhost.Fails
	hangs, dropped = mockhost.Hang, mockhost.Drop
	after, twisted = mockhost.After, mockhost.Twisted
	echo           = mockhost.Echo
)

// one is a single host with the given interceptors.
func one(list ...mockhost.Interceptor) func() []*mockhost.Host {
	return func() []*mockhost.Host { return []*mockhost.Host{host("h", list...)} }
}

func ptr[T any](v T) *T { return &v }

// unsay takes back that anything was modified, and leaves the payload.
func unsay(r *abi.Result) { r.Modified = false }
