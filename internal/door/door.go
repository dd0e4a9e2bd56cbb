package door

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/weir-mcp/weir/abi"
)

// Options of a [Door]. The zero value lets everybody in.
type Options struct {
	// Authenticator says who callers are. Nil lets everybody in, unknown, and
	// leaves the Authorization header alone.
	Authenticator Authenticator
	// Known puts an authenticated caller into the request's context, for the rooms
	// behind. Nil puts it nowhere.
	Known func(context.Context, *abi.Principal) context.Context
	// Concurrency is how many requests other than GET are served at once, Streams
	// how many GETs, which may wait for long; 0 is without bound.
	Concurrency, Streams int
	// Rate is how many requests a caller may make in a second: a principal, or an
	// address where nobody is authenticated. 0 is without bound.
	Rate int
	// Answer writes what a request that is turned away gets besides its status
	// and headers. Nil writes the status's text.
	Answer func(w http.ResponseWriter, r *http.Request, status int)
	// Logger is told of requests that are turned away. Nil is silent.
	Logger *slog.Logger
}

// Door guards handlers. Its bounds hold for all of them together. It is safe for
// concurrent use.
type Door struct {
	o        Options
	slots    chan struct{}
	streams  chan struct{}
	rate     *rate
	failures *rate
	log      *slog.Logger
}

// loggedRefusals is how many refusals a second are logged: a stranger must not
// fill the log.
const loggedRefusals = 10

// New makes a door.
func New(o Options) *Door {
	d := &Door{o: o, rate: newRate(o.Rate), failures: newRate(loggedRefusals), log: o.Logger}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	if o.Concurrency > 0 {
		d.slots = make(chan struct{}, o.Concurrency)
	}
	if o.Streams > 0 {
		d.streams = make(chan struct{}, o.Streams)
	}
	return d
}

// Guard puts the door before a handler.
func (d *Door) Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !AdmitsPage(r) {
			d.refuse(w, r, http.StatusForbidden, "it comes from a web page of another origin, or by a name that is not this machine's")
			return
		}
		who := address(r)
		if d.o.Authenticator != nil {
			principal, ok := d.o.Authenticator.Authenticate(r)
			if !ok {
				w.Header().Set("WWW-Authenticate", `Bearer realm="weir"`)
				d.refuse(w, r, http.StatusUnauthorized, "it has no token, or one that is not known")
				return
			}
			who = principal.Type + ":" + principal.ID
			if d.o.Known != nil {
				r = r.WithContext(d.o.Known(r.Context(), principal))
			}
			// It is for this door, and nobody behind it (config.md).
			r.Header.Del("Authorization")
		}
		if !d.rate.allows(who, time.Now()) {
			w.Header().Set("Retry-After", "1")
			d.refuse(w, r, http.StatusTooManyRequests, "its caller makes too many requests")
			return
		}
		leave, ok := d.enter(r)
		if !ok {
			w.Header().Set("Retry-After", "1")
			d.refuse(w, r, http.StatusServiceUnavailable, "too many requests are being served")
			return
		}
		defer leave()
		r, stop := whileOpen(r)
		defer stop()
		next.ServeHTTP(&timedWriter{w, http.NewResponseController(w)}, r)
	})
}

// Admits says whether a request would be let in as far as it is about who makes
// it: for what everybody may ask and not everybody is told alike. It takes no place
// and counts towards no bound.
func (d *Door) Admits(r *http.Request) bool {
	if !AdmitsPage(r) {
		return false
	}
	if d.o.Authenticator == nil {
		return true
	}
	_, ok := d.o.Authenticator.Authenticate(r)
	return ok
}

// address is where a caller comes from, without the port. Of IPv6 it is the network
// of 64 bits, all of which one machine may have.
func address(r *http.Request) string {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	addr := at.Addr().Unmap().WithZone("")
	if addr.Is4() {
		return addr.String()
	}
	network, _ := addr.Prefix(64)
	return network.String()
}

// enter takes a place.
func (d *Door) enter(r *http.Request) (leave func(), ok bool) {
	places := d.slots
	if r.Method == http.MethodGet {
		places = d.streams
	}
	if places == nil {
		return func() {}, true
	}
	select {
	case places <- struct{}{}:
		return func() { <-places }, true
	default:
		return nil, false
	}
}

func (d *Door) refuse(w http.ResponseWriter, r *http.Request, status int, why string) {
	if d.failures.allows("", time.Now()) {
		d.log.LogAttrs(context.Background(), slog.LevelWarn, "a request is turned away", slog.Int("status", status),
			slog.String("why", why), slog.String("method", r.Method), slog.String("from", r.RemoteAddr))
	}
	w.Header().Set("Cache-Control", "no-store")
	if d.o.Answer != nil {
		d.o.Answer(w, r, status)
		return
	}
	http.Error(w, http.StatusText(status), status)
}
