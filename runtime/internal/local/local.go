// Package local keeps the buckets of this process, by which the policy Local decides while the store does not
// answer (docs/design.md, "Breaker and failure policy").
package local

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// most bounds the memory of Buckets: about 50 MB if a resource has two limits. A bucket that was evicted
// starts again from its last image.
const most = 100_000

// Buckets holds buckets of this process: only those from which something was taken, since any other would
// start again as it is. It is safe for concurrent use.
type Buckets struct {
	clock store.Clock
	some  atomic.Bool // buckets is not empty; while the store answers, no call takes mu

	mu      sync.Mutex
	buckets *simplelru.LRU[bucketKey, *local]
}

// bucketKey names a bucket. One of a resource that goes on as a name of a template has two in a process that
// calls both: their limits may differ.
type bucketKey struct{ of, resource, entity string }

// keyOf returns the key of b, of a resource with spec.
func keyOf(spec *store.Spec, b *store.Bucket) bucketKey {
	return bucketKey{spec.Template, spec.ResourceOf(b.Kind), b.Entity}
}

// local is one bucket of this process. The mutex of Buckets guards it. Images do not change once made.
type local struct {
	bucketKey

	image *bucket.Image
}

// New returns Buckets without any.
func New(clock store.Clock) *Buckets {
	buckets, _ := simplelru.NewLRU[bucketKey, *local](most, nil) // fails only for sizes below 1
	return &Buckets{clock: clock, buckets: buckets}
}

// Image returns the image of a bucket, nil if there is none. entity is as stored. resource is none of a
// template's.
func (l *Buckets) Image(resource, entity string) *bucket.Image {
	l.mu.Lock()
	defer l.mu.Unlock()
	if own, ok := l.buckets.Peek(bucketKey{"", resource, entity}); ok {
		return own.image
	}
	return nil
}

// demand is what a call asks of one bucket, summed over its parts.
type demand struct {
	*local

	spec    *store.Spec
	kind    int
	cost    []int64
	windows []*bucket.Calendar // nil if no limit has windows
}

// Acquire charges all of call's buckets, or none, and leaves in each the image that decided. It fails as a
// store does.
func (l *Buckets) Acquire(call *store.Call) (*Held, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now().UnixMilli()
	demands := l.demands(call, now)
	for _, s := range demands {
		if err := store.Exceeds(s.spec, s.entity, s.most(), s.cost, now); err != nil {
			return nil, err
		}
	}
	var denied *store.DeniedError
	for _, s := range demands {
		denied = store.Refuse(denied, s.spec, s.entity, s.image, s.cost, now)
	}
	if denied != nil {
		show(call, demands)
		return nil, denied
	}
	by := &Held{buckets: l, taken: map[*local]taken{}}
	for _, s := range demands {
		s.take(s.cost, s.windows, now)
		l.buckets.Add(s.bucketKey, s.local)
		by.taken[s.local] = taken{slices.Clone(s.cost), s.image} // s.cost is the call's, and refers to its lease
	}
	l.some.Store(true)
	show(call, demands)
	return by, nil
}

// demands returns what call asks of each of its buckets. It starts buckets that this process does not have
// yet.
func (l *Buckets) demands(call *store.Call, now int64) []demand {
	var demands []demand
	for i := range call.Parts {
		part, spec := &call.Parts[i], call.Parts[i].Def.Spec()
		for j := range part.Buckets {
			b := &part.Buckets[j]
			key := keyOf(spec, b)
			if at := slices.IndexFunc(demands, func(s demand) bool { return s.bucketKey == key }); at >= 0 {
				demands[at].add(spec.CostOf(b.Kind, part.Cost))
				continue
			}
			own, ok := l.buckets.Get(key)
			switch {
			case !ok:
				own = &local{key, start(spec, b, now)}
			case spec.Regions != nil: // a quota may end while the store does not answer
				own.reshape(b.InForce(spec), now)
			}
			demands = append(demands,
				demand{own, spec, b.Kind, spec.CostOf(b.Kind, part.Cost), b.Calendars(spec)})
		}
	}
	return demands
}

func (s *demand) add(cost []int64) {
	s.cost = slices.Clone(s.cost) // it is a part's
	for i, c := range cost {
		s.cost[i] = bucket.Add(s.cost[i], c)
	}
}

// most returns the most that s's bucket may hold. If regions divide the limits, that is the limit of all of
// them together, as far as the schema says.
func (s *demand) most() *bucket.Image {
	if s.spec.Regions == nil {
		return s.image
	}
	most := *s.image
	most.Balances = bucket.Full(s.spec.Kinds[s.kind].Limits)
	for i, b := range s.image.Balances {
		most.Balances[i].Burst = max(most.Balances[i].Burst, b.Burst)
	}
	return &most
}

// show leaves the images of demands in call's buckets.
func show(call *store.Call, demands []demand) {
	for i := range call.Parts {
		part, spec := &call.Parts[i], call.Parts[i].Def.Spec()
		for j := range part.Buckets {
			b := &part.Buckets[j]
			key := keyOf(spec, b)
			at := slices.IndexFunc(demands, func(s demand) bool { return s.bucketKey == key })
			b.After = demands[at].image
		}
	}
}

// start returns the bucket's last image as it is at now, with the parameters in force since, or a full bucket
// without an image. A balance with other parameters is first refilled and capped by those, as in a reshape.
// The new burst caps it whenever it is read.
func start(spec *store.Spec, b *store.Bucket, now int64) *bucket.Image {
	limits := b.InForce(spec)
	img := &bucket.Image{Refilled: now, Balances: bucket.Full(limits), Missing: make([]bool, len(limits))}
	if b.After == nil {
		return img
	}
	img.Refilled = max(now, b.After.Refilled)
	for i, seen := range b.After.Balances {
		if b.After.Missing[i] {
			continue
		}
		balance := &img.Balances[i]
		if b.Limits == nil {
			balance.Limit = seen.Limit
		}
		balance.Tokens = bucket.Available(seen, b.After.Refilled, now)
		if seen.InFlight() || seen.Windowed() && !seen.Over(now) { // usage stays, whatever the numbers
			balance.Ends = seen.Ends
			balance.Tokens = bucket.Add(seen.Tokens, bucket.Sub(balance.Burst, seen.Burst))
			balance.Cells, balance.Epoch = seen.Cells, seen.Epoch // which end by themselves
		}
	}
	return img
}

// reshape gives b new limits as a store does, if they differ from its own.
func (b *local) reshape(limits []bucket.Limit, now int64) {
	same := func(has bucket.Balance, limit bucket.Limit) bool { return has.Limit == limit }
	if slices.EqualFunc(b.image.Balances, limits, same) {
		return
	}
	img := *b.image
	img.Refilled, img.Balances = max(now, img.Refilled), bucket.Full(limits)
	for i := range img.Balances {
		img.Balances[i].Tokens = min(bucket.Available(b.image.Balances[i], b.image.Refilled, now), limits[i].Burst)
	}
	b.image = &img
}

// take takes cost, into debt if need be; a negative cost is given back. The Consumed of an in-flight or
// prepaid limit counts what is taken here. A cost opens the next window of windows if the last one is over;
// nothing comes back to one that is over. A clock that steps back refills nothing, then or later: Refilled
// stays.
func (b *local) take(cost []int64, windows []*bucket.Calendar, now int64) {
	img := *b.image
	img.Refilled, img.Balances = max(now, img.Refilled), slices.Clone(img.Balances)
	for i := range img.Balances {
		balance := &img.Balances[i]
		if balance.Windowed() && balance.Over(now) {
			if cost[i] <= 0 {
				continue
			}
			balance.Tokens, balance.Ends = balance.Burst, windows[i].End(now, balance.Ends)
			balance.Cells = [2]int64{}
		}
		if balance.InFlight() || balance.Prepaid() {
			balance.Consumed = bucket.Add(balance.Consumed, cost[i])
		}
		if balance.InFlight() || balance.Windowed() { // what is over of its cells stays there
			balance.Tokens = bucket.Sub(balance.Tokens, cost[i])
			continue
		}
		balance.Tokens = bucket.Sub(bucket.Available(*balance, b.image.Refilled, now), cost[i])
	}
	b.image = &img
}

// Answered takes note of call, on which the store has decided. The store has no record of what was taken here
// since it last decided: that stays counted until it is refilled. Otherwise a store that answers only now and
// then, as for a throttled bucket, would grant the whole balance each time.
func (l *Buckets) Answered(call *store.Call) {
	if !l.some.Load() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now().UnixMilli()
	for i := range call.Parts {
		part, spec := &call.Parts[i], call.Parts[i].Def.Spec()
		for j := range part.Buckets {
			b := &part.Buckets[j]
			key := keyOf(spec, b)
			if own, ok := l.buckets.Peek(key); ok && !own.follow(start(spec, b, now), now) {
				l.buckets.Remove(key)
			}
		}
	}
	l.some.Store(l.buckets.Len() > 0)
}

// follow sets b to the store's image, less what was taken here and is not refilled yet. It reports whether
// that is less. A window that is open here stays open, a slot stays taken until its lease ends, and credits
// for good.
func (b *local) follow(img *bucket.Image, now int64) (less bool) {
	for i := range img.Balances {
		own := &b.image.Balances[i]
		if own.InFlight() || own.Prepaid() {
			img.Balances[i].Tokens = bucket.Sub(img.Balances[i].Tokens, own.Consumed)
			img.Balances[i].Consumed, less = own.Consumed, less || own.Consumed > 0
			continue
		}
		here := bucket.Available(*own, b.image.Refilled, now)
		if here < bucket.Available(img.Balances[i], img.Refilled, now) {
			img.Balances[i].Tokens, img.Balances[i].Cells, less = here, [2]int64{}, true
			img.Balances[i].Ends = max(img.Balances[i].Ends, own.Ends)
		}
	}
	b.image = img
	return less
}

// Held settles what was taken from buckets of this process. It is safe for concurrent use.
type Held struct {
	buckets *Buckets
	taken   map[*local]taken // the mutex of Buckets guards it
}

// taken is what was taken of a bucket, in millitokens by limit, and the image after it.
type taken struct {
	cost  []int64
	image *bucket.Image
}

// lapsed reports whether the window is over from which the i-th limit was taken at an earlier time, and whose
// image at the last time is now. A fake's buckets have no balances, and so no windows.
func (t *taken) lapsed(i int, now *bucket.Image) bool {
	return t.image != nil && i < len(now.Balances) && t.image.Balances[i].Ends != now.Balances[i].Ends
}

// Add has h settle what more has taken as well. The buckets of both are the same, unless they were started
// again meanwhile.
func (h *Held) Add(more *Held) {
	h.buckets.mu.Lock()
	defer h.buckets.mu.Unlock()
	for of, last := range more.taken {
		sum, before := taken{slices.Clone(last.cost), last.image}, h.taken[of]
		for i, c := range before.cost {
			if !before.lapsed(i, last.image) {
				sum.cost[i] = bucket.Add(sum.cost[i], c)
			}
		}
		h.taken[of] = sum
	}
}

// Settle turns each part's Cost into its Actual, and gives back all slots. It gives a bucket back no more
// than was taken of it. One that has ended, or was started again since, never had the charge: Settle does not
// change it.
func (h *Held) Settle(_ context.Context, call *store.Call) error {
	h.buckets.mu.Lock()
	defer h.buckets.mu.Unlock()
	now := h.buckets.clock.Now().UnixMilli()
	for i := range call.Parts {
		part := &call.Parts[i]
		spec := part.Def.Spec()
		for j := range part.Buckets {
			b := &part.Buckets[j]
			own, ok := h.buckets.buckets.Peek(keyOf(spec, b))
			held, has := h.taken[own]
			if !ok || !has {
				continue
			}
			cost, actual := spec.CostOf(b.Kind, part.Cost), spec.CostOf(b.Kind, part.Actual)
			difference := make([]int64, len(cost))
			left := taken{slices.Clone(held.cost), held.image}
			for k := range difference {
				back := held.cost[k]
				if held.lapsed(k, own.image) {
					back = 0
				}
				if difference[k] = bucket.Sub(actual[k], cost[k]); spec.Held != nil && spec.InFlight(k) {
					difference[k] = -cost[k]
				}
				difference[k] = max(difference[k], -back)
				left.cost[k] = bucket.Add(left.cost[k], difference[k])
			}
			own.take(difference, b.Calendars(spec), now)
			h.taken[own] = left // other parts may be settled by h too
			b.After = own.image
		}
	}
	return nil
}
