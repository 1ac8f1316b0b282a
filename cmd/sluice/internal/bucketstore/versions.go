package bucketstore

import (
	"strconv"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// Versions returns the sum of the overrides' versions. A bucket's Version contains this sum, unless regions
// divide its limits.
func Versions(overrides []store.Stored) (sum int64) {
	for _, l := range overrides {
		sum = bucket.Add(sum, Version(l))
	}
	return sum
}

// Version returns the version of an override, 0 for none.
func Version(l store.Stored) int64 {
	ver, _ := strconv.ParseInt(string(l.Revision), 10, 64) // 0 for none
	return ver
}
