package plan_test

import (
	"cmp"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// phase is what a lease is at. Its size leaves no gap in a lease, so that a state is hashed at one go.
type phase uint32

const (
	idle phase = iota
	trying
	held
	extending
	ending
	reversing
	over
)

// modelLease is a lease as its client knows it, and what it really holds.
type modelLease struct {
	phase   phase
	sends   uint8
	epoch   int8      // of its hold; lost if it does not count
	until   int8      // the epoch up to whose end its caller believes that it holds tokens; 0 if it does not
	exempt  bool      // a reset has admitted others beside it
	ends    int32     // of the window that it charged
	pending uint32    // the message that it waits for; riding for that of the other lease
	sent    [2]uint32 // takes of unknown outcome, with other ttls or windows, the oldest first
	holds   modelHolds
}

// riding stands for the message of the other lease.
const riding = 1<<32 - 1

// lastSent returns the last take of unknown outcome.
func (l *modelLease) lastSent() uint32 {
	if l.sent[1] != 0 {
		return l.sent[1]
	}
	return l.sent[0]
}

// believes reports whether l's caller goes by its hold.
func (l *modelLease) believes() bool {
	return l.until != 0 && (l.phase == held || l.phase == extending)
}

// modelState is everything at an instant. Two that are equal have the same future.
type modelState struct {
	now    int8
	faults int8
	resets int8
	used   int8 // of the open window
	item   uint32
	known  [modelProcesses]uint32 // by process, the item as it saw it last; 0 for nothing
	leases [modelLeases]modelLease
	late   [3]lateMessage
}

// lateMessage is a message that nobody waits for.
type lateMessage struct {
	number uint32
	lease  int32
}

func compareLate(a, b lateMessage) int {
	return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.lease, b.lease))
}

// kind is what a step does.
type kind uint8

const (
	tick kind = iota
	send
	leave
	deliver
	lose
	arrive
	reset
	expire
)

// modelStep is one step.
type modelStep struct {
	kind   kind
	lease  int8 // or which late message
	act    action
	fresh  bool // the process reads the bucket first
	actual int8

	both        bool // the write is for the other lease too
	rider       action
	riderActual int8
}

// start returns the first state.
func (c *holdsChecker) start() modelState {
	s := modelState{faults: c.faults, resets: c.resets, item: c.items.number(modelItem{})}
	if c.first != 0 {
		s.item = c.items.number(modelItem{
			there: true, tokens: c.capacity, burst: c.capacity, first: c.first, ends: c.ends,
		})
	}
	return s
}

func (c *holdsChecker) processOf(lease int8) int8 { return lease / c.leases }

// steps adds what can happen in s.
func (c *holdsChecker) steps(all []modelStep, s *modelState) []modelStep {
	if int(s.now)+1 < len(c.instants) {
		all = append(all, modelStep{kind: tick})
	}
	for i := range modelProcesses * c.leases {
		l := &s.leases[i]
		if l.pending == riding {
			continue
		}
		if l.pending != 0 {
			if c.arrives(s, l.pending) {
				all = append(all, modelStep{kind: deliver, lease: i})
			}
			if s.faults > 0 {
				all = append(all, modelStep{kind: lose, lease: i})
			}
			continue
		}
		all = c.clientSteps(all, s, i)
	}
	for i, m := range s.late {
		if m.number != 0 && c.arrives(s, m.number) {
			all = append(all, modelStep{kind: arrive, lease: int8(i)})
		}
	}
	it := c.items.values[s.item]
	if it.there && s.resets > 0 {
		all = append(all, modelStep{kind: reset})
	}
	if it.there && c.expires && c.instants[s.now] >= it.ttl*1000 {
		all = append(all, modelStep{kind: expire})
	}
	return all
}

// arrives reports whether a message may still arrive.
func (c *holdsChecker) arrives(s *modelState, number uint32) bool {
	m := c.messages.values[number]
	return !c.expires || int64(c.instants[s.now]-c.instants[m.at]) <= modelDelay
}

// clientSteps adds what the client of a lease may do that waits for no reply.
func (c *holdsChecker) clientSteps(all []modelStep, s *modelState, i int8) []modelStep {
	l := &s.leases[i]
	sends := func(act action, actual int8) {
		fresh, step := *s, modelStep{kind: send, lease: i, act: act, actual: actual}
		if c.remember(&fresh, c.processOf(i)); s.known[c.processOf(i)] != 0 && s.known != fresh.known {
			all = c.withRiders(append(all, step), s, step)
		}
		step.fresh = true
		all = c.withRiders(append(all, step), s, step)
	}
	ends := func() {
		for _, actual := range c.actuals {
			sends(actEnd, actual)
		}
	}
	switch l.phase {
	case idle:
		sends(actTake, 0)
	case trying:
		if l.sends < modelSends {
			sends(actTake, 0)
		}
		if c.reverses || l.sends == modelSends || l.lastSent() == 0 {
			all = append(all, modelStep{kind: leave, lease: i})
		}
	case held:
		if ends(); c.isDue(s, i) {
			sends(actExtend, 0)
		}
	case ending:
		ends()
	case reversing:
		all = append(all, modelStep{kind: send, lease: i, act: actReverse})
	}
	return all
}

// isDue reports whether the hold of a lease would be over within the minute.
func (c *holdsChecker) isDue(s *modelState, lease int8) bool {
	epoch := s.leases[lease].epoch
	return epoch > 0 && bucket.Epoch(c.at(s.now, c.processOf(lease))) >= epochOf(epoch)
}

// withRiders adds step with what may ride in its write: that ends or extends the other lease of the process.
// Nothing joins a write of unknown outcome.
func (c *holdsChecker) withRiders(all []modelStep, s *modelState, step modelStep) []modelStep {
	other := step.lease ^ 1
	l := &s.leases[other]
	switch {
	case !c.both, l.pending != 0, l.phase != held && l.phase != ending,
		step.act == actTake && s.leases[step.lease].lastSent() != 0,
		step.act == actReverse, step.act != actTake && step.lease > other:
		return all
	}
	step.both = true
	for _, step.riderActual = range c.actuals {
		step.rider = actEnd
		all = append(all, step)
	}
	if l.phase == held && c.isDue(s, other) {
		step.rider, step.riderActual = actExtend, 0
		all = append(all, step)
	}
	return all
}

// take returns s after a step. ok is false if the step comes to nothing. broken is the invariant that does
// not hold then.
func (c *holdsChecker) take(s modelState, step modelStep) (after modelState, broken string, ok bool) {
	ok = true
	switch l := &s.leases[step.lease]; step.kind {
	case tick:
		s.now++
	case send:
		broken, ok = c.send(&s, step)
	case leave:
		c.giveUp(l)
	case deliver:
		m := c.messages.values[l.pending]
		l.pending = 0
		applied, found := c.commit(&s, step.lease, m)
		c.answered(&s, step.lease, m, applied)
		broken = found
	case lose:
		c.lose(&s, step.lease)
	case arrive:
		late := s.late[step.lease]
		s.late[step.lease] = lateMessage{}
		_, broken = c.commit(&s, int8(late.lease), c.messages.values[late.number])
	case reset:
		broken = c.reset(&s)
	case expire:
		c.seen.deleted++
		s.item, s.used = c.items.number(modelItem{}), 0
		for i := range s.leases {
			s.leases[i].holds = 0
		}
	}
	if c.settle(&s); broken == "" {
		broken = c.checkCallers(&s)
	}
	return s, broken, ok
}

// reset fills the bucket, as `sluice reset` does.
func (c *holdsChecker) reset(s *modelState) string {
	it := c.items.values[s.item]
	c.seen.resets++
	s.resets--
	switch c.broken {
	default:
		it.first += bucket.NewRing
	case resetFarAhead:
		it.first += 4 * bucket.NewRing
	case resetKeepsEpoch:
	}
	it.tokens, it.cells, it.op, s.used = it.burst, [2]int8{}, opOther, 0
	s.item = c.items.number(it)
	for i := range s.leases {
		l := &s.leases[i]
		l.exempt = l.exempt || l.believes() || l.holds != 0
		l.holds = 0
	}
	return c.check(s)
}

// checkCallers checks that no more callers go by a hold than there are.
func (c *holdsChecker) checkCallers(s *modelState) string {
	believers := int8(0)
	for i := range s.leases {
		if l := &s.leases[i]; l.believes() && !l.exempt {
			believers++
			if c.windowed && l.holds == 0 && l.ends == c.items.values[s.item].ends {
				return invUnheld
			}
		}
	}
	if !c.windowed && believers*c.cost > max(c.capacity, c.capacity+c.grows) {
		return invBelievers
	}
	return ""
}

// check checks what holds after each commit.
func (c *holdsChecker) check(s *modelState) string {
	if broken := c.checkItem(c.items.values[s.item], s.leases[:], s.used); broken != "" {
		return broken
	}
	key := [3]uint32{s.item, uint32(s.now), uint32(uint8(s.used))}
	broken, ok := c.ended[key]
	if !ok {
		broken = c.checkEnd(c.items.values[s.item], s.now, s.used)
		c.ended[key] = broken
	}
	return broken
}
