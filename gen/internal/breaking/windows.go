package breaking

import (
	"github.com/sluice-go/sluice/gen/internal/schema"
	"github.com/sluice-go/sluice/gen/internal/window"
)

// sameWindows reports whether two limits have the same windows, or both none.
func sameWindows(was, is *window.Window) bool {
	if was == nil || is == nil {
		return was == is
	}
	return *was == *is
}

// never reports whether l has a window that does not end.
func never(l *schema.Limit) bool { return l.Window != nil && l.Window.Unit == window.Never }

func howLongChanged(c *comparison) {
	for o, n := range c.resources() {
		for i, j := range limits(o, n) {
			was, is := o.Limits[i], n.Limits[j]
			if (was.Window == nil) == (is.Window == nil) && was.InFlight == is.InFlight && never(was) == never(is) {
				continue
			}
			c.report(is.Pos, schema.Place(n.Name, is.Name),
				"limit %s of %s was %s and is %s: leases and processes of before give back to it as to what it was, "+
					"and its overrides are of the old type; give the new limit a name of its own, and write %s into "+
					"removed",
				is.Name, n.Name, was.Written(was.Numbers), is.Written(is.Numbers), is.Name)
		}
	}
}

// windows calls changed with each limit that has windows that end in both schemas.
func (c *comparison) windows(changed func(n *schema.Resource, l *schema.Limit, was, is window.Window)) {
	for o, n := range c.resources() {
		for i, j := range limits(o, n) {
			was, is := o.Limits[i], n.Limits[j]
			if was.Window != nil && is.Window != nil && !never(was) && !never(is) {
				changed(n, is, *was.Window, *is.Window)
			}
		}
	}
}

func windowChanged(c *comparison) {
	c.windows(func(n *schema.Resource, l *schema.Limit, was, is window.Window) {
		if was.SameTimes(is) {
			return
		}
		does := "an open window ends when it would have, and the next is half to one and a half as long as " +
			"others"
		switch {
		case is.Length*3/2 < was.Length:
			does = "an open window that has far more left than one of the new ones ends with the first of " +
				"these, and keeps its usage until then"
		case is.Unit == window.FirstUse:
			does = "an open window ends when it would have, and the next is of the new length"
		}
		c.report(l.Pos, schema.Place(n.Name, l.Name), "limit %s of %s had %s and has %s: %s; write %s to keep it",
			l.Name, n.Name, was, is, does, was)
	})
}

func windowZoneChanged(c *comparison) {
	c.windows(func(n *schema.Resource, l *schema.Limit, was, is window.Window) {
		if was.SameZone(is) || was.Unit == window.FirstUse || is.Unit == window.FirstUse {
			return
		}
		c.report(l.Pos, schema.Place(n.Name, l.Name),
			"windows of limit %s of %s were in zone %s and are in zone %s: an open window ends when it would have, "+
				"and the next is half to one and a half as long as others; write zone: %s to keep it",
			l.Name, n.Name, was.ZoneKey(), is.ZoneKey(), was.ZoneKey())
	})
}

func onCrashChanged(c *comparison) {
	for o, n := range c.resources() {
		for i, j := range limits(o, n) {
			was, is := o.Limits[i], n.Limits[j]
			if was.Release == is.Release || was.Window == nil || is.Window == nil {
				continue
			}
			before, after := "charge", "release"
			does := "what a process has reserved when it dies comes back within 2 minutes, Keep writes, and a " +
				"process extends what its leases hold, by one write of each bucket a minute"
			if was.Release {
				before, after = after, before
				does = "what a process has reserved when it dies stays charged until the window ends"
			}
			c.report(is.Pos, schema.Place(n.Name, is.Name),
				"on_crash of limit %s of %s was %s and is %s: %s; write on_crash: %s to keep it",
				is.Name, n.Name, before, after, does, before)
		}
	}
}
