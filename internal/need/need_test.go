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
	t.Setenv("WEIR_CI", "")
	var skipped bool
	t.Run("here", func(t *testing.T) {
		defer func() { skipped = t.Skipped() }()
		need.Command(t, "no-such-program-anywhere", "this is what the test is about")
	})
	require.True(t, skipped)

	t.Setenv("WEIR_CI", "1")
	var ci recorder
	func() {
		defer func() { _ = recover() }()
		need.Command(&ci, "no-such-program-anywhere", "get it there")
	}()
	require.True(t, ci.failed)
}

// recorder stands in for a test that must fail.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Helper() {}
func (r *recorder) Fatalf(string, ...any) {
	r.failed = true
	panic("the end of the test")
}
