package keeper

import (
	"context"
	"slices"
	"sync"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// Owner is the state of a lease that has a Record. It does not refer to the lease, which could not be
// collected then. Goroutines of the Keeper call its methods, and hold no lock.
type Owner interface {
	// Lost ends the contexts of the lease: others may soon take what it holds. It is called once, and is quick.
	Lost()
	// ReportLost is called once, after Lost. err is why the hold could not be extended, nil if there was no
	// time for an attempt.
	ReportLost(err error)
	// Collected ends a lease that its caller has dropped.
	Collected()
	// Closed ends the lease's contexts, as the Limiter is closed.
	Closed()
	// Close ends the lease as Keep does.
	Close(ctx context.Context)
}

// Record is what an open lease took, and what it holds of that. The zero Record is of a lease that took
// nothing yet.
type Record struct {
	// turn is held for each write of the lease: by More and by an extension until it has ended, by Settle,
	// Keep and Release until they have ended the lease. So no write is under way beside another one.
	turn  sync.Mutex
	spent bool // the lease has ended; guarded by turn, and by mu as well

	// slow is used instead of turn if the lease may hold something. While a goroutine waits for it, the time
	// of testing/synctest passes, which a Mutex would stop.
	slow chan struct{}

	mu        sync.Mutex  // never held while the store is at work; turn is taken first
	part      *store.Part // what was taken; writers hold turn too, and put another Part in its place
	due, over int64       // from when holds may be extended, and when the lease is lost, ms; or never
	doubt     int64       // when the first hold ends that is not extended any more, ms; 0 for none
	failure   error       // why an extension failed
	lost      bool

	owner Owner // set while a Keeper has the record; the Keeper's mu guards it
}

// Lock begins a write of the lease. It waits for the one under way.
func (r *Record) Lock() { _ = r.LockFor(context.Background()) }

// LockFor is Lock. It fails with ctx's error if that ends while an extension may be under way.
func (r *Record) LockFor(ctx context.Context) error {
	if r.slow == nil {
		r.turn.Lock()
		return nil
	}
	select {
	case r.slow <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// try is Lock that does not wait. It fails if the lease has ended, too.
func (r *Record) try() bool {
	select {
	case r.slow <- struct{}{}:
	default:
		return false
	}
	if r.spent {
		r.Unlock()
		return false
	}
	return true
}

// Unlock ends a write of the lease.
func (r *Record) Unlock() {
	if r.slow == nil {
		r.turn.Unlock()
	} else {
		<-r.slow
	}
}

// Spent reports whether the lease has ended. The caller has locked r.
func (r *Record) Spent() bool { return r.spent }

// Spend ends the lease. The caller has locked r, and the lease has not ended before.
func (r *Record) Spend() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spent = true
	r.due, r.over = never, never
}

// Part returns what the lease took. Nobody changes it.
func (r *Record) Part() *store.Part {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.part
}

// Begin sets what the lease took, before it is shared. holder says that the lease may hold something.
func (r *Record) Begin(part *store.Part, holder bool) {
	if holder {
		r.slow = make(chan struct{}, 1)
	}
	r.set(part)
}

// Set replaces what the lease took. The caller has locked r.
func (r *Record) Set(part *store.Part) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.set(part)
}

// IsLost reports whether the lease is lost.
func (r *Record) IsLost() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost
}

// Over reports whether the lease is lost at now, in ms, also if the Keeper has not noticed yet, or has not
// ended its contexts yet.
func (r *Record) Over(now int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost || r.over <= now
}

// set is Set. The caller holds mu, or is alone with r.
func (r *Record) set(part *store.Part) {
	r.part, r.due, r.over = part, never, never
	if r.doubt != 0 {
		r.over = r.doubt - margin
	}
	for c := range charges(part) {
		for i := range c.Cost {
			if end, live := ends(c, i); live {
				r.due, r.over = min(r.due, end-half), min(r.over, end-margin)
			}
		}
	}
	if r.doubt != 0 || r.lost { // it is of no use to extend the other holds of a lease that is lost
		r.due = never
	}
	if r.lost {
		r.over = never
	}
}

// lose makes the lease lost, and ends its contexts. It reports false if the lease has ended.
func (r *Record) lose() bool {
	r.mu.Lock()
	ended := r.spent
	if !ended {
		r.lost = true
		r.set(r.part)
	}
	r.mu.Unlock()
	if !ended {
		r.owner.Lost()
	}
	return !ended
}

// why returns the error for which the lease's holds were not extended, if there was one.
func (r *Record) why() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failure
}

// times returns when holds may be extended, and when they are lost, in ms.
func (r *Record) times() (due, over int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.due, r.over
}

// extended notes the epochs of those holds of a charge that were due at now, by limit, after an extension
// that ended with err. epochs is nil if they are not known.
func (r *Record) extended(at place, now int64, epochs []int64, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	part := *r.part
	part.Buckets = slices.Clone(part.Buckets)
	b := &part.Buckets[at.bucket]
	b.Charges = slices.Clone(b.Charges)
	c := &b.Charges[at.index]
	own := slices.Clone(c.Epochs)
	for i := range c.Cost {
		if !isDue(c, i, now) {
			continue
		}
		end, _ := ends(c, i)
		if own[i] = bucket.Lost; i < len(epochs) {
			own[i] = epochs[i]
		}
		if own[i] == bucket.Lost && (r.doubt == 0 || end < r.doubt) {
			r.doubt = end
		}
	}
	if c.Epochs = own; err != nil || r.doubt == 0 {
		r.failure = err
	}
	r.set(&part)
}

// place is where a charge is in a Part.
type place struct{ bucket, index int }

// charges yields all charges of part, and their places.
func charges(part *store.Part) func(yield func(*bucket.Charge, place) bool) {
	return func(yield func(*bucket.Charge, place) bool) {
		for i := range part.Buckets {
			for j := range part.Buckets[i].Charges {
				if !yield(&part.Buckets[i].Charges[j], place{i, j}) {
					return
				}
			}
		}
	}
}

// Holds reports whether the end of part's lease has anything to write: holds to give back, or reservations to
// charge whose holds are lost.
func Holds(part *store.Part) bool {
	for c := range charges(part) {
		for i, n := range c.Cost {
			if n <= 0 || i >= len(c.Epochs) || c.Epochs[i] == 0 {
				continue
			}
			if c.Epochs[i] != bucket.Lost || !part.Def.Spec().InFlight(i) {
				return true
			}
		}
	}
	return false
}

// ends returns when the hold of c on the i-th limit is over, in ms. live is false if there is none.
func ends(c *bucket.Charge, i int) (at int64, live bool) {
	if i >= len(c.Epochs) || c.Cost[i] <= 0 || c.Epochs[i] <= 0 {
		return 0, false
	}
	return bucket.EpochEnd(c.Epochs[i]), true
}

// isDue reports whether the hold of c on the i-th limit may be extended at now, in ms.
func isDue(c *bucket.Charge, i int, now int64) bool {
	end, live := ends(c, i)
	return live && end-half <= now
}
