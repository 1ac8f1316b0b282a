package runtime

import "time"

// Observer is told of outcomes; nil fields are skipped, as in net/http/httptrace. Functions are called on the caller's
// goroutine, or on one of the store's: Store where a write serves several, the others where a lazy settle or release has ended.
// They are called concurrently, and should be quick. Label
// metrics with Resource, Kind and Limit; Entity is for logs.
type Observer struct {
	Acquired func(Event)
	Denied   func(Event)
	Degraded func(Event) // in place of Acquired: the failure policy has admitted, for Err, without a record in the store
	Shadowed func(Event) // in place of Denied or Failed: shadow mode has admitted what Err would have refused
	Failed   func(Event) // neither: invalid input, store down, contended, a settle or release that did not get through
	Settled  func(Event)
	Released func(Event)
	Store    func(StoreEvent)
	// Breaker is told when the circuit breaker opens, because of err, and when it closes, because the store answers again;
	// err is nil then.
	Breaker func(open bool, err error)
	// Skew is told how far this host's clock is ahead of the store's (negative: behind), when that is more than a second
	// and so costs somebody refill; at most once a minute.
	Skew func(time.Duration)
}

// Event is one outcome.
type Event struct {
	Resource, Kind, Limit, Entity string // Limit is set where one refused
	Took                          time.Duration
	Local                         bool // decided in this process by the failure policy, the store having not answered
	Shadow                        bool // of what shadow mode let through, which took nothing: Shadowed, and Settled or Released after it
	Err                           error
}

// StoreEvent is one call to the store.
type StoreEvent struct {
	Resource string // of a read or transact over several: the first's; "" for member, which is about none
	// Path is create, normal, retry, settle, adjust, reshape, undo, repair, carry or transact for a write; read, levels (overrides),
	// perlimit or member for a read. On Redis it is acquire, settle or undo for a script call, by who is first in it; peek, levels
	// or member for a read.
	Path        string
	Buckets     int     // how many a read, transact or script call was about, where that may be several
	Generic     bool    // the expression was built from the item, not generated
	Outcome     string  // applied, refused, conflict, throttled, unapplied (no connection), unknown, failed; found or missing for reads
	Coalesced   int     // acquires and settles that a write served together, a settle once for each bucket; 0 for none, as a repair
	Read, Write float64 // capacity units, those of a failed condition included
	Took        time.Duration
}
