// Package processgroup runs a command in a process group of its own, so that
// what the command starts ends with it and a Ctrl-C on the terminal reaches
// only weir, which drains first. The gateway's backend and the interceptor
// servers that it runs as commands use it:
//
//	cmd := exec.Command(name, args...)
//	stdin, err := cmd.StdinPipe()
//	group, err := processgroup.Start(cmd, time.Second)
//	...
//	group.Stop(ctx, stdin.Close, leave, patience) // EOF, SIGTERM, SIGKILL
//
// The group's number is the command's process id, and an id that was reaped may
// be a stranger's a moment later. So a group is signalled only while the command
// has not been reaped: [Group] first learns that the command has ended, kills
// what it left behind, and reaps it then (waitid with WNOWAIT, on Linux and
// macOS). Other Unix systems reap first and kill at once. On Windows the group is
// a job, which ends with weir at the latest, however that ends; a command cannot
// be asked to go there but by the end of its input. Where there is neither, the
// command ends alone.
//
// Nothing here reports that a group is gone already: that is what the caller
// wanted. It imports nothing of ours; all of it is safe for concurrent use.
package processgroup
