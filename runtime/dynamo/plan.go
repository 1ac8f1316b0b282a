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
	bare    bool // a reshape that charges nothing, since the call is to be denied

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

// charge returns cost over all limits: nothing for those that are missing or unknown to the schema.
func (b balances) charge(cost []int64) []int64 {
	all := make([]int64, len(b.all))
	copy(all, cost)
	for i, missing := range b.missing {
		if missing {
			all[i] = 0
		}
	}
	return all
}

func (b balances) exceeded(cost []int64) bool {
	for i, balance := range b.all {
		if !b.missing[i] && cost[i] > balance.Burst {
			return true
		}
	}
	return false
}

// plan fills in what all updates from an image have in common.
func (b balances) plan(p path, cost, fill []int64, now int64) plan {
	after := make([]bucket.Balance, 0, len(b.all))
	for i, balance := range b.all {
		if b.missing[i] {
			continue
		}
		balance.Tokens = bucket.Sub(bucket.Add(balance.Tokens, fill[i]), cost[i])
		after = append(after, balance)
	}
	rf := max(now, b.img.Refilled)
	incomplete := slices.Contains(b.img.Missing, true)
	made := plan{
		path: p, img: b.img, cost: cost, fill: fill,
		lo: slices.Repeat([]int64{math.MinInt64}, len(b.all)), hi: slices.Repeat([]int64{math.MaxInt64}, len(b.all)),
		rf: rf, cv: b.img.Version, ttl: expiry(after, rf),
		generic: incomplete,
	}
	if incomplete {
		made.missing = b.missing
	}
	return made
}

// planRetry takes the cost from the stored tokens and leaves the refill unclaimed. Its upper guard keeps the level
// falling by exactly the cost: above it, the refill since rf would be clamped, and claimed on top later.
func planRetry(w *want, b balances, cost []int64, now int64) (plan, bool) {
	p := b.plan(retry, cost, make([]int64, len(cost)), now)
	for i, balance := range b.all {
		if cost[i] <= 0 { // not guarded; what is given back may lift the balance above its burst
			continue
		}
		p.hi[i] = bucket.Sub(balance.Burst, bucket.Refill(balance.Limit, b.img.Refilled, w.called))
		if !w.settle {
			p.lo[i] = cost[i]
		}
		if balance.Tokens < p.lo[i] || balance.Tokens > p.hi[i] {
			return plan{}, false
		}
	}
	return p, true
}

// planNormal claims the refill of all limits, and takes the cost.
func planNormal(w *want, v view, b balances, cost []int64, now int64) (plan, bool) {
	fill := make([]int64, len(b.all))
	type guard struct{ lo, hi int64 }
	guards := make([]guard, len(b.all))
	for i, balance := range b.all {
		if b.missing[i] {
			continue
		}
		tk, top, slack := balance.Tokens, balance.Burst, int64(0)
		if v.yield {
			slack = yielded(balance.Limit) / 2
			top = max(bucket.Sub(top, slack), min(cost[i], top))
		}
		refill := bucket.Refill(balance.Limit, b.img.Refilled, now)
		fill[i] = min(refill, bucket.Sub(top, tk))
		if fill[i] < 0 { // above the top is left alone; above the burst it is cut, exactly
			fill[i] = min(0, bucket.Sub(balance.Burst, tk))
			if fill[i] < 0 {
				slack = 0
			}
		}
		if !w.settle && cost[i] > 0 && bucket.Add(tk, fill[i]) < cost[i] {
			return plan{}, false
		}
		least := int64(math.MinInt64)
		if !w.settle && cost[i] > 0 {
			least = bucket.Sub(cost[i], fill[i])
		}
		switch {
		case fill[i] < refill:
			guards[i] = guard{max(bucket.Sub(tk, slack), least), tk}
		case cost[i] > 0:
			guards[i] = guard{least, bucket.Sub(balance.Burst, fill[i])}
		default:
			guards[i] = guard{math.MinInt64, math.MaxInt64}
		}
	}
	p := b.plan(normal, cost, fill, now)
	for i, g := range guards {
		p.lo[i], p.hi[i] = g.lo, g.hi
	}
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
	all := b.charge(cost)
	p := b.plan(adjust, all, make([]int64, len(all)), now)
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
