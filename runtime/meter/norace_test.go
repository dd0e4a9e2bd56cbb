//go:build !race

package meter_test

const raced = false
