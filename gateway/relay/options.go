package relay

import (
	"log/slog"
	"time"

	"github.com/weir-mcp/weir/abi"
)

// Limits bound one session. A zero member means its default.
type Limits struct {
	// InFlight is how many requests of one side may wait for their answers;
	// further ones are refused. Default 65,536.
	InFlight int
	// Marks is how many cancelled requests of one side are remembered; one more
	// ends the session (protocol.md §6). Default 65,536.
	Marks int
	// KeptBytes is how many bytes of requests are kept while they wait for their
	// answers: ids, methods, and what the plans of the responses will want to
	// see; further requests are refused. Default 256 MiB.
	KeptBytes int
	// Plans is how many plans run at once for messages of one side, and
	// PlanBytes how many bytes those messages have together; above it the
	// relay stops reading that side. Default 256 and 256 MiB.
	Plans     int
	PlanBytes int
	// Names is how many tasks, and how many requests inside results, are
	// remembered by name. Those beyond count as never seen (protocol.md §6 "No
	// way round"). Default 65,536.
	Names int
}

func (l Limits) withDefaults() Limits {
	for _, d := range []struct {
		n   *int
		def int
	}{
		{&l.InFlight, 65_536}, {&l.Marks, 65_536}, {&l.KeptBytes, 256 << 20},
		{&l.Plans, 256}, {&l.PlanBytes, 256 << 20}, {&l.Names, 65_536},
	} {
		if *d.n <= 0 {
			*d.n = d.def
		}
	}
	return l
}

// Details says to whom an error of a blocked operation names the interceptor
// and its messages.
type Details uint8

// The choices. DetailsAuto, the default, is protocol.md §6: to a requester on
// the guarded side only.
const (
	DetailsAuto Details = iota
	DetailsAlways
	DetailsNever
)

// Reach says whether details reach a requester on the given side.
func (d Details) Reach(b Boundary, requester Side) bool {
	return d == DetailsAlways || d == DetailsAuto && b.guards(requester)
}

// Blocked says how blocked operations are answered.
type Blocked struct {
	Details Details
	// ToolResult answers a blocked tools/call with a result that has
	// isError:true instead of a JSON-RPC error.
	ToolResult bool
}

// Options of [Run].
type Options struct {
	// Governor decides. Nil lets everything pass.
	Governor Governor
	// Boundary is the guarded side; [GuardClient] by default.
	Boundary Boundary
	// Blocked says how what is blocked is answered.
	Blocked Blocked
	// Passthrough narrows what crosses ungoverned.
	Passthrough Passthrough
	// Capability gives the settings of the interceptors capability that the gateway
	// itself has, a JSON object, to be put into the answers of a backend to
	// initialize and server/discover. Nil or nothing leaves those as they are. It is
	// called concurrently, and the answer waits for it.
	Capability func() []byte
	// Limits bound the session; zero members are defaults.
	Limits Limits
	// Observer is told what happens. Nil counts discards and logs them
	// to Logger, see [LogObserver].
	Observer Observer
	// Logger takes what concerns the session as a whole. Nil is silent.
	Logger *slog.Logger
	// Session and Principal are handed to the governor with each operation.
	Session   string
	Principal *abi.Principal
	// Grace is how long plans in progress get when the session ends. Default 5 s.
	Grace time.Duration
	// Leave is how long a backend whose input has ended gets to go by itself,
	// before its end is closed. Default 1 s: clients kill a server that is still
	// there a few seconds after they have closed its input.
	Leave time.Duration
	// Stall is how long one message may wait for a peer that does not read before
	// the peer counts as gone, which is seen an eighth of it later at the latest. While it waits, nothing more is read from the other
	// side, so its end is not seen either. Default 10 min: a backend of one thread
	// may well not read while a tool of it runs.
	Stall time.Duration
	// Drain is how long a backend may go on answering requests after the client
	// has closed its side. Default 1 min.
	Drain time.Duration
}

func (o Options) withDefaults() Options {
	o.Limits = o.Limits.withDefaults()
	if o.Governor == nil {
		o.Governor = openGate{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Observer == nil {
		o.Observer = NewLogObserver(o.Logger)
	}
	if o.Grace <= 0 {
		o.Grace = 5 * time.Second
	}
	if o.Leave <= 0 {
		o.Leave = time.Second
	}
	if o.Stall <= 0 {
		o.Stall = 10 * time.Minute
	}
	if o.Drain <= 0 {
		o.Drain = time.Minute
	}
	return o
}
