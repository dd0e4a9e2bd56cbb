package chain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/conformance/mockhost"
)

// The scripted host of internal/conformance, in few words.
type (
	mock        = mockhost.Host
	interceptor = mockhost.Interceptor
	behaviour   = mockhost.Behaviour
)

var (
	host                     = mockhost.New
	validator, mutator, sink = mockhost.Validator, mockhost.Mutator, mockhost.Sink
	failOpen, audit          = mockhost.FailOpen, mockhost.Audit
	priority, hint, hooks    = mockhost.Priority, mockhost.Hint, mockhost.Hooks
	compat                   = mockhost.Compat

	pass, reject      = mockhost.Pass, mockhost.Reject
	verdict           = mockhost.Verdict
	tag, unmodified   = mockhost.Tag, mockhost.Unmodified
	replace, recorded = mockhost.Replace, mockhost.Recorded
	broken, hangs     = mockhost.Broken, mockhost.Hang
	after, deaf       = mockhost.After, mockhost.Deaf
	twisted, echo     = mockhost.Twisted, mockhost.Echo
)

// promptMock is a mock that may be called inline.
type promptMock struct{ *mock }

func (promptMock) ReturnsPromptly() {}

// listings is what discovery would find, each list in the order that arrange
// puts it into; but descriptors get there unread, as those of natives do.
func listings(hosts []*mock, arrange func([]abi.Descriptor)) []Listing {
	var ls []Listing
	for _, h := range hosts {
		l := Listing{Host: h, Err: h.Down, FailOpen: h.FailOpen}
		for _, i := range h.Interceptors {
			l.Interceptors = append(l.Interceptors, i.Descriptor)
		}
		for _, raw := range h.Bad {
			d, err := abi.ReadDescriptor([]byte(raw))
			l.Skipped = append(l.Skipped, abi.Skipped{Name: d.Name, Err: err})
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
		for _, c := range h.All() {
			n[h.Label+"/"+c.Name]++
		}
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

// effects is name=effect of each result.
func effects(o *Outcome) string {
	var parts []string
	for _, r := range o.Results {
		parts = append(parts, r.Name+"="+string(r.Effect))
	}
	return strings.Join(parts, " ")
}

// aborted is who stopped an operation, and why.
func aborted(o *Outcome) string {
	if o.Aborted == nil {
		return ""
	}
	return o.Aborted.Interceptor + ":" + o.Aborted.Reason
}

func ptr[T any](v T) *T { return &v }
