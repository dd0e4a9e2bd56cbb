//go:build !unix

package processgroup

import "os/exec"

// own does nothing: there are no process groups here.
func own(*exec.Cmd) {}

// terminate kills the command: there is no way to ask.
func terminate(cmd *exec.Cmd) { kill(cmd) }

// kill ends the command. The handle that it goes by is never a stranger's.
func kill(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
