package dynamo

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// deploymentControls are the variants that design sections 4 and 6 give reasons against, by name.
func deploymentControls() map[string]control {
	texts := func(edit func(w *codec.Write)) func(*history) {
		return func(h *history) {
			h.edit = func(p path, w *codec.Write) {
				if p == reshape {
					edit(w)
				}
			}
		}
	}
	chosen := func(wrap func(w *want, v view, now int64, good plan) plan) func(*history) {
		return func(h *history) {
			h.choose = func(w *want, v view, now int64) plan { return wrap(w, v, now, choose(w, v, now)) }
		}
	}
	return map[string]control{
		"refill is claimed for known limits alone": {"rolling", plans(func(_ *want, _ view, p *plan) {
			if p.path == normal && len(p.img.Extra) > 0 && !slices.Contains(p.img.Missing, true) {
				p.generic = false
			}
		})},
		"clamped refill of an unknown limit without the exact match": {"rolling, nearly full", plans(func(_ *want, _ view, p *plan) {
			if p.path == normal {
				for i := len(p.img.Balances); i < len(p.lo); i++ {
					p.lo[i], p.hi[i] = math.MinInt64, math.MaxInt64
				}
			}
		})},
		"fence around known limits alone": {"chains, debt", plans(func(_ *want, _ view, p *plan) {
			if p.path == retry && !p.generic {
				p.lo, p.hi = p.lo[:len(p.img.Balances)], p.hi[:len(p.img.Balances)]
			}
		})},
		"ttl of known limits alone": {"chains, debt", plans(func(_ *want, _ view, p *plan) {
			if p.path == retry || p.path == normal {
				p.ttl = expiry(p.predict("").Balances, p.rf)
			}
		})},
		"Reshape by whoever has another revision": {"rolling", chosen(func(w *want, v view, now int64, good plan) plan {
			if !w.settles() && v.img != nil && v.img.Version != w.shape.cv {
				return chooseReshape(w, v, now)
			}
			return good
		})},
		"old binaries add what they miss": {"rolling", chosen(func(w *want, v view, now int64, good plan) plan {
			if w.settles() || v.img == nil || v.img.Version <= w.shape.cv || !slices.Contains(v.img.Missing, true) {
				return good
			}
			kept := *w.shape
			kept.cv = v.img.Version
			again := *w
			again.shape = &kept
			return chooseReshape(&again, v, now)
		})},
		"a limit is added without if_not_exists": {"rolling", texts(func(w *codec.Write) {
			w.Update = strings.ReplaceAll(w.Update, "if_not_exists(b_tpd_tk, :tpd_bx)", ":tpd_bx")
		})},
		"an added limit starts empty": {"rolling", texts(func(w *codec.Write) {
			w.Update = strings.ReplaceAll(w.Update, "if_not_exists(b_tpd_tk, :tpd_bx)", "if_not_exists(b_tpd_tk, :tpd_use)")
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
	t.Parallel()
	_, second, _, _ := versions(t)
	all := deployments(t)
	for name, c := range deploymentControls() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.caught(t, second, all)
		})
	}
}
