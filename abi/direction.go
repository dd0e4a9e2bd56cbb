package abi

// Direction says on which side of the guarded boundary an operation stands. It
// belongs to the point of interception and is never derived from the phase
// (protocol.md §1, §6). It never travels.
type Direction uint8

// The directions.
const (
	// Sending is about to cross the trust boundary outwards: mutations run
	// before validations, and those before sinks.
	Sending Direction = iota
	// Receiving comes in across the boundary: validations run before sinks, and
	// those before mutations.
	Receiving
)

// String is "sending" or "receiving".
func (d Direction) String() string {
	if d == Receiving {
		return "receiving"
	}
	return "sending"
}
