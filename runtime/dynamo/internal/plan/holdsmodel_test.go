package plan

import (
	"fmt"
	"hash/maphash"
	"strings"
	"testing"
)

// found is what exploring a model has found.
type found struct {
	broken string // the invariant; "" if all hold
	states int
	trace  string // the shortest way there
}

// visit is how a state was reached first.
type visit struct {
	from uint64
	step modelStep
}

// explore visits every state, those after fewer steps first, until an invariant does not hold.
func (c *holdsChecker) explore() found {
	seed := maphash.MakeSeed()
	first := c.start()
	root := maphash.Comparable(seed, first)
	visits := map[uint64]visit{root: {}}
	for layer := []modelState{first}; len(layer) > 0; {
		var next []modelState
		for i := range layer {
			s := &layer[i]
			from := maphash.Comparable(seed, *s)
			for _, step := range c.steps(s) {
				after, broken, ok := c.take(*s, step)
				if broken != "" {
					return found{broken, len(visits), c.trace(visits, root, from) + c.describe(*s, step)}
				}
				if !ok {
					continue
				}
				to := maphash.Comparable(seed, after)
				if _, seen := visits[to]; !seen {
					visits[to] = visit{from, step}
					next = append(next, after)
				}
			}
		}
		layer = next
	}
	return found{states: len(visits)}
}

// trace describes the steps to a state.
func (c *holdsChecker) trace(visits map[uint64]visit, root, to uint64) string {
	var steps []modelStep
	for ; to != root; to = visits[to].from {
		steps = append(steps, visits[to].step)
	}
	var b strings.Builder
	s := c.start()
	for i := len(steps) - 1; i >= 0; i-- {
		b.WriteString(c.describe(s, steps[i]))
		s, _, _ = c.take(s, steps[i])
	}
	return b.String()
}

// describe describes a step from s.
func (c *holdsChecker) describe(s modelState, step modelStep) string {
	before := s.leases[step.lease].pending
	after, _, _ := c.take(s, step)
	text := [...]string{"tick", "send", "leave", "deliver", "lose", "arrive", "reset", "expire"}[step.kind]
	if step.kind == send {
		text += " " + [...]string{"take", "end", "extend", "reverse"}[step.act]
		if step.fresh {
			text += ", read first"
		}
		before = after.leases[step.lease].pending
	}
	lease := step.lease
	if step.kind == arrive {
		before, lease = s.late[step.lease].number, s.late[step.lease].lease
	}
	if before != 0 {
		m := c.messages.values[before]
		text += fmt.Sprintf(" (%v of %d: %d -> %d, hold %+v)", c.plans[m.plan].Path, lease, m.from, m.to,
			c.plans[m.plan].Holds[0])
	}
	it, l := c.items.values[after.item], after.leases[lease]
	return fmt.Sprintf("%6d lease %d %s\n       then item %+v used %d, lease phase %d epoch %d until %d holds %x\n",
		c.instants[after.now], lease, text, it, after.used, l.phase, l.epoch, l.until, uint64(l.holds))
}

func TestHoldsModelControls(t *testing.T) {
	minutes := []int32{30_000, 90_000, 150_000, 210_000}
	edges := []int32{30_000, 59_500, 90_000, 119_500, 150_000}
	skew := [2]int32{-1000, 1000}
	_, _ = edges, skew
	far := []int32{30_000, 90_000, 150_000, 7 * 60_000, 8 * 60_000}
	for _, m := range []holdsModel{
		{broken: takesInAnyEpoch},
		{broken: returnsInAnyEpoch},
		{broken: sweepsAnyCell},
		{broken: neverGivesUp},
		{broken: doubtIsFailure, faults: 1},
		{broken: doubtIsFailure, faults: 1, windowed: true, capacity: 3, cost: 2, actuals: []int8{0, 1, 3}, ends: 100 * 60_000},
		{broken: returnsInAnyEpoch, faults: 1, windowed: true, capacity: 3, cost: 2, actuals: []int8{0, 1, 3}, ends: 100 * 60_000},
		{broken: sameTTL, faults: 2},
		{broken: sameTTL, faults: 2, keepIdle: KeepIdle},
		{broken: sameTTL, faults: 2, keepIdle: KeepIdle, resets: 1},
		{broken: sameTTL, faults: 2, skew: skew, instants: edges},
		{broken: returnsLost},
		{broken: resetKeepsEpoch, resets: 1},
		{broken: shortTTL, expires: true, instants: far},
	} {
		t.Run(m.broken, func(t *testing.T) {
			if m.capacity == 0 {
				m.capacity, m.cost, m.actuals = 1, 1, []int8{1}
			}
			if m.first = 1; m.expires {
				m.first = 0
			}
			if m.instants == nil {
				m.instants = minutes
			}
			m.leases, m.reverses = 1, true
			c := newHoldsChecker(m)
			f := c.explore()
			t.Logf("%d states, %d items, %d plans", f.states, len(c.items.values), len(c.plans))
			t.Logf("%s:\n%s", f.broken, f.trace)
		})
	}
}
func TestHoldsModelProbe(t *testing.T) {
	minutes := []int32{30_000, 90_000, 150_000, 210_000}
	short := []int32{30_000, 90_000, 150_000}
	for _, m := range []holdsModel{
		{instants: minutes, faults: 2, leases: 1},
		{instants: short, faults: 0, leases: 2, rides: true},
		{instants: short, faults: 0, leases: 2, rides: true, capacity: 2},
		{instants: short, faults: 1, leases: 2, rides: true},
	} {
		t.Run("", func(t *testing.T) {
			if m.cost, m.actuals = 1, []int8{1}; m.capacity == 0 {
				m.capacity = 1
			}
			if m.first = 1; m.expires {
				m.first = 0
			}
			m.reverses, m.symmetric = true, true
			c := newHoldsChecker(m)
			f := c.explore()
			t.Logf("%d states, %d items, %d plans", f.states, len(c.items.values), len(c.plans))
			if f.broken != "" {
				t.Errorf("%s:\n%s", f.broken, f.trace)
			}
		})
	}
}
