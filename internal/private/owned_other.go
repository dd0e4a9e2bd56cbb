//go:build !unix

package private

import "io/fs"

func owned(string, fs.FileInfo) error { return nil }
