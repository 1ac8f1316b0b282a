package plan

import (
	"math"
	"slices"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// NewRetry takes the cost from the stored tokens and leaves the refill unclaimed. ok is false if the image
// says that its guards will not hold. The upper guard keeps what is available falling by exactly the cost.
// Above it, the refill since rf, or what is given back first, would be clamped, and claimed later. A limit
// that is only given back has no guard: a give-back may lift its balance above the burst.
func NewRetry(d *Demand, b Balances, net NetDemand, now int64) (p Plan, ok bool) {
	holds, ok := b.holds(d, net.take, now)
	if !ok {
		return Plan{}, false
	}
	p = b.base(d.Pool, Retry, net.use, net.lapsed(d.Pool), b.ends(d.Pool), holds, now)
	for i, balance := range b.All {
		if net.cost[i] <= 0 {
			continue
		}
		if balance.Windowed() {
			if balance.Over(d.Called) { // a claim needs a Normal
				return Plan{}, false
			}
			step, fits := balance.Step(nil, net.take[i], net.cost[i], net.give[i], d.Called)
			if p.Lo[i] = step.Lo; !fits {
				return Plan{}, false
			}
			continue
		}
		if balance.InFlight() {
			if p.Lo[i] = bucket.Sub(net.take[i], net.give[i]); balance.Tokens < p.Lo[i] {
				return Plan{}, false
			}
			continue
		}
		refill := bucket.Refill(balance.Limit, b.image.Refilled, d.Called)
		p.Hi[i] = bucket.Sub(bucket.Sub(balance.Burst, refill), net.give[i])
		if net.take[i] > 0 {
			p.Lo[i] = bucket.Sub(net.take[i], net.give[i])
		}
		if balance.Tokens < p.Lo[i] || balance.Tokens > p.Hi[i] {
			return Plan{}, false
		}
	}
	return p, true
}

// NewNormal claims the refill of all limits and takes the cost. ok is false if the tokens do not suffice. In
// a limit with a cost, what is given back counts as refill.
func NewNormal(d *Demand, s State, b Balances, net NetDemand, now int64) (p Plan, ok bool) {
	n := len(b.All)
	fill, lo, hi, ends := net.lapsed(d.Pool), d.Pool.vector(n), d.Pool.vector(n), b.ends(d.Pool)
	holds, swept := b.sweep(d, net, now)
	for i, balance := range b.All {
		lo[i], hi[i] = math.MinInt64, math.MaxInt64
		if b.missing[i] {
			continue
		}
		give := net.give[i]
		if swept != nil {
			fill[i], give = bucket.Add(fill[i], swept[i]), bucket.Add(give, swept[i]) // it is there for acquires
		}
		if balance.InFlight() {
			if net.take[i] > 0 {
				lo[i] = bucket.Sub(net.take[i], give)
			}
			if balance.Tokens < lo[i] {
				return Plan{}, false
			}
			continue
		}
		if balance.Windowed() {
			step, fits := balance.Step(d.calendar(i), net.take[i], net.cost[i], give, now)
			if !fits {
				return Plan{}, false
			}
			fill[i], lo[i], hi[i], ends[i] = bucket.Add(fill[i], step.Fill), step.Lo, step.Hi, step.Ends
			continue
		}
		given := give
		if net.cost[i] == 0 {
			given = 0 // it comes on top, as by an Adjust
		}
		c := claimOf(balance, b.image.Refilled, now, given, net.cost[i], s.LeaveSlack)
		least := int64(math.MinInt64)
		if net.take[i] > 0 {
			if bucket.Add(balance.Tokens, c.claimed) < net.take[i] {
				return Plan{}, false
			}
			least = bucket.Sub(net.take[i], c.claimed)
		}
		switch {
		case c.claimed < c.due: // clamped: the balance must be the image's, but for the slack
			lo[i], hi[i] = max(bucket.Sub(balance.Tokens, c.slack), least), balance.Tokens
		case net.cost[i] > 0:
			lo[i], hi[i] = least, bucket.Sub(balance.Burst, c.claimed)
		}
		fill[i] = bucket.Sub(c.claimed, given) // the net cost has it too
	}
	p = b.base(d.Pool, Normal, net.use, fill, ends, holds, now)
	p.Lo, p.Hi = lo, hi
	p.Generic = p.Generic || len(b.image.Extra) > 0
	return p, true
}

// claim is what a Normal claims of one limit.
type claim struct {
	due     int64 // the refill, what is given back included
	claimed int64 // of due: less if clamped, negative if the balance is above the burst
	slack   int64 // by which the balance may be lower than the image's
}

// claimOf returns the claim of one limit. given is what is given back, and cost what is taken.
func claimOf(b bucket.Balance, refilled, now, given, cost int64, leaveSlack bool) claim {
	top, slack := b.Burst, int64(0)
	if leaveSlack && given == 0 {
		slack = Slack(b.Limit) / 2
		top = max(bucket.Sub(top, slack), min(cost, top))
	}
	refill := bucket.Add(bucket.Refill(b.Limit, refilled, now), given)
	c := claim{due: refill, claimed: min(refill, bucket.Sub(top, b.Tokens)), slack: slack}
	if c.claimed < 0 { // a balance above the top stays; one above the burst is cut, exactly
		c.claimed = min(0, bucket.Sub(b.Burst, b.Tokens))
		if c.claimed < 0 {
			c.slack = 0
		}
	}
	return c
}

// NewReshape refills with the old parameters, clamps to the old burst and then to the new one, and takes the
// cost. The use of an open window stays, and so does what is held. The decision is Deny or TooLarge if that
// is not possible. It is Deny too if the write would have to sweep: the bucket gets its shape first.
func NewReshape(cost []int64, img *bucket.Image, s *Shape, windows []*bucket.Calendar, now int64) Plan {
	n := len(s.Limits)
	p := Plan{
		Path: Reshape, Image: img, Limits: s.Limits, Cost: cost,
		Version: s.Version, PlanOf: s.PlanOf, Refilled: max(now, img.Refilled),
		Fill: make([]int64, n), Lo: make([]int64, n), Hi: make([]int64, n), Holds: s.newHolds(),
	}
	after := bucket.Full(s.Limits)
	full := &bucket.Image{Balances: slices.Clone(after), Missing: make([]bool, n)}
	for i, old := range img.Balances {
		next := bucket.Balance{Limit: s.Limits[i], Ends: old.Ends}
		if next.Tokens = bucket.Add(old.Tokens, bucket.Sub(next.Burst, old.Burst)); next.TooLarge(cost[i], now) {
			return Plan{Decision: TooLarge, Image: full}
		}
	}
	if windowed(s.Limits) {
		p.Ends = make([]int64, n)
	}
	p.Generic = !s.HasPlans && img.PlanOf != "" // the generated text does not remove it
	for i, old := range img.Balances {
		p.Generic = p.Generic || old.Holds() && !s.holds(i) // the generated text does not remove its cells
		fits := true
		if s.holds(i) {
			p.Holds[i], fits = reshapedHold(old, cost[i], now)
			after[i].Cells = old.Cells
			after[i] = after[i].Apply(p.Holds[i])
		}
		if !fits || !p.reshape(i, windows, now) {
			return Plan{Decision: Deny, Image: img}
		}
		if after[i].Tokens, after[i].Ends = s.Limits[i].Burst, p.ends(i); !img.Missing[i] {
			after[i].Tokens = bucket.Add(old.Tokens, p.Fill[i])
		}
		after[i].Tokens = bucket.Sub(after[i].Tokens, cost[i])
	}
	p.TTL = Expiry(after, p.Refilled)
	for _, named := range img.Extra {
		removed := slices.Contains(s.Removed, named.Name) && !named.Windowed() && !named.Holds()
		p.Generic = p.Generic || !removed
	}
	return p
}

// reshape fills in what p, a Reshape at now, does to the i-th limit. It reports whether the limit has the
// tokens for its cost.
func (p *Plan) reshape(i int, windows []*bucket.Calendar, now int64) bool {
	old, burst, cost := p.Image.Balances[i], p.Limits[i].Burst, p.Cost[i]
	switch {
	case p.Image.Missing[i]:
		p.Lo[i], p.Hi[i] = math.MaxInt64, math.MaxInt64 // it must still be missing
		if p.Limits[i].Windowed() {
			p.Ends[i] = windows[i].First(cost, now)
		}
		return cost <= burst
	case old.InFlight(): // what is held stays held
		p.Fill[i], p.Lo[i], p.Hi[i] = bucket.Sub(burst, old.Burst), math.MinInt64, math.MaxInt64
		if cost > 0 {
			p.Lo[i] = bucket.Sub(cost, p.Fill[i])
		}
		return old.Tokens >= p.Lo[i]
	case old.Windowed():
		step, fits := old.Reshape(windows[i], p.Limits[i], cost, now)
		p.Fill[i], p.Lo[i], p.Hi[i], p.Ends[i] = step.Fill, step.Lo, step.Hi, step.Ends
		return fits
	}
	refill := bucket.Refill(old.Limit, p.Image.Refilled, now)
	top := min(old.Burst, burst)
	p.Fill[i] = min(refill, bucket.Sub(top, old.Tokens))
	switch {
	case cost > 0 && bucket.Add(old.Tokens, p.Fill[i]) < cost:
		return false
	case p.Fill[i] < refill:
		p.Lo[i], p.Hi[i] = old.Tokens, old.Tokens
	case cost > 0:
		p.Lo[i], p.Hi[i] = bucket.Sub(cost, p.Fill[i]), bucket.Sub(top, p.Fill[i])
	default:
		p.Lo[i], p.Hi[i] = math.MinInt64, bucket.Sub(top, p.Fill[i])
	}
	return true
}

// NewAdjust gives back, whatever the balance. Without an image, which windows and holds need, the ttl is
// that of the shape's limits. The decision is None if the bucket has none of the limits that were charged
// any more. ok is false if the write has to sweep first.
func NewAdjust(d *Demand, img *bucket.Image, now int64) (p Plan, ok bool) {
	if img == nil {
		n := len(d.Shape.Limits)
		img = &bucket.Image{Refilled: now, Balances: bucket.Full(d.Shape.Limits), Missing: make([]bool, n)}
	}
	b := BalancesOf(img)
	all, fill := b.overAll(nil, d.Change), b.overAll(nil, d.Lapsed)
	for i := range fill {
		fill[i] = -fill[i]
	}
	holds, ok := b.holds(d, nil, now)
	if !ok {
		return Plan{}, false
	}
	p = b.base(nil, Adjust, all, fill, b.ends(nil), holds, now)
	moved := slices.ContainsFunc(d.Moves, func(m bucket.Moves) bool { return !m.IsZero() })
	if (p.Generic || d.Moves != nil) && !moved && isZero(all) && isZero(fill) {
		p.Decision = None
	}
	return p, true
}

func isZero(all []int64) bool {
	return !slices.ContainsFunc(all, func(n int64) bool { return n != 0 })
}

// NewAdjustWrite is NewAdjust that is written even if it changes no limit of s, with a ttl that s asks for.
// It gives back to the windows and holds of img what was taken, and img is not nil if there are any.
func NewAdjustWrite(taken bucket.Charge, img *bucket.Image, s *Shape, now int64) Plan {
	d := &Demand{Change: bucket.Negated(taken.Cost), Shape: s}
	if taken.Ends != nil || taken.Epochs != nil {
		d.Lapsed, d.Moves = bucket.EndOf(img, d.Change, []bucket.Charge{taken}, now)
	}
	p, _ := NewAdjust(d, img, now) // what is given back needs no sweep
	p.Decision = Write
	p.generalize(s)
	p.Keep(s, now)
	return p
}

// holds returns the changes of all cells by a write that takes tokens, nil for none, makes the moves of d,
// and sweeps nothing. They are nil if no limit counts holds, and zero for limits that are not in the schema.
// ok is false if the write has to sweep.
func (b Balances) holds(d *Demand, take []int64, now int64) (all []bucket.Hold, ok bool) {
	for i, balance := range b.image.Balances {
		if !balance.Holds() {
			continue
		}
		if all == nil {
			all = make([]bucket.Hold, len(b.All))
		}
		taken := int64(0)
		if take != nil {
			taken = take[i]
		}
		if all[i], ok = balance.Hold(taken, d.moves(i), now); !ok {
			return nil, false
		}
	}
	return all, true
}

// sweep returns the changes of all cells by a Normal, and what it sweeps into the balances. Both are nil if
// no limit of the schema counts holds.
func (b Balances) sweep(d *Demand, net NetDemand, now int64) (holds []bucket.Hold, swept []int64) {
	for i, balance := range b.image.Balances {
		if !balance.Holds() {
			continue
		}
		if holds == nil {
			holds, swept = make([]bucket.Hold, len(b.All)), d.Pool.vector(len(b.All))
		}
		opens := balance.Windowed() && balance.Over(now) && net.cost[i] > 0
		holds[i], swept[i] = balance.Sweep(net.take[i], d.moves(i), opens, now)
	}
	return holds, swept
}

// reshapedHold returns what a Reshape that takes cost does to the cells of a limit that counts holds
// afterwards. ok is false if it would have to sweep them, or to clear them for a new window.
func reshapedHold(old bucket.Balance, cost, now int64) (h bucket.Hold, ok bool) {
	if !old.Holds() {
		return bucket.NewHold(cost, bucket.NewRing, now), true
	}
	h, ok = old.Hold(cost, bucket.NoMoves, now)
	return h, cost == 0 || ok && !(old.Windowed() && old.Over(now))
}

// NetDemand is a demand over all limits of an image. It stands for an order: first what is given back, which
// is then there for acquires; then acquires; last what settles take, into debt if need be. Netting what is
// given with what is taken would leave the guards out, and forge tokens.
type NetDemand struct {
	take []int64 // by acquires
	cost []int64 // by all
	give []int64
	net  []int64 // cost less give
	use  []int64 // net less Demand.Lapsed: what counts in usage
}

// Net returns d over all limits.
func (b Balances) Net(d *Demand) NetDemand {
	n := NetDemand{
		take: b.overAll(d.Pool, d.Take), cost: b.overAll(d.Pool, d.Take),
		give: d.Pool.vector(len(b.All)), net: d.Pool.vector(len(b.All)),
	}
	for i := range d.Change {
		switch c := d.change(i); {
		case b.missing[i]:
		case c > 0:
			n.cost[i] = bucket.Add(n.cost[i], c)
		default:
			n.give[i] = -c
		}
	}
	for i := range n.net {
		n.net[i] = bucket.Sub(n.cost[i], n.give[i])
	}
	if n.use = n.net; d.Lapsed != nil {
		n.use = b.overAll(d.Pool, d.Lapsed)
		for i, lapsed := range n.use {
			n.use[i] = bucket.Sub(n.net[i], lapsed)
		}
	}
	return n
}

// lapsed returns what fills all limits before any refill: what lapsed, negated, so that Fill less use is what
// the balance changes by.
func (n *NetDemand) lapsed(pool *VectorPool) []int64 {
	fill := pool.vector(len(n.net))
	for i := range fill {
		fill[i] = bucket.Sub(n.use[i], n.net[i])
	}
	return fill
}

// Slack returns how much of a limit a Normal on a contended bucket may leave unclaimed: 50 ms of rate, at
// most a twentieth of the burst. Half of it is room at the top, and half is what others may take between
// image and write. If each had all of it, up to twice as much would be left.
func Slack(l bucket.Limit) int64 {
	const window = 50 // ms
	return min(bucket.Refill(l, 0, window), l.Burst/20)
}

// Expiry returns the latest ttl, in seconds, that any of these balances needs at an instant in ms.
func Expiry(after []bucket.Balance, at int64) int64 {
	var ttl int64
	for _, b := range after {
		ttl = max(ttl, bucket.Expiry(b, at))
	}
	return ttl
}

// ExpiresTooSoon reports whether img, which may be nil, could be deleted by its ttl before it is full, or
// before all holds are over. A window that has more than its burst, as grants make it, has to end first.
func ExpiresTooSoon(img *bucket.Image) bool {
	if img == nil {
		return false
	}
	for _, b := range BalancesOf(img).All {
		full := max(bucket.ReadyAt(b, img.Refilled, b.Burst), b.HeldUntil())
		if b.Windowed() && b.Tokens > b.Burst {
			full = max(full, b.Ends)
		}
		if img.TTL < bucket.LastExpiry && full > bucket.Mul(img.TTL, 1000) {
			return true
		}
	}
	return false
}
