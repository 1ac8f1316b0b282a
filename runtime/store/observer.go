package store

import (
	"context"
	"time"

	"github.com/sluice-go/sluice/runtime/money"
)

// Observer has callbacks for outcomes; nil fields are skipped, as in net/http/httptrace. They are called
// concurrently, and should be quick: other requests for the same bucket wait while Store runs. Observers
// chains several.
//
// Callbacks run on the caller's goroutine, except these, which run on a goroutine of the store:
//   - Store and Skew, for a request that serves several callers or none, and on Redis for script calls and
//     reads of overrides;
//   - Settled, Released and Failed, for a lazy settle or release.
//
// LeaseLost, Prefetched, and what follows from a lease that was dropped, run on a goroutine of the Limiter.
//
// They must not panic: on a goroutine of the store nothing recovers, and the process ends.
//
// Their context is the caller's, so that records belong to the right trace. Settles, releases and all calls
// to the store may outlive their caller: their context has the caller's values, and no end. A call to the
// store that serves several callers has the context of the first.
//
// Label metrics with Resource, Kind and Limit; Entity is for logs.
type Observer struct {
	Acquired func(context.Context, Event)
	Denied   func(context.Context, Event)
	// Degraded is called in place of Acquired: because of Err, the failure policy admitted without a record in
	// the store.
	Degraded func(context.Context, Event)
	// Shadowed is called in place of Denied or Failed: shadow mode admitted what Err would have refused.
	Shadowed func(context.Context, Event)
	// Failed is called for any other error: invalid input, store down, contended, a settle or release that
	// failed.
	Failed func(context.Context, Event)
	// Settled is called for a Keep, too, if that gives slots back.
	Settled  func(context.Context, Event)
	Released func(context.Context, Event)
	// LeaseLost is called for a lease whose hold could not be extended, because of Err: its context has ended,
	// and others may soon have what it held. Took is how long it was open.
	LeaseLost func(context.Context, Event)
	// Prefetched is called for each limit when tokens were taken for calls to come (OperationTake), and when
	// those that no call has used were given back (OperationReturn). The calls are Acquired, and Pooled.
	Prefetched func(context.Context, Event)
	Store      func(context.Context, StoreEvent)
	// Breaker is called when the circuit breaker opens, because of err and of silence during five calls, and
	// when it closes, because the store answers again; err is then nil.
	Breaker func(open bool, err error)
	// Skew is called with how far this host's clock is ahead of the store's (negative: behind), if that is more
	// than a second and so costs somebody refill. It is called at most once a minute.
	Skew func(time.Duration)
}

// Operations of an Event.
const (
	OperationAcquire = "acquire" // Acquire, Do, and AcquireAll, with one event for each claim
	OperationWait    = "wait"    // Took includes the wait
	OperationSettle  = "settle"
	OperationRelease = "release"
	OperationExtend  = "extend" // of what a lease holds: LeaseLost
	OperationTake    = "take"   // of tokens for calls to come: Prefetched
	OperationReturn  = "return" // of such tokens: Prefetched
)

// Event is one outcome.
type Event struct {
	Operation              string // what has ended: see OperationAcquire
	Resource, Kind, Entity string // "" for an entity that is nil, which is invalid
	Template               string // of which Resource is a name; "" for another resource
	// Limit is the one that refused: of several, the one with the longest wait. LimitKind is the kind of its
	// bucket: the entity's own or an ancestor's. Both are empty if none refused, or one of another claim.
	Limit, LimitKind string
	Took             time.Duration
	Local            bool // the failure policy decided in this process, as the store did not answer
	Pooled           bool // its tokens had been prefetched: it made no request
	Shadow           bool // shadow mode let the call through: Shadowed, and its Settled or Released
	Err              error

	// Uncharged is what a call with limits of money would have reserved, in Currency, for Degraded: no budget in
	// the store is charged for it, then or later. Of several limits, it is the highest cost.
	Uncharged money.Amount
	Currency  string

	// Millitokens are those of Limit that Prefetched is about: nano-units of Currency, if it is one of money.
	Millitokens int64
}

// StoreEvent is one request to the store. An acquire, a settle, a release or a peek made it, or it followed
// from one. It is reported when it has ended. On Redis it is one script call, maybe of many in a pipeline, or
// one pipeline of reads. The requests of Check, of Named, and of Config with its Reset and Grant are not
// reported, nor those that store members and their plans.
type StoreEvent struct { //nolint:revive // users know it as runtime.StoreEvent
	System   string // dynamodb or redis
	Call     string // as the store names it: UpdateItem; EVALSHA, or PIPELINE for reads that went together
	Resource string // the first's of several; "" for member and system, which concern none
	Template string // of which Resource is a name; "" for another resource
	// Path is, for a write: create, normal, retry, settle, adjust, reshape, undo, repair, carry, transact, or
	// system for notes about the table itself. For a read it is read, levels (overrides), perlimit or member.
	// On Redis a script call is acquire, settle, extend or undo, by the first call in it. A read on Redis is
	// peek, levels, member, or read for what a script took for no bucket.
	Path    string
	Buckets int  // how many a read, transact or script call was about, if that may be several
	Generic bool // the expression was built from the item, not generated
	// Outcome is applied, refused, conflict, throttled, unapplied (no connection), unloaded (Redis did not know
	// the script, and is sent it), misdated, unknown or failed. For reads it is found, missing or failed. After
	// misdated the call is sent again: the ends of windows in it are of no use to Redis, whose clock is another.
	Outcome string
	// Coalesced is the number of acquires and settles that a write served together, a settle once for each
	// bucket. It is 0 for none, as of a repair.
	Coalesced int
	// Swept is how many whole tokens came back of holds that were over: of processes that died, mostly.
	Swept int64
	// Read and Write are capacity units, with those of a failed condition or a cancelled transaction. They are
	// not known for an unknown outcome.
	Read, Write float64
	Began       time.Time // by the Limiter's clock
	Took        time.Duration
}

// replied reports that the store has answered the request, by doing what was asked or by refusing it for now.
// Of other outcomes the call's error shows more.
func (e *StoreEvent) replied() bool {
	switch e.Outcome {
	case "applied", "refused", "conflict", "throttled", "unloaded", "misdated", "found", "missing":
		return true
	}
	return false
}
