package expose

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/chain"
)

// Options of a [Set].
type Options struct {
	// Listings gives what the hosts offer, in the configured order; waiting for
	// those that have to be asked lasts as long as its context. It is required.
	Listings func(context.Context) []chain.Listing
	// Policy may be nil: no overrides.
	Policy *chain.Policy
	// Principal says who is calling, nil for nobody who is known. It is required.
	Principal func(context.Context) *abi.Principal
	// Timeout bounds an invocation for which neither policy nor the caller sets a
	// bound, and the wait for hosts. 0 means 10 s.
	Timeout time.Duration
}

// Set is all hosts' interceptors as one. It is safe for concurrent use.
type Set struct{ o Options }

// New makes a set.
func New(o Options) *Set {
	if o.Timeout <= 0 {
		o.Timeout = 10 * time.Second
	}
	return &Set{o}
}

// List is what can be invoked now. A host that cannot be listed adds nothing.
func (s *Set) List() []abi.Descriptor {
	ctx, cancel := context.WithTimeout(context.Background(), s.o.Timeout)
	defer cancel()
	return s.list(ctx)
}

func (s *Set) list(ctx context.Context) []abi.Descriptor {
	offers := s.offers(ctx)
	list := make([]abi.Descriptor, len(offers))
	for i := range offers {
		list[i] = offers[i].Descriptor
	}
	return list
}

// handshakeTime bounds how long a handshake waits for hosts that have not been
// asked yet.
const handshakeTime = 2 * time.Second

// Capability is the interceptors capability of all hosts together, with the
// events that they support (protocol.md §4), as far as that is known within 2 s.
func (s *Set) Capability() []byte {
	ctx, cancel := context.WithTimeout(context.Background(), handshakeTime)
	defer cancel()
	return abi.AppendCapability(nil, abi.SupportedEvents(s.list(ctx)))
}

// offers gives the offers under the names that they are listed by.
func (s *Set) offers(ctx context.Context) []chain.Offer {
	listings := s.o.Listings(ctx)
	offers := chain.Offers(listings, s.o.Policy)
	hosts := make([]string, 0, len(listings))
	for i := range listings {
		if listings[i].Host != nil {
			hosts = append(hosts, listings[i].Host.Name())
		}
	}
	owners := map[string]int{}
	for i := range offers {
		owners[offers[i].Descriptor.Name]++
	}
	for i := range offers {
		name := &offers[i].Descriptor.Name
		if owners[*name] > 1 || beginsWithHost(*name, hosts) {
			*name = offers[i].Host.Name() + "/" + *name
		}
	}
	return offers
}

// beginsWithHost says of a name that it could be that of another host's
// interceptor.
func beginsWithHost(name string, hosts []string) bool {
	for _, h := range hosts {
		if rest, ok := strings.CutPrefix(name, h); ok && strings.HasPrefix(rest, "/") {
			return true
		}
	}
	return false
}

// Invoke passes an invocation to the host that owns the interceptor of that
// name. The error is an *abi.Error.
func (s *Set) Invoke(ctx context.Context, inv abi.Invocation) (abi.Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	listing, stop := context.WithTimeout(ctx, s.o.Timeout)
	offer := find(s.offers(listing), inv.Name)
	stop()
	if offer == nil {
		return abi.Result{}, abi.UnknownName(inv.Name)
	}
	listed := inv.Name
	if !offer.Descriptor.Hooks.Match(inv.Event, inv.Phase) {
		return abi.Result{}, abi.NotHooked(&offer.Descriptor, inv.Event, inv.Phase)
	}
	inv.Name, inv.Config, inv.Connection, inv.Patient = offer.Interceptor, offer.Config, "", false
	inv.Timeout = s.timeout(offer.Timeout, inv.Timeout)
	inv.Context = s.context(ctx, inv.Context)
	r, err := s.invoke(ctx, offer.Host, inv)
	if err != nil {
		e := *abi.AsError(err, listed, inv.Phase)
		e.Interceptor = listed
		return abi.Result{}, &e
	}
	if r.Interceptor != "" && r.Interceptor != offer.Interceptor {
		return abi.Result{}, abi.Failed(listed, inv.Phase, abi.ReasonBadOutput, errEcho)
	}
	r.Interceptor = listed
	return r, nil
}

var errEcho = errors.New("the host's answer bears another interceptor's name")

// invoke enforces the timeout here, too: not every host keeps it.
func (s *Set) invoke(ctx context.Context, host chain.Host, inv abi.Invocation) (abi.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, inv.Timeout)
	defer cancel()
	r, err := host.Invoke(ctx, inv)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return r, abi.TimedOut(inv.Name, inv.Phase, inv.Timeout, err)
	}
	return r, err
}

func find(offers []chain.Offer, name string) *chain.Offer {
	for i := range offers {
		if offers[i].Descriptor.Name == name {
			return &offers[i]
		}
	}
	return nil
}

// timeout is policy's where it sets one: no caller makes a guard of others fail by
// giving it no time, or keeps it for longer (config.md).
func (s *Set) timeout(policy, caller time.Duration) time.Duration {
	switch {
	case policy > 0:
		return policy
	case caller > 0:
		return min(caller, s.o.Timeout)
	default:
		return s.o.Timeout
	}
}

// context says whose call it is: the one that was authenticated, whatever the
// caller says, and in no session of the gateway's.
func (s *Set) context(ctx context.Context, said *abi.Context) *abi.Context {
	c := abi.Context{}
	if said != nil {
		c = *said
	}
	c.Principal, c.SessionID = s.o.Principal(ctx), ""
	if c.Principal == nil {
		c.Principal = &abi.Principal{Type: abi.PrincipalAnonymous}
	}
	return &c
}
