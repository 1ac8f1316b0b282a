package redisstore

import (
	"sync"
	"sync/atomic"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/database"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/inforce"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/window"
	"github.com/sluice-go/sluice/runtime/store"
)

// bucketKey identifies a bucket in the cache. The bucket's keys in Redis follow from it.
type bucketKey struct {
	*resource    // of all names, the template
	kind         int
	root, entity string // as stored; root as keys.root has it
}

// cachedBucket is a bucket as the session last saw it, with the limits in force for it.
type cachedBucket struct {
	*resource
	kind    int
	entity  string
	onPlans bool  // plans concern it
	has     []int // the limits that it has, in schema order
	keys    []any // its hashes, by has: strings, as a command takes them

	mu      sync.Mutex
	from    sources   // of inForce; own was last read for the entity
	inForce *limitSet // nil until the overrides have been read
	img     *bucket.Image
	seenAt  int64 // Redis's time of img, ms
	fills   int64 // the session's counter after the last fill of this bucket
}

// limitSet is the limits in force for a bucket. As long as they stay the same, the pointer stays the same, so
// requests compare pointers to find out whether they can share a script call.
type limitSet struct {
	*cachedBucket
	inforce.Numbers
	params  []any // of each limit that the bucket has, as ARGV has them; nil if any has windows
	replies int   // how many numbers of a reply are the bucket's
	// dated has the place of params if limits have windows: they change when a window ends.
	dated atomic.Pointer[window.Args]
}

// args returns what ARGV has of each limit, at now, by Redis's clock. calendars are by limit.
func (s *limitSet) args(calendars []*bucket.Calendar, now int64) []any {
	if s.params != nil {
		return s.params
	}
	dated := s.dated.Load()
	if !dated.Serve(calendars, now) {
		dated = s.since(calendars, now)
		s.dated.Store(dated)
	}
	return dated.List
}

// since returns the arguments of limits, at now.
func (s *limitSet) since(calendars []*bucket.Calendar, now int64) *window.Args {
	return window.Of(s.Numbers, s.has, s.spec.Held, calendars, now)
}

// key returns the key of a bucket of r. Those of all names of a template are the template's.
func (r *resource) key(k database.Keys, kind int, root, entity string) bucketKey {
	if !r.spec.ByName(kind) {
		r = r.opened
	}
	return bucketKey{r, kind, k.Root(root), entity}
}

// lookup returns s's cached bucket of a chain that ends with root; it adds one to the cache if there is none.
func (r *resource) lookup(s *session, kind int, root, entity string) *cachedBucket {
	key := r.key(s.db.Keys, kind, root, entity)
	if b, ok := s.buckets.Get(key); ok {
		return b
	}
	b := &cachedBucket{
		resource: key.resource, kind: kind, entity: entity, onPlans: r.spec.OnPlans(kind), has: r.has[kind],
	}
	for _, i := range b.has {
		b.keys = append(b.keys, s.db.Keys.Bucket(r.spec.ResourceOf(kind), r.spec.Limits[i], root, entity))
	}
	if cached, ok, _ := s.buckets.PeekOrAdd(key, b); ok {
		return cached
	}
	return b
}

// snapshot returns what was last seen of b: either may be nil.
func (b *cachedBucket) snapshot() (*limitSet, *bucket.Image) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.inForce, b.img
}

// mostLate is how late a reply may be, in ms. One that is older than an image from before that shows that
// Redis's clock was set back.
const mostLate = 10_000

// oldest returns the most ms between the read of overrides and a script call that goes by them.
func oldest(env *store.Env) int64 { return env.CacheTTL.Milliseconds() + mostLate }

// update records img, which Redis had at seenAt, as the bucket's latest state, unless a newer one is known.
// fills is the session's counter when the command was sent: the reply may be from before a later fill.
func (b *cachedBucket) update(img *bucket.Image, seenAt, fills int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if fills < b.fills {
		return
	}
	if b.img != nil && seenAt < b.seenAt && img.Refilled-b.img.Refilled < mostLate {
		return
	}
	b.img, b.seenAt = img, seenAt
}

// invalidate drops the bucket's image after a fill, which fills counts.
func (b *cachedBucket) invalidate(fills int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.img, b.fills = nil, max(b.fills, fills)
}

// sources is what decides the limits of a bucket.
type sources struct {
	own, ofKind *override    // as read
	plans       *override    // as read; nil for a bucket that is on no plans
	plan        store.OnPlan // the zero one for such a bucket

	// Of a bucket of one name of a template, the entity's override of all names as read, and the name's entry.
	// Both are nil for another bucket.
	ofAll *override
	entry *store.Entry
}

// known returns what is cached of the sources of b, for a call that has found plan. The caller holds the
// lock.
func (b *cachedBucket) known(plan store.OnPlan) sources {
	from := sources{own: b.from.own, ofAll: b.from.ofAll, ofKind: b.kinds[b.kind].Load(), entry: b.entry.Load()}
	if b.onPlans {
		from.plans, from.plan = b.plans.Load(), b.newer(plan)
	}
	return from
}

// latest returns the plan by which the last call had the bucket, or plan if there was none. A settle goes by
// it: the bucket may have another plan than when the lease was acquired.
func (b *cachedBucket) latest(plan store.OnPlan) store.OnPlan {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.inForce != nil {
		return b.from.plan
	}
	return plan
}

// newer returns plan, unless the bucket is known to be on a later plan of the same entity. Without a plan, or
// once it was erased, the entity has no version to compare. The caller holds the lock.
func (b *cachedBucket) newer(plan store.OnPlan) store.OnPlan {
	if b.from.plan.Of == plan.Of && plan.Version > 0 && b.from.plan.Version > plan.Version {
		return b.from.plan
	}
	return plan
}

// use resolves b's limits from sources, each unless a later read of it is known. If the call that has found
// the plan of sources may have ended, that of a later call stays.
func (b *cachedBucket) use(from sources, ended bool) *limitSet {
	from.ofKind = keep(&b.kinds[b.kind], from.ofKind)
	if b.onPlans {
		from.plans = keep(&b.plans, from.plans)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, of := range []struct{ known, read **override }{
		{&b.from.own, &from.own}, {&b.from.ofAll, &from.ofAll},
	} {
		if *of.known != nil && (*of.known).number > (*of.read).number {
			*of.read = *of.known
		}
	}
	if from.plan = b.newer(from.plan); ended && b.inForce != nil {
		from.plan = b.from.plan
	}
	b.set(from)
	return b.inForce
}

// set computes b's limits from sources, unless they were computed from these already. The caller holds the
// lock.
func (b *cachedBucket) set(from sources) {
	if b.inForce != nil && b.from == from {
		return
	}
	b.from = from
	n := from.numbers(b.spec, b.kind)
	if b.inForce != nil && b.inForce.Same(n) {
		return
	}
	next := &limitSet{cachedBucket: b, Numbers: n}
	dated := false
	for _, i := range b.has {
		dated = dated || n.Limits[i].Windowed()
		next.replies += next.numbers(i)
	}
	if !dated {
		next.params = next.since(nil, 0).List
	}
	b.inForce = next
}

// numbers returns the limits in force by what was read.
func (from *sources) numbers(spec *store.Spec, kind int) inforce.Numbers {
	all := inforce.Sources{Own: from.own.Stored, OfKind: from.ofKind.Stored, Entry: from.entry}
	if from.ofAll != nil {
		all.OfAll = from.ofAll.Stored
	}
	if from.plans != nil {
		all.OnPlan, all.Changed, all.Plans = from.plan, from.plans.plans, from.plans.Revision
	}
	return all.Resolve(spec, kind)
}

// numbers returns how many numbers of a reply are of the i-th limit: its balance, the end of its window, and
// what image reads of a limit with holds.
func (s *limitSet) numbers(i int) int {
	switch {
	case s.held(i):
		return 7
	case s.Limits[i].Windowed():
		return 2
	}
	return 1
}

// image returns a bucket with what a reply has of its limits, as seen at now. epochs are those of what a call
// takes, by limit: nil without holds. swept is how many whole tokens came back of holds that were over.
func (s *limitSet) image(reply []int64, now int64) (img *bucket.Image, epochs []int64, swept int64) {
	img = &bucket.Image{Refilled: now, Balances: bucket.Full(s.Limits), Missing: make([]bool, len(s.Limits))}
	for _, i := range s.has {
		b, n := &img.Balances[i], s.numbers(i)
		if b.Tokens = reply[0]; n > 1 {
			b.Ends = reply[1]
		}
		if n > 2 {
			b.Cells, b.Epoch = [2]int64(reply[2:4]), reply[4]
			if epochs == nil {
				epochs = make([]int64, len(s.Limits))
			}
			if epochs[i] = reply[5]; s.spec.Unit(i) == "" {
				swept += reply[6] / bucket.Milli
			}
		}
		reply = reply[n:]
	}
	return img, epochs, swept
}
