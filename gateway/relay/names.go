package relay

import (
	"slices"
	"sync"

	"github.com/weir-mcp/weir/abi"
)

// longName is the longest task id, request name or method that is remembered,
// in bytes.
const longName = 256

// names remembers, for the length of a session, which method made which task
// and what the requests inside results were (protocol.md §6 "No way round").
type names struct {
	mu sync.Mutex
	// tasks is by the side that made the request, so by who does not hold it.
	tasks  [2]recent[string]
	inputs recent[[]string]
}

func newNames(limit int) *names {
	n := &names{inputs: newRecent[[]string](limit)}
	for i := range n.tasks {
		n.tasks[i] = newRecent[string](limit)
	}
	return n
}

// addTask notes which method made a task. It is false where that would let the
// task's result pass as that of another method: when the id names a task of
// another method already, and when it cannot be remembered and what is not
// known counts as something else than it is.
func (n *names) addTask(requester Side, id, method string) bool {
	if len(id) > longName || len(method) > longName {
		return requester == Backend || method == abi.ToolsCall
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if maker, known := n.tasks[requester].of[id]; known {
		return maker == method
	}
	n.tasks[requester].put(id, method)
	return true
}

func (n *names) task(requester Side, id string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.tasks[requester].of[id]
}

// addInput notes the method of a request inside a result. One name may stand
// for several requests over time; an answer is governed as each. It is false
// when the method cannot be remembered beside the others: the answer would be
// governed as those alone. A name that is too long is not noted, and its answer
// counts as one whose request was never seen.
func (n *names) addInput(name, method string) bool {
	if len(method) > longName {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	methods := n.inputs.of[name]
	switch {
	case slices.Contains(methods, method):
		return true
	case len(methods) >= maxMethods:
		return false
	}
	n.inputs.put(name, append(slices.Clone(methods), method))
	return true
}

// maxMethods bounds how many methods one name can stand for.
const maxMethods = 8

func (n *names) input(name string) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.inputs.of[name]
}

// recent is a map that forgets its oldest key when it is full.
type recent[V any] struct {
	of    map[string]V
	order []string
	next  int
	limit int
}

func newRecent[V any](limit int) recent[V] { return recent[V]{of: map[string]V{}, limit: limit} }

func (r *recent[V]) put(key string, v V) {
	if len(key) > longName {
		return
	}
	if _, ok := r.of[key]; !ok {
		if len(r.order) < r.limit {
			r.order = append(r.order, key)
		} else {
			delete(r.of, r.order[r.next])
			r.order[r.next] = key
			r.next = (r.next + 1) % r.limit
		}
	}
	r.of[key] = v
}
