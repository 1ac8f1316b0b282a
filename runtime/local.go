package runtime

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// mostLocals bounds the memory of locals: some 50 MB, where a resource has two limits. What is evicted starts again from its
// last image.
const mostLocals = 100_000

// locals holds the buckets of this process, which Local decides by while the store does not answer. It has those alone from
// which something was taken: any other would start again as it is.
type locals struct {
	clock Clock
	some  atomic.Bool // buckets is not empty: while the store answers, nobody has to take mu

	mu      sync.Mutex
	buckets *simplelru.LRU[localKey, *local]
}

type localKey struct{ resource, entity string }

// local is one bucket of this process. Its locals' lock guards it; images are shared once made.
type local struct {
	localKey

	image *bucket.Image
}

func newLocals(clock Clock) *locals {
	buckets, _ := simplelru.NewLRU[localKey, *local](mostLocals, nil) // it fails for sizes below 1 alone
	return &locals{clock: clock, buckets: buckets}
}

// share is what a call asks of one bucket, its parts together.
type share struct {
	*local

	spec *store.Spec
	kind int
	cost []int64
}

// acquire charges all of call's buckets, or none, and leaves in each what it was decided by. It fails as a store does.
func (l *locals) acquire(call *request) (*held, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now().UnixMilli()
	shares := l.shares(call, now)
	for _, s := range shares {
		if err := store.Exceeds(s.spec, s.entity, s.most(), s.cost); err != nil {
			return nil, err
		}
	}
	var denied *DeniedError
	for _, s := range shares {
		denied = store.Refuse(denied, s.spec, s.entity, s.image, s.cost, now)
	}
	if denied != nil {
		show(call, shares)
		return nil, denied
	}
	by := &held{locals: l}
	for _, s := range shares {
		s.charge(s.cost, now)
		l.buckets.Add(s.localKey, s.local)
		by.of = append(by.of, s.local)
	}
	l.some.Store(true)
	show(call, shares)
	return by, nil
}

// shares returns call's buckets, each once, and started where this process has none yet.
func (l *locals) shares(call *request, now int64) []share {
	var shares []share
	for i := range call.Parts {
		part, spec := &call.Parts[i], call.chains[i].spec
		for j := range part.Buckets {
			b := &part.Buckets[j]
			key := localKey{spec.Resource, b.Entity}
			if at := slices.IndexFunc(shares, func(s share) bool { return s.localKey == key }); at >= 0 {
				shares[at].add(part.Cost)
				continue
			}
			own, ok := l.buckets.Get(key)
			switch {
			case !ok:
				own = &local{key, start(spec, b, now)}
			case spec.Regions != nil: // a share ends while the store does not answer, too
				own.reshape(limitsOf(b, spec), now)
			}
			shares = append(shares, share{own, spec, b.Kind, part.Cost})
		}
	}
	return shares
}

func (s *share) add(cost []int64) {
	s.cost = slices.Clone(s.cost) // it is a part's
	for i, c := range cost {
		s.cost[i] = bucket.Add(s.cost[i], c)
	}
}

// most is what s's bucket may hold at the most: where regions share the limits out, what is for all of them, as far as the schema says.
func (s *share) most() *bucket.Image {
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

// show leaves in call's buckets what is left.
func show(call *request, shares []share) {
	for i := range call.Parts {
		part, spec := &call.Parts[i], call.chains[i].spec
		for j := range part.Buckets {
			b := &part.Buckets[j]
			key := localKey{spec.Resource, b.Entity}
			at := slices.IndexFunc(shares, func(s share) bool { return s.localKey == key })
			b.After = shares[at].image
		}
	}
}

// start returns a bucket as the last image has it at now, with the parameters in force since; full where there is none.
// What the image has under other parameters is refilled and capped by those first, as a reshape does it; the new burst
// caps whatever is made of it.
func start(spec *store.Spec, b *store.Bucket, now int64) *bucket.Image {
	limits := limitsOf(b, spec)
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
	}
	return img
}

// reshape gives b other limits, if they are, as a store does it.
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

// charge takes cost, into debt if need be; what is negative is given back. A clock that steps back refills nothing, then
// or later: Refilled stays.
func (b *local) charge(cost []int64, now int64) {
	img := *b.image
	img.Refilled, img.Balances = max(now, img.Refilled), slices.Clone(img.Balances)
	for i := range img.Balances {
		balance := &img.Balances[i]
		balance.Tokens = bucket.Sub(bucket.Available(*balance, b.image.Refilled, now), cost[i])
	}
	b.image = &img
}

// answered takes note of call, on which the store has decided. What was taken here since it last did, the store has no
// record of: that counts on, until it has been refilled. Else a store that answers now and then, as for a bucket that is
// throttled, would grant the whole balance anew each time.
func (l *locals) answered(call *request) {
	if !l.some.Load() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now().UnixMilli()
	for i := range call.Parts {
		part, spec := &call.Parts[i], call.chains[i].spec
		for j := range part.Buckets {
			b := &part.Buckets[j]
			key := localKey{spec.Resource, b.Entity}
			if own, ok := l.buckets.Peek(key); ok && !own.follow(start(spec, b, now), now) {
				l.buckets.Remove(key)
			}
		}
	}
	l.some.Store(l.buckets.Len() > 0)
}

// follow makes b what the store has, less what was taken here and not refilled yet. It reports whether that is any less.
func (b *local) follow(img *bucket.Image, now int64) (less bool) {
	for i := range img.Balances {
		here := bucket.Available(b.image.Balances[i], b.image.Refilled, now)
		if here < img.Balances[i].Tokens {
			img.Balances[i].Tokens, less = here, true
		}
	}
	b.image = img
	return less
}

// held settles what was taken of buckets of this process.
type held struct {
	locals *locals
	of     []*local
}

// Settle turns each part's Cost into its Actual. A bucket that is gone, or was started anew since, never saw the charge,
// and is left alone.
func (h *held) Settle(_ context.Context, call *store.Call) error {
	h.locals.mu.Lock()
	defer h.locals.mu.Unlock()
	now := h.locals.clock.Now().UnixMilli()
	for i := range call.Parts {
		part := &call.Parts[i]
		name := part.Def.Spec().Resource
		difference := make([]int64, len(part.Cost))
		for j := range difference {
			difference[j] = bucket.Sub(part.Actual[j], part.Cost[j])
		}
		for j := range part.Buckets {
			b := &part.Buckets[j]
			own, ok := h.locals.buckets.Peek(localKey{name, b.Entity})
			if ok && slices.Contains(h.of, own) {
				own.charge(difference, now)
				b.After = own.image
			}
		}
	}
	return nil
}
