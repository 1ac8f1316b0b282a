package dynamo

import (
	"math"
	"slices"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// path is a write path.
type path uint8

const (
	create path = iota
	normal
	retry
	adjust
	reshape
)

// String returns the path's name as observers see it.
func (p path) String() string {
	return [...]string{"create", "normal", "retry", "adjust", "reshape"}[p]
}

// plan is one write, or why there is none. Vectors hold the schema's limits, followed by the image's extra ones.
type plan struct {
	verdict verdict
	path    path
	generic bool // built from the image: the generated text does not fit it
	bare    bool // a reshape or a create that charges nothing, since the call is to be denied

	img         *bucket.Image // what the condition is computed from
	limits      []bucket.Limit
	cost, fill  []int64
	lo, hi      []int64
	rf, cv, ttl int64
	repair      bool   // an Adjust of 0 that mends the ttl
	undo        string // the op of the charge that an Adjust gives back, and the only state it applies to
	missing     []bool // nil where the bucket has all limits
	fenced      bool   // unguarded limits are guarded against debt that ttl does not reckon with
}

// balances are all limits of an image: the schema's, then those that the schema does not know.
type balances struct {
	img     *bucket.Image
	all     []bucket.Balance
	missing []bool
}

func balancesOf(img *bucket.Image) balances {
	b := balances{img: img, all: img.Balances, missing: img.Missing}
	if len(img.Extra) > 0 {
		b.all, b.missing = slices.Clone(b.all), slices.Clone(b.missing)
		for _, named := range img.Extra {
			b.all, b.missing = append(b.all, named.Balance), append(b.missing, false)
		}
	}
	return b
}

// scratch is room for vectors that last for one plan.
type scratch struct {
	room []int64
	used int
	own  [2 * vectorsPerLimit]int64
}

// vectorsPerLimit is how many vectors a plan takes: two tries of 5 at the most, and 4 besides.
const vectorsPerLimit = 14

// reset makes all of the room free again.
func (s *scratch) reset() {
	if s != nil {
		s.used = 0
	}
}

// vector returns n zeros.
func (s *scratch) vector(n int) []int64 {
	if s == nil {
		return make([]int64, n)
	}
	if s.used+n > len(s.room) {
		if s.room, s.used = s.own[:], 0; vectorsPerLimit*n > len(s.own) {
			s.room = make([]int64, vectorsPerLimit*n)
		}
	}
	v := s.room[s.used : s.used+n : s.used+n]
	s.used += n
	clear(v)
	return v
}

// kept returns p with vectors that stay.
func (p plan) kept() plan {
	p.cost, p.fill, p.lo, p.hi = slices.Clone(p.cost), slices.Clone(p.fill), slices.Clone(p.lo), slices.Clone(p.hi)
	return p
}

// charge returns cost over all limits: nothing for those that are missing or unknown to the schema.
func (b balances) charge(s *scratch, cost []int64) []int64 {
	all := s.vector(len(b.all))
	copy(all, cost)
	for i, missing := range b.missing {
		if missing {
			all[i] = 0
		}
	}
	return all
}

// flow is what a want comes to over all limits. It stands for an order: first what is given back, which then is there for
// those who take; then they; last what settles take, into debt if need be. Netting what is given with what is taken would
// leave the guards out, and forge tokens.
type flow struct {
	take []int64 // by acquires
	cost []int64 // by all
	give []int64
	net  []int64 // what is charged in the end
}

func (b balances) flow(w *want) flow {
	f := flow{take: b.charge(w.scratch, w.take), cost: b.charge(w.scratch, w.take), give: w.scratch.vector(len(b.all)), net: w.scratch.vector(len(b.all))}
	for i, c := range w.change {
		switch {
		case b.missing[i]:
		case c > 0:
			f.cost[i] = bucket.Add(f.cost[i], c)
		default:
			f.give[i] = -c
		}
	}
	for i := range f.net {
		f.net[i] = bucket.Sub(f.cost[i], f.give[i])
	}
	return f
}

func (b balances) exceeded(take []int64) bool {
	for i, balance := range b.all {
		if !b.missing[i] && take[i] > balance.Burst {
			return true
		}
	}
	return false
}

// plan fills in what all updates from an image have in common.
func (b balances) plan(s *scratch, p path, cost, fill []int64, now int64) plan {
	incomplete := slices.Contains(b.img.Missing, true)
	made := plan{
		path: p, img: b.img, cost: cost, fill: fill, lo: s.vector(len(b.all)), hi: s.vector(len(b.all)),
		rf: max(now, b.img.Refilled), cv: b.img.Version, generic: incomplete,
	}
	for i, balance := range b.all {
		made.lo[i], made.hi[i] = math.MinInt64, math.MaxInt64
		if !b.missing[i] {
			balance.Tokens = bucket.Sub(bucket.Add(balance.Tokens, fill[i]), cost[i])
			made.ttl = max(made.ttl, bucket.Expiry(balance, made.rf))
		}
	}
	if incomplete {
		made.missing = b.missing
	}
	return made
}

// planRetry takes the cost from the stored tokens and leaves the refill unclaimed. Its upper guard keeps the level
// falling by exactly the cost: above it, the refill since rf, or what is given back first, would be clamped, and claimed on
// top later.
func planRetry(w *want, b balances, f flow, now int64) (plan, bool) {
	p := b.plan(w.scratch, retry, f.net, w.scratch.vector(len(f.cost)), now)
	for i, balance := range b.all {
		if f.cost[i] <= 0 { // not guarded; what is given back may lift the balance above its burst
			continue
		}
		p.hi[i] = bucket.Sub(bucket.Sub(balance.Burst, bucket.Refill(balance.Limit, b.img.Refilled, w.called)), f.give[i])
		if f.take[i] > 0 {
			p.lo[i] = bucket.Sub(f.take[i], f.give[i])
		}
		if balance.Tokens < p.lo[i] || balance.Tokens > p.hi[i] {
			return plan{}, false
		}
	}
	return p, true
}

// planNormal claims the refill of all limits, and takes the cost. Where there is one, what is given back counts as refill.
func planNormal(w *want, v view, b balances, f flow, now int64) (plan, bool) {
	n := len(b.all)
	fill, lo, hi := w.scratch.vector(n), w.scratch.vector(n), w.scratch.vector(n)
	for i, balance := range b.all {
		if b.missing[i] {
			lo[i], hi[i] = math.MinInt64, math.MaxInt64
			continue
		}
		given := f.give[i]
		if f.cost[i] == 0 {
			given = 0 // on top, as by an Adjust
		}
		tk, top, slack := balance.Tokens, balance.Burst, int64(0)
		if v.yield && given == 0 {
			slack = yielded(balance.Limit) / 2
			top = max(bucket.Sub(top, slack), min(f.cost[i], top))
		}
		refill := bucket.Add(bucket.Refill(balance.Limit, b.img.Refilled, now), given)
		claim := min(refill, bucket.Sub(top, tk))
		if claim < 0 { // above the top is left alone; above the burst it is cut, exactly
			claim = min(0, bucket.Sub(balance.Burst, tk))
			if claim < 0 {
				slack = 0
			}
		}
		if f.take[i] > 0 && bucket.Add(tk, claim) < f.take[i] {
			return plan{}, false
		}
		least := int64(math.MinInt64)
		if f.take[i] > 0 {
			least = bucket.Sub(f.take[i], claim)
		}
		switch {
		case claim < refill:
			lo[i], hi[i] = max(bucket.Sub(tk, slack), least), tk
		case f.cost[i] > 0:
			lo[i], hi[i] = least, bucket.Sub(balance.Burst, claim)
		default:
			lo[i], hi[i] = math.MinInt64, math.MaxInt64
		}
		fill[i] = bucket.Sub(claim, given) // the net cost has it too
	}
	p := b.plan(w.scratch, normal, f.net, fill, now)
	p.lo, p.hi = lo, hi
	p.generic = p.generic || len(b.img.Extra) > 0
	return p, true
}

// yielded is how much a contended Normal may leave unclaimed: 50 ms of rate, at most a twentieth of the burst. Half of it
// is room at the top, half is what others may take between the image and the write; with all of it for each, as much as
// twice that was left.
func yielded(l bucket.Limit) int64 {
	const window = 50 // ms
	return min(bucket.Refill(l, 0, window), l.Burst/20)
}

// planAdjust gives back, whatever the balance. Without an image the schema's limits tell the ttl.
func planAdjust(cost []int64, img *bucket.Image, s *shape, now int64) plan {
	if img == nil {
		img = &bucket.Image{Balances: bucket.Full(s.limits), Missing: make([]bool, len(s.limits))}
		img.Refilled = now
	}
	b := balancesOf(img)
	all := b.charge(nil, cost)
	p := b.plan(nil, adjust, all, make([]int64, len(all)), now)
	if p.generic && !slices.ContainsFunc(all, func(n int64) bool { return n != 0 }) {
		p.verdict = skip // every limit that was charged is gone
	}
	return p
}

// planReshape refills with the old parameters, clamps to the old burst and to the new one, and takes the cost.
func planReshape(cost []int64, img *bucket.Image, s *shape, now int64) plan {
	n := len(s.limits)
	p := plan{
		path: reshape, img: img, limits: s.limits, cost: cost, cv: s.cv, rf: max(now, img.Refilled),
		fill: make([]int64, n), lo: make([]int64, n), hi: make([]int64, n),
	}
	after := bucket.Full(s.limits)
	full := &bucket.Image{Balances: slices.Clone(after), Missing: make([]bool, n)}
	for i, old := range img.Balances {
		burst := s.limits[i].Burst
		if cost[i] > burst {
			return plan{verdict: exceed, img: full}
		}
		if img.Missing[i] {
			p.lo[i], p.hi[i] = math.MaxInt64, math.MaxInt64 // must be missing still
			after[i].Tokens = bucket.Sub(burst, cost[i])
			continue
		}
		refill := bucket.Refill(old.Limit, img.Refilled, now)
		top := min(old.Burst, burst)
		p.fill[i] = min(refill, bucket.Sub(top, old.Tokens))
		left := bucket.Sub(bucket.Add(old.Tokens, p.fill[i]), cost[i])
		switch {
		case left < 0 && cost[i] > 0:
			return plan{verdict: refuse, img: img}
		case p.fill[i] < refill:
			p.lo[i], p.hi[i] = old.Tokens, old.Tokens
		case cost[i] > 0:
			p.lo[i], p.hi[i] = bucket.Sub(cost[i], p.fill[i]), bucket.Sub(top, p.fill[i])
		default:
			p.lo[i], p.hi[i] = math.MinInt64, bucket.Sub(top, p.fill[i])
		}
		after[i].Tokens = left
	}
	p.ttl = expiry(after, p.rf)
	for _, named := range img.Extra {
		p.generic = p.generic || !slices.Contains(s.removed, named.Name)
	}
	return p
}

// fence guards limits that the plan leaves unguarded against more debt than its ttl allows for. A single update sees what
// it left and mends a ttl that is too short; inside a transaction nothing is seen. Every ttl lasts for a debt of a burst.
func (p *plan) fence() {
	if p.img == nil || p.verdict != write {
		return
	}
	p.fenced = true
	for i, b := range balancesOf(p.img).all {
		if i < len(p.lo) && p.lo[i] == math.MinInt64 {
			p.lo[i] = min(b.Tokens, -min(b.Burst, p.burst(i, b))/2)
			p.generic = p.generic || i >= len(p.img.Balances) // a limit that the generated text cannot guard
		}
	}
}

// burst is what limit i's burst will be.
func (p *plan) burst(i int, b bucket.Balance) int64 {
	if p.path == reshape && i < len(p.limits) {
		return p.limits[i].Burst
	}
	return b.Burst
}
