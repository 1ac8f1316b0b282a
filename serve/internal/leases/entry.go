package leases

import (
	"sync/atomic"

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

// origin is where leases come from. Many leases have the same. It never changes.
type origin struct {
	Open

	in   *limits.Limits
	from *Client // nil for none
}

// origins has the origin that was asked for last. Leases of a client mostly have the same. Those of Envoy do
// while the resource and the kind of entity stay.
type origins struct{ newest atomic.Pointer[origin] }

// get returns an origin that equals o: the last one, if it does.
func (s *origins) get(o origin) *origin {
	newest := s.newest.Load()
	if newest == nil || *newest != o {
		newest = &o
		s.newest.Store(newest)
	}
	return newest
}

// parked is an open lease that is set aside. A server may have millions. A garbage collection follows each
// pointer in them, while calls wait, so each has two.
type parked struct {
	text  string // by limits.Lease.Park
	until int64  // when it ends, in ms, unless its client is open by then
	of    *origin
}

// end returns when the lease ends if its client makes no further call, by what is known at now, both in ms.
func (p *parked) end(now int64) int64 {
	if p.of.from == nil {
		return p.until
	}
	closed := p.of.from.closed.Load()
	if closed == 0 {
		closed = now
	}
	return max(p.until, closed+Grace.Milliseconds())
}

// extend keeps the lease open until an instant, in ms, and while from is open, unless that is nil.
func (p *parked) extend(from *Client, until int64) {
	p.until = max(p.until, until)
	if from != nil {
		o := *p.of
		o.from = from
		p.of = from.origins.get(o)
	}
}

// live is an open lease that has a call under way, or cannot be parked. The lock of its shard guards it. The
// call under way needs no lock to read what only calls change: text, lease and began.
type live struct {
	parked

	number  uint64
	lease   *limits.Lease // nil if text is the lease
	calling chan struct{} // is closed when the call under way has ended; nil if there is none
	began   *origin       // what of was when it began: Adopt may have changed of since
}

// park puts the lease aside, and reports whether it can be.
func (l *live) park() bool {
	if l.lease == nil {
		return true
	}
	var short [128]byte
	text, ok := l.lease.Park(short[:0])
	if ok {
		l.lease, l.text = nil, string(text)
	}
	return ok
}

// take returns the lease, for the call under way.
func (l *live) take() (*limits.Lease, error) {
	if l.lease != nil {
		return l.lease, nil
	}
	return l.began.On.Unpark([]byte(l.text))
}
