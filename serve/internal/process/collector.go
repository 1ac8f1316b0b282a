package process

import (
	"errors"
	"math"
	"os"
	"runtime"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// Between two garbage collections a quarter of the memory is allocated at least, but mostSpacing is enough.
const (
	spacingPart    = 4
	mostSpacing    = 256 << 20
	unknownSpacing = 64 << 20 // of a system that does not tell its memory
)

// SpaceCollections keeps garbage collections apart until end is called. With few open leases the heap has a
// few megabytes, so Go would collect ten times a second under load. Calls that are under way then take
// milliseconds longer. Memory that is allocated and never touched makes Go wait, and takes no memory of the
// machine. It does nothing if GOGC or GOMEMLIMIT is set: the operator has decided.
func SpaceCollections() (end func()) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	ballast := make([]byte, spacing(memlimit.FromCgroup, memlimit.FromSystem))
	return func() { runtime.KeepAlive(ballast) }
}

// spacing returns how many bytes to allocate between two collections, by the limit of the container and the
// memory of the machine. A limit that cannot be read may be small.
func spacing(container, machine memlimit.Provider) uint64 {
	limit, err := container()
	if errors.Is(err, memlimit.ErrNoLimit) || errors.Is(err, memlimit.ErrCgroupsNotSupported) {
		limit, err = math.MaxUint64, nil
	}
	total, unknown := machine()
	if err != nil || unknown != nil {
		return unknownSpacing
	}
	return min(limit/spacingPart, total/spacingPart, mostSpacing)
}
