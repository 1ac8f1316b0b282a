// Package pace keeps a process from writing to a bucket faster than DynamoDB takes it, and from spending its
// retries on one bucket.
package pace

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
)

// Pacer paces the writes of one bucket: those of its own queue, and those of chains whose root it is. A
// request that was throttled or met a transaction doubles the gap between two writes. A request that was
// answered otherwise takes a tenth off. It is safe for concurrent use.
type Pacer struct {
	mu         sync.Mutex
	gap        time.Duration // between two writes, on average
	next       time.Time     // when the next write may go, on the session's clock
	trip       time.Duration // the last round trip
	unanswered int           // retries without an answer, taken from the session's budget
}

// Bounds of the gap.
const (
	LongestGap  = 250 * time.Millisecond // after throttling
	ConflictGap = 6                      // round trips, after a conflict
	shortestGap = time.Millisecond       // a shorter one is none
)

const (
	// MostUnanswered is how many retries one bucket takes until one is answered, so that it does not spend those
	// of others.
	MostUnanswered = 20
	// urgentAfter is the age of a request at which its pause is shortest, and urgentDivide says how short.
	urgentAfter  = 150 * time.Millisecond
	urgentDivide = 10
)

// Sent notes how a request ended that began at an instant. It sets when the next one may go: jitter, from 0
// to 1, puts it between half the gap and one and a half.
func (p *Pacer) Sent(o wire.Outcome, began, now time.Time, jitter float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if o == wire.Unknown || o == wire.NotSent {
		return // no answer says how fast the table is
	}
	if o == wire.Applied || p.trip == 0 { // other answers may come sooner than that of a transaction
		p.trip = now.Sub(began)
	}
	switch o {
	case wire.Throttled:
		p.gap = min(max(2*p.gap, p.trip, shortestGap), LongestGap)
	case wire.Conflict:
		p.gap = min(max(2*p.gap, p.trip, shortestGap), max(p.gap, ConflictGap*max(p.trip, shortestGap)))
	default:
		if p.gap -= p.gap / 10; p.gap < shortestGap {
			p.gap = 0
		}
	}
	p.next = now.Add(time.Duration((0.5 + jitter) * float64(p.gap)))
}

// Wait returns how long the next write waits. It is less the longer the oldest request has waited, so that
// the process that is behind goes first.
func (p *Pacer) Wait(now time.Time, age time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := min(p.next.Sub(now), p.gap+p.gap/2) // the clock may have been set back
	if p.gap == 0 || left <= 0 {
		return 0
	}
	urgency := float64(min(max(age, 0), urgentAfter)) / float64(urgentAfter)
	return time.Duration(float64(left) * (1 - urgency*(urgentDivide-1)/urgentDivide))
}

// Trip returns how long the last applied write took, or another request if there was none; 0 before any.
func (p *Pacer) Trip() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.trip
}

// TakeRetry takes a retry from budget, and reports whether it got one. A bucket returns what it took with
// the next answer (Repay). Until then it has MostUnanswered retries at most, so that others have the rest.
func (p *Pacer) TakeRetry(ctx context.Context, budget *wire.Budget) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unanswered >= MostUnanswered || !budget.Take(ctx) {
		return false
	}
	p.unanswered++
	return true
}

// Reversals are those of a session that went although the retries were spent. It is safe for concurrent use.
type Reversals struct{ last atomic.Int64 } // when the last one did, ms on the session's clock

// TakeReversal is TakeRetry for the reversal of a charge. Once the retries are spent, all buckets of a
// session together may send one a second.
func (p *Pacer) TakeReversal(ctx context.Context, budget *wire.Budget, spent *Reversals, now time.Time) bool {
	if p.TakeRetry(ctx, budget) {
		return true
	}
	ms, last := now.UnixMilli(), spent.last.Load()
	isDue := ms-last >= 1000 || ms < last // the clock was set back
	return isDue && spent.last.CompareAndSwap(last, ms)
}

// Repay gives budget back what the bucket's retries took, since one was answered.
func (p *Pacer) Repay(budget *wire.Budget) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unanswered > 0 {
		budget.Return(p.unanswered)
		p.unanswered = 0
	}
}

// Bounds of one attempt. The shortest is far above what DynamoDB takes for one item. The longest is how long
// a write without a reply keeps others from the bucket. It doubles with each retry that the bucket owes
// (TakeRetry), up to 8 s, so that a store that replies late is waited for.
const (
	ShortestAttempt = 100 * time.Millisecond
	LongestAttempt  = time.Second

	mostDoublings = 3
)

// LongestAttempt returns how long an attempt may take at most, however much time its requests have.
func (p *Pacer) LongestAttempt() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return LongestAttempt << min(p.unanswered, mostDoublings)
}

// AttemptTime returns how long an attempt for a request with so much time left may take, if its bucket's
// LongestAttempt is not less. It leaves time for another one if this one gets no reply. A settle has much
// more time than acquires, which may wait behind it. A request that shares the write has waited for another
// write's reply, so replies come.
func AttemptTime(left time.Duration, settle, alone bool) time.Duration {
	switch {
	case settle:
		left = left / 20 * 3
	case alone:
		left /= 2
	default:
		left = left / 4 * 3
	}
	return max(left, ShortestAttempt)
}
