package guest

import (
	"fmt"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/guest/internal/module"
)

// Validator registers an interceptor that decides whether an operation may go
// on. C is the type of its config, [NoConfig] for none.
//
// Call it from an init function: in a reactor module main never runs. What is
// wrong with the descriptor keeps the module from loading, with the reason in
// the host's log.
//
// The handler's error is a failure, not a verdict: the host gives it reason
// "guest", writes its text to the operator's log only, and lets the operation
// go on only where the interceptor is fail-open. So is a panic, which is
// recovered and logged with its stack. Only what ends the Go program (no
// memory, a deadlock, concurrent map writes) ends the instance, which the host
// then replaces.
func Validator[C any](d Descriptor, handle func(*Call[C]) (Verdict, error)) {
	register(&module.Default, abi.Validation, d, func(c *Call[C]) (abi.Result, error) {
		v, err := handle(c)
		if err != nil {
			return abi.Result{}, err
		}
		return v.result()
	})
}

// Mutator registers an interceptor that may replace the payload. See
// [Validator] for what it has in common with one.
func Mutator[C any](d Descriptor, handle func(*Call[C]) (Mutation, error)) {
	register(&module.Default, abi.Mutation, d, func(c *Call[C]) (abi.Result, error) {
		m, err := handle(c)
		if err != nil {
			return abi.Result{}, err
		}
		return m.result(c.Payload)
	})
}

// Sink registers an interceptor that takes note of operations and can neither
// block nor change them. See [Validator] for what it has in common with one.
func Sink[C any](d Descriptor, handle func(*Call[C]) (Record, error)) {
	register(&module.Default, abi.Sink, d, func(c *Call[C]) (abi.Result, error) {
		r, err := handle(c)
		if err != nil {
			return abi.Result{}, err
		}
		return r.result()
	})
}

func register[C any](m *module.Module, typ abi.Type, d Descriptor, handle func(*Call[C]) (abi.Result, error)) {
	d.Type = typ
	// A schema that was derived refuses unknown members. Then so does the
	// decoder, for hosts that do not look at schemas.
	derived := d.ConfigSchema == nil
	if derived {
		schema, err := SchemaOf[C]()
		if err != nil {
			m.Problem(fmt.Errorf("interceptor %q: config: %w", d.Name, err))
			return
		}
		d.ConfigSchema = schema
	}
	m.Register(module.Interceptor{Descriptor: d, Run: func(inv *abi.Invocation) (abi.Result, error) {
		c := &Call[C]{Operation: operationOf(inv)}
		if err := decodeConfig(inv.Config, &c.Config, derived); err != nil {
			return abi.Result{}, err
		}
		return handle(c)
	}})
}
