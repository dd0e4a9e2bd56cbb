package chain

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"testing"
	"time"
)

// TestMain fails the run when a goroutine outlives it. Most tests run in a
// synctest bubble as well, which none of their goroutines may outlive.
func TestMain(m *testing.M) {
	before := runtime.NumGoroutine()
	code := m.Run()
	if f := flag.Lookup("test.fuzz"); f != nil && f.Value.String() != "" {
		os.Exit(code) // fuzzing keeps a goroutine of its own
	}
	// Nothing tells when a goroutine has ended; one that is there after a minute
	// is left.
	for deadline := time.Now().Add(time.Minute); runtime.NumGoroutine() > before && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	if n := runtime.NumGoroutine(); code == 0 && n > before {
		fmt.Fprintf(os.Stderr, "%d goroutines are left over\n", n-before)
		_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
		code = 1
	}
	os.Exit(code)
}
