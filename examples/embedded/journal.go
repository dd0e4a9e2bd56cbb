package main

import (
	"fmt"
	"sync"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway"
)

// journal counts what the chain decided.
type journal struct {
	mu                    sync.Mutex
	calls, blocked, asked int
}

func (j *journal) observer() gateway.Observer {
	return gateway.Observer{Decided: func(op *gateway.Operation, out *gateway.Outcome) {
		j.mu.Lock()
		defer j.mu.Unlock()
		if op.Event == abi.ToolsCall && op.Phase == abi.Request {
			j.calls++
		}
		if !out.Released() {
			j.blocked++
		}
		j.asked += len(out.Results)
	}}
}

// String is what the program ends with.
func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return fmt.Sprintf("%d calls, %d blocked, %d interceptors run", j.calls, j.blocked, j.asked)
}
