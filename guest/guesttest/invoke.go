// Package guesttest tests interceptors natively, without Wasm: in a test of the
// program that registers them, [Invoke] calls one as a host would, through the
// same frames, and [Golden] runs a folder of cases.
//
// A [Case] is data, so that the same files can be run against the compiled
// module: [ReadCases] reads them and [Case.Check] judges a result, whoever gave
// it.
package guesttest

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/guest/internal/module"
)

// Descriptors returns what the program has registered. It fails the test where
// a host would refuse the module.
func Descriptors(t testing.TB) []abi.Descriptor {
	t.Helper()
	list, err := describe()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func describe() ([]abi.Descriptor, error) {
	raw, err := module.Default.Describe()
	if err != nil {
		return nil, fmt.Errorf("the module would not load: %w", err)
	}
	page, err := abi.ReadPage(raw)
	switch {
	case err != nil:
		return nil, err
	case len(page.Skipped) > 0:
		return nil, fmt.Errorf("interceptor %q would not load: %w", page.Skipped[0].Name, page.Skipped[0].Err)
	case len(page.Interceptors) == 0:
		return nil, fmt.Errorf("the module would not load: no interceptor is registered")
	}
	return page.Interceptors, nil
}

// Invoke calls the interceptor inv.Name and returns its result. An interceptor
// that fails, is unknown or does not hook the event fails the test; see [Call].
func Invoke(t testing.TB, inv abi.Invocation) abi.Result {
	t.Helper()
	r, err := Call(inv)
	if err != nil {
		t.Fatalf("%s: %v", inv.Name, err)
	}
	return r
}

// Call calls the interceptor inv.Name and returns its result. The error is an
// [*abi.GuestError] where the interceptor failed, and another one where its
// answer is none that a host would take. It does not look at the configSchema;
// hosts do.
func Call(inv abi.Invocation) (abi.Result, error) {
	list, err := describe()
	if err != nil {
		return abi.Result{}, err
	}
	var d *abi.Descriptor
	for i := range list {
		if list[i].Name == inv.Name {
			d = &list[i]
		}
	}
	if d == nil {
		return abi.Result{}, abi.UnknownName(inv.Name)
	}
	if !d.Hooks.Match(inv.Event, inv.Phase) {
		return abi.Result{}, abi.NotHooked(d, inv.Event, inv.Phase)
	}
	answer := module.Default.Invoke(abi.AppendCall(nil, &inv))
	if !json.Valid(answer) {
		return abi.Result{}, fmt.Errorf("the answer is not JSON: %s", answer)
	}
	r, err := abi.ReadAnswer(answer, d, inv.Phase)
	if err != nil {
		return abi.Result{}, err
	}
	if r.Modified && (len(r.Payload) == 0 || r.Payload[0] != '{') {
		return abi.Result{}, fmt.Errorf("the new payload is not an object: %s", r.Payload)
	}
	return r, nil
}
