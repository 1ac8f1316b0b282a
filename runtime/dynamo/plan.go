package dynamo

import (
	"math"
	"slices"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// want is what one logical write is to do to one bucket. Vectors are in schema order, in millitokens.
type want struct {
	cost   []int64 // negative where tokens are given back
	settle bool    // debt is allowed and nothing is denied
	called int64   // the instant the acquire or settle was called, ms
	shape  *shape
}

// view is what is known of a bucket. A nil img is an unknown bucket, or a missing one if that is the truth.
type view struct {
	img   *bucket.Image
	truth bool // img was returned or consistently read in this attempt
	yield bool // this process lost a Normal here within the last second
}

// verdict is what choose decides to do.
type verdict uint8

const (
	write  verdict = iota
	look           // read the bucket: what is known does not decide
	refuse         // tokens are lacking in a true image
	exceed         // some cost is above its burst
	skip           // nothing to do: what is given back is there already
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
	settle  bool // it settles a lease

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

// choose picks the write path for w by what is known of the bucket: Retry if it will hold, else Normal if that will,
// else a consistent read, and by a true image a denial. Design section 4 has the paths and the reason for each guard.
func choose(w *want, v view, now int64) plan {
	if v.img == nil {
		return chooseMissing(w, v, now)
	}
	if w.settle && !slices.ContainsFunc(w.cost, positive) {
		return planAdjust(w.cost, v.img, w.shape, now)
	}
	if !w.settle && outdated(v.img, w.shape) {
		return chooseReshape(w, v, now)
	}
	b := balancesOf(v.img)
	cost := b.charge(w.cost)
	if !w.settle && b.exceeded(cost) {
		return plan{verdict: lookOr(exceed, v), img: v.img}
	}
	if p, ok := planRetry(w, b, cost, now); ok {
		return p
	}
	if p, ok := planNormal(w, v, b, cost, now); ok {
		return p
	}
	return plan{verdict: lookOr(refuse, v), img: v.img}
}

func lookOr(known verdict, v view) verdict {
	if v.truth {
		return known
	}
	return look
}

func positive(n int64) bool { return n > 0 }

// chooseMissing is choose where there is no image. What is given back to a missing bucket is there already, for it is
// full; a give-back without an image needs none.
func chooseMissing(w *want, v view, now int64) plan {
	giveBack := w.settle && !slices.ContainsFunc(w.cost, positive)
	switch {
	case giveBack && v.truth:
		return plan{verdict: skip}
	case giveBack:
		return planAdjust(w.cost, nil, w.shape, now)
	case !v.truth:
		return plan{verdict: look}
	}
	cost := slices.Clone(w.cost)
	full := &bucket.Image{Balances: bucket.Full(w.shape.limits), Missing: make([]bool, len(cost))}
	after := slices.Clone(full.Balances)
	for i := range cost {
		if !w.settle && cost[i] > full.Balances[i].Burst {
			return plan{verdict: exceed, img: full}
		}
		cost[i] = max(cost[i], 0)
		after[i].Tokens = bucket.Sub(after[i].Tokens, cost[i])
	}
	return plan{path: create, cost: cost, limits: w.shape.limits, rf: now, cv: w.shape.cv, ttl: expiry(after, now)}
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

// outdated reports that img has an older shape than s and may be given s's: one component of its cv is lower and none
// higher, or a limit is missing that its revision has.
func outdated(img *bucket.Image, s *shape) bool {
	const revision = revisionUnit
	switch {
	case img.Version/revision > s.cv/revision || img.Version%revision > s.cv%revision:
		return false
	case img.Version < s.cv:
		return true
	}
	return slices.Contains(img.Missing, true)
}

// revisionUnit separates the two components of cv: the schema's revision and the versions of configuration.
const revisionUnit = 100_000_000_000_000

// chooseReshape gives an outdated bucket this binary's shape, with the cost if that can be admitted. If not, the reshape
// is written all the same, bare: else a raised limit would never reach callers who keep being denied.
func chooseReshape(w *want, v view, now int64) plan {
	p := planReshape(w.cost, v.img, w.shape, now)
	if p.verdict == write {
		return p
	}
	if !v.truth {
		return plan{verdict: look}
	}
	if p.verdict == exceed {
		return p
	}
	p = planReshape(make([]int64, len(w.cost)), v.img, w.shape, now)
	p.bare = true
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

// refusing returns the bucket that lacks the tokens, nil where p admits. A bare reshape has not been written where another
// bucket refuses too; what it would leave lacks them.
func (p *plan) refusing() *bucket.Image {
	switch {
	case p.verdict == refuse:
		return p.img
	case p.bare:
		return p.predict(p.img.Op)
	}
	return nil
}

// predict returns the bucket as p leaves it, if nobody else has written meanwhile.
func (p *plan) predict(op string) *bucket.Image {
	after := &bucket.Image{Refilled: p.rf, Version: p.cv, TTL: p.ttl, Op: op}
	switch p.path {
	case create, reshape:
		after.Balances = bucket.Full(p.limits)
		after.Missing = make([]bool, len(p.limits))
		for i := range after.Balances {
			b, fill := &after.Balances[i], int64(0)
			if p.img != nil && !p.img.Missing[i] {
				b.Tokens, b.Consumed, fill = p.img.Balances[i].Tokens, p.img.Balances[i].Consumed, p.fill[i]
			}
			b.Tokens = bucket.Sub(bucket.Add(b.Tokens, fill), p.cost[i])
			b.Consumed = bucket.Add(b.Consumed, p.cost[i])
		}
		return after
	case normal:
	default: // refill stays unclaimed
		after.Refilled = p.img.Refilled
	}
	all := slices.Clone(balancesOf(p.img).all)
	for i := range all {
		all[i].Tokens = bucket.Sub(bucket.Add(all[i].Tokens, p.fill[i]), p.cost[i])
		all[i].Consumed = bucket.Add(all[i].Consumed, p.cost[i])
	}
	n := len(p.img.Balances)
	after.Balances, after.Missing = all[:n:n], p.img.Missing
	for i, named := range p.img.Extra {
		after.Extra = append(after.Extra, bucket.Named{Name: named.Name, Balance: all[n+i]})
	}
	return after
}

// expiry returns the ttl of a bucket with these balances at an instant: the latest that any limit asks for.
func expiry(after []bucket.Balance, at int64) int64 {
	var ttl int64
	for _, b := range after {
		ttl = max(ttl, bucket.Expiry(b, at))
	}
	return ttl
}

// shortLived reports that img could be deleted by its ttl before it is full.
func shortLived(img *bucket.Image) bool {
	for _, b := range balancesOf(img).all {
		if full := bucket.ReadyAt(b, img.Refilled, b.Burst); img.TTL < bucket.LastExpiry && full > bucket.Mul(img.TTL, 1000) {
			return true
		}
	}
	return false
}
