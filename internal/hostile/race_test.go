//go:build race

package hostile_test

// raced: the race detector is on.
const raced = true
