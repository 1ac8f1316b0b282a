package breaking

import (
	"fmt"
	"strings"

	"github.com/sluice-go/sluice/gen/internal/schema"
)

// perKind compares one number of each limit, kind by kind. It calls report for each limit that has another
// number for some kind, with the changes, "2 instead of 1 for user", and the position of the new number.
func (c *comparison) perKind(number func(*schema.Charged, int) (int64, string),
	changed func(was, is int64) bool,
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
				was, wasText := number(before, i)
				is, isText := number(now, j)
				if !changed(was, is) {
					continue
				}
				if list == nil {
					pos = now.Pos
				}
				if now.Limits[j] == n.Limits[j].Numbers && now.PerCall[j] == n.Limits[j].PerCall { // not restated
					pos = n.Limits[j].Pos
				}
				list = append(list, fmt.Sprintf("%s instead of %s for %s", isText, wasText, name))
			}
			if list != nil {
				report(n, n.Limits[j], pos, strings.Join(list, ", "))
			}
		}
	}
}

func burstLowered(c *comparison) {
	burst := func(k *schema.Charged, i int) (int64, string) {
		return k.Limits[i].Burst, schema.Count(k.Limits[i].Burst)
	}
	lower := func(was, is int64) bool { return is < was }
	c.perKind(burst, lower, func(n *schema.Resource, l *schema.Limit, pos schema.Pos, list string) {
		c.report(pos, schema.Place(n.Name, l.Name),
			"burst of limit %s of %s is %s: what buckets hold above it is lost, and calls that cost more fail with "+
				"a CostExceedsBurstError whenever they are tried; see that no caller asks for more", l.Name, n.Name, list)
	})
}

func perCallChanged(c *comparison) {
	perCall := func(k *schema.Charged, i int) (int64, string) {
		if k.PerCall[i] == 0 {
			return 0, "nothing"
		}
		return k.PerCall[i], schema.Count(k.PerCall[i])
	}
	other := func(was, is int64) bool { return is != was }
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
