package conformance

import (
	"fmt"
	"slices"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// hold is tokens of one limit that a lease took by one call, and holds until the end of an epoch.
type hold struct {
	*ideal
	limit  int
	tokens int64
	epoch  int64
	window int64 // the end of the window that they are of, 0 for slots
	back   bool  // they are held no more
	lost   bool  // they come back by themselves alone: the lease does not know where they are
}

// over returns what has come back of the i-th limit by itself, since the last sweep.
func (b *ideal) over(i int, now int64) (n int64) {
	for _, h := range b.holds {
		if h.limit == i && !h.back && bucket.EpochEnd(h.epoch) <= now && h.window == b.ends[i] {
			n += h.tokens
		}
	}
	return n
}

// sweep gives back what is over at now.
func (b *ideal) sweep(now int64) {
	for i := range b.tokens {
		b.tokens[i] += b.over(i, now)
	}
	for _, h := range b.holds {
		h.back = h.back || bucket.EpochEnd(h.epoch) <= now
	}
	b.holds = slices.DeleteFunc(b.holds, func(h *hold) bool { return h.back })
}

// endAll ends all holds of the i-th limit. Nothing comes back by that.
func (b *ideal) endAll(i int) {
	for _, h := range b.holds {
		h.back = h.back || h.limit == i
	}
}

// inHold returns what is held of the i-th limit at now.
func (b *ideal) inHold(i int, now int64) (n int64) {
	for _, h := range b.holds {
		if h.limit == i && !h.back && bucket.EpochEnd(h.epoch) > now {
			n += h.tokens
		}
	}
	return n
}

// end ends h, and reports whether it was held up to now.
func (h *hold) end() bool {
	if h.back || h.lost {
		return false
	}
	h.back = true
	return true
}

// extend has h be held in the next epoch at now, unless it is over.
func (h *hold) extend(now int64) {
	next := bucket.Epoch(now) + 1
	switch {
	case h.window != 0 && (h.window != h.ends[h.limit] || now >= h.window):
		h.epoch = next // of which nobody takes note any more
	case h.back, bucket.EpochEnd(h.epoch) <= now:
		h.lost = true
	default:
		h.epoch = max(h.epoch, next)
	}
}

// hold returns what c holds of the i-th limit.
func (c *taking) hold(i int) *hold {
	if c.holds == nil {
		return nil
	}
	return c.holds[i]
}

// holding reports whether p holds anything, or did.
func (p *portion) holding() bool {
	return slices.ContainsFunc(p.charges, func(c taking) bool { return c.holds != nil })
}

// slots ends what p holds of an in-flight limit, and returns what that takes: less than 0. Usage stays,
// unless the lease is released.
func (p *portion) slots(i int, released bool) (change int64) {
	for _, c := range p.charges {
		if h := c.hold(i); h != nil && h.end() {
			change -= h.tokens
		}
	}
	if released {
		p.used[i] -= p.cost[i]
	}
	return change
}

// noteHolds has what p's newest charge took be held in these epochs, by limit. It says what is wrong with
// them.
func (p *portion) noteHolds(counts []bool, epochs []int64, now int64) string {
	c := &p.charges[len(p.charges)-1]
	c.holds = make([]*hold, len(p.cost))
	for i, n := range p.cost {
		if n <= 0 || !counts[i] || p.limits[i].Absent() {
			continue
		}
		least := bucket.Epoch(now) + 1
		if len(epochs) <= i || epochs[i] < least || epochs[i] > max(least, p.ahead[i]) {
			return fmt.Sprintf("%s of %s is held in epochs %d, want %d to %d", p.names[i], p.entity, epochs, least,
				max(least, p.ahead[i]))
		}
		h := &hold{ideal: p.ideal, limit: i, tokens: n, epoch: epochs[i]}
		if p.limits[i].Windowed() {
			h.window = p.ends[i]
		}
		c.holds[i], p.holds = h, append(p.holds, h)
	}
	return ""
}

// wrongHolds says what is wrong with what b, a balance as stored, counts of the i-th limit of a bucket.
func (w *world) wrongHolds(model *ideal, i int, counts []bool, b bucket.Balance, now int64) string {
	held := model.inHold(i, now)
	switch over := b.Windowed() && now >= model.ends[i]; {
	case counts == nil || !counts[i] || model.limits[i].Absent():
		return ""
	case w.store.Usage && b.Consumed != model.used[i]:
		return fmt.Sprintf("usage is %s mt, want %s", thousands(b.Consumed), thousands(model.used[i]))
	case !b.Holds():
		return "no hold is counted"
	case b.InFlight() && b.Tokens+b.Cells[0]+b.Cells[1] != b.Burst:
		return fmt.Sprintf("%s mt and %d held are not %s", thousands(b.Tokens), b.Cells, thousands(b.Burst))
	case !over && b.Held(now) != held:
		return fmt.Sprintf("%s mt are held, want %s", thousands(b.Held(now)), thousands(held))
	}
	return ""
}
