//go:build !unix && !windows

package processgroup

import "os/exec"

// own does nothing: there are no process groups here.
func own(*exec.Cmd) {}

// tree is nothing: the command ends alone.
type tree struct{}

func adopt(*exec.Cmd) tree { return tree{} }

// terminate kills the command: there is no way to ask.
func (t tree) terminate(cmd *exec.Cmd) { t.kill(cmd) }

// kill ends the command. The handle that it goes by is never a stranger's.
func (tree) kill(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

func (tree) close() {}
