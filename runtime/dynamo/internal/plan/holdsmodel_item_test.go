package plan_test

import (
	"math"
	"strconv"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
)

// t0 is the beginning of an epoch, in ms. The model counts epochs from the one that ends there, and time from
// there.
const (
	t0          = 1_700_000_040_000
	modelEpoch  = t0 / bucket.EpochLength
	modelPeriod = 24 * 3600 * 1000 // of windows, ms
	modelEpochs = 16               // that a modelHolds counts
)

// Ops: each acquire has its own, from 1 on. Every other write has a new one, and nobody asks for it later.
const (
	opOther = 0   // of an item
	opNew   = 255 // of a write
)

// opOf returns the op of a lease's acquire.
func opOf(lease int8) uint8 { return uint8(lease + 1) }

func opName(op uint8) string { return strconv.Itoa(int(op)) }

// modelItem is a bucket with one limit, in whole tokens. The zero modelItem is a missing one.
type modelItem struct {
	there   bool
	tokens  int8
	cells   [2]int8
	first   int8 // the lowest epoch that is counted
	burst   int8
	version int8 // above the revision's
	op      uint8
	ttl     int32 // s
	rf      int32 // ms
	ends    int32 // of a windowed limit, ms
}

// image returns it as a process sees it: nil for a missing one.
func (it modelItem) image(windowed bool) *bucket.Image {
	if !it.there {
		return nil
	}
	b := bucket.Balance{Limit: modelLimit(it.burst, windowed), Tokens: int64(it.tokens) * bucket.Milli}
	for i, n := range it.cells {
		b.Cells[i] = int64(n) * bucket.Milli
	}
	b.Epoch = modelEpoch + int64(it.first)
	if windowed {
		b.Ends = t0 + int64(it.ends)
	}
	return &bucket.Image{
		Refilled: t0 + int64(it.rf), Version: bucket.RevisionUnit + int64(it.version), TTL: t0/1000 + int64(it.ttl),
		Op: opName(it.op), Balances: []bucket.Balance{b}, Missing: make([]bool, 1),
	}
}

// itemOf returns the item of which img is the image.
func itemOf(img *bucket.Image) modelItem {
	b := img.Balances[0]
	it := modelItem{
		there: true, tokens: whole(b.Tokens), cells: [2]int8{whole(b.Cells[0]), whole(b.Cells[1])},
		first: int8(b.Epoch - modelEpoch), burst: whole(b.Burst), version: int8(img.Version % bucket.RevisionUnit),
		ttl: int32(img.TTL - t0/1000), rf: int32(img.Refilled - t0),
	}
	if b.Windowed() {
		it.ends = int32(b.Ends - t0)
	}
	if op, err := strconv.Atoi(img.Op); err == nil && op != opNew {
		it.op = uint8(op)
	}
	return it
}

func whole(millitokens int64) int8 { return int8(millitokens / bucket.Milli) }

// modelLimit is the limit of all items.
func modelLimit(burst int8, windowed bool) bucket.Limit {
	l := bucket.InFlight(int64(burst))
	if windowed {
		l.Period = modelPeriod
	}
	return l
}

// evaluate returns img after p, as the text of its path writes it under op. ok is false if a condition does
// not hold.
func evaluate(p *plan.Plan, img *bucket.Image, op string) (after *bucket.Image, ok bool) {
	if p.Path == plan.Create {
		return p.Predict(op), img == nil
	}
	if img == nil || !conditionHolds(p, img, op) {
		return nil, false
	}
	own := *p
	own.Image, own.Holds = img, []bucket.Hold{p.Holds[0]}
	if p.Path == plan.Retry || p.Path == plan.Adjust { // their text sets neither e nor cv
		own.Holds[0].Epoch, own.Version = img.Balances[0].Epoch, img.Version
	}
	return own.Predict(op), true
}

// conditionHolds reports whether the condition of p, which updates a bucket, holds for img.
func conditionHolds(p *plan.Plan, img *bucket.Image, op string) bool {
	b, seen, h := img.Balances[0], p.Image.Balances[0], p.Holds[0]
	exact := p.Path == plan.Normal || p.Path == plan.Reshape
	switch {
	case img.Op == op, p.After != "" && img.Op != p.After,
		p.Reverses != "" && (img.Op != p.Reverses || img.TTL != p.ReversesTTL):
		return false
	case p.Path != plan.Adjust && img.Version != p.Image.Version,
		p.Path != plan.Adjust && !isBetween(b.Tokens, p.Lo[0], p.Hi[0]),
		exact && img.Refilled != p.Image.Refilled,
		b.Windowed() && b.Ends != seen.Ends:
		return false
	case exact && b.Epoch != seen.Epoch, !exact && !isBetween(b.Epoch, h.First, h.Last):
		return false
	case p.Path == plan.Normal:
		return isBetween(b.Cells[0], h.Lo[0], h.Hi[0]) && isBetween(b.Cells[1], h.Lo[1], h.Hi[1])
	}
	return true
}

func isBetween(n, lo, hi int64) bool { return n >= lo && n <= hi }

// neverHolds reports whether no later image than img meets the condition of p, if the item is not deleted:
// rf and e never fall.
func neverHolds(p *plan.Plan, img *bucket.Image) bool {
	switch {
	case img == nil:
		return false
	case p.Path == plan.Create:
		return true
	case p.Path == plan.Normal || p.Path == plan.Reshape:
		return img.Refilled > p.Image.Refilled || img.Balances[0].Epoch > p.Image.Balances[0].Epoch
	}
	return img.Balances[0].Epoch > p.Holds[0].Last
}

// planDigest is all of a plan that decides what it does to an item.
type planDigest struct {
	path                    plan.Path
	cost, fill, lo, hi      int64
	ends, endsSeen          int64
	hold                    bucket.Hold
	rf, rfSeen, eSeen       int64
	version, versionSeen    int64
	ttl, reversesTTL, burst int64
	reverses, after         string
}

func digestOf(p *plan.Plan) planDigest {
	d := planDigest{
		path: p.Path, cost: p.Cost[0], hold: p.Holds[0], version: p.Version, ttl: p.TTL,
		reversesTTL: p.ReversesTTL, reverses: p.Reverses, after: p.After, rf: p.Refilled,
	}
	if p.Ends != nil {
		d.ends = p.Ends[0]
	}
	if p.Path == plan.Create || p.Path == plan.Reshape {
		d.burst = p.Limits[0].Burst
	}
	if p.Path == plan.Create {
		return d
	}
	d.fill, d.lo, d.hi, d.endsSeen = p.Fill[0], p.Lo[0], p.Hi[0], p.Image.Balances[0].Ends
	if p.Path != plan.Adjust {
		d.versionSeen = p.Image.Version
	}
	d.rfSeen, d.eSeen = p.Image.Refilled, p.Image.Balances[0].Epoch
	if p.Path == plan.Retry || p.Path == plan.Adjust {
		d.rf, d.rfSeen, d.eSeen, d.hold.Epoch = 0, 0, 0, 0
	}
	return d
}

// modelHolds are how many tokens a lease holds by epoch, 4 bits each: what the bucket has to count.
type modelHolds uint64

func (h modelHolds) in(epoch int8) int8 { return int8(h >> (4 * epoch) & 15) }

// add adds n tokens in an epoch, or takes them away as far as there are any.
func (h *modelHolds) add(epoch, n int8) {
	if n = max(n, -h.in(epoch)); epoch >= 0 && epoch < modelEpochs {
		*h += modelHolds(n) << (4 * epoch)
	}
}

// sweep forgets what is held in epochs before first.
func (h *modelHolds) sweep(first int8) { *h = *h >> (4 * first) << (4 * first) }

// The invariants, in the order in which they are checked.
const (
	invBelievers = "more callers than slots believe that they have one"
	invSum       = "tokens and cells do not add up"
	invNegative  = "a cell is below 0"
	invCells     = "a cell is not what live leases hold"
	invEnd       = "not all comes back"
	invUsage     = "a write changes usage by something else"
	invUnheld    = "a caller believes in a hold that is not counted"
)

// checkItem checks what holds after each commit. held is what all leases hold, used what they have used of
// the open window.
func (c *holdsChecker) checkItem(it modelItem, all []modelLease, used int8) string {
	if !it.there {
		return ""
	}
	b := c.image(it).Balances[0]
	total := func(epoch int8) (n int8) {
		for i := range all {
			n += all[i].holds.in(epoch)
		}
		return n
	}
	switch {
	case it.tokens+it.cells[0]+it.cells[1] != it.burst-used:
		return invSum
	case it.cells[0] < 0, it.cells[1] < 0, it.tokens < 0 && !c.windowed && !c.reshapes:
		return invNegative
	}
	for i, n := range it.cells {
		if n != total(int8(b.HeldIn(i)-modelEpoch)) {
			return invCells
		}
	}
	for epoch := range int8(modelEpochs) {
		if (epoch < it.first || epoch > it.first+1) && total(epoch) != 0 {
			return invCells
		}
	}
	return ""
}

// checkEnd checks that everything is back some minutes after now, if nobody writes meanwhile, and that one
// write takes all of it.
func (c *holdsChecker) checkEnd(it modelItem, now, used int8) string {
	minutes := int64(2)
	if c.resets > 0 {
		minutes = 4
	}
	at := t0 + int64(c.instants[now]) + minutes*bucket.EpochLength + modelSkew
	img := c.image(it)
	if img == nil || c.windowed && img.Balances[0].Over(at) {
		return ""
	}
	left := int64(it.burst-used) * bucket.Milli
	if bucket.Available(img.Balances[0], img.Refilled, at) != left {
		return invEnd
	}
	if left <= 0 {
		return ""
	}
	d := plan.Demand{Take: []int64{left}, Called: at, Shape: c.shape(0), Windows: c.calendars()}
	p := plan.Choose(&d, plan.State{Image: img, Confirmed: true}, at)
	if p.Decision != plan.Write {
		return invEnd
	}
	after, ok := evaluate(&p, img, opName(opNew))
	if !ok || after.Balances[0].Tokens != 0 || after.Balances[0].Held(math.MinInt64) != left {
		return invEnd
	}
	return ""
}
