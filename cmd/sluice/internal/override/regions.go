package override

import (
	"fmt"
	"strings"

	"github.com/sluice-go/sluice/cmd/sluice/internal/bucketstore"
	"github.com/sluice-go/sluice/cmd/sluice/internal/format"

	"github.com/sluice-go/sluice/runtime/store"
)

// toRegions says what a write means where regions share the limits out, and else nothing.
func (o overrides) toRegions(before, after store.Stored) string {
	switch {
	case o.Spec.Regions == nil:
		return ""
	case !strings.Contains(o.At, "-"):
		return fmt.Sprintf("what a kind has is for all regions together: do the same in the table of each, %s\n", strings.Join(o.Spec.Regions.Names, ", "))
	case !after.Overrides():
		return "regional sync manages its share again, in one of its next cycles; until then it is what every region keeps\n"
	case before.Epoch > 0:
		return fmt.Sprintf("it takes the place of the share that regional sync managed, and is for this region alone, on top of what regions share out: "+
			"`sluice override delete %s %s` gives it back to sync\n", o.At, o.Spec.Resource)
	}
	return fmt.Sprintf("it is for this region alone, on top of what regions share out; regional sync leaves it: `sluice override delete %s %s` gives it back to sync\n",
		o.At, o.Spec.Resource)
}

// takenUp is takenUp of o: where regions share the limits out, nobody remembers them for longer than a window.
func (o overrides) takenUp() string {
	if o.Spec.Regions == nil || o.Spec.Regions.Window >= store.DefaultCacheTTL {
		return bucketstore.TakenUp()
	}
	return fmt.Sprintf("running processes take it up within a window of regional sync, %s", format.Span(o.Spec.Regions.Window))
}

// by says who has stored s, of a resource that regions share.
func by(s store.Stored) string {
	if s.Epoch > 0 {
		return fmt.Sprintf("sync, epoch %d", s.Epoch)
	}
	return "operator"
}

// managed is the end of a line that says what is stored: nothing for an operator's.
func managed(s store.Stored) string {
	if s.Epoch == 0 {
		return ""
	}
	return fmt.Sprintf(", a share that regional sync manages, of epoch %d: set takes its place, delete changes nothing", s.Epoch)
}

// sync says how regional sync stands, where it has to do with o.
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
		return fmt.Sprintf(": what an operator has set is for this region alone, and %s leaves it; `sluice override delete %s %s` gives it back to sync", sync, o.At, o.Spec.Resource)
	case own.Overrides() && !o.beat.Alive(o.now):
		return fmt.Sprintf(": its share is managed by %s, whose heartbeat is not alive, so that the share is not in force", sync)
	case !o.beat.Alive(o.now):
		return fmt.Sprintf(": no heartbeat of %s is alive, so no share is in force", sync)
	case !own.Overrides():
		return fmt.Sprintf(": %s, in epoch %d, has stored no share", sync, o.beat.Epoch)
	case !o.beat.Holds(own, o.now):
		return fmt.Sprintf(": its share is managed by %s, of epoch %d, and not in force under epoch %d", sync, own.Epoch, o.beat.Epoch)
	}
	return fmt.Sprintf(": its share is managed by %s, in epoch %d", sync, o.beat.Epoch)
}
