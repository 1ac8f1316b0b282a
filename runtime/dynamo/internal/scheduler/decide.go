package scheduler

import (
	"slices"

	"github.com/sluice-go/sluice/runtime/dynamo/internal/known"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
)

// planner decides on the requests of a roster, and plans what their targets write.
type planner struct {
	scheduler *scheduler
	roster    roster
	targets   targets  // those that the next read or write is about
	attempt   attempts // the write at hand
}

// decide ends the requests for which what is known suffices, and plans a write for as many of the others as
// it can, first come first served. It returns what to do next: write, read, or nothing.
//
// A request that fits alone but not behind those ahead of it is denied from the image that this write returns
// (denyLeftover), so nobody waits for more than one write. In an overload the queue would otherwise grow
// without end. Such a request may be overtaken by one that takes less.
func (pl *planner) decide() plan.Decision {
	now, all := pl.scheduler.conn.Now(), pl.roster.unsure.requests
	pl.roster.leftover, pl.attempt.denied = nil, nil
	all = slices.DeleteFunc(slices.Clone(all), func(r *Request) bool { return r.answered })
	if !pl.roster.unsure.exists() { // else nobody joins its op
		all = pl.roster.candidates()
		if first := pl.firstByRetry(all); len(first) > 0 {
			all = first
		}
	}
	pl.targets = pl.roster.targetsOf(all)
	if len(all) == 1 {
		return pl.decideOne(all, now)
	}
	all = slices.Clone(all)
	if pl.needsFor(all, now) {
		return plan.Read
	}
	together, tooMuch, leftover := pl.fit(all, now)
	if len(leftover) > 0 && pl.roster.targetsOf(leftover).needImages(now) {
		return plan.Read
	}
	if d := pl.decideEach(tooMuch, now); d != plan.None {
		return d
	}
	pl.roster.leftover, pl.attempt.plannedAt = leftover, now
	pl.targets = pl.roster.targetsOf(together)
	isAcquire := func(r *Request) bool { return !r.settle }
	switch {
	case len(together) == 0, len(pl.targets) > 1 && !slices.ContainsFunc(together, isAcquire):
		return plan.None // deferred settles of a chain's buckets make no transaction by themselves
	case len(together) == 1:
		return pl.decideOne(together, now)
	}
	pl.roster.included = together
	if d := pl.plan(together, now); d == plan.Write || d == plan.Read {
		return d
	}
	return pl.decideOne(together[:1:1], now) // alone it gets a decision, whatever keeps the others from one
}

// needsFor notes what has to be read before anything can be decided for all. It reports whether anything has
// to be read.
func (pl *planner) needsFor(all []*Request, now int64) bool {
	for _, t := range pl.targets {
		acquires := func(r *Request) bool { return !r.settle && r.portionOf(t) != nil }
		t.SettlesOnly = !slices.ContainsFunc(all, acquires)
	}
	return pl.needs(now, func(t *target) bool {
		takes := func(r *Request) bool { return slices.ContainsFunc(r.costOf(t), positive) }
		return t.Image == nil && !t.Confirmed && (!t.SettlesOnly || slices.ContainsFunc(all, takes))
	})
}

// needs notes what has to be read: overrides that are due, and images for which unread holds. It reports
// whether anything has to be read.
func (pl *planner) needs(now int64, unread func(*target) bool) (found bool) {
	for _, t := range pl.targets {
		t.Needs = pl.scheduler.reader.OverridesNeeded(&t.View, now)
		if unread(t) {
			t.Needs |= known.NeedImage
		}
		found = found || t.Needs != 0
	}
	return found
}

// firstByRetry returns those of all that the stored tokens serve, in order of arrival, if the last attempt
// lost a race. They go by Retry, which does not fail when others claim refill, as the last attempt did.
// Newcomers wait for the next write. The instant of a request that was called before the winner's claim
// rules no Retry out (docs/design.md, "Scheduler").
func (pl *planner) firstByRetry(all []*Request) []*Request {
	lost := func(t *target) bool { return t.lost }
	if pl.scheduler.seams.NewcomersJoin || !slices.ContainsFunc(pl.roster.named, lost) {
		return nil
	}
	for _, t := range pl.roster.named {
		if t.lost = t.lost && t.Image != nil && t.Shape != nil && !t.IsOutdated(); t.lost {
			t.stored = plan.NewStored(t.Image)
		}
	}
	var first []*Request
	for _, r := range all {
		// Lazy settles of a chain's bucket come after the acquires, and make no transaction by themselves.
		if r.isLazy() && pl.roster.queue.chained && len(first) == 0 {
			break
		}
		if pl.takeStored(r) {
			first = append(first, r)
		}
	}
	return first
}

// decideEach decides on each request alone, by its own buckets. One read serves several.
func (pl *planner) decideEach(all []*Request, now int64) plan.Decision {
	var unread targets
	missing := map[*target]known.Need{}
	for i := range all {
		switch pl.decideOne(all[i:i+1:i+1], now) {
		case plan.Write:
			return plan.Write
		case plan.Read:
			for _, t := range pl.targets {
				if _, ok := missing[t]; !ok {
					unread = append(unread, t)
				}
				missing[t] |= t.Needs
			}
		}
	}
	if len(unread) == 0 {
		return plan.None
	}
	for _, t := range unread {
		t.Needs = missing[t]
	}
	if pl.targets = unread; len(all) > 1 {
		pl.attempt.denied = nil // of one of several requests
	}
	return plan.Read
}

// decideOne plans for one request alone, the only one of one. If that comes to no write and no read, it ends
// the request and returns None.
func (pl *planner) decideOne(one []*Request, now int64) plan.Decision {
	r := one[0]
	pl.roster.included, pl.targets = one, pl.roster.targetsOf(one)
	switch pl.plan(one, now) {
	case plan.Write:
		return plan.Write
	case plan.Read:
		pl.attempt.denied = pl.targets.denied(r, now)
		return plan.Read
	case plan.Deny:
		pl.roster.giveUp(r, pl.targets.denied(r, now)) // a copy of an earlier attempt may still charge it
	case plan.TooLarge:
		pl.roster.giveUp(r, pl.targets.tooLarge(r))
	case plan.None:
		r.recordFound(now)
		pl.roster.finish(r, nil)
	}
	return plan.None
}

// plan has each target choose how to write what all demand together. It returns what to do about them all.
func (pl *planner) plan(all []*Request, now int64) plan.Decision {
	chained := len(pl.targets) > 1
	contended := chained && pl.roster.queue.cached.known.IsContended(now)
	var missing, unconfirmed, denied, tooLarge bool
	nothing := 0
	for _, t := range pl.targets {
		t.add(all, now)
		t.Needs = pl.scheduler.reader.OverridesNeeded(&t.View, now)
		if t.Shape == nil {
			if t.Image == nil && !t.Confirmed {
				t.Needs |= known.NeedImage // both in one read
			}
			missing = true
			continue
		}
		state := t.state(now)
		state.LeaveSlack = state.LeaveSlack || chained && pl.roster.queue.cached.known.LeavesSlack(now)
		state.SoleWriter = state.SoleWriter && !chained // a transaction applies once by its token
		t.plan = pl.scheduler.seams.Choose(&t.demand, state, now)
		t.plan.TTL = max(t.plan.TTL, t.leastTTL(all))
		t.Needs |= t.WholeNeeded(&t.plan)
		switch t.plan.Decision {
		case plan.Read:
			t.Needs |= known.NeedImage
			unconfirmed = unconfirmed || t.Image != nil
		case plan.Deny:
			denied = true
		case plan.TooLarge:
			tooLarge = true
		case plan.None:
			nothing++
		case plan.Write:
			if t.shouldRead(now) || contended && !t.conditionHeld && t.IsStaleSibling(now) {
				t.Needs |= known.NeedImage
			}
			if chained {
				t.plan.GuardDebt()
			}
		}
		missing = missing || t.Needs != 0
	}
	// A denial names all buckets of the chain that refuse, so one read confirms the images of the others.
	if (unconfirmed || denied || tooLarge) && pl.targets.needDenialImages(now) {
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
		if t.Shape != nil && t.plan.Decision == plan.Write && !t.state(now).Confirmed && !t.conditionHeld {
			t.Needs |= known.NeedImage
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
		if t.Image != nil && !t.state(now).Confirmed {
			t.Needs |= known.NeedImage
			found = true
		}
	}
	return found
}

// fit sorts requests into those that one write can serve together, acquires that would not fit even alone,
// and acquires that would fit, but not behind the ones ahead. A settle always fits. But only an acquire
// reshapes a bucket, so settles of an outdated one wait for the next write. So do those of a chain's bucket
// that no acquire takes from, since they would make the transaction larger.
func (pl *planner) fit(all []*Request, now int64) (together, tooMuch, leftover []*Request) {
	for _, t := range pl.targets {
		t.taken = !pl.roster.queue.chained
		t.reshapes = t.IsOutdated() && slices.ContainsFunc(all, func(r *Request) bool {
			return !r.settle && r.portionOf(t) != nil
		})
		t.headroom = plan.NewHeadroom(t.Image, &t.Shape.Shape, t.windows, now)
		if !t.reshapes {
			t.headroom.Return(t.givenBack(all, now))
		}
	}
	for _, r := range all {
		fits, alone, reshapes := true, true, false
		for i := range r.portions {
			pn := &r.portions[i]
			left, whole := pn.target.headroom.Has(pn.cost)
			fits, alone, reshapes = fits && left, alone && whole, reshapes || pn.target.reshapes
		}
		switch {
		case r.settle && (reshapes || !r.portions[0].target.taken):
		case r.settle:
			together = append(together, r)
		case fits:
			together = append(together, r)
			for i := range r.portions {
				t := r.portions[i].target
				t.headroom.Take(r.portions[i].cost)
				t.taken = true
			}
		case !alone:
			tooMuch = append(tooMuch, r)
		default:
			leftover = append(leftover, r)
		}
	}
	return together, tooMuch, leftover
}

// takeStored takes what r does from the stored tokens of the targets that lost a race, if Retries there can
// serve r with those taken before. It reports whether they can. A later call tightens all their guards.
func (pl *planner) takeStored(r *Request) bool {
	for _, t := range pl.roster.named {
		if t.lost && !t.stored.Fits(r.costOf(t), r.called) {
			return false
		}
	}
	for _, t := range pl.roster.named {
		if t.lost {
			t.stored.Take(r.costOf(t), r.called)
		}
	}
	return true
}
