// Package telemetry counts what a gateway does and shows it in the Prometheus
// text format.
//
// # What it does
//
// A [Metrics] is told of governed phases ([Metrics.Decided]), of sinks
// ([Metrics.Sink]) and of what the relay does (it is a [relay.Observer]); what is
// a state and no event it asks for when it is scraped ([State]). Names, labels
// and units of all metrics are in docs/operating.md, which a test holds to what
// is served.
//
// Labels never carry what a client or a payload says: an event that no standard
// names is "custom", and the names of interceptors are those that hosts list, in
// a bounded number.
//
// # What it may not know
//
// Transports, configuration and modules.
//
// # Use
//
//	m := telemetry.New(telemetry.Options{Version: version, Observer: relay.NewLogObserver(log), State: state})
//	observer := gateway.Observer{Sunk: m.Sink, Decided: func(op *gateway.Operation, out *gateway.Outcome) {
//		m.Decided(op.Event, op.Phase, &out.Outcome)
//	}}
//	mux.Handle("GET /metrics", m.Handler())
package telemetry
