package runtime

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/sluice-go/sluice/runtime/internal/balances"
	"github.com/sluice-go/sluice/runtime/internal/deadlines"
	"github.com/sluice-go/sluice/runtime/internal/outage"
	"github.com/sluice-go/sluice/runtime/internal/waitlist"
	"github.com/sluice-go/sluice/runtime/store"
)

// Wait is Acquire that sleeps until the tokens are there. In one process, those who wait for an entity are
// served first come first served. Tokens that a settle or a release of the process gives back, to the entity
// or to an ancestor, wake them at once. Other tokens that are given back are noticed within a tenth of the
// wait that is left, at least a second and at most 30 s (docs/design.md, "Waiting"). A free slot of an
// in-flight limit is noticed within a second. In shadow Wait does not sleep. Beside Acquire's errors it
// fails:
//   - at once, with a *DeniedError that is also context.DeadlineExceeded, if the tokens will not be there
//     before ctx's deadline or the end of MaxWait;
//   - at once, with a *DeniedError, if there is neither and the tokens will not be there within a minute;
//   - with the last such denial, if one of these comes first after all;
//   - at once, with a *QueueFullError, if as many calls wait for the entity as WithMaxWaiters allows;
//   - with an error that is context.DeadlineExceeded, if one of these comes before any denial. If it is
//     MaxWait, the error is also ErrMaxWait;
//   - with ctx's error if it is cancelled.
func (r *Resource[E, C]) Wait(ctx context.Context, entity E, cost C, opts ...CallOption) (*Lease[C], error) {
	v := r.untyped.core.vectors()
	l, err := r.untyped.acquireWaiting(ctx, entity, r.costs.toVector(cost, v.whole[:0]), v, opts)
	return (*Lease[C])(l), err
}

// acquireWaiting is Wait for cost, in whole tokens, which may be in v. It puts v back.
func (r *resource) acquireWaiting(
	ctx context.Context, entity Entity, cost []int64, v *vectors, opts []CallOption,
) (*lease, error) {
	o := r.defaults.with(opts)
	a, err := r.call(r.core.env.Clock.Now(), entity, cost, v)
	shadow, wait := r.inShadow(o), r.wait
	if shadow {
		wait = r.glance
	}
	var by outage.Settler
	if err == nil {
		if err = r.ready(ctx, &a.call, o); err == nil {
			by, err = wait(ctx, &a.call, o)
		}
	}
	return r.lease(ctx, store.OperationWait, a, o, endOf(&a.call, shadow, by, err))
}

// contendedPause is how long a Wait leaves a bucket alone after all its attempts lost their races.
const contendedPause = 50 * time.Millisecond

func (r *resource) wait(ctx context.Context, call *request, o *callOptions) (by outage.Settler, err error) {
	waiting, cancel := o.waiting(ctx)
	defer cancel()
	started := call.Called
	defer func() { call.Called = started }() // the observer measures from it
	if call.chains[0].Continues() {          // an unknown entity has nothing to wait for
		by, err := r.admit(ctx, call, r.core.resolve, o.until(ctx, waiting))
		if _, denied := errors.AsType[*DeniedError](err); !denied && (err != nil || outage.Degraded(by)) {
			return by, err
		}
	}
	w := waiter{resource: r, o: o, call: call, part: &call.Parts[0], ctx: ctx, waiting: waiting, ask: true}
	if !w.join() {
		return nil, &QueueFullError{r.spec.Resource, w.part.Buckets[0].Entity, r.core.maxWaiters}
	}
	defer func() {
		var served []store.Bucket
		if err == nil {
			served = w.part.Buckets
		}
		w.ticket.Leave(served, r.now())
	}()
	for done := false; !done; {
		by, done, err = w.step()
	}
	return by, err
}

// waiter is the state of a wait. One goroutine uses it, and others call what join passes on.
type waiter struct {
	*resource

	o        *callOptions
	call     *request
	part     *store.Part // of call
	ctx      context.Context
	waiting  context.Context // ctx, bounded by MaxWait
	ticket   *waitlist.Ticket
	last     *DeniedError // the newest reason to be waiting; nil if the tokens seem to be there
	denial   *DeniedError // the newest there was; nil if none
	unsynced bool         // the store's newest denial was Unsynced
	answered bool         // the store has given one
	ask      bool         // the store is to be asked as soon as the waiter is first
}

// join puts w behind those who wait for its nearest bucket. It reports false if there are too many.
func (w *waiter) join() (ok bool) {
	var tooLate func(*waitlist.View) bool
	if bounded(w.waiting) {
		tooLate = func(view *waitlist.View) bool {
			denied := view.Denies(w.spec, w.part, w.now())
			return denied != nil && deadlines.Past(w.waiting, waitlist.AtLeast(w.spec, denied))
		}
	}
	w.ticket, ok = w.core.waiters.Join(w.spec, w.part, tooLate)
	return ok
}

// step takes w to the next change: it asks the store if it is time, and sleeps if that does not end the wait.
// done reports that the wait has ended, with by or err.
func (w *waiter) step() (by outage.Settler, done bool, err error) {
	view := w.ticket.Look()
	if !view.First || !w.ask {
		// Those ahead are served first. This waiter can have what they leave.
		w.last = w.outlook(view)
		w.ask = w.ask || w.last == nil && view.First // something was given back
	}
	if view.First && w.ask {
		by, done, err = w.send(view.Answered)
		if done || w.ask { // it has ended, or was contended
			return by, done, err
		}
	}
	switch {
	case w.last == nil:
	case deadlines.Past(w.waiting, waitlist.AtLeast(w.spec, w.last)):
		return nil, true, store.PastDeadline(w.last)
	case w.last.RetryAfter > longestWait && !bounded(w.waiting):
		return nil, true, w.last
	}
	var due <-chan time.Time
	reads := false
	if view.First {
		due, reads = w.watch()
	}
	select {
	case <-due:
		if w.ask = !reads; reads {
			w.read()
		}
	case <-w.ticket.News():
	case <-w.waiting.Done():
		return nil, true, w.ended()
	}
	return nil, false, nil
}

// longestWait bounds the wait of a call without a deadline, and without MaxWait: a window may end in a month.
const longestWait = time.Minute

func bounded(ctx context.Context) bool { _, ends := ctx.Deadline(); return ends }

// watch blocks w, the first of its queue, at the limit that refuses it for longest. It returns a channel that
// receives when w has to read the bucket (reads) or to ask the store. It is nil if another waiter watches the
// limit.
func (w *waiter) watch() (due <-chan time.Time, reads bool) {
	wait := w.last.RetryAfter
	i, limit := waitlist.BlockedBy(w.spec, w.part, w.last)
	slots := w.spec.Held != nil && w.spec.InFlight(limit)
	watches, read := w.ticket.Block(i, limit, w.now(), wait, slots)
	if !watches {
		return nil, false
	}
	if slots { // the store is asked once a slot was seen to be free
		return w.core.env.Clock.After(read), true
	}
	if regions := w.spec.Regions; regions != nil && wait == regions.Window {
		read = wait // the quota is too small, and no write to the bucket changes that
	}
	return w.core.env.Clock.After(min(read, wait)), read < wait
}

// read reads the bucket that refuses w for longest, for all who wait for it. Other processes may have given
// something back. If the store does not answer, the next read will tell.
func (w *waiter) read() {
	now := w.core.env.Clock.Now()
	if !w.ticket.ClaimRead(now.UnixMilli()) {
		return
	}
	buckets := w.part.Buckets
	i, _ := waitlist.BlockedBy(w.spec, w.part, w.last)
	root := buckets[len(buckets)-1].Entity
	part := store.Part{Def: w.def, Buckets: []store.Bucket{buckets[i].Unfilled()}, Root: root}
	peek := requestOf(w.spec, now, part)
	within := func(ctx context.Context) error { return w.core.within(ctx, w.o.budget, peek, w.core.peek) }
	if w.core.fallback.Ask(w.waiting, &peek.Request, within) == nil {
		w.ticket.Read(balances.Existing(w.spec, peek.Parts[0].Buckets[0]), w.now())
	}
}

// send asks the store for w's call. done reports that the wait has ended, with by or err. Otherwise the call
// was denied, and last is the denial, or it was contended, and ask is still true. answered reports that the
// store has answered another waiter of the queue before.
func (w *waiter) send(answered bool) (by outage.Settler, done bool, err error) {
	w.call.Called = w.core.env.Clock.Now() // each attempt is an acquire of its own
	if w.waiting.Err() != nil {
		return nil, true, w.ended()
	}
	// MaxWait bounds the store's first answer as a Budget does: without an answer the failure policy decides.
	// Later it ends the wait: an attempt that it cuts short is no outage for the policy to decide on.
	within, budgeted := w.waiting, w.o
	if !w.answered && !answered {
		within, budgeted = w.ctx, w.o.until(w.ctx, w.waiting)
	}
	by, err = w.attempt(within, w.call, budgeted)
	if err != nil && within == w.waiting && w.waiting.Err() != nil && errors.Is(err, w.waiting.Err()) {
		return nil, true, w.ended()
	}
	w.answered = true
	if _, contended := errors.AsType[*ContendedError](err); contended {
		select {
		case <-w.core.env.Clock.After(contendedPause):
			return nil, false, nil
		case <-w.waiting.Done():
			return nil, true, w.ended()
		}
	}
	denied, ok := errors.AsType[*DeniedError](err)
	if !ok {
		return by, true, err
	}
	w.last, w.denial, w.unsynced, w.ask = denied, denied, denied.Unsynced, false
	w.ticket = w.ticket.Extend(w.part) // a look-up that failed when it joined may have been answered now
	w.ticket.Denied(w.part.Buckets, w.now())
	return nil, false, nil
}

// attempt is one acquire of a wait.
func (r *resource) attempt(ctx context.Context, call *request, o *callOptions) (outage.Settler, error) {
	if denied := r.refusedWaiter(call); denied != nil {
		return nil, denied
	}
	return r.admit(ctx, call, r.core.acquire, o)
}

// ended returns the error of a wait whose ctx or MaxWait has ended: the newest denial, if time ran out.
func (w *waiter) ended() error {
	err := w.ctx.Err()
	if errors.Is(err, context.Canceled) {
		return w.abandoned(w.ctx, w.call)
	}
	denied := cmp.Or(w.outlook(w.ticket.Look()), w.denial)
	switch {
	case denied != nil:
		return store.PastDeadline(denied)
	case err == nil:
		return &maxWaitError{w.spec.Resource, w.part.Buckets[0].Entity, w.o.maxWait}
	}
	return w.abandoned(w.ctx, w.call)
}

// outlook returns the denial of w behind those ahead of it, or nil if it need not wait.
func (w *waiter) outlook(view *waitlist.View) *DeniedError {
	denied := view.Denies(w.spec, w.part, w.now())
	if denied != nil {
		denied.Unsynced, w.denial = w.unsynced, denied
	}
	return denied
}
