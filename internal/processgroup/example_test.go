//go:build unix

package processgroup_test

import (
	"bufio"
	"fmt"
	"os/exec"

	"github.com/weir-mcp/weir/internal/processgroup"
)

// A shell that waits for a child of its own: killing the group ends both, so
// that the pipe that both hold comes to its end.
func Example() {
	cmd := exec.Command("sh", "-c", "sleep 3600 & echo started; wait")
	processgroup.Own(cmd)
	out, err := cmd.StdoutPipe()
	if err != nil {
		panic(err)
	}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	lines := bufio.NewScanner(out)
	lines.Scan()
	fmt.Println(lines.Text())
	processgroup.Kill(cmd)
	fmt.Println("more:", lines.Scan())
	fmt.Println(cmd.Wait())
	// Output:
	// started
	// more: false
	// signal: killed
}
