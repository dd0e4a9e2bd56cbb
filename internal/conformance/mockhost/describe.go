package mockhost

import "github.com/weir-mcp/weir/abi"

// Option changes a descriptor.
type Option func(*abi.Descriptor)

// FailOpen is an author who lets failures pass.
func FailOpen(d *abi.Descriptor) { d.FailOpen = true }

// Audit is an author who only records.
func Audit(d *abi.Descriptor) { d.Mode = abi.Audit }

// Priority is one hint for both phases.
func Priority(n int32) Option {
	return func(d *abi.Descriptor) { d.PriorityHint = abi.Priority(n) }
}

// Hint is any hint.
func Hint(h abi.PriorityHint) Option { return func(d *abi.Descriptor) { d.PriorityHint = h } }

// Hooks replaces the hooks, which are everything without it.
func Hooks(h abi.Hooks) Option { return func(d *abi.Descriptor) { d.Hooks = h } }

// Compat limits the protocol versions.
func Compat(from, to string) Option {
	return func(d *abi.Descriptor) { d.Compat = &abi.Compat{MinProtocol: from, MaxProtocol: to} }
}

// Describe makes an interceptor of any type, unknown ones too.
func Describe(typ abi.Type, name string, does Behaviour, options ...Option) Interceptor {
	i := Interceptor{abi.Descriptor{Name: name, Type: typ, Mode: abi.Active, Hooks: abi.OnBoth("*")}, does}
	for _, o := range options {
		o(&i.Descriptor)
	}
	return i
}

// Validator is a validation.
func Validator(name string, does Behaviour, options ...Option) Interceptor {
	return Describe(abi.Validation, name, does, options...)
}

// Mutator is a mutation.
func Mutator(name string, does Behaviour, options ...Option) Interceptor {
	return Describe(abi.Mutation, name, does, options...)
}

// Sink is a sink.
func Sink(name string, does Behaviour, options ...Option) Interceptor {
	return Describe(abi.Sink, name, does, options...)
}
