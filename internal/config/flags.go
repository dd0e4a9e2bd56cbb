package config

import (
	"fmt"
	"slices"
	"strings"
)

// Flags is what the command line says beside the file (config.md).
type Flags struct {
	// Hosts are the values of --hosts, [NAME=]DIR or [NAME=]URL, in order.
	Hosts []string
	// Command is what follows "--": the backend's program and its arguments.
	Command []string
	// Backend and HTTP are the values of --backend, a URL, and of --http, an
	// address; nil when not given.
	Backend, HTTP *string
	// Boundary is the value of --boundary, empty when not given.
	Boundary string
}

// With returns f with the flags applied, which win over the file, and checks
// what can only be checked then: that the host each interceptors entry names is
// there. f may be nil, for no file; it is not changed. Errors are [Errors].
//
// Hosts of the command line come after those of the file. Relative folders of
// the command line are taken from the current folder.
func (f *File) With(flags Flags) (*File, error) {
	if f == nil {
		f = Default()
	}
	out := *f
	out.Hosts = slices.Clone(f.Hosts)
	var errs Errors
	fail := func(what, wayOut string) { errs = append(errs, &Error{What: what, WayOut: wayOut}) }

	for i, value := range flags.Hosts {
		h, err := parseHost(value, i+1)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if at := slices.IndexFunc(out.Hosts, func(o Host) bool { return o.Name == h.Name }); at >= 0 {
			fail(fmt.Sprintf("--hosts %s: another host is called %q (%s)", value, h.Name, out.Hosts[at].Source),
				"give it a name: --hosts NAME="+location(value))
			continue
		}
		out.Hosts = append(out.Hosts, h)
	}
	if flags.HTTP != nil {
		out.Listen.HTTP = *flags.HTTP
		if what := badAddress(*flags.HTTP); what != "" {
			fail(fmt.Sprintf("--http is %q, which %s", *flags.HTTP, what), wayOutAddress)
		}
	}
	errs = append(errs, out.exposure()...)
	switch {
	case flags.Backend != nil && len(flags.Command) > 0:
		fail("there are two backends: --backend and the command after --", "give one")
	case flags.Backend != nil:
		if what := badURL(*flags.Backend); what != "" {
			fail("the URL of --backend "+what, wayOutURL)
		}
		out.Backend = &Backend{URL: Plain(*flags.Backend), Source: "--backend"}
	case len(flags.Command) > 0 && flags.Command[0] == "":
		fail("the command after -- has no name", "write the backend's program and its arguments: -- COMMAND ARG…")
	case len(flags.Command) > 0:
		b := &Backend{Source: "--"}
		for _, arg := range flags.Command {
			b.Command = append(b.Command, Plain(arg))
		}
		out.Backend = b
	}
	switch b := Boundary(flags.Boundary); b {
	case "":
	case Client, Server:
		out.Boundary = b
	default:
		fail(fmt.Sprintf("--boundary is %q", flags.Boundary), "it can be client or server")
	}
	for _, e := range out.Interceptors {
		if e.Host != "" && !slices.ContainsFunc(out.Hosts, func(h Host) bool { return h.Name == e.Host }) {
			fail(fmt.Sprintf("%s: no host is called %q", e.Source, e.Host), hostsWayOut(out.Hosts))
		}
	}
	if len(errs) > 0 {
		return nil, errs
	}
	return &out, nil
}

// exposure says what of what is to be served stands open to strangers.
func (f *File) exposure() (errs Errors) {
	fail := func(what, wayOut string) {
		errs = append(errs, &Error{What: what, WayOut: wayOut})
	}
	listen := &f.Listen
	for name, address := range map[string]string{"listen.admin": listen.Admin, "the address to serve at": listen.HTTP} {
		if address != "" && badAddress(address) == "" && !IsLoopback(address) && listen.Tokens == nil && !listen.Insecure {
			fail(fmt.Sprintf("%s, %s, can be reached from other machines, and callers are not authenticated", name, address),
				"give listen.auth in the configuration, or use a loopback address such as 127.0.0.1, or set listen.insecure: true where something in front authenticates")
		}
	}
	if f.Expose && listen.Tokens == nil {
		fail("expose needs listen.auth: whoever may call interceptors must be known", "give listen.auth, or leave expose out")
	}
	slices.SortFunc(errs, func(a, b *Error) int { return strings.Compare(a.What, b.What) })
	return errs
}

func hostsWayOut(hosts []Host) string {
	if len(hosts) == 0 {
		return "add it under hosts, or with --hosts"
	}
	names := make([]string, len(hosts))
	for i, h := range hosts {
		names[i] = h.Name
	}
	return "there are " + list(names, "and")
}

// parseHost reads one value of --hosts, [NAME=]DIR or [NAME=]URL. NAME= counts
// only where NAME is a host's name; without it the host is called host1, host2,
// … by its position among the --hosts flags, which counts from 1. What begins
// with http:// or https:// is a URL, everything else a folder (config.md).
func parseHost(value string, position int) (Host, *Error) {
	h := Host{Name: fmt.Sprintf("host%d", position), Payload: Bare, Source: "--hosts"}
	target := location(value)
	if len(target) < len(value) {
		h.Name = value[:len(value)-len(target)-1]
	}
	switch {
	case target == "":
		return h, &Error{What: fmt.Sprintf("--hosts %q names no folder and no URL", value), WayOut: "write --hosts [NAME=]DIR or --hosts [NAME=]URL"}
	case !IsURL(target):
		h.Modules = Plain(target)
		return h, nil
	}
	if what := badURL(target); what != "" {
		return h, &Error{What: fmt.Sprintf("--hosts: the URL of %q %s", h.Name, what), WayOut: wayOutURL}
	}
	h.URL = Plain(target)
	return h, nil
}

// location is a value of --hosts without NAME=.
func location(value string) string {
	if name, rest, ok := strings.Cut(value, "="); ok && hostName.MatchString(name) {
		return rest
	}
	return value
}

// IsURL reports whether a target of the command line is taken for a URL
// (config.md).
func IsURL(target string) bool {
	return strings.HasPrefix(target, "http://") || strings.HasPrefix(target, "https://")
}
