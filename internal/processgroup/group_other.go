//go:build !unix

package processgroup

import "os/exec"

// Own does nothing: there are no process groups to kill here.
func Own(*exec.Cmd) {}

// Terminate kills the command: there is no way to ask.
func Terminate(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

// Kill kills the command.
func Kill(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
