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
	var holds []bucket.Hold
	for i, balance := range b.All {
		lo[i], hi[i] = math.MinInt64, math.MaxInt64
		if b.missing[i] {
			continue
		}
		give := net.give[i]
		if balance.Holds() && i < len(b.image.Balances) {
			if holds == nil {
				holds = make([]bucket.Hold, n)
			}
			opens := balance.Windowed() && balance.Over(now) && net.cost[i] > 0
			swept := int64(0)
			holds[i], swept = balance.Sweep(net.take[i], d.moves(i), opens, now)
			fill[i] = bucket.Add(fill[i], swept)
			give = bucket.Add(give, swept) // it is there for acquires
		}
		if balance.InFlight() {
			if lo[i] = bucket.Sub(net.take[i], give); net.take[i] == 0 {
				lo[i] = math.MinInt64
			} else if balance.Tokens < lo[i] {
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
// cost. The use of an open window stays. The decision is Deny or TooLarge if that is not possible.
func NewReshape(cost []int64, img *bucket.Image, s *Shape, windows []*bucket.Calendar, now int64) Plan {
	n := len(s.Limits)
	p := Plan{
		Path: Reshape, Image: img, Limits: s.Limits, Cost: cost,
		Version: s.Version, Refilled: max(now, img.Refilled),
		Fill: make([]int64, n), Lo: make([]int64, n), Hi: make([]int64, n),
	}
	after := bucket.Full(s.Limits)
	full := &bucket.Image{Balances: slices.Clone(after), Missing: make([]bool, n)}
	if windowed(s.Limits) {
		p.Ends = make([]int64, n)
	}
	p.Holds = s.newHolds()
	for i, old := range img.Balances {
		burst := s.Limits[i].Burst
		if cost[i] > burst {
			return Plan{Decision: TooLarge, Image: full}
		}
		p.Generic = p.Generic || old.Holds() && !s.holds(i) // the generated text does not remove its cells
		if s.holds(i) {
			var sweeps bool
			if p.Holds[i], sweeps = reshapedHold(old, cost[i], now); sweeps {
				return Plan{Decision: Deny, Image: img} // the bucket gets its shape first, and is swept then
			}
			after[i].Cells = old.Cells
			after[i] = after[i].Apply(p.Holds[i])
		}
		if img.Missing[i] {
			p.Lo[i], p.Hi[i] = math.MaxInt64, math.MaxInt64 // it must still be missing
			after[i].Tokens = bucket.Sub(burst, cost[i])
			if after[i].Windowed() && cost[i] > 0 {
				p.Ends[i] = windows[i].End(now, 0)
			}
			after[i].Ends = p.ends(i)
			continue
		}
		if old.InFlight() { // what is held stays held
			p.Fill[i], p.Lo[i], p.Hi[i] = bucket.Sub(burst, old.Burst), math.MinInt64, math.MaxInt64
			after[i].Tokens = bucket.Sub(bucket.Add(old.Tokens, p.Fill[i]), cost[i])
			if cost[i] > 0 {
				p.Lo[i] = bucket.Sub(cost[i], p.Fill[i])
			}
			if cost[i] > 0 && after[i].Tokens < 0 {
				return Plan{Decision: Deny, Image: img}
			}
			continue
		}
		if old.Windowed() {
			step, fits := old.Reshape(windows[i], s.Limits[i], cost[i], now)
			if !fits {
				return Plan{Decision: Deny, Image: img}
			}
			p.Fill[i], p.Lo[i], p.Hi[i], p.Ends[i] = step.Fill, step.Lo, step.Hi, step.Ends
			after[i].Tokens, after[i].Ends = bucket.Sub(bucket.Add(old.Tokens, step.Fill), cost[i]), step.Ends
			continue
		}
		refill := bucket.Refill(old.Limit, img.Refilled, now)
		top := min(old.Burst, burst)
		p.Fill[i] = min(refill, bucket.Sub(top, old.Tokens))
		left := bucket.Sub(bucket.Add(old.Tokens, p.Fill[i]), cost[i])
		switch {
		case left < 0 && cost[i] > 0:
			return Plan{Decision: Deny, Image: img}
		case p.Fill[i] < refill:
			p.Lo[i], p.Hi[i] = old.Tokens, old.Tokens
		case cost[i] > 0:
			p.Lo[i], p.Hi[i] = bucket.Sub(cost[i], p.Fill[i]), bucket.Sub(top, p.Fill[i])
		default:
			p.Lo[i], p.Hi[i] = math.MinInt64, bucket.Sub(top, p.Fill[i])
		}
		after[i].Tokens = left
	}
	p.TTL = Expiry(after, p.Refilled)
	for _, named := range img.Extra {
		p.Generic = p.Generic || !slices.Contains(s.Removed, named.Name) || named.Windowed() || named.Holds()
	}
	return p
}

// reshapedHold returns what a Reshape does to the cells of a limit that is to count holds, and takes cost of.
// sweeps says that it would have to sweep, or to clear them for a new window.
func reshapedHold(old bucket.Balance, cost, now int64) (h bucket.Hold, sweeps bool) {
	if !old.Holds() {
		return bucket.NewHold(cost, bucket.NewRing, now), false
	}
	h, ok := old.Hold(cost, bucket.NoMoves, now)
	return h, cost > 0 && (!ok || old.Windowed() && old.Over(now))
}

// NetDemand is a demand over all limits of an image. It stands for an order: first what is given back, which
// is then there for acquires; then acquires; last what settles take, into debt if need be. Netting what is
// given with what is taken would leave the guards out, and forge tokens.
type NetDemand struct {
	take []int64 // by acquires
	cost []int64 // by all
	give []int64
	net  []int64 // cost less give
	use  []int64 // net less what lapsed: what counts in usage
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
// image and write. With all of it for each, as much as twice that was left.
func Slack(l bucket.Limit) int64 {
	const window = 50 // ms
	return min(bucket.Refill(l, 0, window), l.Burst/20)
}
