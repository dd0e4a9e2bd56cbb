package telemetry

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/chain"
	"github.com/weir-mcp/weir/gateway/relay"
	"github.com/weir-mcp/weir/internal/wire"
)

// Options of [New].
type Options struct {
	// Version is that of weir, for weir_build_info.
	Version string
	// Observer is told of what the relay does besides; it may be nil.
	Observer relay.Observer
	// State is asked at each scrape, and may be nil. It must return quickly.
	State func() State
}

// Metrics counts. It is safe for concurrent use.
type Metrics struct {
	o        Options
	registry *prometheus.Registry

	invocations *prometheus.HistogramVec
	failures    *prometheus.CounterVec
	operations  *prometheus.CounterVec
	blocked     *prometheus.CounterVec
	added       *prometheus.HistogramVec
	messages    *prometheus.CounterVec
	discarded   *prometheus.CounterVec

	labels labels
}

// The buckets of times, in seconds: from a module's tens of microseconds to a
// plan's deadline.
var buckets = []float64{.00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

// New makes one with a registry of its own.
func New(o Options) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	}
	m := &Metrics{
		o: o, registry: prometheus.NewRegistry(),
		invocations: histogram("weir_invocation_seconds", "Time of one invocation of an interceptor, by what became of it.",
			"interceptor", "host", "type", "event", "phase", "outcome"),
		failures: counter("weir_invocation_failures_total", "Invocations without a result, by reason.",
			"interceptor", "host", "reason"),
		operations: counter("weir_operations_total", "Governed phases of operations, by how they ended.",
			"event", "phase", "status"),
		blocked: counter("weir_blocked_total", "Governed phases that did not pass, by who stopped them and why.",
			"event", "phase", "interceptor", "host", "reason"),
		added: histogram("weir_added_seconds", "Time that governing a phase added to its message, waiting included.",
			"event", "phase"),
		messages: counter("weir_messages_total", "Messages that arrived and could be read, by the side that sent them.",
			"from", "kind"),
		discarded: counter("weir_messages_discarded_total", "Messages that did not pass for another reason than a decision.",
			"from", "cause"),
		labels: newLabels(),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: "weir_build_info", Help: "The version that runs; always 1.",
		ConstLabels: prometheus.Labels{"version": o.Version}})
	build.Set(1)
	m.registry.MustRegister(m.invocations, m.failures, m.operations, m.blocked, m.added, m.messages, m.discarded, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), stateCollector{m})
	return m
}

// Handler serves the metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
}

// Decided counts one governed phase.
func (m *Metrics) Decided(method string, p abi.Phase, out *chain.Outcome) {
	event, phase := eventLabel(method), string(p)
	m.operations.WithLabelValues(event, phase, string(out.Status)).Inc()
	for i := range out.Results {
		r := &out.Results[i]
		if r.Effect != chain.EffectStarted { // a sink is counted when it is done
			m.step(event, phase, r)
		}
	}
	if a := out.Aborted; a != nil {
		name, host := m.labels.of(inBlocked, a.Interceptor, a.Host, event, phase, a.Reason)
		m.blocked.WithLabelValues(event, phase, name, host, a.Reason).Inc()
	}
}

// Sink counts one sink. It is a chain.SinkOptions.Observe.
func (m *Metrics) Sink(r chain.SinkReport) {
	m.step(eventLabel(r.Event), string(r.Phase), &r.StepResult)
}

func (m *Metrics) step(event, phase string, r *chain.StepResult) {
	name, host := m.labels.of(inInvocations, r.Name, r.Host, string(r.Type), event, phase, string(r.Effect))
	m.invocations.WithLabelValues(name, host, string(r.Type), event, phase, string(r.Effect)).Observe(r.Duration.Seconds())
	if r.Err != nil {
		name, host = m.labels.of(inFailures, r.Name, r.Host, string(r.Err.Reason))
		m.failures.WithLabelValues(name, host, string(r.Err.Reason)).Inc()
	}
}

// Governed counts the time that a decision added.
func (m *Metrics) Governed(r relay.Record) {
	m.added.WithLabelValues(eventLabel(r.Event), string(r.Phase)).Observe((r.Waited + r.Duration).Seconds())
	if m.o.Observer != nil {
		m.o.Observer.Governed(r)
	}
}

// Arrived counts a message that could be read.
func (m *Metrics) Arrived(from relay.Side, kind wire.Kind) {
	m.messages.WithLabelValues(from.String(), kind.String()).Inc()
	if m.o.Observer != nil {
		m.o.Observer.Arrived(from, kind)
	}
}

// Discarded counts a message that did not pass.
func (m *Metrics) Discarded(d relay.Discard) {
	m.discarded.WithLabelValues(d.From.String(), string(d.Cause)).Inc()
	if m.o.Observer != nil {
		m.o.Observer.Discarded(d)
	}
}

var _ relay.Observer = (*Metrics)(nil)
