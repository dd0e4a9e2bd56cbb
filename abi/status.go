package abi

// Status is how an operation ended (protocol.md §5, Outcome).
type Status string

// The statuses. Of several reasons to block the first in plan order decides,
// and its status is the reason that the requester is given (protocol.md §6,
// Blocked).
const (
	StatusSuccess           Status = "success"            // released
	StatusValidationFailed  Status = "validation_failed"  // a validator's verdict
	StatusMutationFailed    Status = "mutation_failed"    // a mutator's failure
	StatusInterceptorFailed Status = "interceptor_failed" // a validator's failure
	StatusTimeout           Status = "timeout"            // any deadline
	StatusDiscoveryFailed   Status = "discovery_failed"   // a host or a required interceptor is missing
	// StatusCancelled says that the requester has gone: nothing is released and
	// nobody is to be answered.
	StatusCancelled Status = "cancelled"
)
