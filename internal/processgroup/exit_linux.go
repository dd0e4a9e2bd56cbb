package processgroup

import (
	"os/exec"

	"golang.org/x/sys/unix"
)

// awaitExit waits until the command has ended and leaves it to be reaped. It is
// false where that cannot be known.
func awaitExit(cmd *exec.Cmd) bool {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return err == nil
		}
	}
}
