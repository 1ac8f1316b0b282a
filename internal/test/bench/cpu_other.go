//go:build !unix

package main

import "time"

var started = time.Now()

// cpuTime returns how long this process has run: where its CPU time cannot be told, its time has to do.
func cpuTime() time.Duration { return time.Since(started) }
