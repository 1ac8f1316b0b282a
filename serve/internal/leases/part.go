package leases

import (
	"context"
	"sync"

	"github.com/sluice-go/sluice/serve/internal/limits"
)

// End is how a lease has ended.
type End uint8

// The ways in which leases end. Unknown is for an end that is no longer remembered, and for no end.
const (
	Unknown  End = iota
	Settled      // by Settle
	Kept         // by Keep
	Released     // by Release
	Expired      // its client was gone
	ends         // the number of ways
)

// String returns how, as a word.
func (e End) String() string {
	return [...]string{"unknown", "settled", "kept", "released", "expired"}[e]
}

const (
	parts = 16   // of a Holder; leases of different ones do not wait for each other
	slots = 64   // seconds in which a lease of a part may be looked at next; more than Grace
	noted = 4096 // ends that a part remembers
)

// entry is an open lease of a Holder. The lock of its part guards all but Open.
type entry struct {
	Open

	lease  *limits.Lease // nil if it is parked
	parked string        // it takes a tenth of the memory
	in     *limits.Limits
	from   *Client // nil for none
	number uint64
	until  int64 // when it ends, in ms, unless from is open by then

	next, prev *entry // in its slot
	hasEnded   bool
	calling    chan struct{} // is closed when the call under way has ended; nil if there is none
}

// put puts the lease aside. It stays as it is if it cannot be parked.
func (e *entry) put(lease *limits.Lease) {
	var short [128]byte
	if text, ok := lease.Park(short[:0]); ok {
		e.lease, e.parked = nil, string(text)
	} else {
		e.lease, e.parked = lease, ""
	}
}

// take returns the lease, for the call under way: no other one puts or takes it.
func (e *entry) take() (*limits.Lease, error) {
	if e.lease != nil {
		return e.lease, nil
	}
	return e.On.Unpark([]byte(e.parked))
}

// end returns when e ends if its client makes no further call, by what is known at now, both in ms.
func (e *entry) end(now int64) int64 {
	if e.from == nil {
		return e.until
	}
	closed := e.from.closed.Load()
	if closed == 0 {
		closed = now
	}
	return max(e.until, closed+Grace.Milliseconds())
}

// part is a part of a Holder's leases.
type part struct {
	mu    sync.Mutex
	open  map[uint64]*entry
	due   [slots]entry // heads of rings: the leases to look at in a second
	ended map[uint64]End
	order []uint64 // the keys of ended, as a ring in the order of their ends
	last  int      // the index of the newest in order
}

// part returns the part of a lease by its number.
func (h *Holder) part(number uint64) *part { return &h.parts[number%parts] }

func (p *part) init() {
	p.open, p.ended = map[uint64]*entry{}, map[uint64]End{}
	for i := range p.due {
		p.due[i].next, p.due[i].prev = &p.due[i], &p.due[i]
	}
}

// add adds e at now, in ms.
func (p *part) add(e *entry, now int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[e.number] = e
	p.schedule(e, now)
}

// schedule puts e into the slot of the second in which it may end, or in which it is to be looked at.
func (p *part) schedule(e *entry, now int64) {
	at := min(max(e.end(now), now), now+Grace.Milliseconds())
	head := &p.due[(at/1000+1)%slots]
	e.prev, e.next = head.prev, head
	e.prev.next, e.next.prev = e, e
}

// unlink takes e out of its slot.
func (e *entry) unlink() {
	e.prev.next, e.next.prev = e.next, e.prev
	e.next, e.prev = nil, nil
}

func (p *part) find(number uint64) (*entry, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.open[number]; e != nil {
		return e, nil
	}
	return nil, &EndedError{How: p.ended[number]}
}

// extend keeps e open until an instant, in ms, and while from is open, unless that is nil. It returns the
// lease, or nil if that is parked.
func (p *part) extend(e *entry, from *Client, until int64) *limits.Lease {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.until = max(e.until, until)
	if from != nil {
		e.from = from
	}
	return e.lease
}

// begin begins a call on e, after the one under way, if any. It fails with an *EndedError, or with ctx's
// error.
func (p *part) begin(ctx context.Context, e *entry) error {
	for {
		under, err := p.tryBegin(e)
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
func (p *part) tryBegin(e *entry) (under <-chan struct{}, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case e.hasEnded:
		return nil, &EndedError{How: p.ended[e.number]}
	case e.calling != nil:
		return e.calling, nil
	}
	e.calling = make(chan struct{})
	return nil, nil
}

// finish ends the call that begin began. If how is Unknown, the call has not ended e, which stays open. lease
// is put back into it, unless that is nil.
func (p *part) finish(e *entry, how End, lease *limits.Lease) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(e.calling)
	e.calling = nil
	switch {
	case how != Unknown:
		e.unlink()
		p.drop(e, how)
	case lease != nil:
		e.put(lease)
	}
}

// drop removes e, which is in no slot. The caller has locked p.
func (p *part) drop(e *entry, how End) {
	e.hasEnded = true
	delete(p.open, e.number)
	if len(p.order) < noted {
		p.order, p.last = append(p.order, e.number), len(p.order)
	} else {
		p.last = (p.last + 1) % noted
		delete(p.ended, p.order[p.last])
		p.order[p.last] = e.number
	}
	p.ended[e.number] = how
}

// expire removes and returns the leases of a slot that have ended at now, in ms. The others are looked at
// later.
func (p *part) expire(slot int, now int64) (over []*entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	head := &p.due[slot]
	for e := head.next; e != head; {
		next := e.next
		e.unlink()
		if e.end(now) <= now && e.calling == nil {
			p.drop(e, Expired)
			over = append(over, e)
		} else {
			p.schedule(e, now)
		}
		e = next
	}
	return over
}
