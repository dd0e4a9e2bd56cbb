// Package module is what one Wasm module is to the code around it: a list of
// interceptors that describe themselves and answer invocations, as frames of
// JSON (abi.md, Flavour 1). Package guest fills it and exports it to the host;
// package guesttest calls it natively. It knows no handler types.
package module

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/weir-mcp/weir/abi"
)

// Interceptor is one registered interceptor. Run answers an invocation; the
// type, name and phase of the result are filled in for it.
type Interceptor struct {
	Descriptor abi.Descriptor
	Run        func(*abi.Invocation) (abi.Result, error)
}

// Module holds interceptors in the order of their registration. It is filled
// by init functions and only read afterwards; then it is safe for concurrent
// use.
type Module struct {
	interceptors []Interceptor
	problems     []error
}

// Default is the module that a program is.
var Default Module

// Register adds an interceptor. What is wrong with it is told by [Module.Describe],
// because an init function has nobody to return an error to.
func (m *Module) Register(i Interceptor) {
	if err := i.Descriptor.Validate(); err != nil {
		m.problems = append(m.problems, fmt.Errorf("interceptor %w", err))
		return
	}
	if m.find(i.Descriptor.Name) != nil {
		m.problems = append(m.problems, fmt.Errorf("interceptor %q is registered twice", i.Descriptor.Name))
		return
	}
	m.interceptors = append(m.interceptors, i)
}

// Problem notes something else that is wrong with a registration.
func (m *Module) Problem(err error) { m.problems = append(m.problems, err) }

// Descriptors returns what is registered, or everything that is wrong with it.
func (m *Module) Descriptors() ([]abi.Descriptor, error) {
	if len(m.problems) > 0 {
		return nil, errors.Join(m.problems...)
	}
	list := make([]abi.Descriptor, len(m.interceptors))
	for i := range m.interceptors {
		list[i] = m.interceptors[i].Descriptor
	}
	return list, nil
}

// Describe answers weir_describe.
func (m *Module) Describe() ([]byte, error) {
	list, err := m.Descriptors()
	if err != nil {
		return nil, err
	}
	return abi.AppendPage(nil, list, ""), nil
}

// Invoke answers weir_invoke. Every failure, a handler's panic included, is an
// answer too: the host gives it reason "guest" and logs the message.
func (m *Module) Invoke(input []byte) []byte {
	inv, err := abi.ReadCall(input)
	if err != nil {
		return abi.AppendFailure(nil, err.Error(), nil)
	}
	i := m.find(inv.Name)
	if i == nil {
		return abi.AppendFailure(nil, fmt.Sprintf("the module has no interceptor %q", inv.Name), nil)
	}
	if !i.Descriptor.Hooks.Match(inv.Event, inv.Phase) {
		return abi.AppendFailure(nil, fmt.Sprintf("%q does not hook the %s of %q", inv.Name, inv.Phase, inv.Event), nil)
	}
	r, err := i.answer(&inv)
	if err != nil {
		return abi.AppendFailure(nil, err.Error(), nil)
	}
	return abi.AppendAnswer(make([]byte, 0, len(r.Payload)+256), &r)
}

// answer shares the bare payload's bytes with the result, never the reverse:
// a result without a payload stands for "the input".
func (i *Interceptor) answer(inv *abi.Invocation) (r abi.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			Logf(LevelError, "panic: %v\n%s", p, debug.Stack())
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	enveloped := false
	if mayBeEnvelope(inv.Payload) {
		inv.Payload, enveloped = abi.Unwrap(inv.Event, inv.Payload)
	}
	if inv.Request != nil {
		inv.Request, _ = abi.Unwrap(inv.Event, inv.Request)
	}
	if r, err = i.Run(inv); err != nil {
		return r, err
	}
	r.Type, r.Interceptor, r.Phase = i.Descriptor.Type, i.Descriptor.Name, inv.Phase
	if enveloped && r.Payload != nil {
		r.Payload = abi.Wrap(inv.Event, r.Payload)
	}
	return r, nil
}

func (m *Module) find(name string) *Interceptor {
	for i := range m.interceptors {
		if m.interceptors[i].Descriptor.Name == name {
			return &m.interceptors[i]
		}
	}
	return nil
}
