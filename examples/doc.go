// Package examples is where interceptors that do a real job live, each in a
// folder of its own: pii-redactor, secret-scanner, audit-trail and quota are
// modules for the sandbox, native-host is an interceptor server in plain Go,
// server, gateway and gateway-chain are what to start one's own from, and embedded
// and client are programs that use weir as a library.
//
//	go generate ./examples/...
//
// builds the modules into examples/interceptors, a folder that weir serve and
// weir gateway take as it is. A module that needs a grant, as quota does, goes
// into a folder below its own, beside the weir.yaml that grants it. The package itself has nothing but the tests that
// hold every folder to the same shape.
package examples
