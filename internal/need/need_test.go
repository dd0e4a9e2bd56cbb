package need_test

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/need"
)

// A test asks for what it needs and uses what it gets.
func TestCommandIsOneThatRuns(t *testing.T) {
	path := need.Command(t, "go", "install Go")
	require.NoError(t, exec.Command(path, "version").Run())
}

func TestMissingIsASkipHereAndAFailureInCI(t *testing.T) {
	for ci, want := range map[string]recorder{"": {skipped: true}, "1": {failed: true}} {
		t.Setenv("WEIR_CI", ci)
		var got recorder
		func() {
			defer func() { _ = recover() }()
			need.Command(&got, "no-such-program-anywhere", "get it there")
		}()
		require.Equal(t, want, got, "WEIR_CI=%q", ci)
	}
}

// recorder stands in for a test that must be skipped, or fail.
type recorder struct {
	testing.TB
	failed, skipped bool
}

func (r *recorder) Helper() {}
func (r *recorder) Fatalf(string, ...any) {
	r.failed = true
	panic("the end of the test")
}

func (r *recorder) Skipf(string, ...any) {
	r.skipped = true
	panic("the end of the test")
}
