package config

import (
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/weir-mcp/weir/abi"
)

// This file is the list of keys: which there are, what reads them, and what
// they demand of each other.

func (l *loader) file(root *node, f *File) {
	version := false
	ok := l.object(field{value: root}, keys{
		"version": func(v field) {
			version = true
			if text, ok := l.scalar(v); ok && text != "1" {
				l.fail(v.value.at, fmt.Sprintf("version is %s", v.value.spelling()), "this weir reads version 1")
			}
		},
		"backend":      func(v field) { f.Backend = l.backend(v) },
		"boundary":     func(v field) { f.Boundary = Boundary(l.oneOf(v, string(Client), string(Server))) },
		"timeout":      func(v field) { f.Timeout = l.duration(v, MaxTimeout) },
		"hosts":        func(v field) { f.Hosts = l.hosts(v) },
		"interceptors": func(v field) { f.Interceptors = l.interceptors(v) },
		"blocked":      func(v field) { l.blocked(v, &f.Blocked) },
		"log":          func(v field) { l.object(v, keys{"messages": func(v field) { f.LogMessages = l.bool(v) }}) },
		"cache":        func(v field) { f.Cache = l.oneOf(v, "on", "off") == "on" },
		"trust":        func(v field) { f.Trust = l.trust(v) },
		"listen":       func(v field) { l.listen(v, &f.Listen) },
		"expose":       func(v field) { f.Expose = l.bool(v) },
		"passthrough":  func(v field) { l.passthrough(v, &f.Passthrough) },
	})
	if ok && !version {
		l.fail(position{1, 1}, "version is missing", `begin the file with "version: 1"`)
	}
}

func (l *loader) blocked(f field, b *Blocked) {
	l.object(f, keys{
		"details": func(v field) {
			b.Details = Details(l.oneOf(v, string(DetailsAuto), string(DetailsAlways), string(DetailsNever)))
		},
		"toolResult": func(v field) { b.ToolResult = l.bool(v) },
	})
}

func (l *loader) trust(f field) *Trust {
	t := &Trust{Source: l.source(f.at)}
	ok := l.object(f, keys{
		"keys": func(v field) {
			for _, item := range l.elements(v) {
				t.Keys = append(t.Keys, l.filePath(item, "name the file of a public key"))
			}
		},
		"requireSigned": func(v field) { t.RequireSigned = l.bool(v) },
	})
	if ok && len(t.Keys) == 0 && l.clean(f.value.at) {
		l.fail(f.value.at, "trust has no keys", `list files of public keys, such as keys: [ops.pub]; "weir keygen" makes a pair`)
	}
	return t
}

func (l *loader) backend(f field) *Backend {
	b := &Backend{Dir: l.dir, Source: l.source(f.at)}
	at := make(map[string]position)
	ok := l.object(f, keys{
		"command": func(v field) { at["command"], b.Command = v.at, l.command(v) },
		"env":     func(v field) { at["env"], b.Env = v.at, l.env(v) },
		"url":     func(v field) { at["url"], b.URL = v.at, l.url(v) },
		"headers": func(v field) { at["headers"], b.Headers = v.at, l.headers(v) },
	})
	if !ok {
		return b
	}
	_, command := at["command"]
	_, url := at["url"]
	switch {
	case command && url:
		l.fail(at["url"], "backend has both command and url", "give it one")
	case !command && !url && l.clean(f.at):
		l.fail(f.value.at, "backend has no command and no url",
			"write the MCP server's program and arguments as command: [program, argument], or its address as url")
	}
	for key, of := range map[string]string{"env": "command", "headers": "url"} {
		_, with := at[of]
		if where, ok := at[key]; ok && !with && (command || url) {
			l.fail(where, fmt.Sprintf("backend.%s has no meaning without %s", key, of), "leave it out")
		}
	}
	return b
}

var hostName = regexp.MustCompile(`^[a-z0-9-]+$`)

const wayOutHostName = "a host's name is made of a-z, 0-9 and -"

func (l *loader) hosts(f field) []Host {
	var hosts []Host
	seen := make(map[string]position)
	for _, v := range l.elements(f) {
		h, nameAt := l.host(v)
		if h.Name != "" {
			if first, twice := seen[h.Name]; twice {
				l.fail(nameAt, fmt.Sprintf("another host is called %q, in line %d", h.Name, first.line), "rename one")
			} else {
				seen[h.Name] = nameAt
			}
		}
		hosts = append(hosts, h)
	}
	return hosts
}

func (l *loader) host(f field) (h Host, nameAt position) {
	h = Host{Payload: Bare, Dir: l.dir, Source: l.source(f.at)}
	at := make(map[string]position)
	on := func(read func(field)) func(field) {
		return func(v field) {
			at[v.key] = v.at
			read(v)
		}
	}
	ok := l.object(f, keys{
		"name": on(func(v field) {
			nameAt = v.value.at
			if h.Name = l.name(v); h.Name != "" && !hostName.MatchString(h.Name) {
				l.fail(v.value.at, fmt.Sprintf("%s is %s", v.name, v.value.spelling()), wayOutHostName)
			}
		}),
		"modules":  on(func(v field) { h.Modules = l.filePath(v, "name a folder") }),
		"url":      on(func(v field) { h.URL = l.url(v) }),
		"headers":  on(func(v field) { h.Headers = l.headers(v) }),
		"command":  on(func(v field) { h.Command = l.command(v) }),
		"env":      on(func(v field) { h.Env = l.env(v) }),
		"payload":  on(func(v field) { h.Payload = PayloadStyle(l.oneOf(v, string(Bare), string(Envelope))) }),
		"request":  on(func(v field) { h.Request = l.bool(v) }),
		"failOpen": on(func(v field) { h.FailOpen = l.bool(v) }),
		"limits":   on(func(v field) { h.Limits = l.limits(v) }),
		"files":    on(func(v field) { h.Files = l.files(v) }),
	})
	if !ok {
		return h, nameAt
	}
	if _, named := at["name"]; !named {
		l.fail(f.at, f.name+" has no name", wayOutHostName)
	}
	var kinds []string
	for _, kind := range []string{"modules", "url", "command"} {
		if _, ok := at[kind]; ok {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) != 1 {
		what := "none"
		if len(kinds) > 1 {
			what = list(kinds, "and")
		}
		l.fail(f.at, fmt.Sprintf("%s has %s of modules, url and command", f.name, what), "give it exactly one")
		return h, nameAt
	}
	for key, of := range map[string][]string{"headers": {"url"}, "env": {"command"}, "payload": {"url", "command"}, "request": {"url", "command"},
		"limits": {"modules"}, "files": {"modules"}} {
		if where, ok := at[key]; ok && !slices.Contains(of, kinds[0]) {
			l.fail(where, fmt.Sprintf("%s.%s has no meaning beside %s", f.name, key, kinds[0]),
				fmt.Sprintf("it belongs to a host with %s", list(of, "or")))
		}
	}
	return h, nameAt
}

// filePath reads a path that is relative to the file.
func (l *loader) filePath(f field, wayOut string) Text {
	t := l.text(f)
	if t.value == "" {
		if l.clean(f.value.at) {
			l.fail(f.value.at, f.name+" is empty", wayOut)
		}
		return Text{}
	}
	if !filepath.IsAbs(t.value) {
		t.value = filepath.Join(l.dir, t.value)
	}
	return t
}

func (l *loader) limits(f field) (m Limits) {
	l.object(f, keys{
		"module":   func(v field) { m.Module = l.size(v, 1, 256<<20) },
		"memory":   func(v field) { m.Memory = l.size(v, 64<<10, 4<<30) },
		"table":    func(v field) { m.Table = uint32(l.integer(v, 1, 10_000_000)) },
		"timeout":  func(v field) { m.Timeout = l.duration(v, MaxTimeout) },
		"load":     func(v field) { m.Load = l.duration(v, 10*time.Minute) },
		"input":    func(v field) { m.Input = l.size(v, 1<<10, 64<<20) },
		"output":   func(v field) { m.Output = l.size(v, 1<<10, 64<<20) },
		"fuel":     func(v field) { m.Fuel = l.integer(v, 1, 1<<62) },
		"logLines": func(v field) { m.LogLines = int(l.integer(v, 1, 100_000)) },
		"logLine":  func(v field) { m.LogLine = l.size(v, 64, 1<<20) },
		"calls":    func(v field) { m.Calls = int(l.integer(v, 1, 10_000)) },
		"queue":    func(v field) { m.Queue = int(l.integer(v, 1, 100_000)) },
	})
	return m
}

func (l *loader) files(f field) map[string]FileOptions {
	files := make(map[string]FileOptions)
	for _, v := range l.entries(f) {
		if !strings.HasSuffix(v.key, ".wasm") || strings.HasPrefix(v.key, ".") || strings.ContainsAny(v.key, `/\`) {
			l.fail(v.at, fmt.Sprintf("%q is not the name of a module", v.key),
				"it can be a file directly in the folder that ends in .wasm and is not hidden")
			continue
		}
		o := FileOptions{Source: l.source(v.at)}
		l.object(v, keys{
			"sha256": func(v field) { o.SHA256 = l.digest(v) },
			"grants": func(v field) { o.Grants = l.grants(v) },
			"limits": func(v field) { o.Limits = l.limits(v) },
		})
		files[v.key] = o
	}
	return files
}

var digest = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)

func (l *loader) digest(f field) string {
	value, ok := l.scalar(f)
	if ok && !digest.MatchString(value) {
		l.fail(f.value.at, f.name+" is not 64 hexadecimal digits", `"weir inspect FILE.wasm" prints a module's digest`)
	}
	return strings.ToLower(value)
}

func (l *loader) grants(f field) (g Grants) {
	l.object(f, keys{
		"clock": func(v field) { g.Clock = l.bool(v) },
		"env": func(v field) {
			for _, item := range l.elements(v) {
				name := l.name(item)
				if name != "" && !isEnvName(name) {
					l.fail(item.at, fmt.Sprintf("%q is not the name of an environment variable", name), "use letters, digits and _")
					continue
				}
				g.Env = append(g.Env, name)
				l.consumed[name] = struct{}{}
			}
			slices.Sort(g.Env)
			g.Env = slices.Compact(g.Env)
		},
		"kv": func(v field) {
			g.KV = ScopePrincipal
			l.object(v, keys{"scope": func(v field) {
				g.KV = Scope(l.oneOf(v, string(ScopePrincipal), string(ScopeSession), string(ScopeModule)))
			}})
		},
	}, "http")
	return g
}

func (l *loader) interceptors(f field) []Entry {
	var entries []Entry
	for _, v := range l.elements(f) {
		entries = append(entries, l.entry(v))
	}
	return entries
}

func (l *loader) entry(f field) (e Entry) {
	e.Source = l.source(f.at)
	named := false
	ok := l.object(f, keys{
		"interceptor": func(v field) { named, e.Interceptor = true, l.name(v) },
		"host": func(v field) {
			if e.Host = l.name(v); e.Host != "" && !hostName.MatchString(e.Host) {
				l.fail(v.value.at, fmt.Sprintf("%s is %s", v.name, v.value.spelling()), wayOutHostName)
			}
		},
		"as": func(v field) {
			if e.As = l.name(v); e.As == "*" {
				l.fail(v.value.at, v.name+` is "*"`, "give the copy a name of its own")
			}
		},
		"enabled":  func(v field) { e.Enabled = new(l.bool(v)) },
		"mode":     func(v field) { e.Mode = new(abi.Mode(l.oneOf(v, string(abi.Active), string(abi.Audit)))) },
		"failOpen": func(v field) { e.FailOpen = new(l.bool(v)) },
		"priorityHint": func(v field) {
			e.PriorityHint = new(l.priority(v))
		},
		"timeout": func(v field) { e.Timeout = new(l.duration(v, MaxTimeout)) },
		"config": func(v field) {
			if v.value.kind != mapping {
				l.fail(v.value.at, fmt.Sprintf("%s is %s, not a mapping", v.name, v.value.what()), emptyHint(v.value))
				return
			}
			e.Config = l.json(v.value)
		},
		"hooks":    func(v field) { e.Hooks = l.hooks(v) },
		"required": func(v field) { e.Required = l.bool(v) },
		"type": func(v field) {
			e.Type = abi.Type(l.oneOf(v, string(abi.Validation), string(abi.Mutation), string(abi.Sink)))
		},
	})
	switch {
	case !ok:
	case !named:
		l.fail(f.at, f.name+" names no interceptor", `write "interceptor: NAME", or "*" for all`)
	case e.Interceptor == "*" && e.As != "":
		l.fail(f.at, f.name+` makes a copy of "*"`, "name the interceptor to copy")
	case e.Interceptor == "*" && e.Required:
		l.fail(f.at, f.name+` requires "*"`, "name the interceptor that must be there")
	}
	return e
}

func (l *loader) priority(f field) abi.PriorityHint {
	if f.value.kind != mapping {
		return abi.Priority(l.int32(f))
	}
	var request, response *int32
	l.object(f, keys{
		string(abi.Request):  func(v field) { request = new(l.int32(v)) },
		string(abi.Response): func(v field) { response = new(l.int32(v)) },
	})
	return abi.PhasePriority(request, response)
}

func (l *loader) int32(f field) int32 { return int32(l.integer(f, math.MinInt32, math.MaxInt32)) }

func (l *loader) hooks(f field) abi.Hooks {
	hooks := abi.Hooks{}
	for _, v := range l.elements(f) {
		var h abi.Hook
		has := make(map[string]bool)
		ok := l.object(v, keys{
			"events": func(v field) {
				has[v.key] = true
				for _, item := range l.elements(v) {
					h.Events = append(h.Events, l.name(item))
				}
			},
			"phase": func(v field) {
				has[v.key] = true
				h.Phase = abi.Phase(l.oneOf(v, string(abi.Request), string(abi.Response)))
			},
		})
		for _, key := range []string{"events", "phase"} {
			if ok && !has[key] {
				l.fail(v.at, fmt.Sprintf("%s has no %s", v.name, key), "write {events: [tools/call], phase: request}")
			}
		}
		hooks = append(hooks, h)
	}
	return hooks
}
