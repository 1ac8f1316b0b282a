package dynamo

import (
	"slices"

	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/store"
)

// decide ends the pending requests for which what is known suffices, and plans a write for as many of the
// others as it can, first come first served. It returns what to do next: write, read, or nothing.
//
// A request that fits alone but not behind those ahead of it is denied from the image that this write returns
// (denyLeftover), so nobody waits for more than one write. In an overload the queue would otherwise grow
// without end. Such a request may be overtaken by one that takes less.
func (b *batch) decide() plan.Decision {
	now, all := b.scheduler.conn.Now(), b.roster.pending
	b.roster.leftover, b.attempt.denied = nil, nil
	if b.targets.unknown() { // nobody joins an op of unknown outcome
		all = b.roster.maybeApplied
	}
	if len(all) == 1 {
		return b.decideOne(all, now)
	}
	all = slices.Clone(all)
	if (reader{b.scheduler, b.targets}).needsFor(all, now) {
		return plan.Read
	}
	together, tooMuch, leftover := b.targets.fit(all, now)
	if len(leftover) > 0 && b.targets.needImages(now) {
		return plan.Read
	}
	for i := range tooMuch {
		if d := b.decideOne(tooMuch[i:i+1:i+1], now); d != plan.None {
			return d
		}
	}
	isAcquire := func(r *request) bool { return !r.settle }
	switch {
	case len(together) == 0, len(b.targets) > 1 && !slices.ContainsFunc(together, isAcquire):
		return plan.None // deferred settles of a chain's buckets make no transaction by themselves
	case len(together) == 1:
		d := b.decideOne(together, now)
		b.roster.leftover, b.attempt.plannedAt = leftover, now
		return d
	}
	b.roster.included = together
	d := planner{b.scheduler, b.targets}.plan(together, now)
	b.roster.leftover, b.attempt.plannedAt = leftover, now
	if d == plan.Write || d == plan.Read {
		return d
	}
	return b.decideOne(together[:1:1], now) // alone it gets a decision, whatever keeps the others from one
}

// decideOne plans for one request alone. If that comes to no write and no read, it ends the request and
// returns None.
func (b *batch) decideOne(one []*request, now int64) plan.Decision {
	r := one[0]
	b.roster.included = one
	switch (planner{b.scheduler, b.targets}).plan(one, now) {
	case plan.Write:
		return plan.Write
	case plan.Read:
		b.attempt.denied = b.targets.denied(now)
		return plan.Read
	case plan.Deny:
		b.roster.finish(r, b.targets.denied(now), b.targets)
	case plan.TooLarge:
		b.roster.finish(r, b.targets.tooLarge(), b.targets)
	case plan.None:
		b.targets.recordFound(r, now)
		b.roster.finish(r, nil, b.targets)
	}
	return plan.None
}

// planner plans what the targets write.
type planner struct {
	scheduler *scheduler
	targets   targets
}

// plan has each target choose how to write what all demand together. It returns what to do about them all.
func (pl planner) plan(all []*request, now int64) plan.Decision {
	read := reader(pl)
	var missing, unsure, denied, tooLarge bool
	nothing := 0
	for i, t := range pl.targets {
		t.add(all, i)
		t.missing = read.overridesNeeded(t, now)
		if t.shape == nil {
			if t.image == nil && !t.confirmed {
				t.missing |= needImage // both in one read
			}
			missing = true
			continue
		}
		t.plan = pl.scheduler.choose(&t.demand, t.state(now), now)
		t.missing |= t.wholeNeeded()
		switch t.plan.Decision {
		case plan.Read:
			t.missing |= needImage
			unsure = unsure || t.image != nil
		case plan.Deny:
			denied = true
		case plan.TooLarge:
			tooLarge = true
		case plan.None:
			nothing++
		case plan.Write:
			if t.shouldRead(now) {
				t.missing |= needImage
			}
			if len(pl.targets) > 1 {
				t.plan.GuardDebt()
			}
		}
		missing = missing || t.missing != 0
	}
	// A denial tells how the whole chain stands, from one read, and no worse than it is.
	if (unsure || denied || tooLarge) && pl.targets.needDenialImages(now) {
		missing = true
	}
	switch {
	case missing:
		return plan.Read
	case tooLarge:
		return plan.TooLarge
	case denied:
		return plan.Deny
	case nothing == len(pl.targets):
		return plan.None
	}
	return plan.Write
}

// needDenialImages marks targets to be read whose plan would write from an image that is not confirmed. It
// reports whether there are any.
func (ts targets) needDenialImages(now int64) (found bool) {
	for _, t := range ts {
		if t.shape != nil && t.plan.Decision == plan.Write && !t.state(now).Confirmed && !t.conditionHeld {
			t.missing |= needImage
			found = true
		}
	}
	return found
}

// needImages marks targets of a chain to be read of which only a prediction is known, and reports whether
// there are any. A transaction returns no image from which leftover requests could be denied.
func (ts targets) needImages(now int64) (found bool) {
	if len(ts) == 1 {
		return false
	}
	for _, t := range ts {
		if t.image != nil && !t.state(now).Confirmed {
			t.missing |= needImage
			found = true
		}
	}
	return found
}

// fit sorts requests into those that one write can serve together, acquires that would not fit even alone,
// and acquires that would fit, but not behind the ones ahead. A settle always fits. But only an acquire
// reshapes a bucket, so settles of an outdated one wait for the next write.
func (ts targets) fit(all []*request, now int64) (together, tooMuch, leftover []*request) {
	isAcquire := func(r *request) bool { return !r.settle }
	reshapes := slices.ContainsFunc(all, isAcquire) && slices.ContainsFunc(ts, (*target).isOutdated)
	rooms := make([]plan.Headroom, len(ts))
	for i, t := range ts {
		rooms[i] = plan.NewHeadroom(t.image, &t.shape.Shape, now)
		if !reshapes {
			rooms[i].Return(t.givenBack(all, i))
		}
	}
	for _, r := range all {
		fits, alone := true, true
		for i := range rooms {
			left, whole := rooms[i].Has(r.costOf(i))
			fits, alone = fits && left, alone && whole
		}
		switch {
		case r.settle && reshapes:
		case r.settle:
			together = append(together, r)
		case fits:
			together = append(together, r)
			for i := range rooms {
				rooms[i].Take(r.costOf(i))
			}
		case !alone:
			tooMuch = append(tooMuch, r)
		default:
			leftover = append(leftover, r)
		}
	}
	return together, tooMuch, leftover
}

// roster holds the requests of a batch. Its lists overlap: included and leftover are parts of pending.
type roster struct {
	scheduler *scheduler
	queue     *queue

	pending      []*request // not ended yet, in order of arrival
	included     []*request // served by the targets' plans
	leftover     []*request // acquires for which included ones leave nothing
	maybeApplied []*request // included in each attempt of unknown outcome
}

// count counts an attempt for the requests that it is to serve, and for those for which it leaves nothing.
func (o *roster) count(all, leftover []*request) {
	o.queue.cached.mu.Lock()
	defer o.queue.cached.mu.Unlock()
	for _, r := range all {
		r.attempts++
	}
	for _, r := range leftover {
		r.attempts++
	}
}

// mayRetry reports whether every included acquire has attempts left.
func (o *roster) mayRetry() bool {
	return !slices.ContainsFunc(o.included, func(r *request) bool {
		return !r.settle && r.attempts >= o.scheduler.attempts
	})
}

// covered returns the requests that a write, recognised by its op, served.
func (o *roster) covered() []*request {
	if len(o.maybeApplied) > 0 {
		return o.maybeApplied
	}
	return o.included
}

// finish ends r with err, unless it has ended. A charge whose caller has left is given back.
func (o *roster) finish(r *request, err error, ts targets) {
	if r.ended {
		return
	}
	if err != nil {
		ts.recordFound(r, o.scheduler.conn.Now())
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
			r.portions[0].cached.addGiveBacks(-1)
		}
		// onDone calls observers, and requests wait for this goroutine.
		o.scheduler.background.Start(func() { r.onDone(err) })
	case abandoned && err == nil && !r.settle:
		o.scheduler.refundAbandoned(r)
	}
}

// finishAll ends requests with err.
func (o *roster) finishAll(all []*request, err error, ts targets) {
	for _, r := range all {
		o.finish(r, err, ts)
	}
}

// giveUp ends r, which has no further attempt. If r may have been charged together with others, it stays: its
// caller gets err now, and what turns out to have been charged is given back later.
func (o *roster) giveUp(r *request, err error, ts targets) {
	if r.settle || r.done == nil || !ts.unknown() || !slices.Contains(o.maybeApplied, r) {
		o.finish(r, err, ts)
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
	for _, list := range [...]*[]*request{&o.pending, &o.included, &o.maybeApplied} {
		if slices.ContainsFunc(*list, (*request).hasEnded) { // the lists may share an array
			*list = slices.DeleteFunc(slices.Clone(*list), (*request).hasEnded)
		}
	}
}

// denyLeftover denies the leftover requests from the images that the applied write left, as of the instant of
// its plan: before the next tokens came. Retry after is then late by the time that the write took, never
// early. A predicted image denies nobody. A leftover request may have ended: an earlier copy of the write,
// now known to be applied, included it.
func (o *roster) denyLeftover(ts targets, plannedAt int64) {
	for _, r := range o.leftover {
		if r.ended {
			continue
		}
		var denied *store.DeniedError
		for i, t := range ts {
			if t.image != nil && t.confirmed && !t.isOutdated() {
				denied = store.Refuse(denied, t.resource.Spec, t.entity, t.image, r.costOf(i), plannedAt)
			}
		}
		if denied != nil {
			o.finish(r, denied, ts)
		}
	}
}

// finishUncertain ends lazy settles that give something back, in a transaction of unknown outcome that is not
// sent again as it is. A rebuilt one would give it back twice.
func (o *roster) finishUncertain(ts targets) {
	for _, r := range o.maybeApplied {
		if r.isLazy() && r.givesBack() {
			name := r.portions[0].resource.Spec.Resource
			o.finish(r, &store.UnavailableError{Resource: name, Attempts: r.attempts, Err: errUncertain}, ts)
		}
	}
}

// awaitsUnknown reports whether a caller still waits for the write of unknown outcome. It sets the error for
// callers who leave. A lazy settle in a transaction (single is false) does not count: another write can
// include it.
func (o *roster) awaitsUnknown(lastErr error, single bool) bool {
	o.queue.cached.mu.Lock()
	defer o.queue.cached.mu.Unlock()
	o.queue.lastErr = lastErr
	return slices.ContainsFunc(o.maybeApplied, func(r *request) bool {
		return !r.abandoned && (single || !r.isLazy())
	})
}

// recordFound notes in the portions of r, which came to nothing, how its buckets were found.
func (ts targets) recordFound(r *request, now int64) {
	for i, t := range ts {
		pn := r.portionOf(i)
		if pn == nil {
			continue
		}
		if pn.after = t.image; t.shape != nil {
			pn.limits = t.shape.InForce(now)
		}
		if img := t.plan.DeniedImage(); img != nil && t.missing == 0 {
			pn.after = img
		}
	}
}
