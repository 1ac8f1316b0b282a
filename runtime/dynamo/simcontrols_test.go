package dynamo

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/store"
)

// control is a broken variant of the store, and the histories in which that must show.
type control struct {
	scenario string
	change   func(*history)
}

// plans breaks what was planned, where that is a write.
func plans(breakage func(w *plan.Demand, v plan.State, p *plan.Plan)) func(*history) {
	return func(h *history) {
		h.choose = func(w *plan.Demand, v plan.State, now int64) plan.Plan {
			p := plan.Choose(w, v, now)
			if p.Decision == plan.Write {
				breakage(w, v, &p)
			}
			return p
		}
	}
}

// limitsIn breaks every limit of the writes of one path.
func limitsIn(of plan.Path, breakage func(p *plan.Plan, i int)) func(*history) {
	return plans(func(_ *plan.Demand, _ plan.State, p *plan.Plan) {
		if p.Path == of {
			for i := range p.Lo {
				breakage(p, i)
			}
		}
	})
}

// without takes a clause out of the conditions of some paths.
func without(clause string, of ...plan.Path) func(*history) {
	return func(h *history) {
		h.edit = func(p plan.Path, w *codec.Write) {
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
func open(p *plan.Plan, lo, hi bool) {
	for i := range p.Lo {
		if p.Cost[i] <= 0 {
			continue
		}
		if lo {
			p.Lo[i] = math.MinInt64
		}
		if hi {
			p.Hi[i] = math.MaxInt64
		}
	}
}

// controls are the variants that docs/design.md, "Guards", gives reasons against, by name.
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
			h.choose = func(w *plan.Demand, v plan.State, now int64) plan.Plan {
				if w.Shape == nil || !slices.Equal(w.Shape.Limits, parent) {
					return plan.Choose(w, v, now)
				}
				return chooseIdle(w, v, now)
			}
		}, "atomic, idle bursts"),
		"transaction without the debt guard": oneOf(func(h *history) {
			h.edit = func(_ plan.Path, w *codec.Write) {
				for name, hi := range w.Values { // without an upper bound, the lower bound is the debt guard
					limit, ok := strings.CutSuffix(name, "_hi")
					if lo := limit + "_lo"; ok && number(hi) == math.MaxInt64 && number(w.Values[lo]) < 0 {
						w.Bound(lo, math.MinInt64)
					}
				}
			}
		}, "atomic, debt"),
		"give-backs and takes netted before the guards": oneOf(
			func(h *history) { h.choose = chooseNetted },
			"crowd, full",
			"crowd, settles",
		),
		"headroom for the largest acquire of a batch alone": oneOf(wrapped(leastForLargest), "crowd, overload"),
		"batches that give back repeated": oneOf(
			wrapped(func(api wire.API) wire.API { return &insistent{api, true} }),
			"crowd, lost replies",
		),
		"newcomers under an op of unknown outcome": oneOf(
			wrapped(func(api wire.API) wire.API { return &optimist{api} }),
			"crowd, lost replies",
		),
		"abandoned callers charged": oneOf(
			func(h *history) { h.env = func(e *store.Env) { e.SettleTimeout = -1 } },
			"crowd, cancelled callers",
		),
		"guard at the instant of the first of a batch": oneOf(
			func(h *history) { h.wrap = hindsight(h.limits[0]) },
			"crowd, nearly full",
		),
		"transaction piece by piece": oneOf(
			wrapped(func(api wire.API) wire.API { return &piecemeal{API: api} }),
			"atomic",
		),
		"transaction of unknown outcome under a new token": oneOf(
			wrapped(func(api wire.API) wire.API { return &forgetful{API: api} }), "atomic, lost replies"),
		"compensation given twice": oneOf(
			wrapped(func(api wire.API) wire.API { return &openHanded{API: api} }),
			"compensated",
		),
		"compensation repeated": oneOf(
			wrapped(func(api wire.API) wire.API { return &insistent{API: api} }),
			"compensated, lost replies",
		),
		"denial by one refusal of the chain": oneOf(func(h *history) {
			h.reports = func(all []store.Refusal) []store.Refusal { return all[:1] }
		}, "atomic, drained", "compensated, drained"),
		"overrides without cv": oneOf(func(h *history) {
			h.choose = func(w *plan.Demand, v plan.State, now int64) plan.Plan {
				unversioned := *w
				if w.Shape != nil {
					s := *w.Shape
					s.Version -= s.Version % bucket.RevisionUnit
					unversioned.Shape = &s
				}
				return plan.Choose(&unversioned, v, now)
			}
		}, "atomic, overrides", "compensated, overrides"),
		"Reshape to lower versions too": oneOf(func(h *history) {
			wrapped(func(api wire.API) wire.API { return &stuck{API: api, seen: map[string]codec.Item{}} })(h)
			h.choose = func(w *plan.Demand, v plan.State, now int64) plan.Plan {
				if !w.SettlesOnly() && v.Image != nil && v.Image.Version != w.Shape.Version {
					return plan.ChooseReshape(w, v, now)
				}
				return plan.Choose(w, v, now)
			}
		}, "atomic, overrides", "compensated, overrides"),
		"the seeds' conditions": oneOf(plans(func(_ *plan.Demand, _ plan.State, p *plan.Plan) {
			switch p.Path {
			case plan.Normal:
				open(p, true, true)
			case plan.Retry:
				open(p, false, true)
			}
		}), "overload"),
		"Retry without its upper guard": oneOf(func(h *history) { h.choose = chooseIdle }, "idle bursts"),
		"Retry without cv":              oneOf(without("cv = :cv", plan.Retry), "reshape storm"),
		"Retry charges double": oneOf(plans(func(w *plan.Demand, _ plan.State, p *plan.Plan) {
			if p.Path != plan.Retry || w.SettlesOnly() {
				return
			}
			for i, c := range p.Cost {
				if c > 0 && p.Image.Balances[i].Tokens >= 2*c {
					p.Cost[i], p.Lo[i] = 2*c, 2*c
				}
			}
		}), "overload"),
		"clamped Normal without the exact match": oneOf(limitsIn(plan.Normal, func(p *plan.Plan, i int) {
			if p.Lo[i] == p.Hi[i] {
				p.Lo[i], p.Hi[i] = p.Cost[i]-p.Fill[i], p.Image.Balances[i].Burst-p.Fill[i]
			}
		}), "idle bursts"),
		"clamped Normal open where the cost is 0": oneOf(limitsIn(plan.Normal, func(p *plan.Plan, i int) {
			refill := bucket.Refill(p.Image.Balances[i].Limit, p.Image.Refilled, p.Refilled)
			if p.Fill[i] < refill && p.Cost[i] == 0 {
				p.Lo[i], p.Hi[i] = math.MinInt64, math.MaxInt64
			}
		}), "lost replies", "nearly full"),
		"contended Normal leaks": oneOf(func(h *history) {
			h.choose = func(w *plan.Demand, v plan.State, now int64) plan.Plan {
				p := plan.Choose(w, v, now)
				if p.Decision == plan.Write && p.Path == plan.Normal && v.LeaveSlack {
					leak(&p, now)
				}
				return p
			}
		}, "overload"),
		"ttl from a stale balance": oneOf(staleTTL, "expiry"),
		"blind Adjust upward": oneOf(func(h *history) {
			h.choose = func(w *plan.Demand, v plan.State, now int64) plan.Plan {
				if w.SettlesOnly() && v.Image != nil {
					p, _ := plan.NewAdjust(w, v.Image, now)
					return p
				}
				return plan.Choose(w, v, now)
			}
		}, "idle bursts"),
		"refunds repeated": oneOf(
			wrapped(func(api wire.API) wire.API { return &insistent{API: api} }),
			"lost replies",
		),
		"give-backs dropped": oneOf(plans(func(w *plan.Demand, _ plan.State, p *plan.Plan) {
			if w.SettlesOnly() && p.Path == plan.Adjust {
				p.Decision = plan.None
			}
		}), "overload"),
		"no op <> :op on charges": oneOf(func(h *history) {
			h.faults = faults{late: 0.2}
			without("op <> :op", plan.Normal, plan.Retry, plan.Reshape)(h)
		}, "lost replies"),
		"deny from a stale cached image": oneOf(func(h *history) {
			h.choose = func(w *plan.Demand, v plan.State, now int64) plan.Plan {
				p := plan.Choose(w, v, now)
				if p.Decision == plan.Read && v.Image != nil {
					p.Decision, p.Image = plan.Deny, v.Image
				}
				return p
			}
		}, "drained"),
		"Reshape without rf": oneOf(without("rf = :rf0", plan.Reshape), "reshape storm"),
		"Reshape without cv": oneOf(without("cv = :cv", plan.Reshape), "reshape storm"),
		"clamped Reshape without the exact match": oneOf(limitsIn(plan.Reshape, func(p *plan.Plan, i int) {
			if p.Lo[i] == p.Hi[i] && !p.Image.Missing[i] {
				top := min(p.Image.Balances[i].Burst, p.Limits[i].Burst)
				p.Lo[i], p.Hi[i] = math.MinInt64, max(p.Hi[i], top-p.Fill[i])
			}
		}), "reshape storm"),
		"Reshape refills with the new parameters": oneOf(limitsIn(plan.Reshape, func(p *plan.Plan, i int) {
			tk, l := p.Image.Balances[i].Tokens, p.Limits[i]
			p.Fill[i] = min(bucket.Refill(l, p.Image.Refilled, p.Refilled), l.Burst-tk)
			p.Lo[i], p.Hi[i] = min(p.Lo[i], tk), max(p.Hi[i], tk)
		}), "reshape storm"),
	}
}

// wrapped puts something between the store and the table.
func wrapped(wrap func(wire.API) wire.API) func(*history) { return func(h *history) { h.wrap = wrap } }

// chooseNetted is choose where what settles give back is taken off what acquires take.
func chooseNetted(w *plan.Demand, v plan.State, now int64) plan.Plan {
	netted := *w
	netted.Take, netted.Change = slices.Clone(w.Take), slices.Clone(w.Change)
	for i := range netted.Take {
		if w.Change != nil && w.Change[i] < 0 {
			off := min(w.Take[i], -w.Change[i])
			netted.Take[i], netted.Change[i] = w.Take[i]-off, w.Change[i]+off
		}
	}
	return plan.Choose(&netted, v, now)
}

// chooseIdle is choose without the upper guard of Retry: as if nothing had been refilled, which leaves bx.
func chooseIdle(w *plan.Demand, v plan.State, now int64) plan.Plan {
	idle := *w
	idle.Called = 0
	p := plan.Choose(&idle, v, now)
	if p.Path == plan.Retry {
		open(&p, false, true)
	}
	return p
}

// leak drops a quarter of what p may leave although p is not clamped, each time, and looks like a Normal that
// leaves it.
func leak(p *plan.Plan, now int64) {
	for i, b := range p.Image.Balances {
		refill := bucket.Refill(b.Limit, p.Image.Refilled, now)
		fill := max(0, refill-plan.Slack(b.Limit)/4)
		if p.Fill[i] == refill && refill > 0 && b.Tokens+fill >= p.Cost[i] {
			p.Fill[i] = fill
			p.Lo[i], p.Hi[i] = b.Tokens-1, b.Tokens
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
	h.choose = func(w *plan.Demand, v plan.State, now int64) plan.Plan {
		p := plan.Choose(w, v, now)
		if p.Image != nil && p.Decision == plan.Write {
			p.TTL = 0
			for i, b := range p.Image.Balances {
				b.Tokens += -p.Cost[i]
				if p.Fill != nil {
					b.Tokens += p.Fill[i]
				}
				full := bucket.ReadyAt(b, now, b.Burst)
				p.TTL = max(p.TTL, (2*full-now)/1000+1)
			}
		}
		return p
	}
	h.decode = func(img *bucket.Image) { img.TTL = 1 << 40 } // and nobody repairs it
}

// TestSimulationCatches shows that the oracle sees what each guard is there for: the same histories with a
// guard broken.
func TestSimulationCatches(t *testing.T) {
	skipOnLocal(t)
	longform.Control(t)
	t.Parallel()
	gpt4, _ := generated(t)
	all := every()
	for name, list := range controls() {
		for _, c := range list {
			t.Run(name+" in "+c.scenario, func(t *testing.T) {
				t.Parallel()
				c.caught(t, gpt4, all, name)
			})
		}
	}
}

// caught plays the histories of r in which c, the control of a name, must show, until it does.
func (c control) caught(t *testing.T, r codec.Resource, all map[string]history, name string) {
	t.Helper()
	const seeds = 100
	want := finding(name)
	if want.String() == "" {
		t.Fatal("finding does not say what the oracle finds")
	}
	h := all[c.scenario]
	c.change(&h)
	for i := range uint64(seeds) {
		seed := (shown(name) + i) % seeds
		h.seed = seed
		wrong := h.run(t, r).exact()
		if want.MatchString(wrong) {
			t.Logf("caught with seed %d: %.200s", seed, wrong)
			return
		}
		if wrong != "" {
			t.Logf("seed %d shows something else: %.200s", seed, wrong)
		}
	}
	t.Errorf("not caught in %d histories: none shows %s", seeds, want)
}
