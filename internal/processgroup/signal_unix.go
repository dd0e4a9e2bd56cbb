//go:build unix

package processgroup

import (
	"os/exec"
	"syscall"
)

// own puts a command that has not been started into a process group of its own.
func own(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
}

// tree is nothing of its own: the group's number is the command's.
type tree struct{}

func adopt(*exec.Cmd) tree { return tree{} }

// terminate asks the group to end.
func (tree) terminate(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

// kill ends the group, what the command left behind when it ended included.
func (tree) kill(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

func (tree) close() {}
