//go:build race

package meter_test

// raced: the race detector is on, under which the engine's interpreter takes
// minutes for what takes seconds.
const raced = true
