//go:build !unix

package relay

import "os"

// nonblocking is not to be had here.
func nonblocking(*os.File) *os.File { return nil }

// surviveBrokenPipes has nothing to do.
func surviveBrokenPipes() {}
