package leases

import "github.com/sluice-go/sluice/serve/internal/limits"

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

// entry is an open lease of a Holder. The lock of its shard guards all but Open.
type entry struct {
	Open

	lease  *limits.Lease // nil if it is parked
	parked string        // it takes a tenth of the memory
	in     *limits.Limits
	from   *Client // nil for none
	number uint64
	until  int64 // when it ends, in ms, unless from is open by then

	next, prev *entry // in its tick
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

// unlink takes e out of its tick.
func (e *entry) unlink() {
	e.prev.next, e.next.prev = e.next, e.prev
	e.next, e.prev = nil, nil
}
