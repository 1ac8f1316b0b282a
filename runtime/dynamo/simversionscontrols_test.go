package dynamo

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
)

// deploymentControls are the variants that docs/design.md, "Guards", gives reasons against, by name.
func deploymentControls() map[string]control {
	texts := func(edit func(w *codec.Write)) func(*history) {
		return func(h *history) {
			h.edit = func(p plan.Path, w *codec.Write) {
				if p == plan.Reshape {
					edit(w)
				}
			}
		}
	}
	chosen := func(wrap func(w *plan.Demand, v plan.State, now int64, good plan.Plan) plan.Plan) func(*history) {
		return func(h *history) {
			h.choose = func(w *plan.Demand, v plan.State, now int64) plan.Plan {
				return wrap(w, v, now, plan.Choose(w, v, now))
			}
		}
	}
	return map[string]control{
		"refill is claimed for known limits alone": {
			"rolling",
			plans(func(_ *plan.Demand, _ plan.State, p *plan.Plan) {
				if p.Path == plan.Normal && len(p.Image.Extra) > 0 && !slices.Contains(p.Image.Missing, true) {
					p.Generic = false
				}
			}),
		},
		"clamped refill of an unknown limit without the exact match": {
			"rolling, nearly full",
			plans(func(_ *plan.Demand, _ plan.State, p *plan.Plan) {
				if p.Path == plan.Normal {
					for i := len(p.Image.Balances); i < len(p.Lo); i++ {
						p.Lo[i], p.Hi[i] = math.MinInt64, math.MaxInt64
					}
				}
			}),
		},
		"debt guard of known limits only": {"chains, debt", plans(func(_ *plan.Demand, _ plan.State, p *plan.Plan) {
			if p.Path == plan.Retry && !p.Generic {
				p.Lo, p.Hi = p.Lo[:len(p.Image.Balances)], p.Hi[:len(p.Image.Balances)]
			}
		})},
		"ttl of known limits alone": {"chains, debt", plans(func(_ *plan.Demand, _ plan.State, p *plan.Plan) {
			if p.Path == plan.Retry || p.Path == plan.Normal {
				p.TTL = plan.Expiry(p.Predict("").Balances, p.Refilled)
			}
		})},
		"Reshape to lower revisions too": {
			"rolling",
			chosen(func(w *plan.Demand, v plan.State, now int64, good plan.Plan) plan.Plan {
				if !w.SettlesOnly() && v.Image != nil && v.Image.Version != w.Shape.Version {
					return plan.ChooseReshape(w, v, now)
				}
				return good
			}),
		},
		"old binaries add what they miss": {
			"rolling",
			chosen(func(w *plan.Demand, v plan.State, now int64, good plan.Plan) plan.Plan {
				if w.SettlesOnly() || v.Image == nil || v.Image.Version <= w.Shape.Version ||
					!slices.Contains(v.Image.Missing, true) {
					return good
				}
				kept := *w.Shape
				kept.Version = v.Image.Version
				again := *w
				again.Shape = &kept
				return plan.ChooseReshape(&again, v, now)
			}),
		},
		"a limit is added without if_not_exists": {"rolling", texts(func(w *codec.Write) {
			w.Update = strings.ReplaceAll(w.Update, "if_not_exists(b_tpd_tk, :tpd_bx)", ":tpd_bx")
		})},
		"an added limit starts empty": {"rolling", texts(func(w *codec.Write) {
			w.Update = strings.ReplaceAll(
				w.Update,
				"if_not_exists(b_tpd_tk, :tpd_bx)",
				"if_not_exists(b_tpd_tk, :tpd_use)",
			)
		})},
		"an added limit is refilled since before": {"rolling", texts(func(w *codec.Write) {
			w.Update = strings.Replace(w.Update, "rf = :rf,", "rf = :rf0,", 1)
		})},
		"removed limits stay": {"rolling", texts(func(w *codec.Write) {
			w.Update, _, _ = strings.Cut(w.Update, "REMOVE")
		})},
	}
}

// TestDeploymentsCatch shows that the books of TestDeployments see what each of these is there for.
func TestDeploymentsCatch(t *testing.T) {
	skipOnLocal(t)
	longform.NoRace(t, "a control, whose broken variant ships nowhere")
	t.Parallel()
	_, second, _, _ := versions(t)
	all := deployments(t)
	for name, c := range deploymentControls() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.caught(t, second, all, name)
		})
	}
}
