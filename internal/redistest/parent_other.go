//go:build !linux

package redistest

import "syscall"

// dieWithParent has nothing to set here: only Linux ties a child's life to its parent's.
func dieWithParent() *syscall.SysProcAttr { return nil }
