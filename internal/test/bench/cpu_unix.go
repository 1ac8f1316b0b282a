//go:build unix

package main

import (
	"syscall"
	"time"
)

// cpuTime returns what this process has used of all CPUs so far.
func cpuTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
