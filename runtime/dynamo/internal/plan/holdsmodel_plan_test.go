package plan_test

import (
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
)

// holdsModel says what is modelled: processes whose leases hold tokens of one bucket.
type holdsModel struct {
	capacity, leases int8 // leases of each process
	faults           int8 // requests that nobody waits for any longer: they are applied later, or never
	windowed         bool // else an in-flight limit
	cost             int8 // of a lease
	actuals          []int8
	instants         []int32 // ms after t0
	skew             [modelProcesses]int32
	symmetric        bool  // states that are alike but for the names of processes and leases count once
	first            int8  // the lowest epoch that the bucket counts at first; 0 for a missing bucket
	ends             int32 // of its window, ms after t0
	resets           int8
	reshapes         bool // the second process has a newer revision
	grows            int8 // which adds so much to the capacity
	expires          bool // the item is deleted at its ttl
	both             bool // one write may be for both leases of a process
	reverses         bool // callers leave, so that a charge of unknown outcome is given back
	soleWriter       bool // give-backs depend on the last write, as far as a process knows
	keepIdle         int64
	broken           string // a control; "" for the rules as they are
}

const (
	modelProcesses = 2
	modelLeases    = 4 // at most
	modelSends     = 3 // of one acquire
	modelSkew      = 1000
	modelMargin    = 3000 // a holder gives up so long before its hold ends, ms
	// modelDelay is the longest time for which a message is under way, ms, if items are deleted. A minute later
	// the item may be another one that counts the same epochs.
	modelDelay = 4 * bucket.EpochLength
)

// action is what a message is to do.
type action uint8

const (
	actTake action = iota
	actEnd
	actExtend
	actReverse
	actReshape
)

// request is what a write is to do for one lease.
type request struct {
	act    action
	actual int8  // of an end
	epoch  int8  // of the lease's hold; lost if it does not count
	ends   int32 // of the lease's window
}

// planKey is all that a plan depends on.
type planKey struct {
	request

	rider        request
	both         bool // rider is in the same write
	confirmed    bool
	sole         bool
	now, process int8
	img          uint32 // the item that is known
	sent         uint32 // the last attempt of unknown outcome, or the one to reverse; 0 for none
}

// planned is what comes of a plan.
type planned struct {
	decision plan.Decision
	message  message
	broken   string // the invariant that the plan breaks
}

// part is what a message does for one lease.
type part struct {
	act      action
	actual   int8
	from, to int8 // the epoch that tokens are taken out of, and that in which the lease holds them then
	moves    bool // it ends or moves a hold
	open     bool // the lease's window is open
}

// message is a write that was sent, whichever lease it is for. A rider is the other lease of the process.
type message struct {
	part

	rider   part
	both    bool
	plan    uint32
	attempt uint32 // of a take
	at      int8   // when it was sent, if items are deleted; else 0
}

// attempt is what a client notes of a take of unknown outcome.
type attempt struct {
	ttl   int32
	epoch int8 // in which it holds what it takes
	ends  int32
	item  uint32 // that it leaves, if nobody else writes
	both  bool   // it is for another lease too
}

// seen counts what was explored.
type seen struct {
	answered [5][5][2]int // by action and path: refused, and applied
	covered  [2]int       // takes of unknown outcome that were applied: the last attempt, and an earlier one
	lost     int          // extensions of holds that were over
	resets   int
	deleted  int
}

// lost is the epoch of a hold that does not count.
const lost = int8(bucket.Lost)

// interned numbers values, from 1 on.
type interned[T comparable] struct {
	numbers map[T]uint32
	values  []T
}

func (in *interned[T]) number(value T) uint32 {
	n, ok := in.numbers[value]
	if !ok {
		if in.numbers == nil {
			in.numbers, in.values = map[T]uint32{}, make([]T, 1)
		}
		n = uint32(len(in.values))
		in.numbers[value], in.values = n, append(in.values, value)
	}
	return n
}

// holdsChecker explores a holdsModel. Plans and items are computed once.
type holdsChecker struct {
	holdsModel

	seen     seen
	images   map[modelItem]*bucket.Image
	items    interned[modelItem]
	messages interned[message]
	attempts interned[attempt]
	digests  interned[planDigest]
	plans    map[uint32]*plan.Plan // by the number of its digest
	planned  map[planKey]planned
	ended    map[[3]uint32]string // what checkEnd has found
}

func newHoldsChecker(m holdsModel) *holdsChecker {
	return &holdsChecker{
		holdsModel: m, images: map[modelItem]*bucket.Image{}, plans: map[uint32]*plan.Plan{},
		planned: map[planKey]planned{}, ended: map[[3]uint32]string{},
	}
}

func (c *holdsChecker) image(it modelItem) *bucket.Image {
	img, ok := c.images[it]
	if !ok {
		img = it.image(c.windowed)
		c.images[it] = img
	}
	return img
}

// shape returns what a process gives buckets.
func (c *holdsChecker) shape(process int8) *plan.Shape {
	s := &plan.Shape{
		Limits: []bucket.Limit{modelLimit(c.capacity, c.windowed)}, Held: []bool{true},
		Version: bucket.RevisionUnit, KeepIdle: c.keepIdle,
	}
	if c.reshapes && process != 0 {
		s.Limits[0], s.Version = modelLimit(c.capacity+c.grows, c.windowed), s.Version+1
	}
	return s
}

func (c *holdsChecker) calendars() []*bucket.Calendar {
	if !c.windowed {
		return nil
	}
	return []*bucket.Calendar{{Unit: bucket.FirstUse, Length: modelPeriod}}
}

// at returns the clock of a process, in ms.
func (c *holdsChecker) at(now, process int8) int64 {
	return t0 + int64(c.instants[now]) + int64(c.skew[process])
}

// epochOf returns the epoch number of the bucket package.
func epochOf(epoch int8) int64 {
	if epoch == lost {
		return bucket.Lost
	}
	return modelEpoch + int64(epoch)
}

// relative is the inverse of epochOf.
func relative(epoch int64) int8 {
	if epoch == bucket.Lost {
		return lost
	}
	return int8(epoch - modelEpoch)
}

// plan returns what k's process does.
func (c *holdsChecker) plan(k planKey) planned {
	result, ok := c.planned[k]
	if !ok {
		result = c.newPlan(k)
		c.planned[k] = result
	}
	return result
}

// taken is the charge of the lease of r.
func (c *holdsChecker) taken(r request) bucket.Charge {
	taken := bucket.Charge{Cost: []int64{int64(c.cost) * bucket.Milli}, Epochs: []int64{epochOf(r.epoch)}}
	if c.windowed {
		taken.Ends = []int64{t0 + int64(r.ends)}
	}
	return taken
}

func (c *holdsChecker) newPlan(k planKey) planned {
	now, img := c.at(k.now, k.process), c.image(c.items.values[k.img])
	if k.act == actReverse {
		return c.newReversal(k, now)
	}
	if k.act == actTake {
		img = c.brokenImage(img, k.request, now)
	}
	d, m := plan.Demand{Called: now, Shape: c.shape(k.process), Windows: c.calendars()}, message{both: k.both}
	usage := c.demand(&d, &m.part, k.request, img, now)
	if k.both {
		usage += c.demand(&d, &m.rider, k.rider, img, now)
	}
	p := plan.Choose(&d, plan.State{Image: img, Confirmed: k.confirmed, SoleWriter: k.sole}, now)
	c.extended(&p, &m.part, k.request)
	if c.extended(&p, &m.rider, k.rider); p.Decision != plan.Write {
		return planned{decision: p.Decision, message: m}
	}
	if p.Uncharged {
		m.act = actReshape
		return c.finishPlan(&p, m, 0)
	}
	if k.act == actTake {
		m.to = relative(p.ChargedEpochs()[0])
		c.raiseTTL(&p, k, m.to)
		after := itemOf(p.Predict(opName(opOther)))
		m.attempt = c.attempts.number(attempt{
			int32(p.TTL - t0/1000), m.to, after.ends, c.items.number(after), k.both,
		})
	}
	return c.finishPlan(&p, m, usage)
}

// demand adds r, which becomes part of a message, to d. It returns the change in usage.
func (c *holdsChecker) demand(
	d *plan.Demand, own *part, r request, img *bucket.Image, now int64,
) (usage int64) {
	taken := c.taken(r)
	*own = part{act: r.act, actual: r.actual, from: r.epoch}
	if img != nil {
		b := img.Balances[0]
		own.open = !c.windowed || b.Ends == taken.Ends[0] && !b.Over(now)
	}
	var lapsed []int64
	var moves []bucket.Moves
	switch change := []int64{0}; r.act {
	case actTake:
		d.Take = taken.Cost
		return taken.Cost[0]
	case actEnd:
		usage = int64(r.actual-c.cost) * bucket.Milli
		change[0] = usage
		lapsed, moves = bucket.EndOf(c.brokenImage(img, r, now), change, []bucket.Charge{taken}, now)
	case actExtend:
		if img != nil {
			moves, _ = bucket.Extend(img, taken, now)
		}
	}
	if d.Change == nil {
		d.Change = []int64{0}
	}
	d.Change[0] += usage
	if lapsed != nil && d.Lapsed == nil {
		d.Lapsed = []int64{0}
	}
	if lapsed != nil {
		d.Lapsed[0] += lapsed[0]
	}
	if own.moves = moves != nil && !moves[0].IsZero(); d.Moves != nil && moves != nil {
		moves[0] = d.Moves[0].And(moves[0])
	}
	if moves != nil {
		d.Moves = moves
	}
	return usage
}

// extended notes in an extension the epoch up to which it holds.
func (c *holdsChecker) extended(p *plan.Plan, own *part, r request) {
	if taken := c.taken(r); own.act == actExtend {
		own.to = relative(p.Extended(&taken)[0])
	}
}

// raiseTTL gives a take the ttl that tells it from attempts of unknown outcome that hold in another epoch.
func (c *holdsChecker) raiseTTL(p *plan.Plan, k planKey, epoch int8) {
	if c.broken == shortTTL {
		p.TTL = bucket.EpochEnd(bucket.Epoch(c.at(k.now, k.process))) / 1000
	}
	if k.sent == 0 {
		return
	}
	sent := c.attempts.values[k.sent]
	least := t0/1000 + int64(sent.ttl)
	if (sent.epoch != epoch || sent.both != k.both) && c.broken != sameTTL {
		least++
	}
	p.TTL = max(p.TTL, least)
}

// newReversal plans to give back what an attempt of unknown outcome took.
func (c *holdsChecker) newReversal(k planKey, now int64) planned {
	sent := c.attempts.values[k.sent]
	img := c.image(c.items.values[sent.item])
	taken := c.taken(request{epoch: sent.epoch})
	taken.Ends = img.Ends()
	p := plan.NewAdjustWrite(taken, img, c.shape(k.process), now)
	p.Reverses, p.ReversesTTL = "the lease's", img.TTL
	m := message{part: part{act: actReverse, from: sent.epoch}}
	m.moves = p.Holds[0].Change != [2]int64{}
	return c.finishPlan(&p, m, -taken.Cost[0])
}

// finishPlan returns what is sent of p, which is to change usage by so much.
func (c *holdsChecker) finishPlan(p *plan.Plan, m message, usage int64) planned {
	if len(p.Holds) == 0 {
		return planned{decision: plan.Write, broken: invCells}
	}
	own := p.Clone()
	c.breakPlan(&own, m.act)
	if m.act != actTake && !c.expires {
		own.TTL = 0 // nobody asks for it
	}
	m.plan = c.digests.number(digestOf(&own))
	if c.plans[m.plan] == nil {
		c.plans[m.plan] = &own
	}
	result := planned{decision: plan.Write, message: m}
	if own.Cost[0] != usage {
		result.broken = invUsage
	}
	return result
}
