// Package plan decides what to write to a bucket: by which path, with which numbers, under which guards. It
// is pure: it has no clock, no lock and no I/O. docs/design.md explains the paths ("Write paths") and the
// guards ("Guards").
package plan

import (
	"math"
	"slices"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// Path is a write path.
type Path uint8

// The write paths.
const (
	Create  Path = iota // puts a full bucket less the cost
	Normal              // claims the refill and takes the cost
	Retry               // takes the cost from the stored tokens
	Adjust              // gives tokens back
	Reshape             // gives the bucket another shape and takes the cost
)

// String returns the path's name as observers get it.
func (p Path) String() string {
	return [...]string{"create", "normal", "retry", "adjust", "reshape"}[p]
}

// Decision is what to do about a demand.
type Decision uint8

// The decisions.
const (
	Write    Decision = iota // send the plan's write
	Read                     // read the bucket: what is known does not decide
	Deny                     // the confirmed image has too few tokens
	TooLarge                 // a cost exceeds its burst, so it can never be served
	None                     // nothing to do: what is given back is there already
)

// Plan is one write, or why there is none. Vectors hold the schema's limits in order, followed by the image's
// extra ones, in millitokens.
type Plan struct {
	Decision  Decision
	Path      Path
	Generic   bool // the text is built from the image, since the generated one does not fit it
	Uncharged bool // a Reshape or Create that takes nothing, because the call is to be denied

	Image      *bucket.Image  // what the guards are computed from; nil for a missing bucket
	Limits     []bucket.Limit // of a Create or Reshape
	Cost, Fill []int64        // taken, and claimed or cut
	Lo, Hi     []int64        // the guard of each balance; math.MinInt64 and math.MaxInt64 for none
	Refilled   int64          // rf after the write, ms
	Version    int64          // cv after the write
	TTL        int64          // seconds

	RepairsTTL  bool   // an Adjust of 0 that writes a longer ttl
	Reverses    string // the op of the charge that an Adjust gives back, and under which alone it applies
	ReversesTTL int64  // its ttl, seconds, which tells it from another charge under that op
	After       string // the op of the bucket's last write, under which alone the plan applies; "" for any
	Missing     []bool // limits that the bucket does not have; nil if it has all of them
	DebtGuarded bool   // limits without a guard have one against debt that the ttl does not allow for
}

// Clone returns p with vectors of its own: those of a plan last until the next plan from the same VectorPool.
func (p Plan) Clone() Plan {
	p.Cost, p.Fill = slices.Clone(p.Cost), slices.Clone(p.Fill)
	p.Lo, p.Hi = slices.Clone(p.Lo), slices.Clone(p.Hi)
	return p
}

// Label returns the path's name as observers get it. A settle that charges is a path of its own to them.
func (p *Plan) Label(settle bool) string {
	switch {
	case p.Reverses != "":
		return "undo"
	case p.RepairsTTL:
		return "repair"
	case settle && p.Path != Adjust:
		return "settle"
	}
	return p.Path.String()
}

// GuardDebt guards limits that the plan leaves unguarded against more debt than its ttl allows for. A single
// update sees what it left, and a ttl that is too short is repaired. A transaction returns no image. Every
// ttl lasts for a debt of one burst.
func (p *Plan) GuardDebt() {
	if p.Image == nil || p.Decision != Write {
		return
	}
	p.DebtGuarded = true
	for i, b := range BalancesOf(p.Image).All {
		if i < len(p.Lo) && p.Lo[i] == math.MinInt64 {
			p.Lo[i] = min(b.Tokens, -min(b.Burst, p.burst(i, b))/2)
			p.Generic = p.Generic || i >= len(p.Image.Balances) // the generated text cannot guard an extra limit
		}
	}
}

// burst returns the burst of limit i after the write.
func (p *Plan) burst(i int, b bucket.Balance) int64 {
	if p.Path == Reshape && i < len(p.Limits) {
		return p.Limits[i].Burst
	}
	return b.Burst
}

// DeniedImage returns the image that denies the demand, nil if p admits it. For a write that charges nothing
// that is the image after it. Such a write is not sent if another bucket of the chain denies too.
func (p *Plan) DeniedImage() *bucket.Image {
	switch {
	case p.Decision == Deny:
		return p.Image
	case p.Uncharged:
		return p.Predict("")
	}
	return nil
}

// Predict returns the image that p leaves under op, if nobody else has written meanwhile.
func (p *Plan) Predict(op string) *bucket.Image {
	after := &bucket.Image{Refilled: p.Refilled, Version: p.Version, TTL: p.TTL, Op: op}
	if p.Path == Create || p.Path == Reshape {
		p.predictShaped(after)
		return after
	}
	if p.Path != Normal { // the refill stays unclaimed
		after.Refilled = p.Image.Refilled
	}
	all := slices.Clone(BalancesOf(p.Image).All)
	for i := range all {
		all[i].Tokens = bucket.Sub(bucket.Add(all[i].Tokens, p.Fill[i]), p.Cost[i])
		all[i].Consumed = bucket.Add(all[i].Consumed, p.Cost[i])
	}
	n := len(p.Image.Balances)
	after.Balances, after.Missing = all[:n:n], p.Image.Missing
	for i, named := range p.Image.Extra {
		after.Extra = append(after.Extra, bucket.Named{Name: named.Name, Balance: all[n+i]})
	}
	return after
}

// predictShaped fills in the balances that a Create or Reshape leaves.
func (p *Plan) predictShaped(after *bucket.Image) {
	after.Balances = bucket.Full(p.Limits)
	after.Missing = make([]bool, len(p.Limits))
	for i := range after.Balances {
		b, fill := &after.Balances[i], int64(0)
		if p.Image != nil && !p.Image.Missing[i] {
			b.Tokens, b.Consumed, fill = p.Image.Balances[i].Tokens, p.Image.Balances[i].Consumed, p.Fill[i]
		}
		b.Tokens = bucket.Sub(bucket.Add(b.Tokens, fill), p.Cost[i])
		b.Consumed = bucket.Add(b.Consumed, p.Cost[i])
	}
}

// Expiry returns the latest ttl, in seconds, that any of these balances needs at an instant in ms.
func Expiry(after []bucket.Balance, at int64) int64 {
	var ttl int64
	for _, b := range after {
		ttl = max(ttl, bucket.Expiry(b, at))
	}
	return ttl
}

// ExpiresTooSoon reports whether img, which may be nil, could be deleted by its ttl before it is full.
func ExpiresTooSoon(img *bucket.Image) bool {
	if img == nil {
		return false
	}
	for _, b := range BalancesOf(img).All {
		full := bucket.ReadyAt(b, img.Refilled, b.Burst)
		if img.TTL < bucket.LastExpiry && full > bucket.Mul(img.TTL, 1000) {
			return true
		}
	}
	return false
}

// VectorPool lends the vectors of one plan. They last until Choose resets the pool for the next plan. The
// zero value is ready for use. A nil pool allocates each vector.
type VectorPool struct {
	free []int64
	used int
	own  [2 * vectorsPerLimit]int64 // enough for two limits
}

// vectorsPerLimit is how many vectors a plan takes: at most two paths of 5 each, and 4 for the demand.
const vectorsPerLimit = 14

// reset makes all vectors free again.
func (v *VectorPool) reset() {
	if v != nil {
		v.used = 0
	}
}

// vector returns n zeros.
func (v *VectorPool) vector(n int) []int64 {
	if v == nil {
		return make([]int64, n)
	}
	if v.used+n > len(v.free) {
		if v.free, v.used = v.own[:], 0; vectorsPerLimit*n > len(v.own) {
			v.free = make([]int64, vectorsPerLimit*n)
		}
	}
	lent := v.free[v.used : v.used+n : v.used+n]
	v.used += n
	clear(lent)
	return lent
}

// base returns what all updates from an image have in common: no guards, and the ttl that the balances after
// it need.
func (b Balances) base(pool *VectorPool, path Path, cost, fill []int64, now int64) Plan {
	incomplete := slices.Contains(b.image.Missing, true)
	p := Plan{
		Path: path, Image: b.image, Cost: cost, Fill: fill,
		Lo: pool.vector(len(b.All)), Hi: pool.vector(len(b.All)),
		Refilled: max(now, b.image.Refilled), Version: b.image.Version, Generic: incomplete,
	}
	for i, balance := range b.All {
		p.Lo[i], p.Hi[i] = math.MinInt64, math.MaxInt64
		if !b.missing[i] {
			balance.Tokens = bucket.Sub(bucket.Add(balance.Tokens, fill[i]), cost[i])
			p.TTL = max(p.TTL, bucket.Expiry(balance, p.Refilled))
		}
	}
	if incomplete {
		p.Missing = b.missing
	}
	return p
}

// NewRetry takes the cost from the stored tokens and leaves the refill unclaimed. ok is false if the image
// says that its guards will not hold. The upper guard keeps what is available falling by exactly the cost.
// Above it, the refill since rf, or what is given back first, would be clamped, and claimed later. A limit
// that is only given back has no guard: a give-back may lift its balance above the burst.
func NewRetry(d *Demand, b Balances, net NetDemand, now int64) (p Plan, ok bool) {
	p = b.base(d.Pool, Retry, net.net, d.Pool.vector(len(net.cost)), now)
	for i, balance := range b.All {
		if net.cost[i] <= 0 {
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
	fill, lo, hi := d.Pool.vector(n), d.Pool.vector(n), d.Pool.vector(n)
	for i, balance := range b.All {
		lo[i], hi[i] = math.MinInt64, math.MaxInt64
		if b.missing[i] {
			continue
		}
		given := net.give[i]
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
	p = b.base(d.Pool, Normal, net.net, fill, now)
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

// NewAdjust gives back, whatever the balance. Without an image, the ttl is that of the shape's limits. The
// decision is None if the bucket has none of the limits that were charged any more.
func NewAdjust(cost []int64, img *bucket.Image, s *Shape, now int64) Plan {
	if img == nil {
		img = &bucket.Image{Refilled: now, Balances: bucket.Full(s.Limits), Missing: make([]bool, len(s.Limits))}
	}
	b := BalancesOf(img)
	all := b.overAll(nil, cost)
	p := b.base(nil, Adjust, all, make([]int64, len(all)), now)
	if p.Generic && !slices.ContainsFunc(all, func(n int64) bool { return n != 0 }) {
		p.Decision = None
	}
	return p
}

// NewAdjustWrite is NewAdjust that is written even if it changes no limit of s, with a ttl that s asks for.
func NewAdjustWrite(cost []int64, img *bucket.Image, s *Shape, now int64) Plan {
	p := NewAdjust(cost, img, s, now)
	p.Decision = Write
	p.Keep(s, now)
	return p
}

// NewReshape refills with the old parameters, clamps to the old burst and then to the new one, and takes the
// cost. The decision is Deny or TooLarge if that is not possible.
func NewReshape(cost []int64, img *bucket.Image, s *Shape, now int64) Plan {
	n := len(s.Limits)
	p := Plan{
		Path: Reshape, Image: img, Limits: s.Limits, Cost: cost,
		Version: s.Version, Refilled: max(now, img.Refilled),
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
			p.Lo[i], p.Hi[i] = math.MaxInt64, math.MaxInt64 // it must still be missing
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

// Negated returns the cost that gives cost back.
func Negated(cost []int64) []int64 {
	back := slices.Clone(cost)
	for i := range back {
		back[i] = -back[i]
	}
	return back
}
