package plan_test

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
)

// found is what exploring a model has found.
type found struct {
	broken string // the invariant; "" if all hold
	states int
	trace  string // the shortest way there
}

// visited has the hashes of states, in a third of the memory of a map. Its length is a power of two.
type visited struct {
	slots []uint64
	n     int
}

// add reports whether a hash is new.
func (v *visited) add(hash uint64) bool {
	hash = max(hash, 1) // 0 is an empty slot
	if 4*v.n >= 3*len(v.slots) {
		old := v.slots
		v.slots, v.n = make([]uint64, max(1<<10, 2*len(old))), 0
		for _, hash := range old {
			if hash != 0 {
				v.add(hash)
			}
		}
	}
	for i := hash; ; i++ {
		switch slot := &v.slots[i&uint64(len(v.slots)-1)]; *slot {
		case hash:
			return false
		case 0:
			*slot = hash
			v.n++
			return true
		}
	}
}

// queue has the states that are to be explored, the oldest first. Its chunks are never copied.
type queue struct {
	chunks [][]modelState
	taken  int // of the first chunk
	spare  []modelState
}

func (q *queue) push(s modelState) {
	n := len(q.chunks)
	if n == 0 || len(q.chunks[n-1]) == cap(q.chunks[n-1]) {
		if q.spare == nil {
			q.spare = make([]modelState, 0, 1<<12)
		}
		q.chunks, q.spare, n = append(q.chunks, q.spare[:0]), nil, n+1
	}
	q.chunks[n-1] = append(q.chunks[n-1], s)
}

// pop returns the oldest state; ok is false if there is none.
func (q *queue) pop() (s modelState, ok bool) {
	if len(q.chunks) == 0 || q.taken == len(q.chunks[0]) {
		return s, false
	}
	s = q.chunks[0][q.taken]
	if q.taken++; q.taken == cap(q.chunks[0]) {
		q.spare, q.chunks, q.taken = q.chunks[0], q.chunks[1:], 0
	}
	return s, true
}

// explore visits every state, those after fewer steps first, until an invariant does not hold.
func (c *holdsChecker) explore() found {
	var visits visited
	var todo queue
	var steps []modelStep
	seed, first := maphash.MakeSeed(), c.start()
	visits.add(maphash.Comparable(seed, first))
	todo.push(first)
	for s, ok := todo.pop(); ok; s, ok = todo.pop() {
		steps = c.steps(steps[:0], &s)
		for _, step := range steps {
			after, broken, ok := c.take(s, step)
			if broken != "" {
				return found{broken, visits.n, c.trace(s) + c.describe(s, step)}
			}
			if ok && visits.add(maphash.Comparable(seed, after)) {
				todo.push(after)
			}
		}
	}
	return found{states: visits.n}
}

// visit is how a state was reached first.
type visit struct {
	from modelState
	step modelStep
}

// trace describes the steps to a state. It explores once more, since explore does not note its ways.
func (c *holdsChecker) trace(to modelState) string {
	first := c.start()
	visits := map[modelState]visit{first: {}}
	for layer := []modelState{first}; ; {
		if _, reached := visits[to]; reached {
			break
		}
		var next []modelState
		for _, s := range layer {
			for _, step := range c.steps(nil, &s) {
				after, _, ok := c.take(s, step)
				if _, seen := visits[after]; ok && !seen {
					visits[after] = visit{s, step}
					next = append(next, after)
				}
			}
		}
		layer = next
	}
	var steps []modelStep
	for ; to != first; to = visits[to].from {
		steps = append(steps, visits[to].step)
	}
	var b strings.Builder
	s := c.start()
	for _, step := range slices.Backward(steps) {
		b.WriteString(c.describe(s, step))
		s, _, _ = c.take(s, step)
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
		before, lease = s.late[step.lease].number, int8(s.late[step.lease].lease)
	}
	if before != 0 {
		m := c.messages.values[before]
		text += fmt.Sprintf(" (%v of %d: %d -> %d, hold %+v)", c.plans[m.plan].Path, lease, m.from, m.to,
			c.plans[m.plan].Holds[0])
	}
	it, l := c.items.values[after.item], after.leases[lease]
	const form = "%6d lease %d %s\n       then item %+v used %d, lease phase %d epoch %d until %d holds %x\n"
	return fmt.Sprintf(form,
		c.instants[after.now], lease, text, it, after.used, l.phase, l.epoch, l.until, uint64(l.holds))
}

// The instants at which something happens, in ms after t0: once a minute, and after the ttl. At some edges of
// minutes, the clocks of two processes are in different ones.
var (
	three   = []int32{30_000, 90_000, 150_000}
	minutes = []int32{30_000, 90_000, 150_000, 210_000}
	edges   = []int32{30_000, 59_500, 90_000, 119_500, 150_000}
	far     = []int32{30_000, 90_000, 150_000, 7 * 60_000, 8 * 60_000}
)

// slots is a model of an in-flight limit of one slot: each process has one lease.
func slots(instants []int32, faults int8) holdsModel {
	return holdsModel{
		capacity: 1, leases: 1, faults: faults, cost: 1, actuals: []int8{1}, instants: instants,
		first: 1, reverses: true, symmetric: true,
	}
}

// reservations is a model of a windowed limit that gives back what dead processes reserved. Each lease
// reserves 2 of 3 tokens and uses fewer, or more.
func reservations(instants []int32, faults int8) holdsModel {
	m := slots(instants, faults)
	m.windowed, m.capacity, m.cost, m.actuals, m.ends = true, 3, 2, []int8{0, 1, 3}, modelPeriod
	return m
}

// skewed returns m with clocks that differ from DynamoDB's.
func (m holdsModel) skewed(first, second int32) holdsModel {
	m.skew, m.symmetric = [modelProcesses]int32{first, second}, first == second
	return m
}

func (m holdsModel) withReset() holdsModel {
	m.resets = 1
	return m
}

// withDeletion returns m with an item that is missing at first, and deleted at its ttl.
func (m holdsModel) withDeletion() holdsModel {
	m.expires, m.first = true, 0
	return m
}

// of returns m with more slots, and more leases of each process.
func (m holdsModel) of(capacity, leases int8) holdsModel {
	m.capacity, m.leases = capacity, leases
	return m
}

// withRiders returns m with writes for both leases of a process.
func (m holdsModel) withRiders() holdsModel {
	m.leases, m.both = 2, true
	return m
}

// with returns m after a change.
func (m holdsModel) with(change func(*holdsModel)) holdsModel {
	change(&m)
	return m
}

// TestHoldsModel explores every order in which two processes take, extend and end what they hold. Each write
// is planned by what its process knows, or by what it has just read. It arrives at once, later or never.
// After each commit the invariants hold (invSum and the like).
func TestHoldsModel(t *testing.T) {
	longform.NoRace(t, "it has one goroutine")
	inWindow := func(m *holdsModel) { m.ends = 100_000 }
	released := func(m *holdsModel) { m.actuals = []int8{0, 1} }
	sole := func(m *holdsModel) { m.soleWriter = true }
	kept := func(m *holdsModel) { m.keepIdle = plan.KeepIdle }
	grown := func(m *holdsModel) { m.reshapes, m.grows, m.symmetric = true, 1, false }
	shrunk := func(m *holdsModel) { m.reshapes, m.grows, m.symmetric, m.capacity = true, -1, false, 2 }
	models := []struct {
		name  string
		long  bool
		model holdsModel
	}{
		{"a slot", false, slots(minutes, 1)},
		{"a slot, kept or released", false, slots(three, 1).with(released)},
		{"a slot, clocks apart", false, slots(edges, 1).skewed(-modelSkew, modelSkew)},
		{"a slot, two faults, clocks apart", false, slots(edges[:4], 2).skewed(-modelSkew, modelSkew)},
		{"a slot, a reset", false, slots(three, 1).withReset()},
		{"a slot, a reset of an item that is kept", false, slots(three, 1).withReset().with(kept)},
		{"a slot, deletion", false, slots(far, 1).withDeletion()},
		{"a slot, sole writers", false, slots(minutes, 1).with(sole)},
		{"a slot, riders", false, slots(three, 0).withRiders()},
		{"two slots", false, slots(minutes, 1).of(2, 1)},
		{"a window", false, reservations(minutes, 1)},
		{"a window that ends", false, reservations(minutes, 1).with(inWindow)},
		{"one slot, then two", false, slots(three, 1).with(grown)},
		{"two slots, then one", false, slots(three, 1).with(shrunk)},
		{"a window, then a larger one", false, reservations(three, 1).with(grown)},
		{"one slot, then two, two faults", true, slots(minutes, 2).with(grown)},
		{"two slots, then one, two faults", true, slots(minutes, 2).with(shrunk)},
		{"a slot, three faults", true, slots(minutes, 3)},
		{"a slot, two faults, a reset", true, slots(minutes, 2).withReset()},
		{"a slot, two faults, deletion", true, slots(far, 2).withDeletion()},
		{"a slot, two leases, two faults", true, slots(three, 2).of(1, 2)},
		{"a slot, riders, a fault", true, slots(three, 1).withRiders()},
		{"two slots, two faults", true, slots(minutes, 2).of(2, 1)},
		{"two slots, riders", true, slots(three, 0).withRiders().of(2, 2)},
		{"a window, two faults", true, reservations(minutes, 2)},
		{"a window that ends, two faults", true, reservations(minutes, 2).with(inWindow)},
	}
	var all seen
	for _, test := range models {
		t.Run(test.name, func(t *testing.T) {
			if test.long {
				longform.Only(t, "TestHoldsModel has fewer leases and faults")
			}
			c := newHoldsChecker(test.model)
			f := c.explore()
			t.Logf("%d states, %d items", f.states, len(c.items.values)-1)
			if f.broken != "" {
				t.Errorf("after %d states, %s:\n%s", f.states, f.broken, f.trace)
			}
			all.add(&c.seen)
		})
	}
	all.check(t)
}

// add adds what another model has explored.
func (s *seen) add(o *seen) {
	for act := range s.answered {
		for path := range s.answered[act] {
			s.answered[act][path][0] += o.answered[act][path][0]
			s.answered[act][path][1] += o.answered[act][path][1]
		}
	}
	s.covered[0], s.covered[1] = s.covered[0]+o.covered[0], s.covered[1]+o.covered[1]
	s.lost, s.resets, s.deleted = s.lost+o.lost, s.resets+o.resets, s.deleted+o.deleted
}

// check checks that all that the models are about was explored.
func (s *seen) check(t *testing.T) {
	t.Helper()
	for _, of := range []struct {
		act  action
		path plan.Path
	}{
		{actTake, plan.Create}, {actTake, plan.Normal}, {actTake, plan.Retry}, {actEnd, plan.Adjust},
		{actEnd, plan.Normal}, {actEnd, plan.Retry}, {actExtend, plan.Adjust}, {actExtend, plan.Normal},
		{actReverse, plan.Adjust}, {actTake, plan.Reshape}, {actReshape, plan.Reshape},
	} {
		if n := s.answered[of.act][of.path]; n[0] == 0 || n[1] == 0 {
			t.Errorf("action %d by %v was refused %d and applied %d times", of.act, of.path, n[0], n[1])
		}
	}
	if s.covered[0] == 0 || s.covered[1] == 0 || s.lost == 0 || s.resets == 0 || s.deleted == 0 {
		t.Errorf("not all was explored: %+v", s)
	}
}
