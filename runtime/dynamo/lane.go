package dynamo

import (
	"cmp"
	"context"
	"slices"
)

// lane is the line of those who write to the same bucket, or to the same chain: one write at a time, which serves as many of
// them as it can. Its memory's lock guards it.
type lane struct {
	memory *memory // the bucket's, or that of the chain's nearest
	others []*memory

	busy  bool       // somebody is at work for it
	queue []*request // who waits for the next write, first come first
	met   error      // what the last try met, while it has not been made good

	wake chan struct{} // closed when somebody comes, to whom it does not matter how long an outage has been; nil for nobody
}

// line returns the lane that r belongs to. The caller holds m's lock, m being the memory of r's first bucket.
func (m *memory) line(r *request) *lane {
	if len(r.shares) == 1 {
		return &m.lane
	}
	same := func(l *lane) bool {
		return slices.EqualFunc(l.others, r.shares[1:], func(m *memory, sh share) bool { return m == sh.memory })
	}
	if i := slices.IndexFunc(m.chains, same); i >= 0 {
		return m.chains[i]
	}
	l := &lane{memory: m}
	for i := range r.shares[1:] {
		l.others = append(l.others, r.shares[1+i].memory)
	}
	m.chains = append(m.chains, l)
	return l
}

// submit has r written, alone or together with others of its lane, and returns once it has ended, or its caller's time is
// over. A lone one is worked for at once, on its caller's goroutine.
func (s *session) submit(r *request) error {
	m := r.shares[0].memory
	m.mu.Lock()
	l := m.line(r)
	if !l.busy && !l.owing() {
		l.busy = true
		m.mu.Unlock()
		return s.alone(l, r)
	}
	r.done = make(chan struct{})
	l.queue = append(l.queue, r)
	if l.wake != nil {
		close(l.wake)
		l.wake = nil
	}
	s.attend(l)
	m.mu.Unlock()
	return l.await(r)
}

// attend sees to it that somebody is at work for l. The caller holds the lock.
func (s *session) attend(l *lane) {
	if !l.busy {
		l.busy = true
		s.background.Start(func() { s.newCharge(l, nil).work() })
	}
}

// alone works for r until it has ended, or others have come who are not to wait for the whole of it.
func (s *session) alone(l *lane, r *request) error {
	c := s.newCharge(l, r)
	mine := true
	defer func() {
		if mine { // also if an observer panics: the caller may recover from that, and those who come next are not to wait for ever
			s.free(l)
		}
	}()
	for !r.ended {
		c.step(r.ctx)
		if !r.ended && c.handOver(r) {
			mine = false
			return l.await(r)
		}
	}
	return r.err
}

// free has somebody work for those who have come to l meanwhile, if there are any.
func (s *session) free(l *lane) {
	l.memory.mu.Lock()
	defer l.memory.mu.Unlock()
	l.busy = false
	if len(l.queue) > 0 {
		s.attend(l)
	} else {
		l.retire()
	}
}

// retire lets go of a chain's lane that has nothing to do. The caller holds the lock.
func (l *lane) retire() {
	if m := l.memory; l != &m.lane {
		m.chains = slices.DeleteFunc(m.chains, func(other *lane) bool { return other == l })
	}
}

// handOver has c continue on a goroutine of its own if others wait for it to be done, and r with them. It reports whether it does.
func (c *charge) handOver(r *request) bool {
	c.lane.memory.mu.Lock()
	defer c.lane.memory.mu.Unlock()
	if len(c.lane.queue) == 0 {
		return false
	}
	r.done = make(chan struct{})
	c.background.Start(c.work)
	return true
}

// await returns how r has ended, or that its caller's time is over. What it was charged then, it is given back.
func (l *lane) await(r *request) error {
	ctx := r.ctx
	if !r.deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, r.deadline)
		defer cancel()
	}
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
	}
	l.memory.mu.Lock()
	defer l.memory.mu.Unlock()
	if r.ended {
		return r.err
	}
	r.gone = true
	return r.leaves(l.met)
}

// work goes on until nobody is left to work for.
func (c *charge) work() {
	for c.gather() {
		c.step(c.context())
	}
}

// company returns what is closed when somebody else waits to be served.
func (l *lane) company() <-chan struct{} {
	l.memory.mu.Lock()
	defer l.memory.mu.Unlock()
	came := make(chan struct{})
	if l.wake = came; len(l.queue) > 0 {
		close(came)
		l.wake = nil
	}
	return came
}

// gather takes those along who wait, and what is owed, and leaves out those who have gone. It reports whether there is anybody
// to work for. While it is unknown what became of a write, nobody joins: whoever its op stands for was in it.
func (c *charge) gather() bool {
	l := c.lane
	if c.unknown() {
		if c.awaited() {
			return true
		}
		c.abandon()
	}
	l.memory.mu.Lock()
	waiting := slices.Clone(c.members) // the old slice is still in use
	if len(l.queue) > 0 {
		waiting, l.queue = append(waiting, l.queue...), nil
		c.joined()
	}
	c.members = slices.DeleteFunc(waiting, func(r *request) bool { return r.gone || r.ended })
	if !slices.ContainsFunc(c.members, (*request).pressing) {
		l.busy, l.met = false, nil
		l.retire()
		l.memory.mu.Unlock()
		c.owe(c.members)
		return false
	}
	l.met = cmp.Or(c.failed, c.met)
	l.memory.mu.Unlock()
	c.embark()
	return true
}

// joined gives the next try an op of its own, since a copy of the last one that arrives late does not serve those who join. If
// the last one gave something back, the op stays: under another, that copy and the next try would both give it. What is left is
// a copy that is taken for the next try, which needs a network that repeats what it has delivered.
func (c *charge) joined() {
	if !slices.ContainsFunc(c.members, (*request).givesBack) {
		c.op = ""
	}
}

// awaited reports whether anybody still waits for the write of unknown outcome, and shows those who leave what it met. What rides
// on a transaction keeps none of unknown outcome going: it can go with another write.
func (c *charge) awaited() bool {
	m := c.lane.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	c.lane.met = cmp.Or(c.failed, c.met)
	return slices.ContainsFunc(c.party, func(r *request) bool { return !r.gone && (len(c.legs) == 1 || !r.rides()) })
}

// context is that of work for several callers, none of whom can end it. Its values are those of the caller who came first.
func (c *charge) context() context.Context { return context.WithoutCancel(c.members[0].ctx) }
