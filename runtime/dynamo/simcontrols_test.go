package dynamo

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// control is a broken variant of the store, and the histories in which that must show.
type control struct {
	scenario string
	change   func(*history)
}

// plans breaks what was planned, where that is a write.
func plans(breakage func(w *want, v view, p *plan)) func(*history) {
	return func(h *history) {
		h.choose = func(w *want, v view, now int64) plan {
			p := choose(w, v, now)
			if p.verdict == write {
				breakage(w, v, &p)
			}
			return p
		}
	}
}

// limitsOf breaks every limit of the writes of one path.
func limitsOf(of path, breakage func(p *plan, i int)) func(*history) {
	return plans(func(_ *want, _ view, p *plan) {
		if p.path == of {
			for i := range p.lo {
				breakage(p, i)
			}
		}
	})
}

// without takes a clause out of the conditions of some paths.
func without(clause string, of ...path) func(*history) {
	return func(h *history) {
		h.edit = func(p path, w *codec.Write) {
			for _, one := range of {
				if p != one {
					continue
				}
				cond := strings.Replace(w.Cond, clause+" AND ", "", 1)
				if cond == w.Cond {
					cond = strings.Replace(w.Cond, "AND "+clause, "", 1)
				}
				if cond == w.Cond {
					panic("no " + clause + " in " + w.Cond)
				}
				w.Cond = cond
			}
		}
	}
}

// open drops the bounds of what p charges.
func open(p *plan, lo, hi bool) {
	for i := range p.lo {
		if p.cost[i] <= 0 {
			continue
		}
		if lo {
			p.lo[i] = math.MinInt64
		}
		if hi {
			p.hi[i] = math.MaxInt64
		}
	}
}

// controls are the variants that design section 4 gives reasons against, by name.
func controls() map[string][]control {
	oneOf := func(change func(*history), scenarios ...string) []control {
		all := make([]control, len(scenarios))
		for i, s := range scenarios {
			all[i] = control{s, change}
		}
		return all
	}
	return map[string][]control{
		"Retry without its upper guard in a parent": oneOf(func(h *history) {
			parent := times(h.above[0], h.limits[0])
			h.choose = func(w *want, v view, now int64) plan {
				if w.shape == nil || !slices.Equal(w.shape.limits, parent) {
					return choose(w, v, now)
				}
				return chooseIdle(w, v, now)
			}
		}, "atomic, idle bursts"),
		"transaction without the fence": oneOf(func(h *history) {
			h.edit = func(_ path, w *codec.Write) {
				for name, hi := range w.Values { // what has no upper bound has a lower one by the fence alone
					limit, ok := strings.CutSuffix(name, "_hi")
					if lo := limit + "_lo"; ok && number(hi) == math.MaxInt64 && number(w.Values[lo]) < 0 {
						w.Bound(lo, math.MinInt64)
					}
				}
			}
		}, "atomic, debt"),
		"give-backs and takes netted before the guards": oneOf(func(h *history) { h.choose = chooseNetted }, "crowd, full", "crowd, settles"),
		"room for the largest acquire of a batch alone": oneOf(wrapped(leastForLargest), "crowd, overload"),
		"batches that give back repeated":               oneOf(wrapped(func(api API) API { return &insistent{api, true} }), "crowd, lost replies"),
		"newcomers under an op of unknown outcome":      oneOf(wrapped(func(api API) API { return &optimist{api} }), "crowd, lost replies"),
		"callers who left charged":                      oneOf(func(h *history) { h.env = func(e *runtime.Env) { e.SettleTimeout = -1 } }, "crowd, cancelled callers"),
		"guard at the instant of the first of a batch":  oneOf(func(h *history) { h.wrap = hindsight(h.limits[0]) }, "crowd, nearly full"),
		"transaction piece by piece":                    oneOf(wrapped(func(api API) API { return &piecemeal{API: api} }), "atomic"),
		"transaction of unknown outcome under a new token": oneOf(
			wrapped(func(api API) API { return &forgetful{API: api} }), "atomic, lost replies"),
		"compensation given twice": oneOf(wrapped(func(api API) API { return &openHanded{API: api} }), "compensated"),
		"compensation repeated":    oneOf(wrapped(func(api API) API { return &insistent{API: api} }), "compensated, lost replies"),
		"denial by one refusal of the chain": oneOf(func(h *history) {
			h.told = func(all []runtime.Refusal) []runtime.Refusal { return all[:1] }
		}, "atomic, drained", "compensated, drained"),
		"overrides without cv": oneOf(func(h *history) {
			h.choose = func(w *want, v view, now int64) plan {
				unversioned := *w
				if w.shape != nil {
					s := *w.shape
					s.cv -= s.cv % revisionUnit
					unversioned.shape = &s
				}
				return choose(&unversioned, v, now)
			}
		}, "atomic, overrides", "compensated, overrides"),
		"Reshape by whoever knows another shape": oneOf(func(h *history) {
			wrapped(func(api API) API { return &stuck{API: api, seen: map[string]codec.Item{}} })(h)
			h.choose = func(w *want, v view, now int64) plan {
				if !w.settles() && v.img != nil && v.img.Version != w.shape.cv {
					return chooseReshape(w, v, now)
				}
				return choose(w, v, now)
			}
		}, "atomic, overrides", "compensated, overrides"),
		"the seeds' conditions": oneOf(plans(func(_ *want, _ view, p *plan) {
			switch p.path {
			case normal:
				open(p, true, true)
			case retry:
				open(p, false, true)
			}
		}), "overload"),
		"Retry without its upper guard": oneOf(func(h *history) { h.choose = chooseIdle }, "idle bursts"),
		"Retry without cv":              oneOf(without("cv = :cv", retry), "reshape storm"),
		"Retry charges double": oneOf(plans(func(w *want, _ view, p *plan) {
			if p.path != retry || w.settles() {
				return
			}
			for i, c := range p.cost {
				if c > 0 && p.img.Balances[i].Tokens >= 2*c {
					p.cost[i], p.lo[i] = 2*c, 2*c
				}
			}
		}), "overload"),
		"clamped Normal without the exact match": oneOf(limitsOf(normal, func(p *plan, i int) {
			if p.lo[i] == p.hi[i] {
				p.lo[i], p.hi[i] = p.cost[i]-p.fill[i], p.img.Balances[i].Burst-p.fill[i]
			}
		}), "idle bursts"),
		"clamped Normal open where the cost is 0": oneOf(limitsOf(normal, func(p *plan, i int) {
			refill := bucket.Refill(p.img.Balances[i].Limit, p.img.Refilled, p.rf)
			if p.fill[i] < refill && p.cost[i] == 0 {
				p.lo[i], p.hi[i] = math.MinInt64, math.MaxInt64
			}
		}), "lost replies", "nearly full"),
		"contended Normal leaks": oneOf(func(h *history) {
			h.choose = func(w *want, v view, now int64) plan {
				p := choose(w, v, now)
				if p.verdict == write && p.path == normal && v.yield {
					leak(&p, now)
				}
				return p
			}
		}, "overload"),
		"ttl from a stale balance": oneOf(staleTTL, "expiry"),
		"blind Adjust upward": oneOf(func(h *history) {
			h.choose = func(w *want, v view, now int64) plan {
				if w.settles() && v.img != nil {
					return planAdjust(w.change, v.img, w.shape, now)
				}
				return choose(w, v, now)
			}
		}, "idle bursts"),
		"refunds repeated": oneOf(wrapped(func(api API) API { return &insistent{API: api} }), "lost replies"),
		"give-backs dropped": oneOf(plans(func(w *want, _ view, p *plan) {
			if w.settles() && p.path == adjust {
				p.verdict = skip
			}
		}), "overload"),
		"no op <> :op on charges": oneOf(func(h *history) {
			h.faults = faults{late: 0.2}
			without("op <> :op", normal, retry, reshape)(h)
		}, "lost replies"),
		"deny from a stale cached image": oneOf(func(h *history) {
			h.choose = func(w *want, v view, now int64) plan {
				p := choose(w, v, now)
				if p.verdict == look && v.img != nil {
					p.verdict, p.img = refuse, v.img
				}
				return p
			}
		}, "drained"),
		"Reshape without rf": oneOf(without("rf = :rf0", reshape), "reshape storm"),
		"Reshape without cv": oneOf(without("cv = :cv", reshape), "reshape storm"),
		"clamped Reshape without the exact match": oneOf(limitsOf(reshape, func(p *plan, i int) {
			if p.lo[i] == p.hi[i] && !p.img.Missing[i] {
				top := min(p.img.Balances[i].Burst, p.limits[i].Burst)
				p.lo[i], p.hi[i] = math.MinInt64, max(p.hi[i], top-p.fill[i])
			}
		}), "reshape storm"),
		"Reshape refills with the new parameters": oneOf(limitsOf(reshape, func(p *plan, i int) {
			tk, l := p.img.Balances[i].Tokens, p.limits[i]
			p.fill[i] = min(bucket.Refill(l, p.img.Refilled, p.rf), l.Burst-tk)
			p.lo[i], p.hi[i] = min(p.lo[i], tk), max(p.hi[i], tk)
		}), "reshape storm"),
	}
}

// wrapped puts something between the store and the table.
func wrapped(wrap func(API) API) func(*history) { return func(h *history) { h.wrap = wrap } }

// chooseNetted is choose where what settles give back is taken off what acquires take.
func chooseNetted(w *want, v view, now int64) plan {
	netted := *w
	netted.take, netted.change = slices.Clone(w.take), slices.Clone(w.change)
	for i := range netted.take {
		if w.change != nil && w.change[i] < 0 {
			off := min(w.take[i], -w.change[i])
			netted.take[i], netted.change[i] = w.take[i]-off, w.change[i]+off
		}
	}
	return choose(&netted, v, now)
}

// chooseIdle is choose without the upper guard of Retry: as if nothing had been refilled, which leaves bx.
func chooseIdle(w *want, v view, now int64) plan {
	idle := *w
	idle.called = 0
	p := choose(&idle, v, now)
	if p.path == retry {
		open(&p, false, true)
	}
	return p
}

// leak drops a quarter of what p may leave although p is not clamped, each time, and looks like a Normal that leaves it.
func leak(p *plan, now int64) {
	for i, b := range p.img.Balances {
		refill := bucket.Refill(b.Limit, p.img.Refilled, now)
		fill := max(0, refill-yielded(b.Limit)/4)
		if p.fill[i] == refill && refill > 0 && b.Tokens+fill >= p.cost[i] {
			p.fill[i] = fill
			p.lo[i], p.hi[i] = b.Tokens-1, b.Tokens
		}
	}
}

// staleTTL computes the ttl from the image alone.
func staleTTL(h *history) {
	h.writers, h.ttlLag, h.duration = 2, 0, 60*time.Second
	h.limits = [][]bucket.Limit{{bucket.Per(100, 100*time.Second), perSecond(200)}}
	h.cost = func(r *rand.Rand) []int64 { return []int64{1000 + 29000*r.Int64N(2), 0} }
	h.think = func(r *rand.Rand) time.Duration {
		if r.IntN(4) == 0 {
			return 10*time.Second + upTo(10*time.Second)(r)
		}
		return upTo(time.Second)(r)
	}
	h.choose = func(w *want, v view, now int64) plan {
		p := choose(w, v, now)
		if p.img != nil && p.verdict == write {
			p.ttl = 0
			for i, b := range p.img.Balances {
				b.Tokens += -p.cost[i]
				if p.fill != nil {
					b.Tokens += p.fill[i]
				}
				full := bucket.ReadyAt(b, now, b.Burst)
				p.ttl = max(p.ttl, (2*full-now)/1000+1)
			}
		}
		return p
	}
	h.decode = func(img *bucket.Image) { img.TTL = 1 << 40 } // and nobody mends it
}

// TestSimulationCatches shows that the oracle sees what each guard is there for: the same histories with a guard broken.
func TestSimulationCatches(t *testing.T) {
	t.Parallel()
	gpt4, _ := generated(t)
	all := every()
	for name, list := range controls() {
		for _, c := range list {
			t.Run(name+" in "+c.scenario, func(t *testing.T) {
				t.Parallel()
				c.caught(t, gpt4, all)
			})
		}
	}
}

// caught plays the histories of r in which c must show, until it does.
func (c control) caught(t *testing.T, r codec.Resource, all map[string]history) {
	t.Helper()
	const seeds = 100
	h := all[c.scenario]
	c.change(&h)
	for seed := range uint64(seeds) {
		h.seed = seed
		if wrong := h.run(t, r).exact(); wrong != "" {
			t.Logf("caught with seed %d: %.200s", seed, wrong)
			return
		}
	}
	t.Errorf("not caught in %d histories", seeds)
}
