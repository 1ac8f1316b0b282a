package dynamo

import (
	"errors"
	"time"

	"github.com/sluice-go/sluice/runtime/store"
)

// Lazy settles are owed to their bucket: the next write of it takes them along, be it of the bucket alone or of a chain, and
// costs no more for that. Those for which none has come go by themselves once they are due.

// lazy is how long a lazy settle may wait for a write to ride on.
const lazy = 100 * time.Millisecond

// owe has all, settles of one bucket each, written with what is written next, or soon.
func (s *session) owe(all []*request) {
	for _, r := range all {
		m := r.shares[0].memory
		m.mu.Lock()
		r.leg = 0 // of a chain that took it along, it may have been another
		m.owed = append(m.owed, r)
		m.owes.Store(true)
		if !m.timed {
			m.timed = true
			s.background.Start(func() { s.flush(m) })
		}
		m.mu.Unlock()
	}
}

// flush has what is owed written once it is due, unless a write has taken it along by then.
func (s *session) flush(m *memory) {
	for wait := lazy; ; {
		select {
		case <-s.env.Clock.After(wait):
		case <-s.closing:
			wait = 0
		}
		m.mu.Lock()
		if len(m.owed) == 0 {
			m.timed = false
			m.mu.Unlock()
			return
		}
		if wait > 0 { // what is owed now may have come later
			wait = min(lazy, lazy-time.Duration(s.now()-m.owed[0].called)*time.Millisecond) // the clock may have been set back
		}
		if wait <= 0 {
			for _, r := range m.owed {
				r.due = true
			}
			m.lane.queue, m.owed = append(m.lane.queue, m.owed...), nil
			m.owes.Store(false)
			s.attend(&m.lane)
			wait = lazy
		}
		m.mu.Unlock()
	}
}

// owing reports whether a write by l has anything to take along.
func (l *lane) owing() bool {
	owes := l.memory.owes.Load()
	for _, m := range l.others {
		owes = owes || m.owes.Load()
	}
	return owes
}

// embark takes along what is owed to c's buckets.
func (c *charge) embark() {
	c.board()
	for i, l := range c.legs {
		m := l.memory
		m.mu.Lock()
		if len(m.owed) > 0 {
			c.joined()
		}
		for _, r := range m.owed {
			r.leg = i
			c.members = append(c.members, r)
		}
		m.owed = nil
		m.owes.Store(false)
		m.mu.Unlock()
	}
}

// disembark leaves what is owed to buckets of a chain for other writes, after a try that was not applied.
func (c *charge) disembark() {
	if len(c.legs) == 1 || c.unknown() {
		return
	}
	var stay, leave []*request
	for _, r := range c.members {
		if r.rides() {
			leave = append(leave, r)
		} else {
			stay = append(stay, r)
		}
	}
	if len(leave) > 0 {
		c.members, c.aboard = stay, nil // others work for who leaves, from now on; the next try is planned anew
		c.owe(leave)
	}
}

// endUnsure ends what gives back and rides on a transaction of unknown outcome that is not to go again as it is: in another it
// would be given back twice.
func (c *charge) endUnsure() {
	for _, r := range c.party {
		if r.rides() && r.givesBack() {
			c.end(r, &store.UnavailableError{Resource: r.shares[0].spec.Resource, Attempts: r.tries, Err: errUnsure})
		}
	}
}

var errUnsure = errors.New("whether it was written is not known")

// rides reports that r is a lazy settle: owed to a bucket, or taken along.
func (r *request) rides() bool { return r.later != nil }
