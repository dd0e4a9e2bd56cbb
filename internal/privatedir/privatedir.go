// Package privatedir makes folders that one user has for himself, for what must
// not be written by anybody else: compiled code, keys. It knows nothing of what
// is kept in them.
package privatedir

import (
	"fmt"
	"os"
)

// Make makes the folder, with mode 0700 and those above it, or checks that an
// existing one belongs to this user and that others have no access to it. On
// systems without Unix modes the latter is left to the system.
func Make(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder", dir)
	}
	return checkOwner(dir, info)
}
