package buildcost

import (
	"os"
	"syscall"
)

// peak returns the most memory, in bytes, that a process or one of its children had: here, the compiler.
func peak(of *os.ProcessState) float64 {
	used, ok := of.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	return float64(used.Maxrss) * 1024
}
