package plan_test

import (
	"slices"

	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
)

// send has the client of a lease plan a write by what its process knows, and send it. ok is false if that
// needs a read first.
func (c *holdsChecker) send(s *modelState, step modelStep) (broken string, ok bool) {
	i, l, process := step.lease, &s.leases[step.lease], c.processOf(step.lease)
	k := planKey{
		request:   request{act: step.act, actual: step.actual, epoch: l.epoch, ends: l.ends},
		confirmed: step.fresh, both: step.both,
		sole: c.soleWriter && !step.fresh, now: s.now, process: process,
	}
	if step.fresh {
		c.remember(s, process)
	}
	k.img = s.known[process]
	switch step.act {
	case actTake:
		k.sent, k.epoch, k.ends = l.lastSent(), 0, 0
		if it := c.items.values[s.item]; step.fresh && k.sent != 0 && it.op == opOf(i) {
			return c.takeCovered(l, it), true
		}
		l.phase = trying
	case actReverse:
		k.img, k.sent, k.epoch, k.ends = 0, l.lastSent(), 0, 0
	case actEnd:
		l.phase, l.until = ending, 0
	}
	if step.both {
		other := &s.leases[i^1]
		k.rider = request{act: step.rider, actual: step.riderActual, epoch: other.epoch, ends: other.ends}
		if other.pending = riding; step.rider == actExtend {
			other.phase = extending
		} else {
			other.phase, other.until = ending, 0
		}
	}
	r := c.plan(k)
	if step.both && r.decision != plan.Write { // each goes by itself
		return r.broken, false
	}
	switch m := r.message; r.decision {
	case plan.Read:
		return "", false
	case plan.Deny, plan.TooLarge: // a copy of an earlier attempt may still charge it
		c.giveUp(l)
	case plan.None:
		if step.act == actExtend {
			c.seen.lost++
			l.epoch = m.to
		} else {
			l.phase = over
		}
	case plan.Write:
		if c.expires {
			m.at = s.now
		}
		if l.pending = c.messages.number(m); m.act == actTake {
			l.sends++
		} else if step.act == actExtend {
			l.phase = extending
		}
	}
	return r.broken, true
}

// giveUp ends the acquire of l, whose caller has its answer. A write of unknown outcome is reversed.
func (c *holdsChecker) giveUp(l *modelLease) {
	if l.phase = idle; l.sent != [2]uint32{} {
		l.phase = reversing
	}
}

// takeCovered has l hold what an attempt of unknown outcome took, of which the bucket tells by its op. The
// ttl says which one it was.
func (c *holdsChecker) takeCovered(l *modelLease, it modelItem) (broken string) {
	at := c.attempts.values[l.lastSent()]
	if it.ttl > at.ttl {
		return "an attempt has a ttl that was not noted"
	}
	if first := c.attempts.values[l.sent[0]]; it.ttl <= first.ttl && l.sent[1] != 0 {
		at = first
		c.seen.covered[1]++
	} else {
		c.seen.covered[0]++
	}
	c.hold(l, at.epoch, it.ends)
	return ""
}

// hold has l hold tokens until the end of an epoch.
func (c *holdsChecker) hold(l *modelLease, epoch int8, ends int32) {
	*l = modelLease{phase: held, epoch: epoch, until: epoch, ends: ends, holds: l.holds, exempt: l.exempt}
}

// answered gives the reply to m to the client of a lease.
func (c *holdsChecker) answered(s *modelState, lease int8, m message, applied bool) {
	l, it := &s.leases[lease], c.items.values[s.item]
	result := 0
	if c.remember(s, c.processOf(lease)); applied {
		result = 1
	}
	c.seen.answered[m.act][c.plans[m.plan].Path][result]++
	if m.act == actExtend && m.to == lost {
		c.seen.lost++
	}
	if m.both {
		s.leases[lease^1].pending = 0
		s.leases[lease^1].answered(m.rider, applied)
	}
	switch {
	case m.act == actTake && applied:
		c.hold(l, m.to, it.ends)
	case m.act == actTake && it.op == opOf(lease) && l.lastSent() != 0:
		c.takeCovered(l, it)
	case m.act == actEnd, m.act == actExtend:
		l.answered(m.part, applied)
	case m.act == actReverse && applied:
		l.phase = over
	case m.act == actReverse: // the image says which one was the last write, if any
		for c.dropSent(l); l.lastSent() != 0; c.dropSent(l) {
			if at := c.attempts.values[l.lastSent()]; it.op == opOf(lease) && it.ttl == at.ttl {
				return
			}
		}
		l.phase = over
	}
}

// answered notes the reply to a write that ends or extends l.
func (l *modelLease) answered(own part, applied bool) {
	switch {
	case own.act == actEnd && applied:
		l.phase = over
	case own.act == actExtend:
		if l.phase = held; applied {
			l.epoch = own.to
			if l.until != 0 && own.to != lost {
				l.until = own.to
			}
		}
	}
}

// dropSent forgets the last take of unknown outcome.
func (c *holdsChecker) dropSent(l *modelLease) {
	if l.sent[1] != 0 {
		l.sent[1] = 0
	} else {
		l.sent[0] = 0
	}
}

// lose has the client of l wait no longer for the reply to its message.
func (c *holdsChecker) lose(s *modelState, lease int8) {
	l := &s.leases[lease]
	m := c.messages.values[l.pending]
	s.late[slices.Index(s.late[:], lateMessage{})] = lateMessage{l.pending, int32(lease)}
	l.pending = 0
	s.faults--
	if m.act == actTake {
		c.noteUnknown(l, m.attempt)
	}
	c.doubt(l, m.act)
	if m.both {
		s.leases[lease^1].pending = 0
		c.doubt(&s.leases[lease^1], m.rider.act)
	}
}

// doubt notes that the outcome of a write for l is not known.
func (c *holdsChecker) doubt(l *modelLease, act action) {
	switch act {
	case actEnd:
		l.phase = over // it is never sent again
	case actExtend:
		if l.phase = held; c.broken != doubtIsFailure {
			l.epoch = lost
		}
	}
}

// noteUnknown notes a take of unknown outcome. It stands for an earlier one that nothing in the bucket tells
// from it.
func (c *holdsChecker) noteUnknown(l *modelLease, number uint32) {
	at := c.attempts.values[number]
	for i, earlier := range l.sent {
		if before := c.attempts.values[max(earlier, 1)]; earlier == 0 ||
			i+1 == len(l.sent) || l.sent[i+1] == 0 && before.ttl == at.ttl && before.ends == at.ends {
			l.sent[i] = number
			return
		}
	}
}

// commit has the bucket apply m, which a lease sent, if its condition holds.
func (c *holdsChecker) commit(s *modelState, lease int8, m message) (applied bool, broken string) {
	before, p, op := c.items.values[s.item], c.plans[m.plan], opOf(lease)
	if p.Reverses != "" {
		own := *p
		own.Reverses = opName(op)
		p = &own
	}
	if m.act != actTake {
		op = opNew
	}
	img, ok := evaluate(p, c.image(before), opName(op))
	if !ok {
		return false, ""
	}
	after := itemOf(img)
	s.item = c.items.number(after)
	parts := [2]part{m.part, m.rider}
	count := 1
	if m.both {
		count = 2
	}
	for i, own := range parts[:count] {
		if own.moves {
			s.leases[lease^int8(i)].holds.add(own.from, -c.cost)
		}
	}
	opens := after.ends != before.ends
	for i := range s.leases {
		if s.leases[i].holds.sweep(after.first); opens {
			s.leases[i].holds = 0
		}
	}
	if opens {
		s.used = 0
	}
	for i, own := range parts[:count] {
		c.count(s, &s.leases[lease^int8(i)], own)
	}
	return true, c.check(s)
}

// count counts what a part of a write that was applied takes, for l.
func (c *holdsChecker) count(s *modelState, l *modelLease, own part) {
	switch {
	case own.act == actTake:
		l.exempt = false
		l.holds.add(own.to, c.cost)
	case own.act == actExtend && own.moves:
		l.holds.add(own.to, c.cost)
	case own.act == actEnd && c.windowed && own.open:
		s.used += own.actual
	case own.act == actEnd && c.windowed:
		s.used += max(0, own.actual-c.cost)
	}
}
