// Package filelock locks files between processes. A lock belongs to the open
// file: it also holds between two takers in one process, and goes with the
// process that held it, however that ends.
//
//	lock, err := filelock.Wait(ctx, path)
//	if err != nil {
//		return err
//	}
//	defer lock.Unlock()
//
// The file stays when the lock is given back: removing one that somebody else
// has open would let two in.
package filelock

import (
	"context"
	"fmt"
	"os"
	"time"
)

// Lock is a lock that is held.
type Lock struct{ file *os.File }

// Try takes the lock on a file, which is made if it is missing, for its owner
// only. It returns nil without an error when somebody else holds it.
func Try(path string) (*Lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	locked, err := tryLock(f)
	if err != nil {
		err = fmt.Errorf("lock %s: %w", path, err)
	}
	if !locked {
		_ = f.Close()
		return nil, err
	}
	return &Lock{f}, nil
}

// every is how often Wait looks: no system has a call for waiting that ends
// with a context.
const every = 20 * time.Millisecond

// Wait is Try that waits until the lock is free or ctx ends, whose cause is then
// in the error.
func Wait(ctx context.Context, path string) (*Lock, error) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if lock, err := Try(path); lock != nil || err != nil {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for the lock %s: %w", path, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// Unlock gives the lock back. It is called once.
func (l *Lock) Unlock() { _ = l.file.Close() } // the lock goes with the file
