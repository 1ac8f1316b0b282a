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
	Ends       []int64        // of windows after the write, ms; 0 for a limit without; nil if none has any
	Holds      []bucket.Hold  // changes of cells; the zero Hold for a limit without cells; nil if none has any
	Refilled   int64          // rf after the write, ms
	Version    int64          // cv after the write
	PlanOf     string         // po after the write
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
	p.Lo, p.Hi, p.Ends = slices.Clone(p.Lo), slices.Clone(p.Hi), slices.Clone(p.Ends)
	p.Holds = slices.Clone(p.Holds)
	return p
}

// Swept returns what the write gives back to the i-th limit of holds that are over, in millitokens. A write
// that opens a window clears its holds, and nothing comes back.
func (p *Plan) Swept(i int) (back int64) {
	if i >= len(p.Holds) || p.Image == nil || p.Path == Reshape {
		return 0
	}
	b := p.Image.Balances[i]
	if !b.Holds() || p.Ends != nil && p.Ends[i] != b.Ends {
		return 0
	}
	for cell, held := range b.Cells {
		if b.HeldIn(cell) < p.Holds[i].Epoch {
			back = bucket.Add(back, held)
		}
	}
	return back
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
// ttl lasts for a debt of one burst. Debt in a window ends with it, and the ttl lasts longer. An in-flight
// limit has no debt that time pays.
func (p *Plan) GuardDebt() {
	if p.Image == nil || p.Decision != Write {
		return
	}
	p.DebtGuarded = true
	for i, b := range BalancesOf(p.Image).All {
		if i < len(p.Lo) && p.Lo[i] == math.MinInt64 && !b.Windowed() && !b.InFlight() {
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
	after := &bucket.Image{Refilled: p.Refilled, Version: p.Version, TTL: p.TTL, Op: op, PlanOf: p.PlanOf}
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
		all[i].Ends = p.ends(i)
		all[i] = p.applyHold(i, all[i])
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
			b.Cells = p.Image.Balances[i].Cells
		}
		b.Tokens = bucket.Sub(bucket.Add(b.Tokens, fill), p.Cost[i])
		b.Consumed = bucket.Add(b.Consumed, p.Cost[i])
		b.Ends = p.ends(i)
		*b = p.applyHold(i, *b)
	}
}

// ends returns the end of limit i's window after the write.
func (p *Plan) ends(i int) int64 {
	if i >= len(p.Ends) {
		return 0
	}
	return p.Ends[i]
}

// ChargedEnds returns the ends of the windows from which p, applied under op, took its cost: nil if no limit
// has windows. img is the bucket after p, or after later writes, and may be nil. The image that p left has
// the ends: two attempts under one op may have opened different windows, with the same ttl. Under another op,
// p was a transaction, whose guards say which windows were open.
func (p *Plan) ChargedEnds(img *bucket.Image, op string) []int64 {
	if img != nil && img.Op == op {
		return img.Ends()
	}
	return slices.Clone(p.Ends)
}

// IsLike reports whether p and q, two attempts under one op, leave the same ttl and the same ends of
// windows. No image says then which of them was applied.
func (p *Plan) IsLike(q *Plan) bool { return p.TTL == q.TTL && slices.Equal(p.Ends, q.Ends) }

// OfUnknownWindows returns p, unless unknown says that an earlier attempt may be the one that was applied.
// Then it returns a copy of p in which the window and the epoch of its cost are unknown. So nothing comes
// back to either.
func (p *Plan) OfUnknownWindows(unknown bool) *Plan {
	if !unknown || p.Ends == nil && p.Holds == nil {
		return p
	}
	own := *p
	if own.Holds = slices.Clone(p.Holds); p.Ends != nil {
		own.Ends = slices.Repeat([]int64{-1}, len(p.Ends))
	}
	for i := range own.Holds {
		own.Holds[i].Until = bucket.Lost
	}
	return &own
}

// VectorPool lends the vectors of one plan. They last until Choose resets the pool for the next plan. The
// zero value is ready for use. A nil pool allocates each vector.
type VectorPool struct {
	free []int64
	used int
	own  [2 * vectorsPerLimit]int64 // enough for two limits
}

// vectorsPerLimit is how many vectors a plan takes: at most two paths of 6 each, and 5 for the demand. A plan
// that takes more allocates.
const vectorsPerLimit = 17

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
		if v.free = v.own[:]; v.used > 0 || vectorsPerLimit*n > len(v.own) { // if used > 0, own may be lent
			v.free, v.used = make([]int64, vectorsPerLimit*n), 0
		}
	}
	lent := v.free[v.used : v.used+n : v.used+n]
	v.used += n
	clear(lent)
	return lent
}

// Balances are all limits of an image: the schema's, then the extra ones, which are not in the schema.
type Balances struct {
	image   *bucket.Image
	All     []bucket.Balance
	missing []bool
}

// BalancesOf returns the balances of img.
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

// overAll returns cost over all limits: 0 for those that are missing or extra.
func (b Balances) overAll(pool *VectorPool, cost []int64) []int64 {
	all := pool.vector(len(b.All))
	copy(all, cost)
	for i, missing := range b.missing {
		if missing {
			all[i] = 0
		}
	}
	return all
}

// exceeds reports whether take is more than a limit ever holds, as far as b says at now.
func (b Balances) exceeds(take []int64, now int64) bool {
	for i, balance := range b.All {
		if !b.missing[i] && balance.TooLarge(take[i], now) {
			return true
		}
	}
	return false
}

// ends returns the ends of the windows of all limits, nil if none has windows.
func (b Balances) ends(pool *VectorPool) []int64 {
	if !slices.ContainsFunc(b.All, func(one bucket.Balance) bool { return one.Windowed() }) {
		return nil
	}
	ends := pool.vector(len(b.All))
	for i := range b.All {
		ends[i] = b.All[i].Ends
	}
	return ends
}

// extraWindow reports whether a limit that the schema does not have has windows: each write names its window.
func (b Balances) extraWindow() bool {
	return slices.ContainsFunc(b.image.Extra, func(n bucket.Named) bool { return n.Windowed() })
}

// base returns what all updates from an image have in common: no guards, and the ttl that the balances after
// it need. ends are those of windows after it.
func (b Balances) base(
	pool *VectorPool, path Path, cost, fill, ends []int64, holds []bucket.Hold, now int64,
) Plan {
	incomplete := slices.Contains(b.image.Missing, true)
	p := Plan{
		Path: path, Image: b.image, Cost: cost, Fill: fill, Ends: ends, Holds: holds,
		Lo: pool.vector(len(b.All)), Hi: pool.vector(len(b.All)),
		Refilled: max(now, b.image.Refilled), Version: b.image.Version, PlanOf: b.image.PlanOf,
		Generic: incomplete || b.extraWindow(),
	}
	for i, balance := range b.All {
		p.Lo[i], p.Hi[i] = math.MinInt64, math.MaxInt64
		if !b.missing[i] {
			balance.Tokens = bucket.Sub(bucket.Add(balance.Tokens, fill[i]), cost[i])
			balance.Ends = p.ends(i)
			balance = p.applyHold(i, balance)
			p.TTL = max(p.TTL, bucket.Expiry(balance, p.Refilled))
		}
	}
	if incomplete {
		p.Missing = b.missing
	}
	return p
}

// applyHold returns b, the i-th limit's balance, with what the write does to its cells.
func (p *Plan) applyHold(i int, b bucket.Balance) bucket.Balance {
	if i >= len(p.Holds) || p.Holds[i].Epoch == 0 {
		return b
	}
	return b.Apply(p.Holds[i])
}

// ChargedEpochs returns the epochs in which what p took is held, by limit: nil if no limit counts holds.
func (p *Plan) ChargedEpochs() (epochs []int64) {
	for i, h := range p.Holds {
		if h.Epoch == 0 || i >= len(p.Cost) {
			continue
		}
		if epochs == nil {
			epochs = make([]int64, len(p.Cost))
		}
		epochs[i] = h.Until
	}
	return epochs
}

// Extended returns the epochs in which held is held after p, an extension, by limit: bucket.Lost for what is
// over. p is nil for a missing bucket.
func (p *Plan) Extended(held *bucket.Charge) []int64 {
	until := make([]int64, len(held.Cost))
	for i, epoch := range held.Epochs {
		if epoch == 0 || held.Cost[i] == 0 {
			continue
		}
		if p == nil || p.Image == nil {
			until[i] = bucket.Lost
			continue
		}
		b := &p.Image.Balances[i]
		switch {
		case i >= len(p.Holds) || p.Holds[i].Epoch == 0: // the limit is gone, and nobody counts it
			until[i] = epoch + 1
		case b.Windowed() && (b.Over(p.Refilled) || held.Ends[i] != b.Ends): // nothing is held any more
			until[i] = max(epoch, p.Holds[i].Until)
		case epoch < b.Epoch, p.Holds[i].Until > epoch+1:
			until[i] = bucket.Lost
		default:
			until[i] = max(epoch, p.Holds[i].Until)
		}
	}
	return until
}

// HoldsLike reports whether p and q, two attempts under one op, hold what they take in the same epochs. If
// not, only the ttl tells which of them was applied.
func (p *Plan) HoldsLike(q *Plan) bool {
	return slices.EqualFunc(p.Holds, q.Holds, func(a, b bucket.Hold) bool { return a.Until == b.Until })
}
