// Package conformance is the kit that the chain is tested with: one table of
// cases, run by the executor directly, over MCP on standard input and output,
// and over MCP on HTTP. It is for tests only.
//
// # What it is for
//
// [Protocol] is protocol.md §7, case by case; [Field] the Chain table of
// field-cases.md, under the names given there; [Execution] the rest of the rules
// of protocol.md §5. A [Case] says what hosts do (mockhost), what policy says and
// what must come of it. [Case.Direct] runs it in a bubble of virtual time, to the
// nanosecond; [Case.Over] runs it through gateway/hosts and a real connection to
// a real process or web server, where time is not asserted and everything else
// is.
//
// # What it may not know
//
// How the chain does it: the outcome and the calls that hosts see are all that a
// case speaks of.
//
// # Use
//
//	func TestMain(m *testing.M) {
//		conformance.ServeIfAsked(conformance.Cases()) // the test binary is also the hosts over stdio
//		os.Exit(m.Run())
//	}
//
//	for _, c := range conformance.Cases() {
//		t.Run(c.Name, func(t *testing.T) { c.Over(t, conformance.Stdio) })
//	}
package conformance
