package dynamolocal

import "syscall"

// dieWithParent has the kernel kill the engine when this process ends in whatever way: a panic, a test time-out, SIGKILL.
// The engine gets a process group of its own, so that Ctrl-C reaches only this process, which can then finish its work
// on the engine before it stops it.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
