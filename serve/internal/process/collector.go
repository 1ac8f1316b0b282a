package process

import (
	"os"
	"runtime"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// What is allocated between two garbage collections, at least: a quarter of the memory, up to mostSpacing.
const (
	spacingShare   = 4
	mostSpacing    = 256 << 20
	unknownSpacing = 64 << 20 // of a system that does not tell its memory
)

// SpaceCollections keeps garbage collections apart until end is called. The heap of a server has a few
// megabytes, so Go would collect ten times a second under load. Calls that are under way then take
// milliseconds longer. Memory that is allocated and never touched makes Go wait, and takes no memory of the
// machine. It does nothing if GOGC or GOMEMLIMIT is set: the operator has decided.
func SpaceCollections() (end func()) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	ballast := make([]byte, spacing(memlimit.ApplyFallback(memlimit.FromCgroup, memlimit.FromSystem)))
	return func() { runtime.KeepAlive(ballast) }
}

// spacing returns how many bytes to allocate between two collections of a process with so much memory.
func spacing(memory memlimit.Provider) uint64 {
	n, err := memory()
	if err != nil {
		return unknownSpacing
	}
	return min(n/spacingShare, mostSpacing)
}
