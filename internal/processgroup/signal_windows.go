package processgroup

import (
	"os/exec"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// own keeps a Ctrl-C on the console from a command that has not been started.
func own(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.CreationFlags |= windows.CREATE_NEW_PROCESS_GROUP
}

// tree is the job that the command and all that it starts belong to, 0 where the
// system gave none: the command ends alone then.
type tree struct{ job windows.Handle }

// adopt puts a command that was just started into a job that ends with its
// handle, and so with this process at the latest. What the command manages to
// start before, which is hardly anything, is not in it.
func adopt(cmd *exec.Cmd) tree {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return tree{}
	}
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{}
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err == nil {
		if failed := cmd.Process.WithHandle(func(process uintptr) {
			err = windows.AssignProcessToJobObject(job, windows.Handle(process))
		}); failed != nil {
			err = failed
		}
	}
	if err != nil {
		_ = windows.CloseHandle(job)
		return tree{}
	}
	return tree{job}
}

// terminate kills: there is no way to ask that every command knows.
func (t tree) terminate(cmd *exec.Cmd) { t.kill(cmd) }

// kill ends the command, and what it started. The handles that they go by are
// never a stranger's.
func (t tree) kill(cmd *exec.Cmd) {
	if t.job != 0 {
		_ = windows.TerminateJobObject(t.job, 1)
	}
	_ = cmd.Process.Kill()
}

// close gives the job back.
func (t tree) close() {
	if t.job != 0 {
		_ = windows.CloseHandle(t.job)
	}
}
