//go:build !linux

package child

import "syscall"

// dieWithParent has nothing to set here: only Linux ties a child's life to its parent's. The child stays in
// this process's group, so Ctrl-C ends it as well; after a kill of this process alone it has to be ended by
// hand.
func dieWithParent() *syscall.SysProcAttr { return nil }
