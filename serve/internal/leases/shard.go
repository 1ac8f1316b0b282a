package leases

import (
	"context"
	"sync"

	"github.com/sluice-go/sluice/serve/internal/limits"
)

const (
	shards = 16   // of a Holder; leases of different shards do not wait for each other
	ticks  = 64   // seconds in which a lease may be looked at next; more than Grace
	noted  = 4096 // ends that a shard remembers
)

// shard has a part of a Holder's leases.
type shard struct {
	mu    sync.Mutex
	open  map[uint64]*entry
	due   [ticks]entry // heads of rings: the leases to look at in a second
	ended map[uint64]End
	order []uint64 // the keys of ended, as a ring in the order of their ends
	last  int      // the index of the newest in order
}

// shard returns the shard of a lease by its number.
func (h *Holder) shard(number uint64) *shard { return &h.shards[number%shards] }

func (s *shard) init() {
	s.open, s.ended = map[uint64]*entry{}, map[uint64]End{}
	for i := range s.due {
		s.due[i].next, s.due[i].prev = &s.due[i], &s.due[i]
	}
}

// add adds e at now, in ms.
func (s *shard) add(e *entry, now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[e.number] = e
	s.schedule(e, now)
}

// schedule puts e into the tick of the second in which it may end, or in which it is to be looked at.
func (s *shard) schedule(e *entry, now int64) {
	at := min(max(e.end(now), now), now+Grace.Milliseconds())
	head := &s.due[(at/1000+1)%ticks]
	e.prev, e.next = head.prev, head
	e.prev.next, e.next.prev = e, e
}

func (s *shard) find(number uint64) (*entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.open[number]; e != nil {
		return e, nil
	}
	return nil, &EndedError{How: s.ended[number]}
}

// extend keeps e open until an instant, in ms, and while from is open, unless that is nil. It returns the
// lease, or nil if that is parked.
func (s *shard) extend(e *entry, from *Client, until int64) *limits.Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.until = max(e.until, until)
	if from != nil {
		e.from = from
	}
	return e.lease
}

// begin begins a call on e, after the one under way, if any. It fails with an *EndedError, or with ctx's
// error.
func (s *shard) begin(ctx context.Context, e *entry) error {
	for {
		under, err := s.tryBegin(e)
		if under == nil {
			return err
		}
		select {
		case <-under:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// tryBegin is begin that does not wait: it returns what is closed when the call under way has ended.
func (s *shard) tryBegin(e *entry) (under <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case e.hasEnded:
		return nil, &EndedError{How: s.ended[e.number]}
	case e.calling != nil:
		return e.calling, nil
	}
	e.calling = make(chan struct{})
	return nil, nil
}

// finish ends the call that begin began. If how is Unknown, the call has not ended e, which stays open. lease
// is put back into it, unless that is nil.
func (s *shard) finish(e *entry, how End, lease *limits.Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(e.calling)
	e.calling = nil
	switch {
	case how != Unknown:
		e.unlink()
		s.drop(e, how)
	case lease != nil:
		e.put(lease)
	}
}

// drop removes e, which is in no tick. The caller has locked s.
func (s *shard) drop(e *entry, how End) {
	e.hasEnded = true
	delete(s.open, e.number)
	if len(s.order) < noted {
		s.order, s.last = append(s.order, e.number), len(s.order)
	} else {
		s.last = (s.last + 1) % noted
		delete(s.ended, s.order[s.last])
		s.order[s.last] = e.number
	}
	s.ended[e.number] = how
}

// expire removes and returns the leases of a tick that have ended at now, in ms. The others are looked at
// later.
func (s *shard) expire(tick int, now int64) (over []*entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	head := &s.due[tick]
	for e := head.next; e != head; {
		next := e.next
		e.unlink()
		if e.end(now) <= now && e.calling == nil {
			s.drop(e, Expired)
			over = append(over, e)
		} else {
			s.schedule(e, now)
		}
		e = next
	}
	return over
}
