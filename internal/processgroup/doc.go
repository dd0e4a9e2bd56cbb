// Package processgroup runs a command in a process group of its own, so that
// what the command starts ends with it and a Ctrl-C on the terminal reaches
// only weir, which drains first. The gateway's backend and the interceptor
// servers that it runs as commands use it:
//
//	cmd := exec.Command(name, args...)
//	processgroup.Own(cmd) // before Start
//	err := cmd.Start()
//	...
//	processgroup.Terminate(cmd) // asks
//	processgroup.Kill(cmd)      // does not ask
//
// Where the system has no process groups, which is on Windows, both end the
// command alone. Neither reports an error: a group that is gone already is what
// the caller wanted. It imports nothing of ours and keeps no state; the
// functions may be called from several goroutines once the command has started.
package processgroup
