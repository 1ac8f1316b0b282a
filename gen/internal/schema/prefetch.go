package schema

import (
	"time"

	"github.com/sluice-go/sluice/gen/internal/rules"
)

// prefetches are the values of prefetch.
func prefetches() span {
	return span{100 * time.Millisecond, 5 * time.Second, time.Millisecond, "milliseconds"}
}

// readPrefetch reads how long before its use a process may take a token. A limit that counts what open leases
// hold needs a write for each call. A prepaid one gets nothing back that a process has lost.
func readPrefetch(r *resourceReader, e entry) {
	r.res.Prefetch, r.res.PrefetchPos = r.duration(e, "prefetch of "+r.what, prefetches()).d, r.pos(e.key)
	for _, l := range r.limits {
		key := "in_flight"
		if l.release {
			key = "on_crash: release"
		}
		switch {
		case l.inFlight || l.release:
			r.add(r.pos(e.key), rules.PrefetchInFlight, "prefetch of %s stands beside %s, which has %s: its calls "+
				"need a write each, whatever else is prefetched; move that limit to a resource without prefetch, or "+
				"leave prefetch out", r.what, l.what, key)
		case l.prepaid():
			r.add(r.pos(e.key), rules.PrefetchNever, "prefetch of %s stands beside %s, which has window: never: a "+
				"process that is killed would lose credits that nothing brings back; move that limit to a resource "+
				"without prefetch, or leave prefetch out", r.what, l.what)
		}
	}
}
