package telemetry

import (
	"sync"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/wire"
)

// eventLabel keeps the words of clients out of the labels: a hook on "*" governs
// whatever method somebody makes up.
func eventLabel(event string) string {
	switch event {
	case abi.ToolsList, abi.ToolsCall, abi.PromptsList, abi.PromptsGet, abi.ResourcesList, abi.ResourcesRead,
		abi.ResourcesSubscribe, abi.SamplingCreate, abi.ElicitationCreate, abi.RootsList, abi.LLMCompletion:
		return event
	}
	return "custom"
}

// What hosts may make of the labels, each of which may list thousands of
// interceptors, and others each time it is asked: a number of combinations of
// labels for each host, so that one takes no room from another, and for all
// together; a number of hosts; a name in bytes. What is beyond is counted
// as that of the interceptor, or the host, "other".
const (
	mostOfHost = 2048
	mostOfAll  = 8192
	mostHosts  = 256
	longName   = 128
)

const other = "other"

// The metrics that have labels of interceptors.
const (
	inInvocations = iota
	inFailures
	inBlocked
)

// combination is one combination of labels of one metric.
type combination struct {
	metric            int
	interceptor, host string
	rest              [4]string
}

// labels remembers which combinations there are.
type labels struct {
	mu    sync.Mutex
	seen  map[combination]struct{}
	hosts map[string]int // how many of each
}

func newLabels() labels {
	return labels{seen: map[combination]struct{}{}, hosts: map[string]int{}}
}

// of gives the labels of an interceptor and its host in a metric whose other
// labels, at most four, are rest. Those are words of ours.
func (l *labels) of(metric int, interceptor, host string, rest ...string) (string, string) {
	c := combination{metric: metric, interceptor: wire.Clip(interceptor, longName), host: wire.Clip(host, longName)}
	copy(c.rest[:], rest)
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.seen[c]; ok {
		return c.interceptor, c.host
	}
	n, known := l.hosts[c.host]
	switch {
	case !known && len(l.hosts) >= mostHosts:
		return other, other
	case n >= mostOfHost || len(l.seen) >= mostOfAll:
		l.hosts[c.host] = n
		return other, c.host
	}
	l.seen[c] = struct{}{}
	l.hosts[c.host] = n + 1
	return c.interceptor, c.host
}
