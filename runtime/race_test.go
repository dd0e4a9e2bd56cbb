//go:build race

package runtime_test

// raced: the race detector is on, under which the engine's interpreter takes
// minutes for what takes seconds.
const raced = true
