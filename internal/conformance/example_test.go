package conformance_test

import (
	"fmt"

	"github.com/weir-mcp/weir/internal/conformance"
)

// A case says what must come of it in a few words; [conformance.Case.Direct] and
// [conformance.Case.Over] hold the chain against them.
func Example() {
	for _, c := range conformance.Protocol() {
		if c.Name == "C10_second_of_three_mutators_fails" {
			fmt.Println(c.Status, "by", c.Aborted)
			fmt.Println("effects:", c.Effects)
			fmt.Println("calls:", c.Calls)
		}
	}
	// Output:
	// mutation_failed by b:trap
	// effects: a=discarded b=blocked
	// calls: h/a h/b
}
