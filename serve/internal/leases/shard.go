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

// shard has a part of a Holder's leases. Each open one is in parked or in live.
type shard struct {
	mu     sync.Mutex
	parked map[uint64]parked
	live   map[uint64]*live
	due    [ticks][]uint64 // the leases to look at in a second; some of them have ended since
	ended  map[uint64]End
	order  []uint64 // the keys of ended, as a ring in the order of their ends
	last   int      // the index of the newest in order
}

// shard returns the shard of a lease by its number.
func (h *Holder) shard(number uint64) *shard { return &h.shards[number%shards] }

func (s *shard) init() {
	s.parked, s.live, s.ended = map[uint64]parked{}, map[uint64]*live{}, map[uint64]End{}
}

// add adds l at now, in ms. No call on it is under way.
func (s *shard) add(l live, now int64) {
	isParked := l.park()
	s.mu.Lock()
	defer s.mu.Unlock()
	if isParked {
		s.parked[l.number] = l.parked
	} else {
		own := l // l itself stays on the stack
		s.live[l.number] = &own
	}
	s.schedule(l.number, l.end(now), now)
}

// schedule has a lease looked at in the second after end, but at most Grace and a second from now. Both are
// in ms.
func (s *shard) schedule(number uint64, end, now int64) {
	at := min(max(end, now), now+Grace.Milliseconds())
	tick := &s.due[(at/1000+1)%ticks]
	*tick = append(*tick, number)
}

// find returns the origin of an open lease.
func (s *shard) find(number uint64) (*origin, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, ok := s.parked[number]; ok {
		return p.of, nil
	}
	if l := s.live[number]; l != nil {
		return l.of, nil
	}
	return nil, &EndedError{How: s.ended[number]}
}

// extend keeps a lease open until an instant, in ms, and while from is open, unless that is nil. It returns
// the lease, or nil if that can be parked.
func (s *shard) extend(number uint64, from *Client, until int64) (*limits.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, ok := s.parked[number]; ok {
		p.extend(from, until)
		s.parked[number] = p
		return nil, nil
	}
	if l := s.live[number]; l != nil {
		l.extend(from, until)
		return l.lease, nil
	}
	return nil, &EndedError{How: s.ended[number]}
}

// begin begins a call on a lease, after the one under way, if any. It fails with an *EndedError, or with
// ctx's error.
func (s *shard) begin(ctx context.Context, number uint64) (*live, error) {
	for {
		l, under, err := s.tryBegin(number)
		if under == nil {
			return l, err
		}
		select {
		case <-under:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// tryBegin is begin that does not wait: it returns what is closed when the call under way has ended.
func (s *shard) tryBegin(number uint64) (l *live, under <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, ok := s.parked[number]; ok {
		delete(s.parked, number)
		s.live[number] = &live{parked: p, number: number}
	}
	l = s.live[number]
	switch {
	case l == nil:
		return nil, nil, &EndedError{How: s.ended[number]}
	case l.calling != nil:
		return nil, l.calling, nil
	}
	l.calling, l.began = make(chan struct{}), l.of
	return l, nil, nil
}

// finish ends the call that begin began. If how is Unknown, the call has not ended l, which stays open. Its
// lease is now lease, unless that is nil.
func (s *shard) finish(l *live, how End, lease *limits.Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(l.calling)
	l.calling, l.began = nil, nil
	if how != Unknown {
		delete(s.live, l.number)
		s.note(l.number, how)
		return
	}
	if lease != nil {
		l.lease = lease
	}
	if l.park() {
		delete(s.live, l.number)
		s.parked[l.number] = l.parked
	}
}

// note remembers how a lease has ended.
func (s *shard) note(number uint64, how End) {
	if len(s.order) < noted {
		s.order, s.last = append(s.order, number), len(s.order)
	} else {
		s.last = (s.last + 1) % noted
		delete(s.ended, s.order[s.last])
		s.order[s.last] = number
	}
	s.ended[number] = how
}

// expired is a lease that has ended by its time.
type expired struct {
	of    *origin
	lease *limits.Lease // nil if it was parked
}

// expire removes and returns the leases of a tick that have ended at now, in ms. The others are looked at
// later.
func (s *shard) expire(tick int, now int64) (over []expired) {
	s.mu.Lock()
	defer s.mu.Unlock()
	numbers := s.due[tick]
	s.due[tick] = nil
	for _, number := range numbers {
		l := s.live[number]
		if l == nil {
			p, ok := s.parked[number]
			if !ok {
				continue
			}
			l = &live{parked: p}
		}
		if end := l.end(now); end > now || l.calling != nil {
			s.schedule(number, end, now)
			continue
		}
		delete(s.live, number)
		delete(s.parked, number)
		s.note(number, Expired)
		over = append(over, expired{l.of, l.lease})
	}
	return over
}
