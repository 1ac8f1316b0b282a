package child

import "syscall"

// dieWithParent has the kernel kill the child when this process ends in whatever way: a panic, a test
// time-out, SIGKILL. It gets a process group of its own, so that Ctrl-C reaches only this process, which can
// then finish its work with it before it stops it.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
