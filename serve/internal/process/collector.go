package process

import (
	"os"
	"runtime"
)

// spacing is how many bytes are allocated between two garbage collections, at least.
const spacing = 64 << 20

// SpaceCollections keeps garbage collections apart until end is called. With few open leases the heap has a
// few megabytes, so Go would collect ten times a second under load. Calls that are under way then take
// milliseconds longer. Memory that is allocated and never touched makes Go wait, and takes no memory of the
// machine. It does nothing if GOGC or GOMEMLIMIT is set: the operator has decided.
func SpaceCollections() (end func()) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	ballast := make([]byte, spacing)
	return func() { runtime.KeepAlive(ballast) }
}
