//go:build unix

package processgroup

import (
	"os/exec"
	"syscall"
)

// Own puts a command that has not been started into a process group of its own.
func Own(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// Terminate sends SIGTERM to the group of a command that was started.
func Terminate(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

// Kill sends SIGKILL to the group of a command that was started. It also reaches
// what the command left behind when it ended.
func Kill(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
