package waitlist

import (
	"slices"
	"time"

	"github.com/sluice-go/sluice/runtime/store"
)

// AtLeast returns how long denied, by limits of spec, lasts at least. A slot may be free at any moment,
// whatever the hint.
func AtLeast(spec *store.Spec, denied *store.DeniedError) (wait time.Duration) {
	if spec.Held == nil {
		return denied.RetryAfter
	}
	for _, one := range denied.Refusals {
		if i := slices.Index(spec.Limits, one.Limit); i < 0 || !spec.InFlight(i) {
			wait = max(wait, one.RetryAfter)
		}
	}
	return wait
}
