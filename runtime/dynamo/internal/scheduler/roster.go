package scheduler

import (
	"slices"

	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/store"
)

// roster holds the requests of a batch. Its lists overlap: included and leftover are parts of pending.
type roster struct {
	scheduler *scheduler
	queue     *queue

	pending  []*Request // not ended yet, in order of arrival
	included []*Request // served by the targets' plans
	leftover []*Request // acquires for which included ones leave nothing
	unsure   unsure

	named  targets // of the buckets of candidates
	most   int     // chains in the next transaction
	rounds int     // calls of targetsOf

	// A roster of one bucket needs no allocation for its target.
	single  target
	singles [1]*target
}

// unsure is a write that may have been applied although no reply said so.
type unsure struct {
	requests    []*Request        // of the first of its attempts; later ones include no others
	targets     targets           // of that; each has what was sent to it; nil if there is no such write
	transaction *wire.Transaction // the next attempt sends it again, byte for byte; nil for an update
}

// note notes an attempt for all that may have been applied. tx goes again; it is nil for an update.
func (u *unsure) note(all []*Request, ts targets, tx *wire.Transaction) {
	if u.transaction = tx; !u.exists() {
		u.requests, u.targets = all, ts
	}
}

// exists reports whether there is such a write.
func (u *unsure) exists() bool { return u.targets != nil }

// candidates returns the pending requests that the next write may serve, the oldest first, and gives their
// portions targets. There are at most o.most chains, with no more buckets together than one transaction
// takes. Lazy settles of these buckets come last, and do not count.
func (o *roster) candidates() []*Request {
	if !o.queue.chained {
		for _, r := range o.pending {
			o.assignSingle(&r.portions[0])
		}
		return o.pending
	}
	before := o.named
	o.named = nil
	var all []*Request
	for _, r := range o.pending {
		if r.isLazy() {
			continue
		}
		if len(all) == o.most || !o.assign(r, before) {
			break
		}
		all = append(all, r)
	}
	for _, r := range o.pending {
		if pn := &r.portions[0]; r.isLazy() {
			if pn.target = o.named.of(pn.cached); pn.target != nil {
				all = append(all, r)
			}
		}
	}
	return all
}

// assignSingle gives pn the only target of a queue of one bucket.
func (o *roster) assignSingle(pn *portion) {
	if pn.target = &o.single; len(o.named) == 0 {
		o.named = append(o.singles[:0], &o.single)
		o.single.init(pn)
	}
}

// assign gives r's portions targets, old ones if before has them. It reports whether the transaction has
// room for all of them, and changes nothing if not.
func (o *roster) assign(r *Request, before targets) bool {
	fresh := 0
	for i := range r.portions {
		if o.named.of(r.portions[i].cached) == nil {
			fresh++
		}
	}
	if len(o.named)+fresh > maxTargets {
		return false
	}
	for i := range r.portions {
		pn := &r.portions[i]
		if pn.target = o.named.of(pn.cached); pn.target != nil {
			continue
		}
		if pn.target = before.of(pn.cached); pn.target == nil {
			pn.target = &target{}
			pn.target.init(pn)
		}
		o.named = append(o.named, pn.target)
	}
	return true
}

// targetsOf returns the targets of all, in the order in which these name them.
func (o *roster) targetsOf(all []*Request) targets {
	if !o.queue.chained {
		return o.named
	}
	var ts targets
	o.rounds++
	for _, r := range all {
		for i := range r.portions {
			if t := r.portions[i].target; t.round != o.rounds {
				t.round = o.rounds
				ts = append(ts, t)
			}
		}
	}
	return ts
}

// attachLazy adds the deferred settles of the named targets.
func (o *roster) attachLazy() {
	for _, t := range o.named {
		cached := t.cached
		cached.mu.Lock()
		for _, r := range cached.deferred {
			r.portions[0].target = t
			o.pending = append(o.pending, r)
		}
		cached.deferred = nil
		cached.hasDeferred.Store(false)
		cached.mu.Unlock()
	}
}

// detachLazy leaves a chain's lazy settles to other writes, after an attempt that was not applied.
func (o *roster) detachLazy() {
	if !o.queue.chained || o.unsure.exists() {
		return
	}
	stay, leave := splitLazy(o.pending)
	if len(leave) > 0 {
		// Other workers write to those that leave from now on, and the next attempt is planned anew.
		o.pending, o.included = stay, nil
		o.scheduler.deferSettles(leave)
	}
}

// returnLazy leaves the lazy settles that a chain's write has not included to other writes. An overdue one
// gets a write of its own at once: the next chains with its bucket may be denied too, and siblings may keep
// this queue busy.
func (o *roster) returnLazy() {
	if !o.queue.chained || o.unsure.exists() {
		return
	}
	stay, leave := splitLazy(o.pending)
	if len(leave) > 0 {
		o.pending, o.included = stay, nil
	}
	for _, r := range leave {
		if untilOverdue(r, o.scheduler.conn.Now()) > 0 {
			o.scheduler.deferSettles([]*Request{r})
			continue
		}
		cached := r.portions[0].cached
		cached.mu.Lock()
		r.portions[0].target = nil
		cached.writeOverdue(o.scheduler, r)
		cached.mu.Unlock()
	}
}

// splitLazy returns the lazy settles among all that have not ended, and the rest.
func splitLazy(all []*Request) (rest, lazy []*Request) {
	for _, r := range all {
		if r.isLazy() && !r.ended {
			lazy = append(lazy, r)
		} else {
			rest = append(rest, r)
		}
	}
	return rest, lazy
}

// chains returns the number of requests included, without lazy settles.
func (o *roster) chains() (n int) {
	for _, r := range o.included {
		if !r.isLazy() {
			n++
		}
	}
	return n
}

// count counts an attempt for the requests that it is to serve, all, and for those that it leaves nothing
// for.
func (o *roster) count(all, leftover []*Request) {
	o.queue.cached.mu.Lock()
	defer o.queue.cached.mu.Unlock()
	for _, list := range [...][]*Request{all, leftover} {
		for _, r := range list {
			r.attempts++
			r.sent = true
		}
	}
}

// noteExtensions notes that a write goes out for the included extensions, if more is 1, or that it was not
// applied, if more is -1. It reports false if the caller of one has left with the answer that nothing was
// written. Then nothing may be sent.
func (o *roster) noteExtensions(more int) bool {
	if !slices.ContainsFunc(o.included, func(r *Request) bool { return r.extends }) {
		return true
	}
	o.queue.cached.mu.Lock()
	defer o.queue.cached.mu.Unlock()
	for _, r := range o.included {
		if r.extends && r.abandoned && r.written == 0 {
			return false
		}
	}
	for _, r := range o.included {
		r.written += more
	}
	return true
}

// noteReadSent notes that a read is sent for the pending requests.
func (o *roster) noteReadSent() {
	o.queue.cached.mu.Lock()
	defer o.queue.cached.mu.Unlock()
	for _, r := range o.pending {
		r.sent = true
	}
}

// mayRetry reports whether every included acquire has attempts left.
func (o *roster) mayRetry() bool {
	return !slices.ContainsFunc(o.included, func(r *Request) bool {
		return !r.settle && r.attempts-r.free >= o.scheduler.attempts
	})
}

// finish ends r with err, unless it has ended. A charge whose caller has left is given back.
func (o *roster) finish(r *Request, err error) {
	if r.ended {
		return
	}
	if err != nil {
		r.recordFound(o.scheduler.conn.Now())
	}
	o.queue.cached.mu.Lock()
	r.ended = true
	abandoned := r.abandoned
	if !abandoned {
		if r.err = err; r.done != nil {
			close(r.done)
		}
	}
	o.queue.cached.mu.Unlock()
	switch {
	case r.isLazy():
		if r.givesBack() {
			r.portions[0].cached.known.AddGiveBacks(-1)
		}
		// onDone calls observers, and requests wait for this goroutine.
		o.scheduler.background.Start(func() {
			defer o.scheduler.background.End() // of Defer
			r.onDone(err)
		})
	case abandoned && err == nil && !r.settle:
		o.scheduler.refundAbandoned(r)
	}
}

// finishAll ends requests with err.
func (o *roster) finishAll(all []*Request, err error) {
	for _, r := range all {
		o.finish(r, err)
	}
}

// giveUp ends r, which has no further attempt. If r may have been charged together with others, it stays: its
// caller gets err now, and what turns out to have been charged is given back later.
func (o *roster) giveUp(r *Request, err error) {
	if r.settle || r.done == nil || !slices.Contains(o.unsure.requests, r) {
		o.finish(r, err)
		return
	}
	o.queue.cached.mu.Lock()
	defer o.queue.cached.mu.Unlock()
	if r.answered = true; !r.abandoned {
		r.err, r.abandoned = err, true
		close(r.done)
	}
}

// removeEnded drops requests that have ended from all lists but leftover.
func (o *roster) removeEnded() {
	for _, list := range [...]*[]*Request{&o.pending, &o.included, &o.unsure.requests} {
		if slices.ContainsFunc(*list, (*Request).hasEnded) { // the lists may share an array
			*list = slices.DeleteFunc(slices.Clone(*list), (*Request).hasEnded)
		}
	}
}

// denyLeftover denies the leftover requests from the images that the applied write left, as of the instant of
// its plan: before the next tokens came. Retry after is then late by the time that the write took, never
// early. A predicted image denies nobody. A leftover request may have ended: an earlier copy of the write,
// now known to be applied, included it.
func (o *roster) denyLeftover(plannedAt int64) {
	for _, r := range o.leftover {
		if r.ended {
			continue
		}
		var denied *store.DeniedError
		for i := range r.portions {
			pn := &r.portions[i]
			if t := pn.target; t.Image != nil && t.Confirmed && !t.IsOutdated() {
				denied = t.refuse(denied, r, t.Image, pn.cost, plannedAt)
			}
		}
		if denied != nil {
			o.finish(r, denied)
		}
	}
}

// noteErr notes the error for callers who leave before the next attempt has ended.
func (o *roster) noteErr(err error) {
	o.queue.cached.mu.Lock()
	defer o.queue.cached.mu.Unlock()
	o.queue.lastErr = err
}

// finishUncertain ends the lazy settles for which uncertain holds, in a transaction of unknown outcome that
// is not sent again as it is. A rebuilt one would settle them twice.
func (o *roster) finishUncertain(uncertain func(*Request) bool) {
	for _, r := range o.unsure.requests {
		if r.isLazy() && uncertain(r) {
			name := r.portions[0].resource.Spec.Resource
			o.finish(r, &store.UnavailableError{Resource: name, Attempts: r.attempts, Err: ErrUncertain})
		}
	}
}

// awaitsUnknown reports whether a caller still waits for the write of unknown outcome. It sets the error for
// callers who leave. A lazy settle in a transaction does not count: another write can include it.
func (o *roster) awaitsUnknown(lastErr error) bool {
	o.noteErr(lastErr)
	o.queue.cached.mu.Lock()
	defer o.queue.cached.mu.Unlock()
	single := len(o.unsure.targets) == 1
	return slices.ContainsFunc(o.unsure.requests, func(r *Request) bool {
		return !r.abandoned && (single || !r.isLazy())
	})
}
