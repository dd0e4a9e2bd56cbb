// Package parity holds the tests of one promise: with `weir gateway` in front of
// an MCP server nothing changes except what the chain decides. They run the
// built program between programs that nobody here wrote:
//
//   - the official conformance suite, check by check (conformance_test.go),
//   - a long scripted session in raw frames (diff_test.go),
//   - the clients that people use (clients_test.go),
//   - many sessions at once that end in every way there is (soak_test.go).
//
// It exports nothing and knows of weir only its command line and configuration.
// What it needs beyond Go it asks package need for. The soak takes seconds, and
// with -parity.soak as long as that says:
//
//	go test ./internal/parity -run Soak -timeout 2h -parity.soak 1h
package parity
