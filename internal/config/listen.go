package config

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Listen says where and whom `weir gateway` and `weir serve` serve over HTTP.
type Listen struct {
	// HTTP is the address of the MCP endpoint, host:port; empty means stdio.
	HTTP string
	// Admin is the address of /metrics, /healthz and /readyz, or empty.
	Admin string
	// Tokens are the bearer tokens of the callers that are served, nil for
	// everybody.
	Tokens []Token
	// TLS is nil for plain HTTP.
	TLS    *TLS
	Limits ListenLimits
	// Insecure lets an address that is not a loopback one be served without
	// tokens; false by default.
	Insecure bool
	Source   Source
}

// Token is one caller's bearer token. It comes from a variable or from a file.
type Token struct {
	// Name is what the caller is called as a principal; unique.
	Name string
	// Value is the token where it comes from a variable; File is the file to
	// read it from where it does not.
	Value, File Text
	Source      Source
}

// TLS names the files of a certificate chain and of its private key, in PEM.
type TLS struct {
	Cert, Key Text
	Source    Source
}

// ListenLimits bound what one process takes over HTTP.
type ListenLimits struct {
	// Body is the size of one message in bytes, 4 MiB by default.
	Body int64
	// Sessions is how many sessions, and how many streams that wait for
	// messages, there may be at once; 1,000 by default.
	Sessions int
	// Concurrency is how many messages are served at once; 256 by default.
	Concurrency int
	// Rate is how many requests one caller may make in a second, 0 for any
	// number, the default. A caller is a principal, or an address without one.
	Rate int
}

// Passthrough narrows what crosses ungoverned (protocol.md §6).
type Passthrough struct {
	// GenericErrors replaces the text of a backend's JSON-RPC errors and leaves
	// their data out; false by default.
	GenericErrors bool
	// Notifications are names and patterns such as notifications/progress or
	// notifications/*; "*", the default, lets all pass.
	Notifications []string
}

func (l *loader) listen(f field, listen *Listen) {
	listen.Source = l.source(f.at)
	l.object(f, keys{
		"http":     func(v field) { listen.HTTP = l.address(v) },
		"admin":    func(v field) { listen.Admin = l.address(v) },
		"auth":     func(v field) { listen.Tokens = l.auth(v) },
		"tls":      func(v field) { listen.TLS = l.tls(v) },
		"insecure": func(v field) { listen.Insecure = l.bool(v) },
		"limits": func(v field) {
			l.object(v, keys{
				"body":        func(v field) { listen.Limits.Body = l.size(v, 1<<10, 64<<20) },
				"sessions":    func(v field) { listen.Limits.Sessions = int(l.integer(v, 1, 1_000_000)) },
				"concurrency": func(v field) { listen.Limits.Concurrency = int(l.integer(v, 1, 100_000)) },
				"rate":        func(v field) { listen.Limits.Rate = int(l.integer(v, 1, 1_000_000)) },
			})
		},
	})
}

func (l *loader) address(f field) string {
	value, ok := l.scalar(f)
	if !ok {
		return ""
	}
	if what := badAddress(value); what != "" {
		l.fail(f.value.at, fmt.Sprintf("%s is %s, which %s", f.name, f.value.spelling(), what), wayOutAddress)
		return ""
	}
	return value
}

const wayOutAddress = "it can be an address such as 127.0.0.1:8414, [::1]:8414 or :8414 for all"

// badAddress says what is wrong with an address to listen at, "" when nothing
// is.
func badAddress(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "is not a host and a port"
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return "has no port from 0 to 65535"
	}
	if strings.ContainsAny(host, " /\\@") {
		return "has no host"
	}
	return ""
}

// IsLoopback reports whether an address to listen at, host:port, is reached from
// this machine only.
func IsLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

func (l *loader) auth(f field) []Token {
	var tokens []Token
	ok := l.object(f, keys{"tokens": func(v field) {
		for _, item := range l.elements(v) {
			token, nameAt := l.token(item)
			if i := slices.IndexFunc(tokens, func(t Token) bool { return t.Name == token.Name }); i >= 0 && token.Name != "" {
				l.fail(nameAt, fmt.Sprintf("another token is called %q (%s)", token.Name, tokens[i].Source), "rename one")
			}
			tokens = append(tokens, token)
		}
	}})
	if ok && len(tokens) == 0 && l.clean(f.value.at) {
		l.fail(f.value.at, f.name+" has no tokens: nobody could call", "write tokens: [{name: ci, env: CI_TOKEN}], or leave auth out")
	}
	return tokens
}

func (l *loader) token(f field) (t Token, nameAt position) {
	t.Source = l.source(f.at)
	named, sources := false, 0
	ok := l.object(f, keys{
		"name": func(v field) { named, nameAt, t.Name = true, v.value.at, l.name(v) },
		"env": func(v field) {
			sources++
			name := l.name(v)
			if name == "" {
				return
			}
			if !isEnvName(name) {
				l.fail(v.value.at, fmt.Sprintf("%q is not the name of an environment variable", name), "use letters, digits and _")
				return
			}
			if _, ok := l.lookup(name); !ok {
				l.fail(v.value.at, fmt.Sprintf("the environment variable %s is not set", name), "set it to the token")
				return
			}
			value := l.expand(v.value.at, "${"+name+"}")
			if value == "" && l.clean(v.value.at) {
				l.fail(v.value.at, fmt.Sprintf("the environment variable %s is empty", name), "set it to the token")
			}
			t.Value = Text{written: "${" + name + "}", value: value}
		},
		"file": func(v field) { sources++; t.File = l.filePath(v, "name the file that holds the token") },
	})
	switch {
	case !ok:
	case !named:
		l.fail(f.at, f.name+" has no name", "the name is what the caller is called in contexts, metrics and logs")
	case sources != 1:
		l.fail(f.at, fmt.Sprintf("%s has %d of env and file", f.name, sources), "give it exactly one")
	}
	return t, nameAt
}

func (l *loader) tls(f field) *TLS {
	t := &TLS{Source: l.source(f.at)}
	ok := l.object(f, keys{
		"cert": func(v field) { t.Cert = l.filePath(v, "name the file of the certificate chain") },
		"key":  func(v field) { t.Key = l.filePath(v, "name the file of the private key") },
	})
	if ok && (t.Cert.IsZero() || t.Key.IsZero()) && l.clean(f.value.at) {
		l.fail(f.value.at, f.name+" needs both cert and key", "write {cert: c.pem, key: k.pem}")
	}
	return t
}

func (l *loader) passthrough(f field, p *Passthrough) {
	l.object(f, keys{
		"errors": func(v field) { p.GenericErrors = l.oneOf(v, "raw", "generic") == "generic" },
		"notifications": func(v field) {
			p.Notifications = []string{}
			for _, item := range l.elements(v) {
				name := l.name(item)
				if at := strings.IndexByte(name, '*'); name != "" && at >= 0 && (at != len(name)-1 || at > 0 && name[at-1] != '/') {
					l.fail(item.value.at, fmt.Sprintf("%s is %s", item.name, item.value.spelling()),
						`a pattern is "*" or ends in "/*", such as notifications/*`)
				}
				p.Notifications = append(p.Notifications, name)
			}
		},
	})
}
