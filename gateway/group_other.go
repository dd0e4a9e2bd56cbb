//go:build !unix

package gateway

import "os/exec"

// ownGroup does nothing: there are no process groups to kill here.
func ownGroup(*exec.Cmd) {}

func terminateGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
