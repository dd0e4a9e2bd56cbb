package processgroup

import (
	"os/exec"
	"syscall"
	"unsafe"
)

// awaitExit waits until the command has ended and leaves it to be reaped. It is
// false where that cannot be known.
func awaitExit(cmd *exec.Cmd) bool {
	const (
		pPID    = 1    // P_PID
		wExited = 0x04 // WEXITED
		wNoWait = 0x20 // WNOWAIT
	)
	var info [128]byte // siginfo_t has 104; nothing of it is read
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, pPID, uintptr(cmd.Process.Pid), uintptr(unsafe.Pointer(&info)), wExited|wNoWait, 0, 0)
		if errno != syscall.EINTR {
			return errno == 0
		}
	}
}
