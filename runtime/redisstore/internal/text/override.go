package text

import (
	"fmt"
	"strconv"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// Override decodes the hash of an override, which may be empty. It skips limits that spec does not know,
// those of another binary.
func Override(spec *store.Spec, at string, hash map[string]string) (store.Stored, error) {
	stored := store.Stored{At: at, Limits: make([]*bucket.Limit, len(spec.Limits))}
	if len(hash) == 0 {
		return stored, nil
	}
	stored.Revision = store.Revision(hash["ver"])
	_, err := strconv.ParseInt(hash["ver"], 10, 64)
	for i, name := range spec.Limits {
		if limit, ok := hash[LimitField(name)]; ok && err == nil {
			stored.Limits[i], err = ParseLimit(spec, i, limit)
		}
		l := stored.Limits[i]
		if err == nil && l != nil && (l.Windowed() != spec.Windowed(i) || l.InFlight() != spec.InFlight(i)) {
			err = fmt.Errorf("limit %s: %v: in limits.yaml, it is another of a window, a refill and in flight",
				name, l)
		}
	}
	return stored, err
}
