//go:build unix

package privatedir

import (
	"fmt"
	"os"
	"syscall"
)

// checkOwner refuses a folder that somebody else owns or has access to.
func checkOwner(dir string, info os.FileInfo) error {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Getuid() {
		return fmt.Errorf("%s belongs to another user (uid %d): choose another folder or switch the cache off", dir, stat.Uid)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("%s has mode %#o: others must have no access to it (chmod 700)", dir, mode)
	}
	return nil
}
