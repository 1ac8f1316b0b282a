package breaking

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/sluice-go/sluice/gen/internal/schema"
)

// number is what perKind compares of a limit for one kind.
type number struct {
	schema.Numbers
	perCall int64
}

// perKind compares the numbers of each limit, kind by kind. It calls report for each limit that has changed
// for some kind, with the changes, "2 instead of 1 for user", and the position of the new number.
func (c *comparison) perKind(text func(number) string, changed func(was, is number) bool,
	report func(n *schema.Resource, l *schema.Limit, pos schema.Pos, list string),
) {
	for o, n := range c.resources() {
		for i, j := range limits(o, n) {
			var list []string
			var pos schema.Pos
			for k := range n.Charged {
				now := &n.Charged[k]
				name := c.new.Kinds[now.Kind].Name
				before := charged(c.old, o, name)
				if before == nil {
					continue
				}
				was := number{before.Limits[i], before.PerCall[i]}
				is := number{now.Limits[j], now.PerCall[j]}
				if was.Absent() || is.Absent() || !changed(was, is) { // LIMIT_ENDED and LIMIT_BEGUN report these
					continue
				}
				if list == nil {
					pos = now.Pos
				}
				if now.Limits[j] == n.Limits[j].Numbers && now.PerCall[j] == n.Limits[j].PerCall { // not restated
					pos = n.Limits[j].Pos
				}
				list = append(list, fmt.Sprintf("%s instead of %s for %s", text(is), text(was), name))
			}
			if list != nil {
				report(n, n.Limits[j], pos, strings.Join(list, ", "))
			}
		}
	}
}

func burstLowered(c *comparison) {
	burst := func(n number) string {
		if n.Unlimited() {
			return schema.Unlimited
		}
		return n.Count(n.Burst)
	}
	lower := func(was, is number) bool {
		return is.Burst < was.Burst && was.Currency == is.Currency && was.Windowed() == is.Windowed() &&
			was.InFlight() == is.InFlight()
	}
	c.perKind(burst, lower, func(n *schema.Resource, l *schema.Limit, pos schema.Pos, list string) {
		if l.InFlight {
			c.report(pos, schema.Place(n.Name, l.Name),
				"capacity of limit %s of %s is %s: calls in flight go on, new ones are denied until fewer than that are "+
					"left, and calls that cost more fail with a CostTooLargeError whenever they are tried; see first how "+
					"many run at the same time, and that none asks for more", l.Name, n.Name, list)
			return
		}
		if never(l) {
			c.report(pos, schema.Place(n.Name, l.Name),
				"capacity of limit %s of %s is %s: balances fall by the difference, and calls are denied until a Grant "+
					"if that is more than what is left; see first what is left (sluice top)", l.Name, n.Name, list)
			return
		}
		if l.Window != nil {
			c.report(pos, schema.Place(n.Name, l.Name),
				"capacity of limit %s of %s is %s: an open window keeps its usage, so that calls may be denied until it "+
					"ends, and calls that cost more fail with a CostTooLargeError whenever they are tried; see first how "+
					"much callers use (sluice usage), and that none asks for more", l.Name, n.Name, list)
			return
		}
		c.report(pos, schema.Place(n.Name, l.Name),
			"burst of limit %s of %s is %s: what buckets hold above it is lost, and calls that cost more fail with "+
				"a CostTooLargeError whenever they are tried; see that no caller asks for more", l.Name, n.Name, list)
	})
}

func rateLowered(c *comparison) {
	rate := func(n number) string {
		if n.Unlimited() {
			return n.String()
		}
		return schema.Count(n.Refill) + " every " + schema.Period(n.Period)
	}
	c.perKind(rate, slower, func(n *schema.Resource, l *schema.Limit, pos schema.Pos, list string) {
		c.report(pos, schema.Place(n.Name, l.Name),
			"limit %s of %s refills %s: calls that were admitted are denied once the burst is used up; see first how "+
				"much callers use (sluice usage), or raise refill to keep the rate", l.Name, n.Name, list)
	})
}

// slower reports whether is refills less in the same time. The products are below 2^65: they need 128 bits.
func slower(was, is number) bool {
	if was.Refill == 0 || is.Refill == 0 { // HOW_LONG_CHANGED and BURST_LOWERED report these
		return false
	}
	oldHigh, oldLow := bits.Mul64(uint64(was.Refill), uint64(is.Period.Milliseconds()))
	high, low := bits.Mul64(uint64(is.Refill), uint64(was.Period.Milliseconds()))
	return high < oldHigh || high == oldHigh && low < oldLow
}

func perCallChanged(c *comparison) {
	perCall := func(n number) string {
		if n.perCall == 0 {
			return "nothing"
		}
		return n.Count(n.perCall)
	}
	other := func(was, is number) bool { return is.perCall != was.perCall && was.Currency == is.Currency }
	c.perKind(perCall, other, func(n *schema.Resource, l *schema.Limit, pos schema.Pos, list string) {
		c.report(pos, schema.Place(n.Name, l.Name),
			"per_call of limit %s of %s is %s: calls whose cost leaves it out take that; have them pass what they "+
				"took before, or keep per_call", l.Name, n.Name, list)
	})
}

func cascadeChanged(c *comparison) {
	for o, n := range c.resources() {
		was := o.Cascade == schema.CascadeNone || cascades(c.old, o)
		is := n.Cascade == schema.CascadeNone || cascades(c.new, n)
		if o.Cascade == n.Cascade || !was || !is {
			continue // no call charged, or charges, an ancestor
		}
		if c.onRedisAlone() && o.Cascade != schema.CascadeNone && n.Cascade != schema.CascadeNone {
			continue // one script charges all buckets of a call
		}
		does := "a bucket that denies a call has the others charged and given back, and other calls may briefly " +
			"be denied for that"
		switch {
		case n.Cascade == schema.CascadeNone:
			does = "calls no longer charge ancestors, whose limits do not hold for them any more"
		case o.Cascade == schema.CascadeNone:
			does = "calls charge ancestors too, at the price of their writes, are denied when one is empty, and " +
				"fail with an InvalidError where its ID is left out"
		case n.Cascade == "atomic":
			does = "a chain is charged in one transaction, at two write units a bucket instead of one"
		}
		c.report(n.CascadePos, n.Name, "cascade of %s was %s and is %s: %s%s; write cascade: %s to keep it",
			n.Name, o.Cascade, n.Cascade, does, c.retagged(n.Name), o.Cascade)
	}
}

func onUnavailableChanged(c *comparison) {
	for o, n := range c.resources() {
		if o.OnUnavailable == n.OnUnavailable {
			continue
		}
		does := "are admitted"
		switch n.OnUnavailable {
		case "deny":
			does = "fail with an UnavailableError"
		case "local":
			does = "are decided by a bucket in each process"
		}
		c.report(n.OnUnavailablePos, n.Name, "on_unavailable of %s was %s and is %s: calls %s while the table "+
			"does not answer; write on_unavailable: %s to keep it",
			n.Name, o.OnUnavailable, n.OnUnavailable, does, o.OnUnavailable)
	}
}

func settleChanged(c *comparison) {
	for o, n := range c.resources() {
		if o.Settle == n.Settle {
			continue
		}
		does := "Settle and Release wait for a write of their own, one write unit more, and return its errors"
		if n.Settle == schema.SettleLazy {
			does = "Settle and Release return before their write, and its errors go to the observer and the log " +
				"instead of the caller"
		}
		c.report(n.SettlePos, n.Name, "settle of %s was %s and is %s: %s; write settle: %s to keep it", n.Name,
			o.Settle, n.Settle, does, o.Settle)
	}
}

func prefetchChanged(c *comparison) {
	for o, n := range c.resources() {
		was, is, cure := "none", "none", "leave prefetch out"
		if o.Prefetch > 0 {
			was = schema.Period(o.Prefetch)
			cure = "write prefetch: " + was
		}
		if n.Prefetch > 0 {
			is = schema.Period(n.Prefetch)
		}
		var does string
		switch {
		case n.Prefetch == o.Prefetch:
			continue
		case n.Prefetch > o.Prefetch:
			does = fmt.Sprintf("beside its burst a limit admits at once what it refills in %s, and a process that is "+
				"killed loses what it has taken in advance", is)
		default:
			does = "calls make more requests, so that they take longer and cost more"
		}
		c.report(n.PrefetchPos, n.Name, "prefetch of %s was %s and is %s: %s; %s to keep it", n.Name, was, is, does,
			cure)
	}
}

func shadowChanged(c *comparison) {
	for o, n := range c.resources() {
		if o.Shadow == n.Shadow {
			continue
		}
		does := "calls begin to be denied; look first at which ones shadow mode has let through"
		if n.Shadow {
			does = "no call is denied any longer, and calls that would have been go through without a charge"
		}
		c.report(n.ShadowPos, n.Name, "shadow of %s was %v and is %v: %s; write shadow: %v to keep it", n.Name,
			o.Shadow, n.Shadow, does, o.Shadow)
	}
}
