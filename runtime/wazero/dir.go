package wazero

import (
	"fmt"
	"os"
)

// secureDir makes the folder of the cache, or checks that an existing one can
// be written by this user only.
func secureDir(dir string) error {
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
