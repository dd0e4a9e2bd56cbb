//go:build unix

package processgroup_test

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"time"

	"github.com/weir-mcp/weir/internal/processgroup"
)

// A shell that waits for a child of its own and heeds no end of its input: what
// it started ends with it, so that the pipe that both hold comes to its end.
func Example() {
	cmd := exec.Command("sh", "-c", "sleep 3600 & echo started; wait")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		panic(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		panic(err)
	}
	group, err := processgroup.Start(cmd, 0)
	if err != nil {
		panic(err)
	}
	lines := bufio.NewScanner(out)
	lines.Scan()
	fmt.Println(lines.Text())
	group.Stop(context.Background(), stdin.Close, 10*time.Millisecond, time.Minute)
	fmt.Println(group.Err())
	// Output:
	// started
	// signal: terminated
}
