package dynamo

import (
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/override"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
)

// leg is one bucket of a charge.
type leg struct {
	*resource
	plan.Demand

	shape    *override.Resolved
	settling bool // nobody acquires
	served   int  // whose wants these are

	entity string // as stored
	kind   int
	memory *memory
	view   plan.State
	seen   int64 // when view.img was the truth
	read   bool  // view.img was read for the next try

	lacks    lack
	withKind bool // its kind's overrides are read with its own
	withBeat bool // the heartbeat is
	unsure   bool // what was read of it goes by a newer heartbeat than is remembered
	resolved bool // its overrides were read for this write
	surveyed bool // it has no per-limit items that count

	vectors plan.VectorPool // what plan is made of
	plan    plan.Plan
	passed  bool  // the condition of plan held, in a transaction that failed elsewhere
	sent    *sent // the last that may have been applied
}

// sent is a write of unknown outcome.
type sent struct {
	plan plan.Plan
	take []int64 // by acquires
}

func (l *leg) board(sh *share) {
	l.resource, l.entity, l.kind, l.memory = sh.resource, sh.entity, sh.kind, sh.memory
	l.view.Image, l.seen, l.shape = sh.memory.known()
	l.view.Confirmed = sh.truth && l.view.Image == nil
}

// learn makes img, nil for a missing bucket, what is known: the truth as it was at seen, or predicted.
func (l *leg) learn(img *bucket.Image, seen int64) {
	l.view.Image, l.view.Confirmed, l.seen, l.read = img, seen != predicted, seen, false
	l.memory.learn(img, seen)
}

// current is the view of the bucket as of now. An image from before a write of unknown outcome decides nothing.
func (l *leg) current(now int64) plan.State {
	v := l.view
	v.Confirmed = v.Confirmed || v.Image != nil && l.sent == nil && trustworthy(l.seen, now, trusted)
	v.LeaveSlack = l.memory.yields(now)
	return v
}
