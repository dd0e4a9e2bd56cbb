package conformance

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/chain"
	"github.com/weir-mcp/weir/internal/conformance/mockhost"
)

// Case is one row: hosts and what they do, and what must come of it.
type Case struct {
	Name string
	// Hosts makes the hosts anew, in the configured order.
	Hosts     func() []*mockhost.Host
	Policy    []chain.Entry
	Event     string    // tools/call when empty
	Phase     abi.Phase // request when empty
	Direction abi.Direction
	Version   string // of the protocol, as negotiated
	Payload   string // {"name":"t"} when empty
	Timeout   time.Duration
	Cancel    time.Duration // when the requester leaves; 0 is never
	// InProcess says why the case makes no sense over a connection.
	InProcess string

	Status  abi.Status
	Final   string // what came in, when empty and released
	Effects string // name=effect of each result, in plan order
	Calls   string // host/name of each call, sorted
	Aborted string // name:reason
	// Sees is host/name and the payload that it must have been called with.
	Sees map[string]string
	// Sunk is name=effect of each sink as it is told afterwards, by name. Over a
	// connection sinks are cut off, and it is not looked at.
	Sunk string
	// Took is how long it takes where nothing but what hosts do takes time.
	Took time.Duration
}

// Cases is all of them. Names are unique.
func Cases() []Case { return slices.Concat(Protocol(), Field(), Execution()) }

func (c *Case) event() string    { return cmp.Or(c.Event, abi.ToolsCall) }
func (c *Case) phase() abi.Phase { return cmp.Or(c.Phase, abi.Request) }
func (c *Case) payload() []byte  { return []byte(cmp.Or(c.Payload, `{"name":"t"}`)) }
func (c *Case) final() string    { return cmp.Or(c.Final, string(c.payload())) }
func (c *Case) plan(t testing.TB, listings []chain.Listing) *chain.Plan {
	t.Helper()
	policy, err := chain.NewPolicy(c.Policy)
	require.NoError(t, err)
	return chain.NewPlan(listings, policy, c.event(), c.phase(), c.Direction, c.Version)
}

func (c *Case) operation() chain.Operation {
	return chain.Operation{Payload: c.payload(), Arrived: time.Now(), Timeout: c.Timeout}
}

// ending is what a case says must come of it.
type ending struct {
	Status                  abi.Status
	Final                   string // nothing unless released
	Modified                bool
	Effects, Aborted, Calls string
}

func (c *Case) ending() ending {
	e := ending{Status: c.Status, Effects: c.Effects, Aborted: c.Aborted, Calls: c.Calls}
	if c.Status == abi.StatusSuccess {
		e.Final = c.final()
		e.Modified = e.Final != string(c.payload())
	}
	return e
}

func endingOf(o *chain.Outcome, records []record) ending {
	return ending{o.Status, string(o.FinalPayload), o.Modified, Effects(o), aborted(o), calls(records)}
}

// checkCalls holds what the hosts were asked about against the case.
func (c *Case) checkCalls(t testing.TB, records []record) {
	t.Helper()
	for _, r := range records {
		for _, inv := range r.calls {
			require.Equal(t, c.event(), inv.Event)
			require.Equal(t, c.phase(), inv.Phase)
			if payload, ok := c.Sees[r.host+"/"+inv.Name]; ok {
				require.Equal(t, payload, string(inv.Payload), "what %s sees", inv.Name)
			}
		}
	}
}

// record is what one host was asked.
type record struct {
	host  string
	calls []abi.Invocation
}

// Effects is name=effect of each result of an outcome, in plan order.
func Effects(o *chain.Outcome) string {
	parts := make([]string, len(o.Results))
	for i, r := range o.Results {
		parts[i] = r.Name + "=" + string(r.Effect)
	}
	return strings.Join(parts, " ")
}

func aborted(o *chain.Outcome) string {
	if o.Aborted == nil {
		return ""
	}
	return o.Aborted.Interceptor + ":" + o.Aborted.Reason
}

// calls counts the calls by host/name.
func calls(records []record) string {
	n := map[string]int{}
	for _, r := range records {
		for _, inv := range r.calls {
			n[r.host+"/"+inv.Name]++
		}
	}
	var parts []string
	for _, who := range slices.Sorted(maps.Keys(n)) {
		if n[who] > 1 {
			parts = append(parts, who+"*"+strconv.Itoa(n[who]))
			continue
		}
		parts = append(parts, who)
	}
	return strings.Join(parts, " ")
}
