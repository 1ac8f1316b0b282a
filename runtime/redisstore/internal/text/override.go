package text

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// Override decodes what a hash has at an entity, a kind or a plan. The hash may be empty. Override skips
// limits that spec does not know, those of another binary.
func Override(spec *store.Spec, at string, hash map[string]string) (store.Stored, error) {
	stored := store.Stored{At: at, Limits: make([]*bucket.Limit, len(spec.Limits))}
	if len(hash) == 0 {
		return stored, nil
	}
	stored.Revision = store.Revision(hash["ver"])
	_, err := strconv.ParseInt(hash["ver"], 10, 64)
	fields := LimitFields(at)
	for i, name := range spec.Limits {
		if limit, ok := hash[fields+name]; ok && err == nil {
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

// Plans returns where the hash of all plans has limits, sorted: pro.key. These may be of plans, kinds and
// limits of another binary.
func Plans(hash map[string]string) (places []string) {
	for field := range hash {
		if rest, ok := strings.CutPrefix(field, LimitFields("")); ok {
			if last := strings.LastIndex(rest, store.PlanAt("", "")); last >= 0 {
				places = append(places, rest[:last])
			}
		}
	}
	slices.Sort(places)
	return slices.Compact(places)
}
