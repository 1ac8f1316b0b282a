package dynamo

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// Histories of processes in which several are at work side by side, so that one write serves many of them.

// mixedSizes costs a little mostly, and half of a burst of 3000 now and then.
func mixedSizes(r *rand.Rand) []int64 {
	if r.IntN(12) == 0 {
		return []int64{40_000 + 1000*r.Int64N(60), 500_000 + 1000*r.Int64N(1000)}
	}
	return mixed(r)
}

// crowds are the histories on one bucket, by name.
func crowds() map[string]history {
	pair := []bucket.Limit{perSecond(200), perSecond(1000).WithBurst(3000)}
	overload := history{
		writers: 4, callers: 6, duration: 500 * time.Millisecond, skew: 100 * time.Millisecond,
		limits: [][]bucket.Limit{pair}, think: upTo(20 * time.Millisecond), cost: mixed, settle: 0.25,
	}
	change := func(h history, f func(*history)) history {
		f(&h)
		return h
	}
	lossy := func(h *history) {
		h.faults = faults{lostRequest: 0.03, lostReply: 0.05, late: 0.03, throttled: 0.03, unread: 0.05}
	}
	full := func(h *history) {
		h.limits = [][]bucket.Limit{{perSecond(1000), perSecond(100_000)}}
		h.think = upTo(60 * time.Millisecond)
	}
	return map[string]history{
		"overload":    overload,
		"nearly full": change(overload, full),
		"full": change(overload, func(h *history) { // so that what is given back is clamped
			full(h)
			h.limits = [][]bucket.Limit{{perSecond(1000).WithBurst(40), perSecond(1000).WithBurst(3000)}}
			h.settle = 0.45
		}),
		"idle bursts": change(
			overload,
			func(h *history) { h.duration, h.think = 3*time.Second, inBursts(8, 2*time.Second) },
		),
		"mixed sizes": change(overload, func(h *history) { h.cost, h.duration = mixedSizes, time.Second }),
		"settles": change(overload, func(h *history) { // far up, far down, and releases
			h.settle, h.duration = 0.45, time.Second
			h.actual = func(r *rand.Rand) []int64 { return []int64{1000 * r.Int64N(12), 1000 * r.Int64N(60)} }
		}),
		"lazy settles": change(
			overload,
			func(h *history) { h.settle, h.lazy, h.duration = 0.45, 0.7, time.Second },
		),
		"lazy settles, lost replies": change(overload, func(h *history) {
			lossy(h)
			h.settle, h.lazy = 0.45, 0.7
		}),
		"cancelled callers": change(overload, func(h *history) { h.cancel = 0.3 }),
		"lost replies":      change(overload, func(h *history) { lossy(h); h.cancel = 0.1 }),
		"reshape storm": change(overload, func(h *history) {
			h.duration, h.cancel = 900*time.Millisecond, 0.05
			for range 6 {
				h.limits = append(h.limits, []bucket.Limit{perSecond(60), perSecond(1000)}, pair)
			}
		}),
		"expiry": change(overload, func(h *history) {
			h.duration, h.ttlLag, h.lazy = 40*time.Second, 3*time.Second, 0.3
			h.limits = [][]bucket.Limit{{perSecond(20), perSecond(200)}}
			h.think = upTo(12 * time.Second)
		}),
		"odd rates": change(overload, func(h *history) {
			h.limits = [][]bucket.Limit{
				{bucket.Per(1000, 7*time.Second).WithBurst(150), bucket.Per(7, 11*time.Second)},
			}
			h.cost = func(r *rand.Rand) []int64 { return []int64{1000 + 1000*r.Int64N(5), max(0, r.Int64N(400)-200)} }
		}),
	}
}

// crowdsOverChains are those of users who share their ancestors, by name.
func crowdsOverChains() map[string]history {
	atomic := history{
		writers: 3, callers: 6, duration: 400 * time.Millisecond, skew: 100 * time.Millisecond,
		limits: [][]bucket.Limit{{perSecond(80), perSecond(320)}},
		think:  upTo(20 * time.Millisecond), cost: mixed, settle: 0.25,
		above: []int64{2}, children: 2,
	}
	change := func(h history, f func(*history)) history {
		f(&h)
		return h
	}
	family := func(h *history) { // of so many that only the parent is shared
		h.cascade, h.children, h.own, h.above = store.CascadeCompensated, 64, true, []int64{8}
		h.think = upTo(100 * time.Millisecond)
	}
	operators := func(h *history) {
		h.duration, h.think = 6*time.Second, upTo(300*time.Millisecond)
		h.override, h.cache = time.Second, 2*time.Second
	}
	lossy := func(h *history) {
		h.faults = faults{
			lostRequest: 0.03,
			lostReply:   0.04,
			late:        0.03,
			throttled:   0.02,
			unread:      0.05,
			conflict:    0.05,
		}
		h.cancel = 0.1
	}
	return map[string]history{
		"atomic":            atomic,
		"atomic, one chain": change(atomic, func(h *history) { h.children = 1 }),
		"atomic beside single buckets": change(atomic, func(h *history) {
			h.direct, h.lazy = 0.4, 0.3
		}),
		"atomic, cancelled callers": change(atomic, func(h *history) { h.cancel = 0.3 }),
		"atomic, late copies":       change(atomic, lossy),
		"atomic, lazy settles":      change(atomic, func(h *history) { h.settle, h.lazy = 0.45, 0.7 }),
		"atomic, lazy settles, lost replies": change(atomic, func(h *history) {
			lossy(h)
			h.settle, h.lazy = 0.45, 0.7
		}),
		"atomic, overrides": change(atomic, operators),
		"compensated, 64 children": change(atomic, func(h *history) {
			family(h)
			h.writers, h.callers = 1, 64
		}),
		"compensated, 64 children in 2": change(atomic, func(h *history) {
			family(h)
			h.writers, h.callers = 2, 32
		}),
		"compensated, 64 children, lost replies": change(atomic, func(h *history) {
			family(h)
			lossy(h)
			h.writers, h.callers, h.lazy = 2, 16, 0.3
		}),
		"compensated, cancelled callers": change(
			atomic,
			func(h *history) { h.cascade, h.cancel = store.CascadeCompensated, 0.3 },
		),
		"compensated, overrides": change(atomic, func(h *history) {
			operators(h)
			h.cascade = store.CascadeCompensated
		}),
	}
}

// TestSimulationOfCrowds is TestSimulation where one write serves many.
func TestSimulationOfCrowds(t *testing.T) {
	skipOnLocal(t)
	t.Parallel()
	play(t, crowds(), 50)
}

// TestSimulationOfCrowdsOverChains is TestSimulationOverChains where one write serves many.
func TestSimulationOfCrowdsOverChains(t *testing.T) {
	skipOnLocal(t)
	t.Parallel()
	play(t, crowdsOverChains(), 20)
}
