package library

import "encoding/json"

// Entry is one item of config.md's "interceptors:" list as far as it concerns
// who serves interceptors: as, config and enabled. The rest of an item is an
// invoker's policy.
type Entry struct {
	// Interceptor is an exact name, or "*" for all.
	Interceptor string
	// As, when set, makes one more copy of the interceptor under this name. It
	// is unique and not the name of another interceptor. With copies and no
	// entry of the exact name without As, the original is not served.
	As string
	// Config is in force where an invocation brings none, an object or nil.
	Config json.RawMessage
	// Enabled false hides the interceptor; nil leaves it to a less exact entry,
	// and in the end to true.
	Enabled *bool
	// Source says where the entry stands ("weir.yaml:12:3"), for errors.
	Source string
}

// anyInterceptor is the entry's Interceptor that stands for all.
const anyInterceptor = "*"

// setting is what the entries say about one served name.
type setting struct {
	enabled bool
	config  json.RawMessage
	source  string // of config
}

// settle takes each member from the first entry that sets it, so entries come
// with the most exact first (config.md).
func settle(ranks ...[]Entry) setting {
	s := setting{enabled: true}
	enabledSet := false
	for _, rank := range ranks {
		for _, e := range rank {
			if e.Enabled != nil && !enabledSet {
				s.enabled, enabledSet = *e.Enabled, true
			}
			if e.Config != nil && s.config == nil {
				s.config, s.source = e.Config, e.Source
			}
		}
	}
	return s
}

// entries is the list, looked up by what it addresses.
type entries struct {
	all    []Entry
	exact  map[string][]Entry
	copies map[string][]Entry
}

func newEntries(list []Entry) entries {
	es := entries{exact: map[string][]Entry{}, copies: map[string][]Entry{}}
	for _, e := range list {
		switch {
		case e.As != "":
			es.copies[e.Interceptor] = append(es.copies[e.Interceptor], e)
		case e.Interceptor == anyInterceptor:
			es.all = append(es.all, e)
		default:
			es.exact[e.Interceptor] = append(es.exact[e.Interceptor], e)
		}
	}
	return es
}
