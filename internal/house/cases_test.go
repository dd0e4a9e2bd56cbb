package house

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fieldCases are the cases that users and reviewers of neighbouring systems have
// reported, by the names that their tests bear.
var fieldCases = map[string]string{
	"chain": `redactor_and_guard_agree receiving_side_order server2_before_server1 mixed_hints same_name_two_hosts
		bad_hint_one_descriptor verdict_without_messages warn_with_error_message modified_without_payload all_verdicts_kept
		wrong_type_result slow_sink fail_open_and_deadline timeout_is_named host_recovers page_two first_caller_leaves`,
	"gateway": `deleted_field_stays_deleted untouched_means_untouched duplicate_keys subscribe_mutation two_sessions_notified
		cancelled_call progress_and_sampling dead_backend stale_length long_stream list_is_governed smuggled_lines reused_id
		unknown_response task_result embedded_request big_body orphans`,
	"sandbox": `loop_free_bomb tight_loop big_fill deep_recursion exit_zero stuck_allocator secret_left_behind grew_during_call
		lying_output half_copied_file hundred_at_once poisoned_payload same_module_twice`,
}

// Each case from the field is found by its name among the tests.
func TestFieldCases(t *testing.T) {
	var tests strings.Builder
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Base(path) == "cases_test.go" && filepath.Base(filepath.Dir(path)) == "house" {
			return err
		}
		// The conformance table is a package, for tests in other modules.
		if !strings.HasSuffix(path, "_test.go") && filepath.Base(filepath.Dir(path)) != "conformance" {
			return nil
		}
		source, err := os.ReadFile(path)
		tests.Write(source)
		return err
	}))
	for area, names := range fieldCases {
		for _, name := range strings.Fields(names) {
			require.True(t, strings.Contains(tests.String(), name), "no test bears the name of the case %s of %s", name, area)
		}
	}
}
