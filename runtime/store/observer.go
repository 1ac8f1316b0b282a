package store

import (
	"context"
	"time"
)

// Observer is told of outcomes; nil fields are skipped, as in net/http/httptrace. Functions are called on the caller's
// goroutine, or on one of the store's: Store where a write serves several, the others where a lazy settle or release has ended.
// They are called concurrently, and should be quick: while Store is at work, those who wait for the same bucket wait for it. They are
// not to panic: on a goroutine of the store's that ends the process, as nobody can recover from it. Observers joins several.
//
// Their context is the caller's, so that what is recorded finds the trace that it belongs to. For what outlives its caller, as
// settles, releases and all calls to the store may, it has the caller's values and no end. A call to the store that serves
// several callers has that of the first in it.
//
// Label metrics with Resource, Kind and Limit; Entity is for logs.
type Observer struct {
	Acquired func(context.Context, Event)
	Denied   func(context.Context, Event)
	Degraded func(context.Context, Event) // in place of Acquired: the failure policy has admitted, for Err, without a record in the store
	Shadowed func(context.Context, Event) // in place of Denied or Failed: shadow mode has admitted what Err would have refused
	Failed   func(context.Context, Event) // neither: invalid input, store down, contended, a settle or release that did not get through
	Settled  func(context.Context, Event)
	Released func(context.Context, Event)
	Store    func(context.Context, StoreEvent)
	// Breaker is told when the circuit breaker opens, because of err, and when it closes, because the store answers again;
	// err is nil then.
	Breaker func(open bool, err error)
	// Skew is told how far this host's clock is ahead of the store's (negative: behind), when that is more than a second
	// and so costs somebody refill; at most once a minute.
	Skew func(time.Duration)
}

// Operations of an Event.
const (
	OperationAcquire = "acquire" // Acquire, Do, and AcquireAll, which tells one event for each claim
	OperationWait    = "wait"    // Took has the wait in it
	OperationSettle  = "settle"
	OperationRelease = "release"
)

// Event is one outcome.
type Event struct {
	Operation              string // what has ended: see OperationAcquire
	Resource, Kind, Entity string // "" of no entity, which is invalid
	// Limit is the one that refused, of several the one that has to be waited for longest, and LimitKind the kind of whose bucket
	// that was: the entity's own or an ancestor's. They are "" where none refused, or one of another claim.
	Limit, LimitKind string
	Took             time.Duration
	Local            bool // decided in this process by the failure policy, the store having not answered
	Shadow           bool // of what shadow mode let through, which took nothing: Shadowed, and Settled or Released after it
	Err              error
}

// StoreEvent is one request to the store that an acquire, a settle, a release or a peek made or that followed from one, told
// when it has ended. On Redis it is one script call, maybe of many in a pipeline, or one pipeline of reads. What Check and
// those who store overrides and members send is not told.
type StoreEvent struct {
	System   string // dynamodb or redis
	Call     string // as the store names it: UpdateItem; EVALSHA, or PIPELINE for reads that went together
	Resource string // of a read or transact over several: the first's; "" for member and system, which are about none
	// Path is create, normal, retry, settle, adjust, reshape, undo, repair, carry, transact or system (what is noted of the table
	// itself) for a write; read, levels (overrides), perlimit or member for a read. On Redis it is acquire, settle or undo for a
	// script call, by who is first in it; peek, levels, member or read (of what a script took for no bucket) for a read.
	Path    string
	Buckets int  // how many a read, transact or script call was about, where that may be several
	Generic bool // the expression was built from the item, not generated
	// Outcome is applied, refused, conflict, throttled, unapplied (no connection), unloaded (Redis did not know the script, and is
	// sent it), unknown or failed; found, missing or failed for reads.
	Outcome     string
	Coalesced   int       // acquires and settles that a write served together, a settle once for each bucket; 0 for none, as a repair
	Read, Write float64   // capacity units, those of a failed condition or a cancelled transaction included; of an unknown outcome nobody knows them
	Began       time.Time // by the Limiter's clock
	Took        time.Duration
}
