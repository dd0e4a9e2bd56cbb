package telemetry

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-mcp/weir/internal/wire"
)

// State is what is so at the time of a scrape.
type State struct {
	Hosts []Host
	// Modules are the modules of our own folders.
	Modules []Module
	// Unmatched are the places of policy entries that match nothing that any host
	// lists or that name an event that there is none of, and the interceptors that
	// hook such an event: guards that never run. One that is there twice counts
	// once.
	Unmatched []string
	// Sessions is how many sessions there are.
	Sessions int
}

// Host is one host of interceptors.
type Host struct {
	Name string
	// Up says that its list is known.
	Up bool
	// Interceptors is how many it lists, Skipped how many of them are malformed.
	Interceptors, Skipped int
}

// Module is one file of a folder.
type Module struct {
	Host, File string
	// Digest is the SHA-256 of what runs, in hexadecimal, empty while nothing
	// does.
	Digest string
	// Refused says that the file, as it is, does not load.
	Refused bool
}

// stateCollector asks for the state at each scrape.
type stateCollector struct{ m *Metrics }

var (
	hostUp       = prometheus.NewDesc("weir_host_up", "Whether the list of a host is known: 1 or 0.", []string{"host"}, nil)
	hostListed   = prometheus.NewDesc("weir_host_interceptors", "How many interceptors a host lists.", []string{"host"}, nil)
	hostSkipped  = prometheus.NewDesc("weir_host_skipped", "How many of the interceptors that a host lists are malformed and left out.", []string{"host"}, nil)
	moduleInfo   = prometheus.NewDesc("weir_module_info", "The digest of what runs of a file; always 1.", []string{"host", "file", "sha256"}, nil)
	moduleFailed = prometheus.NewDesc("weir_module_refused", "Whether a file as it is now is refused: 1 or 0.", []string{"host", "file"}, nil)
	unmatched    = prometheus.NewDesc("weir_policy_unmatched", "An entry of the policy that matches nothing that any host lists, or an event that is none, which an interceptor may hook too; always 1.", []string{"at"}, nil)
	sessions     = prometheus.NewDesc("weir_sessions", "Sessions that are open.", nil, nil)
)

// Describe is for prometheus.
func (c stateCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{hostUp, hostListed, hostSkipped, moduleInfo, moduleFailed, unmatched, sessions} {
		to <- d
	}
}

// mostUnmatched bounds the places that are shown, and longPlace one of them in
// bytes.
const (
	mostUnmatched = 1024
	longPlace     = 256
)

// Collect is for prometheus.
func (c stateCollector) Collect(to chan<- prometheus.Metric) {
	if c.m.o.State == nil {
		return
	}
	type series struct {
		of     *prometheus.Desc
		labels string
	}
	shown := map[series]bool{}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		// One series that is there twice would cost all the others.
		this := series{d, strings.Join(labels, "\x00")}
		if shown[this] {
			return
		}
		shown[this] = true
		// The error would be one of our own labels: not UTF-8, which file names may be.
		if metric, err := prometheus.NewConstMetric(d, prometheus.GaugeValue, v, labels...); err == nil {
			to <- metric
		}
	}
	s := c.m.o.State()
	for _, h := range s.Hosts {
		gauge(hostUp, number(h.Up), h.Name)
		gauge(hostListed, float64(h.Interceptors), h.Name)
		gauge(hostSkipped, float64(h.Skipped), h.Name)
	}
	for _, f := range s.Modules {
		if f.Digest != "" {
			gauge(moduleInfo, 1, f.Host, f.File, f.Digest)
		}
		gauge(moduleFailed, number(f.Refused), f.Host, f.File)
	}
	for i, at := range s.Unmatched { // among which are names that hosts list
		if i == mostUnmatched {
			gauge(unmatched, 1, other)
			break
		}
		gauge(unmatched, 1, wire.Clip(at, longPlace))
	}
	gauge(sessions, float64(s.Sessions))
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
