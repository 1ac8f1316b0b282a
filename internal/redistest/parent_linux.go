package redistest

import "syscall"

// dieWithParent has the kernel kill the server when this process ends in whatever way: a panic, a test time-out, SIGKILL.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
