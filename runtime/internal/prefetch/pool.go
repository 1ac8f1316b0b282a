package prefetch

import (
	"slices"
	"sync"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/internal/prefetch/blocks"
	"github.com/sluice-go/sluice/runtime/store"
)

// pool is what this process holds of one bucket, and how much calls have asked of it.
type pool struct {
	resource *resource
	key      poolKey
	partial  bool // buckets of the kind do not have all limits of the resource

	mu        sync.Mutex
	prefetch  time.Duration // of the last call
	ended     bool          // it is not among its resource's pools any more: the next call makes another one
	blocks    blocks.Pool
	meter     blocks.Meter
	image     *bucket.Image // the bucket as last seen; nil before
	seenAt    time.Duration
	limits    []bucket.Limit
	def       store.Definition // as of the last call: a name of a template may have other numbers since
	template  store.Bucket     // the bucket as calls name it
	root      string           // of its chain
	asking    int              // number of calls that wait for the store, or for others with what they took here
	waiting   []int64          // tokens that these calls ask the store for
	fetching  bool             // the write of a block is under way
	took      time.Duration    // how long the write of the last block took
	notBefore time.Duration    // no block is taken before
	vectors   [2][]int64       // memory for own, and for left and level of due
	denial    lastDenial
}

// key returns the key of the pool of b, a bucket of def.
func (r *resource) key(def store.Definition, b *store.Bucket) poolKey {
	return keyOf(def, b.Kind, b.Entity[len(r.spec.Kinds[b.Kind].Prefix):])
}

// keyOf returns the key of the pool of an entity's bucket. The buckets of all names of a template together
// have one for all of them.
func keyOf(def store.Definition, kind int, id string) poolKey {
	key := poolKey{kind: kind, id: id}
	if name, ok := def.(*store.Named); ok {
		key.name = name.Spec().ResourceOf(kind)
	}
	return key
}

// find returns the pool of a bucket, locked, or nil if there is none.
func (r *resource) find(key poolKey) *pool {
	r.mu.RLock()
	p := r.pools[key]
	r.mu.RUnlock()
	if p == nil {
		return nil
	}
	if p.mu.Lock(); p.ended {
		p.mu.Unlock()
		return nil
	}
	return p
}

// pool returns the pool of b, a bucket of part, locked. It makes one if there is none.
func (r *resource) pool(part *store.Part, b *store.Bucket) *pool {
	key := r.key(part.Def, b)
	for {
		if p := r.find(key); p != nil {
			return p
		}
		r.mu.Lock()
		made := r.pools[key] == nil
		if made {
			r.pools[key] = newPool(r, key, part, b)
		}
		p := r.pools[key]
		r.mu.Unlock()
		if made {
			r.used.Store(true)
			r.watch(p, r.now()+blocks.Span)
		}
	}
}

// newPool returns a pool of b, with its name: a call may put tokens back into it, which have to be given back
// before another call names the bucket.
func newPool(r *resource, key poolKey, part *store.Part, b *store.Bucket) *pool {
	n, k := len(r.spec.Limits), &r.spec.Kinds[key.kind]
	p := &pool{
		resource: r, key: key, partial: len(k.Indexes()) < n, meter: blocks.NewMeter(n),
		prefetch: max(r.spec.Prefetch, Shortest),
		waiting:  make([]int64, n), vectors: [2][]int64{make([]int64, n), make([]int64, n)},
	}
	p.name(part, b)
	return p
}

// own returns cost with 0 for each limit that p's bucket does not have. The next call of own reuses its
// memory.
func (p *pool) own(cost []int64) []int64 {
	if !p.partial {
		return cost
	}
	own := p.vectors[0]
	for i, n := range cost {
		if own[i] = n; !p.resource.spec.Kinds[p.key.kind].Has(i) {
			own[i] = 0
		}
	}
	return own
}

// seen notes the image of b, a reply's. Blocks of an older version or window end.
func (p *pool) seen(b *store.Bucket, now time.Duration) {
	if b.After == nil || p.image != nil && older(b.After, p.image) {
		return
	}
	p.image, p.seenAt = b.After, now
	if b.Limits != nil {
		p.limits = b.Limits
	}
	p.blocks.Expire(now)
	p.blocks.Seen(b.After.Version, b.After.Ends(), now)
}

// older reports whether img is from before than.
func older(img, than *bucket.Image) bool {
	return img.Version < than.Version || img.Version == than.Version && img.Refilled < than.Refilled
}

// due returns the size of a block that is to be taken at now, and notes that it is under way. It returns nil
// for none.
func (p *pool) due(now time.Duration) []int64 {
	if p.fetching || p.image == nil || now < p.notBefore || p.blocks.Full(p.prefetch, now) {
		return nil
	}
	demand := p.meter.Demand(now)
	if !p.blocks.Low(demand, p.prefetch, blocks.Margin(p.took, p.prefetch), now) ||
		p.resource.endsSoon(p, now) {
		return nil
	}
	r, left, level := p.resource, p.vectors[0], p.vectors[1]
	ms := r.Session.Now(r.began.Add(p.seenAt)) // others may have the refill since
	for i, b := range p.image.Balances {
		left[i] = p.blocks.LeftFor(i, p.prefetch, now)
		level[i] = bucket.Sub(bucket.Spendable(b, p.image.Refilled, ms), p.waiting[i]+demand.Leave(i, b.Limit))
		if blocks.NearEnd(b.Limit, level[i], p.prefetch) {
			level[i] = 0
		}
	}
	size := blocks.Size(demand, p.prefetch, left, level)
	p.fetching = size != nil
	return size
}

// idle reports whether p holds and expects nothing at now.
func (p *pool) idle(now time.Duration) bool {
	return p.blocks.Empty() && !p.fetching && p.asking == 0 && p.meter.Demand(now).Calls == 0
}

// tooLarge reports whether cost is more than the bucket ever holds, as far as that is known. The store then
// says so.
func (p *pool) tooLarge(cost []int64) bool {
	if p.image == nil {
		return false
	}
	for i, b := range p.image.Balances {
		if cost[i] > b.Burst {
			return true
		}
	}
	return false
}

// part returns a part for cost of p's bucket alone.
func (p *pool) part(cost []int64) store.Part {
	return store.Part{
		Def: p.def, Buckets: []store.Bucket{p.template}, Cost: cost, Root: p.root,
	}
}

// giveBack returns a call that gives r back. The caller has not locked p.
func (p *pool) giveBack(r blocks.Rest, called time.Time) *store.Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	part := p.part(r.Tokens)
	part.Actual = make([]int64, len(r.Tokens))
	if r.Ends != nil {
		part.Buckets[0].Charges = []bucket.Charge{{Cost: r.Tokens, Ends: r.Ends}}
	}
	return &store.Call{Parts: []store.Part{part}, Called: called}
}

// name sets the definition, the bucket and the root that calls of p itself use: those of b, a bucket of part.
func (p *pool) name(part *store.Part, b *store.Bucket) {
	p.def, p.template = part.Def, b.Unfilled()
	if p.root = part.Root; p.root == "" {
		p.root = part.Buckets[len(part.Buckets)-1].Entity
	}
}

// some reports whether any number of vector is not 0.
func some(vector []int64) bool {
	return slices.ContainsFunc(vector, func(n int64) bool { return n != 0 })
}
