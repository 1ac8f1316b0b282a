package dynamo

import (
	"slices"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/store"
)

// choices decides on those members for whom what is known suffices, and plans a write that serves as many of the others as
// it can, first come first served. The verdict is what to do next: write, look, or skip where there is nothing to do.
//
// Who would fit, but not after those ahead of it, is refused by what the write leaves (pass), so that nobody waits for more
// than one write: in an overload the line would grow and grow. It is overtaken by whoever takes less.
func (c *charge) choices() plan.Decision {
	now, all := c.now(), c.members
	c.behind, c.known = nil, nil
	if c.unknown() { // under its op nobody joins
		all = c.party
	}
	if len(all) == 1 {
		return c.decide(all, now)
	}
	all = slices.Clone(all)
	if c.unread(all, now) {
		return plan.Read
	}
	together, apart, behind := c.fit(all, now)
	if len(behind) > 0 && c.unseen(now) {
		return plan.Read
	}
	for i := range apart {
		if v := c.decide(apart[i:i+1:i+1], now); v != plan.None {
			return v
		}
	}
	switch {
	case len(together) == 0, len(c.legs) > 1 && !slices.ContainsFunc(together, func(r *request) bool { return !r.settle }):
		return plan.None // what is owed to a chain's buckets makes no transaction
	case len(together) == 1:
		v := c.decide(together, now)
		c.behind, c.planned = behind, now
		return v
	}
	v := c.plan(together, now)
	c.behind, c.planned = behind, now
	if v == plan.Write || v == plan.Read {
		return v
	}
	return c.decide(together[:1:1], now) // alone it has a verdict, whatever keeps the others from one
}

// decide plans for one alone, and ends it where that comes to no write.
func (c *charge) decide(one []*request, now int64) plan.Decision {
	r := one[0]
	switch c.plan(one, now) {
	case plan.Write:
		return plan.Write
	case plan.Read:
		c.known = c.denied(now)
		return plan.Read
	case plan.Deny:
		c.end(r, c.denied(now))
	case plan.TooLarge:
		c.end(r, c.exceeded())
	case plan.None:
		c.found(r)
		c.end(r, nil)
	}
	return plan.None
}

// unread notes what has to be read before anything can be said of all, and reports whether that is anything.
func (c *charge) unread(all []*request, now int64) (lacking bool) {
	settles := !slices.ContainsFunc(all, func(r *request) bool { return !r.settle })
	for i, l := range c.legs {
		l.settling = settles
		l.lacks = c.lacksLevels(l, now)
		takes := func(r *request) bool { return !r.settle || slices.ContainsFunc(r.wants(i), plan.Positive) }
		if l.view.Image == nil && !l.view.Confirmed && slices.ContainsFunc(all, takes) {
			l.lacks |= image
		}
		lacking = lacking || l.lacks != 0
	}
	return lacking
}

// fit returns those of all whom one write can serve together, those acquires that would not fit even alone, and those that
// would, but not after the ones ahead. A settle always fits; but a bucket of another shape is given the right one by acquires
// alone, and settles follow.
func (c *charge) fit(all []*request, now int64) (together, apart, behind []*request) {
	acquire := func(r *request) bool { return !r.settle }
	reshapes := slices.ContainsFunc(all, acquire) && slices.ContainsFunc(c.legs, func(l *leg) bool {
		return l.view.Image != nil && plan.Outdated(l.view.Image, &l.shape.Shape)
	})
	rooms := make([]room, len(c.legs))
	for i, l := range c.legs {
		rooms[i] = l.room(now)
		if !reshapes {
			rooms[i].add(all, i)
		}
	}
	for _, r := range all {
		fits, alone := true, true
		for i := range rooms {
			within, ever := rooms[i].has(r.wants(i))
			fits, alone = fits && within, alone && ever
		}
		switch {
		case r.settle && reshapes:
		case r.settle:
			together = append(together, r)
		case fits:
			together = append(together, r)
			for i := range rooms {
				rooms[i].take(r.wants(i))
			}
		case !alone:
			apart = append(apart, r)
		default:
			behind = append(behind, r)
		}
	}
	return together, apart, behind
}

// unseen notes that the buckets of a chain are to be read of which no more than a prediction is known, and reports whether there
// are any: a transaction leaves no image by which to refuse who is behind.
func (c *charge) unseen(now int64) (lacking bool) {
	if len(c.legs) == 1 {
		return false
	}
	for _, l := range c.legs {
		if l.view.Image != nil && !l.current(now).Confirmed {
			l.lacks |= image
			lacking = true
		}
	}
	return lacking
}

// pass refuses those who were behind in the write that was just applied, by what it has left: as it was planned, which is the
// moment before the next tokens came. Retry after is then late by the time that the write took, never early. What is predicted
// refuses nobody, and who was aboard an earlier copy that turned out to be the one has been served.
func (c *charge) pass() {
	for _, r := range c.behind {
		if r.ended {
			continue
		}
		var denied *store.DeniedError
		for i, l := range c.legs {
			if l.view.Image != nil && l.view.Confirmed && !plan.Outdated(l.view.Image, &l.shape.Shape) {
				denied = store.Refuse(denied, l.spec, l.entity, l.view.Image, r.wants(i), c.planned)
			}
		}
		if denied != nil {
			c.end(r, denied)
		}
	}
}

// plan has every leg choose how to write what all want together, and returns what to do about them all.
func (c *charge) plan(all []*request, now int64) plan.Decision {
	c.aboard = all
	var lacking, doubted, refused, exceeded bool
	skipped := 0
	for i, l := range c.legs {
		l.sum(all, i)
		l.settling = l.SettlesOnly()
		l.lacks = c.lacksLevels(l, now)
		if l.shape == nil {
			if l.view.Image == nil && !l.view.Confirmed {
				l.lacks |= image // both in one read
			}
			lacking = true
			continue
		}
		l.plan = c.choose(&l.Demand, l.current(now), now)
		l.lacks |= l.lacksWhole(&l.plan) | c.lacksPerLimit(l)
		switch l.plan.Decision {
		case plan.Read:
			l.lacks |= image
			doubted = doubted || l.view.Image != nil
		case plan.Deny:
			refused = true
		case plan.TooLarge:
			exceeded = true
		case plan.None:
			skipped++
		case plan.Write:
			if l.doubtful(now) {
				l.lacks |= image
			}
			if len(c.legs) > 1 {
				l.plan.GuardDebt()
			}
		}
		lacking = lacking || l.lacks != 0
	}
	if doubted || refused || exceeded { // a denial is to say how the whole chain stands: in one read, and no worse than it is
		for _, l := range c.legs {
			if l.shape != nil && l.plan.Decision == plan.Write && !l.current(now).Confirmed && !l.passed {
				l.lacks |= image
				lacking = true
			}
		}
	}
	switch {
	case lacking:
		return plan.Read
	case exceeded:
		return plan.TooLarge
	case refused:
		return plan.Deny
	case skipped == len(c.legs):
		return plan.None
	}
	return plan.Write
}

// doubtful reports that l's write is likely to fail: it needs refill, others are at work on the bucket, and what is known of it
// is old or predicted. A read is a fifth of the price of a failed write, and may deny.
func (l *leg) doubtful(now int64) bool {
	img := l.view.Image
	if img == nil || l.read || trustworthy(l.seen, now, old) || !l.memory.contested(now) {
		return false
	}
	for i, b := range img.Balances {
		if l.Take != nil && l.Take[i] > 0 && !img.Missing[i] && b.Tokens < l.Take[i] {
			return true
		}
	}
	return false
}

// sum makes l's want what all want of it, the i-th of their buckets.
func (l *leg) sum(all []*request, i int) {
	l.Demand, l.served = plan.Demand{Pool: &l.vectors}, len(all)
	if l.shape != nil {
		l.Demand.Shape = &l.shape.Shape
	}
	for _, r := range all {
		vector := &l.Take
		if r.settle {
			vector = &l.Change
		}
		l.Called = max(l.Called, r.called)
		switch cost := r.wants(i); {
		case cost == nil:
		case *vector == nil && len(all) == 1:
			*vector = cost
		case *vector == nil:
			*vector = slices.Clone(cost)
		default:
			for j, n := range cost {
				(*vector)[j] = bucket.Add((*vector)[j], n)
			}
		}
	}
}

// denied returns the denial of the only one aboard by all legs that refuse, as far as is known: nil for none.
func (c *charge) denied(now int64) *store.DeniedError {
	var denied *store.DeniedError
	for _, l := range c.legs {
		if img := l.plan.DeniedImage(); img != nil && l.lacks == 0 {
			denied = store.Refuse(denied, l.spec, l.entity, img, l.Take, now)
		}
	}
	return denied
}

// exceeded returns the error of the first leg whose cost is above a burst.
func (c *charge) exceeded() error {
	for _, l := range c.legs {
		if l.plan.Decision == plan.TooLarge {
			return store.Exceeds(l.spec, l.entity, l.plan.Image, l.Take)
		}
	}
	return nil
}
