package conformance

import (
	"context"
	"os"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/need"
)

// TestMain makes the test binary the hosts over stdio, too.
func TestMain(m *testing.M) {
	ServeIfAsked(append(Cases(), alone...))
	os.Exit(m.Run())
}

func TestCaseNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range append(Cases(), alone...) {
		require.False(t, seen[c.Name], c.Name)
		require.NotContains(t, c.Name, " ")
		seen[c.Name] = true
	}
}

// The table names every case of protocol.md §7 and of field-cases.md, Chain.
func TestEveryCaseIsThere(t *testing.T) {
	var names []string
	for _, c := range Cases() {
		names = append(names, c.Name)
	}
	all := strings.Join(names, " ") + " "
	for _, want := range strings.Fields(`C1_ C2_ C3_ C4_ C5_ C6_ C7_ C8_ C9_ C10_ C11_ C12_ C13_ C14_ C15_ C16_ C17_ C18_ C19_ C20_ C21_ C22_ C23_ C24_ C25_ C26_ C27_
		csharp_ redactor_and_guard_agree receiving_side_order server2_before_server1 mixed_hints same_name_two_hosts bad_hint_one_descriptor
		verdict_without_messages warn_with_error_message modified_without_payload all_verdicts_kept wrong_type_result slow_sink
		fail_open_and_deadline timeout_is_named`) {
		require.Contains(t, all, want)
	}
}

// TestDirect runs the table by the executor alone, with the lists in every
// arrangement.
func TestDirect(t *testing.T) {
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) {
			for name, arrange := range Arrangements {
				t.Run(name, func(t *testing.T) { c.Direct(t, arrange) })
			}
		})
	}
}

func TestOverStdio(t *testing.T)         { overAll(t, Stdio) }
func TestOverHTTP(t *testing.T)          { overAll(t, HTTP) }
func TestOverStatelessHTTP(t *testing.T) { overAll(t, StatelessHTTP) }

// atOnce is how many cases run at the same time. They wait most of the time.
const atOnce = 8

func overAll(t *testing.T, over Transport) {
	need.Short(t, "real processes and real time")
	t.Parallel() // with the other transports
	cases := make(chan Case)
	var all sync.WaitGroup
	for range atOnce {
		all.Go(func() {
			for c := range cases {
				t.Run(c.Name, func(t *testing.T) {
					leavesNothing(t, func() { c.Over(t, over) })
				})
			}
		})
	}
	for _, c := range Cases() {
		if c.InProcess == "" {
			cases <- c
		}
	}
	close(cases)
	all.Wait()
}

// leavesNothing fails the test when goroutines that began with test outlive it
// and its clean-ups. They are told from those of others by a label that
// goroutines inherit.
func leavesNothing(t *testing.T, test func()) {
	t.Helper()
	label := pprof.Labels("conformance", t.Name())
	t.Cleanup(func() {
		pprof.SetGoroutineLabels(context.Background())
		left := ""
		for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
			if left = labelled(t.Name()); left == "" {
				return
			}
		}
		t.Errorf("goroutines are left:\n%s", left)
	})
	pprof.SetGoroutineLabels(pprof.WithLabels(t.Context(), label))
	test()
}

// labelled gives the stacks of the goroutines that bear a label.
func labelled(value string) string {
	var b strings.Builder
	_ = pprof.Lookup("goroutine").WriteTo(&b, 1) // to memory
	var left []string
	for stack := range strings.SplitSeq(b.String(), "\n\n") {
		if strings.Contains(stack, `"conformance":"`+value+`"`) {
			left = append(left, stack)
		}
	}
	return strings.Join(left, "\n\n")
}
