package meter_test

import "flag"

// long asks for the full volume of what is otherwise sampled.
var long = flag.Bool("meter.long", false, "run all scripts of the specification suites, and all mutants and generated programs")

// volume is how much of something to run: with -meter.long, by default, and under
// the race detector.
func volume(full, sampled, underRace int) int {
	switch {
	case *long:
		return full
	case raced:
		return underRace
	}
	return sampled
}
