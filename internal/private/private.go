// Package private makes and checks folders and files that nobody but this user
// can write to or read. Whoever can write where we keep code decides what runs
// in our process.
//
//	if err := private.Dir(dir); err != nil {
//		return err // says what is wrong with it and what to do
//	}
package private

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Dir makes a folder of mode 0700, parents included, or checks that an existing
// one is a folder, no link to one, and [Owned].
func Dir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder", dir)
	}
	return Owned(dir, info)
}

// Owned refuses what somebody else owns or has access to. On Windows, where the
// folders of a user are that user's own, it leaves access to the system.
func Owned(path string, info fs.FileInfo) error { return owned(path, info) }

// exchanges is how often a file may be exchanged for another while it is opened:
// whoever writes files whole, by renaming, does so now and then.
const exchanges = 20

var errExchanged = errors.New("was exchanged while it was opened")

// Open opens a file for reading that is regular, no link, and [Owned]. A file that
// is exchanged for another meanwhile is opened again, as the other.
func Open(path string) (*os.File, error) {
	for n := 1; ; n++ {
		f, err := open(path)
		if !errors.Is(err, errExchanged) {
			return f, err
		}
		if n == exchanges {
			return nil, fmt.Errorf("%s %w, %d times", path, err, n)
		}
	}
}

func open(path string) (*os.File, error) {
	// What is no file is not opened: opening a pipe waits.
	before, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !os.SameFile(before, info) {
		err = errExchanged
	}
	if err == nil {
		err = Owned(path, info)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}
