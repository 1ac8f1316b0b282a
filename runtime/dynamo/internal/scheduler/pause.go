package scheduler

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sluice-go/sluice/runtime/dynamo/internal/pace"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/store"
)

// firstPause is the longest sleep after the first attempt of a write that lost a race or had no answer; the
// last ones are up to 256 ms. Shorter pauses lose more races, each at a write unit. Longer ones would delay
// the second attempt on an uncontended bucket.
const firstPause = 8 * time.Millisecond

// MostFree bounds how many attempts of a request do not count as its Attempts, since they were throttled or
// met a transaction. One that met a transaction costs two units a bucket, so Budget alone is no bound.
const MostFree = 32

// pauser decides when a planner's next attempt goes.
type pauser struct {
	planner

	served int  // requests that the last write served
	paced  bool // the next write has waited as the pacer says
	waited bool // for the last turn
}

// pace waits as long as the bucket's pacer says, once for each write. It reports whether it waited: requests
// may have arrived meanwhile, so the batch decides anew.
func (p *pauser) pace(ctx context.Context) bool {
	if p.paced {
		return false
	}
	conn := p.scheduler.conn
	age := time.Duration(conn.Now()-p.roster.pending[0].called) * time.Millisecond
	wait := p.roster.queue.cached.pacer.Wait(conn.Env.Clock.Now(), age)
	if wait == 0 {
		return false
	}
	p.paced = true
	p.sleep(ctx, wait, nil)
	return true
}

// pause waits for the next attempt after one that was not applied, and ends the requests that have none.
func (p *pauser) pause(ctx context.Context) {
	_, outage := errors.AsType[*store.UnavailableError](p.attempt.err)
	spent := outage && !p.roster.queue.cached.pacer.TakeRetry(ctx, p.scheduler.conn.Budget)
	for _, r := range p.roster.pending {
		switch {
		case r.isOver():
			p.giveUpOver(r)
		case !r.settle && (spent && r.attempts > 0 || r.attempts-r.free >= p.scheduler.attempts):
			p.roster.giveUp(r, p.attempt.errFor(r, p.roster.unsure.exists()))
		}
	}
	p.roster.removeEnded()
	longest := wire.Backoff(firstPause, p.attempt.n)
	switch {
	case len(p.roster.pending) == 0, spent && p.takeFirstAttempt():
		longest = 0 // a first attempt is no retry
	case spent: // only settles are left: they go on until their time-out
		longest = time.Second
	case p.attempt.paces:
		longest = 0 // the next one is paced
	case outage: // as long as the newest request's attempts say; after a lost race, all attempts count
		n := p.attempt.n
		for _, r := range p.roster.pending {
			n = min(n, max(r.attempts, 1))
		}
		longest = wire.Backoff(firstPause, n)
	}
	var arrival <-chan struct{}
	if outage && !p.roster.unsure.exists() { // nobody joins a write of unknown outcome
		arrival = p.roster.queue.nextArrival()
	}
	if longest > 0 {
		p.sleep(ctx, time.Duration(p.scheduler.seams.Jitter()*float64(longest)), arrival)
	}
	p.attempt.err, p.attempt.lastErr = nil, p.attempt.err
}

// takeFirstAttempt reports whether a request waits for its first attempt, which is no retry. Each request
// counts once: the next attempt may leave it out (firstByRetry), or may be of a write that none joins.
func (p *pauser) takeFirstAttempt() (found bool) {
	for _, r := range p.roster.pending {
		found = found || r.attempts == 0 && !r.skipped
		r.skipped = true
	}
	return found
}

// RacesAtOnce is how many lost races are followed by an attempt without a pause. A request of one bucket that
// has lost so many is served by Retry: the winner of the last race planned after the request was called.
const RacesAtOnce = 3

// skipsPause reports whether the next attempt needs no pause: the last one lost a race, and the image that
// came with the reply says what to write. A bucket that is less than half full needs one: writers race for
// its tokens themselves, and with pauses fewer lose.
func (p *pauser) skipsPause() bool {
	_, contended := errors.AsType[*store.ContendedError](p.attempt.err)
	lost := func(t *target) bool { return t.lost }
	if !contended || !p.roster.mayRetry() || !slices.ContainsFunc(p.targets, lost) {
		return false
	}
	return !slices.ContainsFunc(p.targets, func(t *target) bool {
		return t.lost && (t.isScarce() || !t.goesByRetry() && p.attempt.races > RacesAtOnce)
	})
}

// noteOutcome notes the outcome of an attempt that was sent at began, for the pauses before the next ones.
// The first MostFree attempts that were throttled or met a transaction do not count as Attempts.
func (p *pauser) noteOutcome(o wire.Outcome, began time.Time, all ...[]*Request) {
	p.attempt.paces, p.paced = o == wire.Throttled || o == wire.Conflict, false
	p.attempt.throttled = p.attempt.throttled || o == wire.Throttled
	p.roster.queue.cached.pacer.Sent(o, began, p.scheduler.conn.Env.Clock.Now(), p.scheduler.seams.Jitter())
	switch o {
	case wire.Throttled, wire.Conflict:
		for _, r := range slices.Concat(all...) {
			r.free = min(r.free+1, MostFree)
		}
	case wire.Applied, wire.Refused:
		p.repay()
	}
}

// longestCollect bounds the pause of awaitCallers. A round trip is measured by a clock that may be set ahead.
const longestCollect = 10 * time.Millisecond

// awaitCallers waits a little for callers who come back: the last write served several, and no more than that
// wait now. Otherwise callers in a loop would form two crowds, each a round trip behind the other.
func (p *pauser) awaitCallers() {
	c, served := p.roster.queue.cached, p.served
	if p.served = 0; served <= 3 {
		return
	}
	c.mu.Lock()
	few := len(p.roster.queue.waiting) <= served
	c.mu.Unlock()
	if few {
		<-p.scheduler.conn.Env.Clock.After(min(c.pacer.Trip()/20, longestCollect))
	}
}

// enter takes one of the session's turns, for a read or a write. It reports false if no caller has the time
// to wait for one. Requests whose time is over meanwhile end, and the batch keeps its place.
func (p *pauser) enter(ctx context.Context) bool {
	turns := p.scheduler.turns
	if p.waited = !turns.TryAcquire(1); !p.waited {
		return true
	}
	bounded, cancel := p.untilLastDeadline(ctx)
	defer cancel()
	entered := turns.Acquire(bounded, 1) == nil
	p.giveUpAllOver()
	return entered
}

// untilLastDeadline bounds ctx by the last deadline of the pending requests. A caller with less time leaves
// by itself, with the last attempt's error.
func (p *pauser) untilLastDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	p.roster.noteErr(cmp.Or(p.attempt.err, p.attempt.lastErr))
	return withLastDeadline(ctx, p.roster.pending)
}

// repay gives the session's budget back what the bucket's retries took, since one was answered.
func (p *pauser) repay() { p.roster.queue.cached.pacer.Repay(p.scheduler.conn.Budget) }

// sleep waits for so long, until arrival is closed, or while a caller has time. It ends requests out of time.
func (p *pauser) sleep(ctx context.Context, d time.Duration, arrival <-chan struct{}) {
	ctx, cancel := p.untilLastDeadline(ctx)
	defer cancel()
	select {
	case <-arrival:
	case <-p.scheduler.conn.Env.Clock.After(d):
	case <-ctx.Done():
	}
	p.giveUpAllOver()
}

// giveUpAllOver ends the pending requests whose callers have no time left.
func (p *pauser) giveUpAllOver() {
	for _, r := range p.roster.pending {
		if r.isOver() {
			p.giveUpOver(r)
		}
	}
}

// giveUpOver ends r, whose caller has no time left.
func (p *pauser) giveUpOver(r *Request) {
	p.roster.giveUp(r, r.overErr(p.attempt.errFor(r, p.roster.unsure.exists())))
}

// withAttemptTimeout bounds one attempt for all (pace.AttemptTime). A request with less time than the others
// leaves by itself and does not cut them off. One that its own caller serves cannot leave.
func (p *pauser) withAttemptTimeout(
	ctx context.Context, all []*Request,
) (context.Context, context.CancelFunc) {
	if len(all) == 0 {
		return context.WithTimeout(ctx, pace.ShortestAttempt)
	}
	var within time.Duration
	last := all[0].deadline
	for _, r := range all {
		if r.deadline.IsZero() {
			return ctx, func() {}
		}
		within = max(within, pace.AttemptTime(remaining(r.deadline), r.settle, len(all) == 1))
		if r.deadline.After(last) {
			last = r.deadline
		}
	}
	within = min(within, p.roster.queue.cached.pacer.LongestAttempt())
	// A later attempt may outlast the caller's time, rather than leave its outcome unknown.
	if own, ok := ctx.Deadline(); all[0].done == nil && all[0].attempts <= 1 && (!ok || own.After(last)) {
		within = min(within, remaining(last))
	}
	return context.WithTimeout(ctx, within)
}
