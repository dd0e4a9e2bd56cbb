package relay

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/wire"
)

// way is a lane that keeps what is written.
type way struct {
	forwarded, answered []string
	last                Outgoing
	committed           bool
}

func (w *way) Forward(out Outgoing) { w.take(&w.forwarded, out) }
func (w *way) Answer(out Outgoing)  { w.take(&w.answered, out) }

func (w *way) take(to *[]string, out Outgoing) {
	w.last = out
	if w.committed = out.Commit(); w.committed && out.Message != nil {
		*to = append(*to, string(out.Message))
	}
}

func arrival(from Side, raw string) (Arrival, *way) {
	w := &way{}
	return Arrival{From: from, Raw: []byte(raw), Lane: w}, w
}

// hand gives a message to the session and does the rest at once.
func hand(t *testing.T, s *Session, from Side, raw string) *way {
	a, w := arrival(from, raw)
	if rest := s.Handle(t.Context(), a); rest != nil {
		rest()
	}
	return w
}

func newTestSession(t *testing.T, rules map[string]rule, adapt ...func(*Options)) (*Session, *watcher) {
	w := &watcher{}
	o := Options{Governor: &script{rules: rules}, Observer: w}
	for _, f := range adapt {
		f(&o)
	}
	s := NewSession(o)
	t.Cleanup(s.Close)
	return s, w
}

func TestALaneIsToldWhatItCarries(t *testing.T) {
	s, w := newTestSession(t, map[string]rule{"tools/call request": edit(`"a"`, `"b"`), "tools/call response": pass})

	lane := hand(t, s, Client, call("1", `{"name":"a"}`))
	require.Equal(t, []string{call("1", `{"name":"b"}`)}, lane.forwarded)
	require.Equal(t, wire.Request, lane.last.Kind)
	require.Equal(t, "tools/call", lane.last.Method)
	require.Equal(t, `{"name":"b"}`, string(lane.last.Params))
	require.True(t, lane.last.Ticket.Open())
	ticket := lane.last.Ticket

	refused := hand(t, s, Client, `{"jsonrpc":"2.0","id":1.0,"method":"ping"}`)
	require.Equal(t, []string{failure("1.0", "-32600", textReused)}, refused.answered)
	require.Equal(t, ReusedID, refused.last.Cause)
	require.True(t, refused.last.Ticket.IsZero())

	answer := hand(t, s, Backend, result("1", `{}`))
	require.Equal(t, []string{result("1", `{}`)}, answer.forwarded)
	require.Equal(t, wire.Response, answer.last.Kind)
	require.False(t, ticket.Open())
	out := ticket.Fail()
	require.False(t, out.Commit(), "it has been answered")

	again := hand(t, s, Backend, result("1", `{}`))
	require.Empty(t, append(again.forwarded, again.answered...))
	require.Equal(t, []Cause{ReusedID, UnknownResponse}, w.causes())
}

func TestATicketWithoutAnAnswer(t *testing.T) {
	s, w := newTestSession(t, nil)
	out := hand(t, s, Client, call("1", `{}`)).last.Ticket.Fail()
	require.True(t, out.Commit())
	require.Equal(t, failure("1", "-32603", textBackendGone), string(out.Message))
	out = hand(t, s, Backend, call(`"x"`, `{}`)).last.Ticket.Fail()
	require.Equal(t, failure(`"x"`, "-32603", textClientGone), string(out.Message))
	out = hand(t, s, Client, call("2", `{}`)).last.Ticket.Malformed()
	require.Equal(t, failure("2", "-32603", textBadAnswer), string(out.Message))
	require.Equal(t, 1, s.Open(Backend))
	require.Equal(t, 1, s.Open(Client))

	// Given up, its id stays taken and its answer does not pass.
	hand(t, s, Client, call("3", `{}`)).last.Ticket.Abandon()
	require.Equal(t, []string{failure("3", "-32600", textReused)}, hand(t, s, Client, call("3", `{}`)).answered)
	require.Empty(t, hand(t, s, Backend, result("3", `{}`)).forwarded)
	require.Equal(t, []Cause{ReusedID, CancelledResponse}, w.causes())
	Ticket{}.Abandon()
	require.False(t, Ticket{}.Open())
}

// A plan ends with the context that it was handed in with, and with its session.
func TestAPlanEndsWithItsContext(t *testing.T) {
	until := func(ctx context.Context, _ Operation) Decision {
		<-ctx.Done()
		return Decision{Block: &Block{Reason: abi.StatusCancelled}}
	}
	s, _ := newTestSession(t, map[string]rule{"tools/call request": until}, func(o *Options) { o.Limits.Plans = 1 })
	ctx, cancel := context.WithCancel(t.Context())
	a, w := arrival(Client, call("1", `{}`))
	rest := s.Handle(ctx, a)
	cancel()

	// There is room for one plan: the second one waits, until its requester goes.
	gone, leave := context.WithCancel(t.Context())
	leave()
	b, second := arrival(Client, call("2", `{}`))
	require.Nil(t, s.Handle(gone, b))
	require.Equal(t, []string{failure("2", "-32603", textClosing)}, second.answered)
	require.Equal(t, Closing, second.last.Cause)

	rest()
	require.Len(t, w.answered, 1)
	require.Zero(t, s.Open(Client))

	c, third := arrival(Client, call("3", `{}`))
	rest = s.Handle(t.Context(), c)
	s.Close()
	rest()
	require.Empty(t, third.answered, "given up without an answer")
	require.Equal(t, Closing, hand(t, s, Client, call("4", `{}`)).last.Cause)
}

// Forks share the bounds on plans, and nothing else.
func TestFork(t *testing.T) {
	g := &script{rules: map[string]rule{"tools/call request": pass}}
	parent := NewSession(Options{Governor: g, Limits: Limits{Plans: 1}})
	one, two := parent.Fork(&abi.Principal{Type: "service", ID: "a"}), parent.Fork(nil)
	a, w := arrival(Client, call("1", `{}`))
	rest := one.Handle(t.Context(), a)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b, refused := arrival(Client, call("1", `{}`))
	two.Handle(ctx, b)
	require.Equal(t, Closing, refused.last.Cause)
	rest()
	require.Len(t, w.forwarded, 1)
	require.Len(t, hand(t, two, Client, call("1", `{}`)).forwarded, 1)
	require.Equal(t, "a", g.operations()[0].Principal.ID)
	require.Nil(t, g.operations()[1].Principal)
	parent.Close()
	require.Error(t, one.plans.Err(), "plans of forks end with it")
}

// What the transport says of the version counts last.
func TestVersionOfTheTransport(t *testing.T) {
	g := &script{rules: map[string]rule{"tools/call request": pass}}
	s := NewSession(Options{Governor: g})
	defer s.Close()
	try := func(header, raw string) string {
		a, _ := arrival(Client, raw)
		a.Version = header
		if rest := s.Handle(t.Context(), a); rest != nil {
			rest()
		}
		ops := g.operations()
		return ops[len(ops)-1].ProtocolVersion
	}
	require.Equal(t, "2025-06-18", try("2025-06-18", call("1", `{}`)))
	require.Equal(t, "", try("rubbish", call("2", `{}`)))
	require.Equal(t, "2026-07-28", try("2025-06-18", call("3", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`)))
	hand(t, s, Client, `{"jsonrpc":"2.0","id":4,"method":"initialize"}`)
	hand(t, s, Backend, result("4", `{"protocolVersion":"2025-11-25"}`))
	require.Equal(t, "2025-11-25", try("2025-06-18", call("5", `{}`)))
}

func TestOverflow(t *testing.T) {
	s, _ := newTestSession(t, nil, func(o *Options) { o.Limits.Marks = 1 })
	hand(t, s, Client, call("1", `{}`))
	hand(t, s, Client, call("2", `{}`))
	cancel := func(id string) *way {
		return hand(t, s, Client, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}`)
	}
	require.Len(t, cancel("1").forwarded, 1)
	select {
	case <-s.Overflow():
		require.Fail(t, "one mark has room")
	default:
	}
	require.Empty(t, cancel("2").forwarded)
	<-s.Overflow()
}

func TestPrincipalInContext(t *testing.T) {
	require.Nil(t, PrincipalFrom(t.Context()))
	p := &abi.Principal{Type: "service", ID: "ci"}
	require.Same(t, p, PrincipalFrom(WithPrincipal(t.Context(), p)))
}

// protocol.md §6, context: the trace that a transport brought goes with both phases
// of its request.
func TestTraceOfTheTransport(t *testing.T) {
	governor := &script{rules: map[string]rule{"tools/call request": pass, "tools/call response": pass}}
	s, _ := newTestSession(t, nil, func(o *Options) { o.Governor = governor })
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for i, came := range []string{trace, "", strings.Repeat("0", longTrace+1)} {
		a, _ := arrival(Client, call(strconv.Itoa(i), "{}"))
		a.Traceparent = came
		s.Handle(t.Context(), a)()
		hand(t, s, Backend, result(strconv.Itoa(i), "{}"))
	}
	var got []string
	for _, op := range governor.operations() {
		got = append(got, op.Traceparent)
	}
	require.Equal(t, []string{trace, trace, "", "", "", ""}, got)
}

func TestWhatArrivesIsReported(t *testing.T) {
	s, w := newTestSession(t, nil)
	hand(t, s, Client, call("1", "{}"))
	hand(t, s, Backend, result("1", "{}"))
	hand(t, s, Backend, notification("notifications/message", "{}"))
	hand(t, s, Client, "{")
	require.Equal(t, []string{"client request", "backend response", "backend notification"}, w.arrived)
}
