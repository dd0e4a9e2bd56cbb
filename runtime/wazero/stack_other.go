//go:build !linux

package wazero

// newStack has no stacks to give: wazero's own grow by copying.
func newStack() []byte { return nil }

func trimStack([]byte) {}

func freeStack([]byte) {}
