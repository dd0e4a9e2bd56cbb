package conformance

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/chain"
	"github.com/weir-mcp/weir/internal/conformance/mockhost"
)

// Arrangements are orders in which a host may list what it has. None of them
// may change anything.
var Arrangements = map[string]func([]abi.Descriptor){
	"as listed": func([]abi.Descriptor) {},
	"reversed":  func(list []abi.Descriptor) { slices.Reverse(list) },
	"shuffled": func(list []abi.Descriptor) {
		rand.New(rand.NewPCG(1, 2)).Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	},
	"rotated": func(list []abi.Descriptor) {
		if len(list) > 1 {
			first := list[0]
			copy(list, list[1:])
			list[len(list)-1] = first
		}
	},
}

// Listing is what discovery would find out about a host, read as it is read from
// the wire.
func Listing(t testing.TB, h *mockhost.Host) chain.Listing {
	t.Helper()
	l := chain.Listing{Host: h, Err: h.Down, FailOpen: h.FailOpen}
	if h.Down != nil {
		return l
	}
	raw, err := h.Page("")
	require.NoError(t, err)
	page, err := abi.ReadPage(raw)
	require.NoError(t, err)
	require.Empty(t, page.NextCursor, "pages are for connections")
	l.Interceptors, l.Skipped = page.Interceptors, page.Skipped
	return l
}

// Direct runs the case by the executor and nothing else, in virtual time. Every
// goroutine has ended when it returns.
func (c *Case) Direct(t *testing.T, arrange func([]abi.Descriptor)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		hosts := c.Hosts()
		var listings []chain.Listing
		for _, h := range hosts {
			l := Listing(t, h)
			arrange(l.Interceptors)
			listings = append(listings, l)
		}
		plan := c.plan(t, listings)
		var mu sync.Mutex
		var sunk []string
		sinks := chain.NewSinks(chain.SinkOptions{Observe: func(r chain.SinkReport) {
			mu.Lock()
			defer mu.Unlock()
			sunk = append(sunk, r.Name+"="+string(r.Effect))
		}})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if c.Cancel > 0 {
			defer time.AfterFunc(c.Cancel, cancel).Stop()
		}
		start := time.Now()
		out := chain.NewExecutor(chain.Options{Sinks: sinks}).Execute(ctx, plan, c.operation())
		require.Equal(t, c.Took, time.Since(start), "time taken")
		require.Equal(t, c.Took, out.TotalDuration)
		require.NoError(t, sinks.Drain(t.Context()))
		slices.Sort(sunk)
		require.Equal(t, c.Sunk, strings.Join(sunk, " "), "what became of the sinks")
		var records []record
		for _, h := range hosts {
			records = append(records, record{h.Label, h.All()})
		}
		require.Equal(t, c.ending(), endingOf(&out, records))
		c.checkCalls(t, records)
	})
}
