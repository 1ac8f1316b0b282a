package override

import (
	"fmt"
	"strings"

	"github.com/sluice-go/sluice/cmd/sluice/internal/bucketstore"
	"github.com/sluice-go/sluice/cmd/sluice/internal/format"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"

	"github.com/sluice-go/sluice/runtime/store"
)

// toRegions says what a write means if regions divide the limits, and else returns an empty string.
func (o overrides) toRegions(before, after store.Stored) string {
	switch {
	case o.Spec.Regions == nil:
		return ""
	case !strings.Contains(o.At, "-"):
		return fmt.Sprintf("an override of a kind is for all regions together: set it in the table of each, %s\n",
			strings.Join(o.Spec.Regions.Names, ", "))
	case !after.Overrides():
		return "regional sync manages its quota again from one of its next cycles; until then the region has " +
			"what every region keeps\n"
	case before.Epoch > 0:
		return fmt.Sprintf("it replaces the quota that regional sync managed, for this region only, and comes "+
			"on top of what regions divide: `sluice override delete %s %s` returns it to sync\n", term.Argument(o.At),
			o.Spec.Resource)
	}
	return fmt.Sprintf("it is for this region only, on top of what regions divide; regional sync does not "+
		"change it: `sluice override delete %s %s` returns it to sync\n",
		term.Argument(o.At), o.Spec.Resource)
}

// takenUp says when processes use a change. If regions divide the limits, caches last for a window at most.
func (o overrides) takenUp() string {
	if o.Spec.Regions == nil || o.Spec.Regions.Window >= store.DefaultCacheTTL {
		return bucketstore.TakenUp()
	}
	return fmt.Sprintf("running processes use it within a window of regional sync, %s",
		format.Span(o.Spec.Regions.Window))
}

// by returns the writer of an override of a resource whose limits regions divide.
func by(s store.Stored) string {
	if s.Epoch > 0 {
		return fmt.Sprintf("sync, epoch %d", s.Epoch)
	}
	return "operator"
}

// managed describes a stored quota. It returns an empty string for an operator's override.
func managed(s store.Stored) string {
	if s.Epoch == 0 {
		return ""
	}
	return fmt.Sprintf(", a quota that regional sync manages, of epoch %d: set replaces it, delete changes "+
		"nothing", s.Epoch)
}

// sync describes the state of regional sync for the scope.
func (o overrides) sync(stored []store.Stored) string {
	if o.Spec.Regions == nil {
		return ""
	}
	sync := "regional sync"
	if o.beat.Region != "" {
		sync += " for " + o.beat.Region
	}
	own := stored[0]
	switch {
	case own.Overrides() && own.Epoch == 0:
		return fmt.Sprintf(": an operator's override is for this region only, and %s does not change it; "+
			"`sluice override delete %s %s` returns it to sync", sync, term.Argument(o.At), o.Spec.Resource)
	case own.Overrides() && !o.beat.Alive(o.now):
		return fmt.Sprintf(": its quota is managed by %s, but is not in force, since the heartbeat is not alive",
			sync)
	case !o.beat.Alive(o.now):
		return fmt.Sprintf(": no heartbeat of %s is alive, so no quota is in force", sync)
	case !own.Overrides():
		return fmt.Sprintf(": %s, in epoch %d, has stored no quota", sync, o.beat.Epoch)
	case !o.beat.Holds(own, o.now):
		return fmt.Sprintf(": its quota is managed by %s, of epoch %d, and not in force in epoch %d", sync,
			own.Epoch, o.beat.Epoch)
	}
	return fmt.Sprintf(": its quota is managed by %s, in epoch %d", sync, o.beat.Epoch)
}
