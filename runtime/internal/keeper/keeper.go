// Package keeper extends what the open leases of a Limiter hold, for as long as their calls take
// (docs/design.md, "Holds").
//
// A hold is over at the end of its epoch. In the second half of that epoch the Keeper moves it to the next
// one: one write for all that the process holds of a bucket. If that write was certainly not applied, it
// tries again. A hold that could not be extended is lost three seconds before its end, by the store's clock
// as far as replies have shown it.
//
// The Keeper refers to records of leases, not to leases. So a lease that its caller drops is collected, and
// the Keeper ends it.
package keeper

import (
	"context"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

const (
	half   = bucket.EpochLength / 2 // of an epoch, in which its holds are extended, ms
	margin = 3_000                  // before the end of a hold, at which its lease is lost, ms
	never  = math.MaxInt64 / 2      // an instant after all others, to which a delay can be added, ms

	// spread is how long after the half of an epoch a Keeper may begin, in ms. Several processes that wrote
	// to a bucket at the same instant would refuse each other.
	spread = 10_000

	// poll is the longest pause of the goroutine. Collected does not wake the goroutine, since cleanups run
	// outside of all bubbles of testing/synctest.
	poll = 5 * time.Second
	// again is the pause before another attempt to extend a lease that was locked by another write.
	again = time.Second
	// most is how many leases or groups are written at the same time, by each call of atOnce.
	most = 32
)

// Keeper has the records of a Limiter's leases that hold something. It is safe for concurrent use.
type Keeper struct {
	env   *store.Env
	store Store
	delay int64 // after the half of an epoch, ms

	writes sync.WaitGroup // goroutines that write

	mu        sync.Mutex
	records   map[*Record]struct{}
	collected []*Record
	wake      chan struct{} // wakes the goroutine, and ends it if it is closed; nil if there is none
	next      int64         // when the goroutine wakes by itself, ms
	began     bool          // a goroutine was started
	closed    bool
}

// Store is what a Keeper needs of a store.Session.
type Store interface {
	Extend(ctx context.Context, call *store.Call) error
	Now(reading time.Time) int64
}

// New returns a Keeper without records, which extends what a store holds.
func New(env *store.Env, s Store) *Keeper {
	return &Keeper{env: env, store: s, delay: rand.Int64N(spread), records: map[*Record]struct{}{}}
}

// Add has k extend what r holds, until it is removed. ok is false if k was closed.
func (k *Keeper) Add(r *Record, owner Owner) (ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return false
	}
	r.owner = owner
	k.records[r] = struct{}{}
	due, _ := r.times()
	switch {
	case k.wake == nil:
		k.wake, k.next, k.began = make(chan struct{}, 1), 0, true
		go k.run(k.wake)
	case due+k.delay < k.next:
		select {
		case k.wake <- struct{}{}:
		default: // it wakes anyway
		}
	}
	return true
}

// Remove ends what Add began. The goroutine ends with the last record.
func (k *Keeper) Remove(r *Record) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.records, r)
	if len(k.records) == 0 {
		k.stop()
	}
}

// stop ends the goroutine. The caller holds mu.
func (k *Keeper) stop() {
	if k.wake != nil {
		close(k.wake)
		k.wake = nil
	}
}

// Collected notes that r's lease was collected. It may be called by any goroutine, also outside of the
// synctest bubble of k.
func (k *Keeper) Collected(r *Record) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, open := k.records[r]; open {
		k.collected = append(k.collected, r)
	}
}

// run extends what is due, until wake is closed.
func (k *Keeper) run(wake chan struct{}) {
	for {
		pause, ok := k.look(wake)
		if !ok {
			return
		}
		select {
		case <-k.env.Clock.After(pause):
		case _, ok := <-wake:
			if !ok {
				return
			}
		}
	}
}

// look reports lost leases, begins extensions that are due, and ends collected leases. pause is the time
// until the next look. ok is false if the goroutine that is woken by wake is to end.
func (k *Keeper) look(wake chan struct{}) (pause time.Duration, ok bool) {
	called := k.env.Clock.Now()
	now := k.store.Now(called)
	next := now + poll.Milliseconds()
	var lost []*Record
	var tasks []*task
	k.mu.Lock()
	if ok = k.wake == wake; !ok {
		k.mu.Unlock()
		return 0, false
	}
	for r := range k.records {
		due, over := r.times()
		if over <= now {
			lost = append(lost, r)
			continue
		}
		extend := due + k.delay
		if extend <= now {
			extend = now + again.Milliseconds()
			if r.try() {
				extend = over // if it fails, the next look tries again
				tasks = append(tasks, &task{record: r})
			}
		}
		next = min(next, extend, over)
	}
	collected := k.collected
	k.collected, k.next = nil, next
	k.writes.Add(1) // before Close may wait
	k.mu.Unlock()
	defer k.writes.Done()
	lost = slices.DeleteFunc(lost, func(r *Record) bool { return !r.lose() })
	if len(tasks) > 0 {
		k.writes.Go(func() { k.extendAll(tasks, called) })
	}
	if len(lost) > 0 {
		k.writes.Go(func() { k.report(lost) })
	}
	if len(collected) > 0 {
		k.writes.Go(func() { atOnce(collected, func(r *Record) { r.owner.Collected() }) })
	}
	return time.Duration(next-now) * time.Millisecond, true
}

// report has the owners of lost records report them. Observers and loggers may take their time.
func (k *Keeper) report(lost []*Record) {
	for _, r := range lost {
		r.owner.ReportLost(r.why())
	}
}

// Close ends the contexts of all leases, and then the leases. It waits until all writes have ended, or fails
// with ctx's error if that ends first.
func (k *Keeper) Close(ctx context.Context) error {
	k.mu.Lock()
	k.closed = true
	all := slices.Collect(maps.Keys(k.records))
	k.stop()
	began := k.began
	k.mu.Unlock()
	if !began {
		return nil
	}
	for _, r := range all {
		r.owner.Closed()
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		atOnce(all, func(r *Record) { r.owner.Close(ctx) })
		k.writes.Wait()
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// task is a record whose holds are being extended. It is locked until all its groups are written.
type task struct {
	record  *Record
	pending atomic.Int32 // groups that it takes part in
}

// end ends one group's part of t.
func (t *task) end() {
	if t.pending.Add(-1) == 0 {
		t.record.Unlock()
	}
}

// extendAll extends all that is due of records that look has locked, and unlocks them.
func (k *Keeper) extendAll(due []*task, called time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), k.env.SettleTimeout)
	defer cancel()
	for _, t := range due {
		t.pending.Add(1) // until all groups are known
	}
	now := k.store.Now(called)
	all := groups(due, now)
	for _, t := range due {
		t.end()
	}
	atOnce(all, func(g *group) {
		k.extendGroup(ctx, g, now)
		for _, m := range g.members {
			m.end()
		}
	})
}

// extendGroup extends g, which was due at now, in ms. It leaves g as it is if there is no time left for that.
func (k *Keeper) extendGroup(ctx context.Context, g *group, now int64) {
	called := k.env.Clock.Now()
	left := time.Duration(g.until()-k.store.Now(called)) * time.Millisecond
	if left <= 0 || ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	call := g.call(called)
	err := k.store.Extend(ctx, call)
	for _, m := range g.members {
		m.record.extended(m.place, now, call.Parts[0].Buckets[0].Epochs, err)
	}
}

// atOnce calls f for all, for a bounded number at a time.
func atOnce[T any](all []T, f func(T)) {
	turns := make(chan struct{}, most)
	var calls sync.WaitGroup
	for _, one := range all {
		turns <- struct{}{}
		calls.Go(func() {
			defer func() { <-turns }()
			f(one)
		})
	}
	calls.Wait()
}
