package bucketstore

import (
	"strconv"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// versions adds up the versions of levels, as a bucket's Version has them where no regions share its limits.
func Versions(levels []store.Stored) (sum int64) {
	for _, l := range levels {
		sum = bucket.Add(sum, Version(l))
	}
	return sum
}

func Version(l store.Stored) int64 {
	ver, _ := strconv.ParseInt(string(l.Revision), 10, 64) // 0 for none
	return ver
}
