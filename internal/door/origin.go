package door

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// AdmitsPage is false for web pages of other origins, whatever the method, and for
// those that reach a loopback address under a name of their own. What is no page
// it admits. [Door.Guard] asks it.
func AdmitsPage(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
	default:
		return false
	}
	for _, origin := range r.Header.Values("Origin") {
		// An opaque origin, "null", has no host.
		if u, err := url.Parse(origin); err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host) {
			return false
		}
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return !ok || !isLoopback(local.String()) || isLoopback(r.Host)
}

// isLoopback reads a host with or without a port.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = strings.TrimSuffix(strings.TrimPrefix(address, "["), "]")
	}
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback()
}
