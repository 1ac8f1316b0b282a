package plan_test

import (
	"cmp"
	"slices"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// settle forgets what makes no difference any more, and has callers give up whose holds are about to end.
func (c *holdsChecker) settle(s *modelState) {
	it, asked := c.items.values[s.item], [modelLeases]bool{}
	for i := range c.leases * modelProcesses {
		l := &s.leases[i]
		end := bucket.EpochEnd(epochOf(l.until)) - modelMargin
		if l.until != 0 && c.broken != neverGivesUp && c.at(s.now, c.processOf(i)) >= end {
			l.until = 0
		}
		if !l.believes() && l.holds == 0 {
			l.exempt = false
		}
		if l.phase == over || l.phase == idle {
			*l = modelLease{phase: l.phase, holds: l.holds, exempt: l.exempt}
		}
		asked[i] = l.phase == trying || l.phase == reversing
	}
	for i, late := range s.late {
		if late.number == 0 {
			continue
		}
		m := c.messages.values[late.number]
		if !c.expires && neverHolds(c.plans[m.plan], c.image(it)) || !c.arrives(s, late.number) {
			s.late[i] = lateMessage{}
			continue
		}
		asked[late.lease] = asked[late.lease] || m.act == actTake
	}
	if it.op != opOther && !asked[it.op-1] {
		it.op = opOther
	}
	if it.op == opOther && !c.expires {
		it.ttl = 0 // nobody asks which write it was
	}
	s.item = c.items.number(it)
	for p := range s.known {
		first := int8(p) * c.leases
		runs := func(l modelLease) bool { return l.phase != over }
		if !slices.ContainsFunc(s.leases[first:first+c.leases], runs) {
			s.known[p] = 0
		}
	}
	if c.symmetric {
		c.rename(s)
	}
	slices.SortFunc(s.late[:], compareLate)
}

// rename orders leases and processes, so that states which are alike but for their names are equal.
func (c *holdsChecker) rename(s *modelState) {
	names := [modelLeases]int8{0, 1, 2, 3}
	swap := func(i, j int8) {
		s.leases[i], s.leases[j] = s.leases[j], s.leases[i]
		names[i], names[j] = names[j], names[i]
	}
	n := c.leases
	for first := int8(0); n == 2 && first < modelLeases; first += n {
		if s.leases[first].compare(&s.leases[first+1]) > 0 {
			swap(first, first+1)
		}
	}
	order := cmp.Compare(s.known[0], s.known[1])
	for i := int8(0); i < n && order == 0; i++ {
		order = s.leases[i].compare(&s.leases[n+i])
	}
	if order > 0 {
		s.known[0], s.known[1] = s.known[1], s.known[0]
		for i := range n {
			swap(i, n+i)
		}
	}
	if names == [modelLeases]int8{0, 1, 2, 3} {
		return
	}
	now := func(lease int8) int8 { return int8(slices.Index(names[:], lease)) }
	for i := range s.late {
		if late := &s.late[i]; late.number != 0 {
			late.lease = int32(now(int8(late.lease)))
		}
	}
	if it := c.items.values[s.item]; it.op != opOther {
		it.op = opOf(now(int8(it.op - 1)))
		s.item = c.items.number(it)
	}
}

// compare orders leases somehow.
func (l *modelLease) compare(o *modelLease) int {
	return cmp.Or(
		cmp.Compare(l.phase, o.phase), cmp.Compare(l.pending, o.pending), cmp.Compare(l.holds, o.holds),
		cmp.Compare(l.epoch, o.epoch), cmp.Compare(l.until, o.until), cmp.Compare(l.sends, o.sends),
		slices.Compare(l.sent[:], o.sent[:]), cmp.Compare(l.ends, o.ends),
	)
}

// remember has a process know the item. Its ttl decides nothing, and its op only what a sole writer does.
func (c *holdsChecker) remember(s *modelState, process int8) {
	it := c.items.values[s.item]
	if it.ttl = 0; !c.soleWriter {
		it.op = opOther
	}
	s.known[process] = c.items.number(it)
}
