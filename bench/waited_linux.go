package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// waited is how long threads of this process that could run have waited for a
// processor, all together: what others on the machine, and its scheduler, have
// added to the time that passed. Zero where the kernel does not say.
func waited() time.Duration {
	files, err := filepath.Glob("/proc/self/task/*/schedstat")
	if err != nil {
		return 0
	}
	sum := int64(0)
	for _, file := range files {
		b, err := os.ReadFile(file)
		fields := bytes.Fields(b) // run, waited, times
		if err != nil || len(fields) < 2 {
			continue // the thread has ended, or there are no such figures
		}
		ns, err := strconv.ParseInt(string(fields[1]), 10, 64)
		if err == nil {
			sum += ns
		}
	}
	return time.Duration(sum)
}
