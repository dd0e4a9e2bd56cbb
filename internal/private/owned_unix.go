//go:build unix

package private

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

func owned(path string, info fs.FileInfo) error {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to another user (uid %d)", path, stat.Uid)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("%s has mode %#o: others must have no access to it (chmod go-rwx)", path, mode)
	}
	return nil
}
