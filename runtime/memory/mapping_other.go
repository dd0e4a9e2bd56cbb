//go:build !linux

package memory

import "errors"

// newSpace gives plain Go memory: private mappings of a frozen file are used on
// Linux only.
func newSpace(limit uint64, way Way) (space, error) {
	if way == PageScan {
		return nil, errors.New("no page scan on this system")
	}
	return newHeap(limit), nil
}
