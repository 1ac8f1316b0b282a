package plan

import (
	"math"
	"slices"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// Path is a write path.
type Path uint8

const (
	Create Path = iota
	Normal
	Retry
	Adjust
	Reshape
)

// String returns the path's name as observers see it.
func (p Path) String() string {
	return [...]string{"create", "normal", "retry", "adjust", "reshape"}[p]
}

// Plan is one write, or why there is none. Vectors hold the schema's limits, followed by the image's extra ones.
type Plan struct {
	Decision  Decision
	Path      Path
	Generic   bool // built from the image: the generated text does not fit it
	Uncharged bool // a reshape or a create that charges nothing, since the call is to be denied

	Image                  *bucket.Image // what the condition is computed from
	Limits                 []bucket.Limit
	Cost, Fill             []int64
	Lo, Hi                 []int64
	Refilled, Version, TTL int64
	RepairsTTL             bool   // an Adjust of 0 that mends the ttl
	Reverses               string // the op of the charge that an Adjust gives back, and the only state it applies to
	Missing                []bool // nil where the bucket has all limits
	DebtGuarded            bool   // unguarded limits are guarded against debt that ttl does not reckon with
}

// Balances are all limits of an image: the schema's, then those that the schema does not know.
type Balances struct {
	image   *bucket.Image
	All     []bucket.Balance
	missing []bool
}

func BalancesOf(img *bucket.Image) Balances {
	b := Balances{image: img, All: img.Balances, missing: img.Missing}
	if len(img.Extra) > 0 {
		b.All, b.missing = slices.Clone(b.All), slices.Clone(b.missing)
		for _, named := range img.Extra {
			b.All, b.missing = append(b.All, named.Balance), append(b.missing, false)
		}
	}
	return b
}

// Clone returns p with vectors that stay.
func (p Plan) Clone() Plan {
	p.Cost, p.Fill, p.Lo, p.Hi = slices.Clone(p.Cost), slices.Clone(p.Fill), slices.Clone(p.Lo), slices.Clone(p.Hi)
	return p
}

// overAll returns cost over all limits: nothing for those that are missing or unknown to the schema.
func (b Balances) overAll(s *VectorPool, cost []int64) []int64 {
	all := s.vector(len(b.All))
	copy(all, cost)
	for i, missing := range b.missing {
		if missing {
			all[i] = 0
		}
	}
	return all
}

// NetDemand is what a want comes to over all limits. It stands for an order: first what is given back, which then is there for
// those who take; then they; last what settles take, into debt if need be. Netting what is given with what is taken would
// leave the guards out, and forge tokens.
type NetDemand struct {
	take []int64 // by acquires
	cost []int64 // by all
	give []int64
	net  []int64 // what is charged in the end
}

func (b Balances) Net(w *Demand) NetDemand {
	f := NetDemand{take: b.overAll(w.Pool, w.Take), cost: b.overAll(w.Pool, w.Take), give: w.Pool.vector(len(b.All)), net: w.Pool.vector(len(b.All))}
	for i, c := range w.Change {
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

func (b Balances) exceeds(take []int64) bool {
	for i, balance := range b.All {
		if !b.missing[i] && take[i] > balance.Burst {
			return true
		}
	}
	return false
}

// base fills in what all updates from an image have in common.
func (b Balances) base(s *VectorPool, p Path, cost, fill []int64, now int64) Plan {
	incomplete := slices.Contains(b.image.Missing, true)
	made := Plan{
		Path: p, Image: b.image, Cost: cost, Fill: fill, Lo: s.vector(len(b.All)), Hi: s.vector(len(b.All)),
		Refilled: max(now, b.image.Refilled), Version: b.image.Version, Generic: incomplete,
	}
	for i, balance := range b.All {
		made.Lo[i], made.Hi[i] = math.MinInt64, math.MaxInt64
		if !b.missing[i] {
			balance.Tokens = bucket.Sub(bucket.Add(balance.Tokens, fill[i]), cost[i])
			made.TTL = max(made.TTL, bucket.Expiry(balance, made.Refilled))
		}
	}
	if incomplete {
		made.Missing = b.missing
	}
	return made
}

// NewRetry takes the cost from the stored tokens and leaves the refill unclaimed. Its upper guard keeps the level
// falling by exactly the cost: above it, the refill since rf, or what is given back first, would be clamped, and claimed on
// top later.
func NewRetry(w *Demand, b Balances, f NetDemand, now int64) (Plan, bool) {
	p := b.base(w.Pool, Retry, f.net, w.Pool.vector(len(f.cost)), now)
	for i, balance := range b.All {
		if f.cost[i] <= 0 { // not guarded; what is given back may lift the balance above its burst
			continue
		}
		p.Hi[i] = bucket.Sub(bucket.Sub(balance.Burst, bucket.Refill(balance.Limit, b.image.Refilled, w.Called)), f.give[i])
		if f.take[i] > 0 {
			p.Lo[i] = bucket.Sub(f.take[i], f.give[i])
		}
		if balance.Tokens < p.Lo[i] || balance.Tokens > p.Hi[i] {
			return Plan{}, false
		}
	}
	return p, true
}

// NewNormal claims the refill of all limits, and takes the cost. Where there is one, what is given back counts as refill.
func NewNormal(w *Demand, v State, b Balances, f NetDemand, now int64) (Plan, bool) {
	n := len(b.All)
	fill, lo, hi := w.Pool.vector(n), w.Pool.vector(n), w.Pool.vector(n)
	for i, balance := range b.All {
		if b.missing[i] {
			lo[i], hi[i] = math.MinInt64, math.MaxInt64
			continue
		}
		given := f.give[i]
		if f.cost[i] == 0 {
			given = 0 // on top, as by an Adjust
		}
		tk, top, slack := balance.Tokens, balance.Burst, int64(0)
		if v.LeaveSlack && given == 0 {
			slack = Slack(balance.Limit) / 2
			top = max(bucket.Sub(top, slack), min(f.cost[i], top))
		}
		refill := bucket.Add(bucket.Refill(balance.Limit, b.image.Refilled, now), given)
		claim := min(refill, bucket.Sub(top, tk))
		if claim < 0 { // above the top is left alone; above the burst it is cut, exactly
			claim = min(0, bucket.Sub(balance.Burst, tk))
			if claim < 0 {
				slack = 0
			}
		}
		if f.take[i] > 0 && bucket.Add(tk, claim) < f.take[i] {
			return Plan{}, false
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
	p := b.base(w.Pool, Normal, f.net, fill, now)
	p.Lo, p.Hi = lo, hi
	p.Generic = p.Generic || len(b.image.Extra) > 0
	return p, true
}

// Slack is how much a contended Normal may leave unclaimed: 50 ms of rate, at most a twentieth of the burst. Half of it
// is room at the top, half is what others may take between the image and the write; with all of it for each, as much as
// twice that was left.
func Slack(l bucket.Limit) int64 {
	const window = 50 // ms
	return min(bucket.Refill(l, 0, window), l.Burst/20)
}

// NewAdjust gives back, whatever the balance. Without an image the schema's limits tell the ttl.
func NewAdjust(cost []int64, img *bucket.Image, s *Shape, now int64) Plan {
	if img == nil {
		img = &bucket.Image{Balances: bucket.Full(s.Limits), Missing: make([]bool, len(s.Limits))}
		img.Refilled = now
	}
	b := BalancesOf(img)
	all := b.overAll(nil, cost)
	p := b.base(nil, Adjust, all, make([]int64, len(all)), now)
	if p.Generic && !slices.ContainsFunc(all, func(n int64) bool { return n != 0 }) {
		p.Decision = None // every limit that was charged is gone
	}
	return p
}

// NewReshape refills with the old parameters, clamps to the old burst and to the new one, and takes the cost.
func NewReshape(cost []int64, img *bucket.Image, s *Shape, now int64) Plan {
	n := len(s.Limits)
	p := Plan{
		Path: Reshape, Image: img, Limits: s.Limits, Cost: cost, Version: s.Version, Refilled: max(now, img.Refilled),
		Fill: make([]int64, n), Lo: make([]int64, n), Hi: make([]int64, n),
	}
	after := bucket.Full(s.Limits)
	full := &bucket.Image{Balances: slices.Clone(after), Missing: make([]bool, n)}
	for i, old := range img.Balances {
		burst := s.Limits[i].Burst
		if cost[i] > burst {
			return Plan{Decision: TooLarge, Image: full}
		}
		if img.Missing[i] {
			p.Lo[i], p.Hi[i] = math.MaxInt64, math.MaxInt64 // must be missing still
			after[i].Tokens = bucket.Sub(burst, cost[i])
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
		p.Generic = p.Generic || !slices.Contains(s.Removed, named.Name)
	}
	return p
}

// GuardDebt guards limits that the plan leaves unguarded against more debt than its ttl allows for. A single update sees what
// it left and mends a ttl that is too short; inside a transaction nothing is seen. Every ttl lasts for a debt of a burst.
func (p *Plan) GuardDebt() {
	if p.Image == nil || p.Decision != Write {
		return
	}
	p.DebtGuarded = true
	for i, b := range BalancesOf(p.Image).All {
		if i < len(p.Lo) && p.Lo[i] == math.MinInt64 {
			p.Lo[i] = min(b.Tokens, -min(b.Burst, p.burst(i, b))/2)
			p.Generic = p.Generic || i >= len(p.Image.Balances) // a limit that the generated text cannot guard
		}
	}
}

// burst is what limit i's burst will be.
func (p *Plan) burst(i int, b bucket.Balance) int64 {
	if p.Path == Reshape && i < len(p.Limits) {
		return p.Limits[i].Burst
	}
	return b.Burst
}
