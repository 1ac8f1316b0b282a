package dynamo

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/store"
)

// opens reports whether p opens a window of the i-th limit.
func opens(p *plan.Plan, i int) bool {
	return p.Path == plan.Normal && p.Ends[i] != p.Image.Balances[i].Ends
}

// eachWindow breaks each limit with windows of what is planned, where that is a write.
func eachWindow(breakage func(w *plan.Demand, p *plan.Plan, i int)) func(*history) {
	return plans(func(w *plan.Demand, _ plan.State, p *plan.Plan) {
		for i := range p.Ends {
			if w.Windows[i] != nil {
				breakage(w, p, i)
			}
		}
	})
}

// sparse has each process call once at most instants, so that the last one at many of them comes with an old
// image.
func sparse(h *history) {
	every := func(int) bool { return true }
	h.think = func(r *rand.Rand) time.Duration {
		if r.IntN(8) > 0 {
			return around(1, every, 0, 13)(r)
		}
		return around(1, every, 0.5, 1)(r)
	}
}

// guardedWhereAsked names the windows only of those limits that a write of a path takes from.
func guardedWhereAsked(of plan.Path) func(*history) {
	return func(h *history) {
		h.edit = func(path plan.Path, w *codec.Write) {
			for i, name := range simNames {
				if path == of && w.Cost[i] == 0 {
					w.Cond = strings.Replace(w.Cond, " AND b_"+name+"_we = :"+name+"_we0", "", 1)
				}
			}
		}
	}
}

// allowanceControls are the variants that the design gives reasons against, by name.
func allowanceControls() map[string]control {
	return map[string]control{
		"windows without their least length": {"three tzdata", func(h *history) {
			h.choose = func(w *plan.Demand, v plan.State, now int64) plan.Plan {
				p := plan.Choose(w, v, now)
				for i := range p.Ends {
					if p.Decision == plan.Write && w.Windows[i] != nil && opens(&p, i) {
						p.Ends[i] = w.Windows[i].End(now, 0)
					}
				}
				return p
			}
		}},
		"a boundary since rf": {"three tzdata", func(h *history) { h.choose = chooseByRefill }},
		"a give-back without its window": {"three tzdata", func(h *history) {
			h.choose = func(w *plan.Demand, v plan.State, now int64) plan.Plan {
				open := *w
				open.Lapsed = nil
				return plan.Choose(&open, v, now)
			}
		}},
		"a claim without the exact balance": {"lazy settles", eachWindow(func(_ *plan.Demand, p *plan.Plan, i int) {
			if opens(p, i) {
				p.Lo[i], p.Hi[i] = math.MinInt64, math.MaxInt64
			}
		})},
		"windows guarded only where they are asked": {"expiry, chains", func(h *history) {
			sparse(h)
			guardedWhereAsked(plan.Retry)(h)
		}},
		"claims of refill that guard windows only where they are asked": {
			"three tzdata", guardedWhereAsked(plan.Normal),
		},
		"ttl before the end of the window": {"three tzdata", func(h *history) {
			plans(func(_ *plan.Demand, _ plan.State, p *plan.Plan) { p.TTL = p.Refilled/1000 + 60 })(h)
			h.decode = func(img *bucket.Image) { img.TTL = 1 << 40 } // and nobody repairs it
		}},
		"ttl right after the end of the window": {"expiry", func(h *history) {
			h.think = around(3, func(int) bool { return true }, 12, 23.5)
			h.windows = func(place, version int) []*bucket.Calendar {
				all := threeTZData()(place, version)
				return calendarsBy(all[simDaily], all[simDaily])
			}
			eachWindow(func(_ *plan.Demand, p *plan.Plan, _ int) {
				p.TTL = max(slices.Max(p.Ends), p.Refilled)/1000 + 61
			})(h)
		}},
		"Reshape that fills the window": {"reshape up and down", limitsIn(plan.Reshape, func(p *plan.Plan, i int) {
			if p.Limits[i].Windowed() {
				tk := p.Image.Balances[i].Tokens
				p.Fill[i], p.Lo[i], p.Hi[i] = p.Limits[i].Burst-tk, tk, tk
			}
		})},
		"a reset that keeps the end of the window": {"resets", func(h *history) {
			h.resets = func(api wire.API) wire.API { return &keepsEnds{api} }
		}},
		"the window of a lease from the last try": {"three tzdata, lost replies", func(h *history) {
			h.wrap = func(api wire.API) wire.API { return &lastTry{api} }
			h.held = func(b *store.Bucket, lease []*acquired) {
				for k, a := range lease {
					b.Charges[k].Ends = a.tried[b.Entity]
				}
			}
		}},
		"usage of a window that is over is not lowered": {"three tzdata", plans(
			func(w *plan.Demand, _ plan.State, p *plan.Plan) {
				for i, lapsed := range w.Lapsed {
					p.Cost[i], p.Fill[i] = p.Cost[i]+lapsed, p.Fill[i]+lapsed
				}
			},
		)},
		"one window for all charges of a lease": {"three tzdata", func(h *history) {
			h.held = func(b *store.Bucket, _ []*acquired) {
				for k := range b.Charges {
					b.Charges[k].Ends = b.Charges[len(b.Charges)-1].Ends
				}
			}
		}},
	}
}

// chooseByRefill is choose by a calendar: a window of days is over once a boundary has passed since rf.
func chooseByRefill(w *plan.Demand, v plan.State, now int64) plan.Plan {
	if v.Image == nil {
		return plan.Choose(w, v, now)
	}
	img := *v.Image
	img.Balances = slices.Clone(img.Balances)
	for i := range img.Balances {
		if b := &img.Balances[i]; b.Ends > 0 && w.Windows[i].Unit == bucket.Day {
			b.Ends = w.Windows[i].End(img.Refilled, 0)
		}
	}
	seen := v
	seen.Image = &img
	p := plan.Choose(w, seen, now)
	if p.Decision == plan.Write && p.Image == &img {
		p.Image = v.Image
		for i := range p.Ends {
			if p.Ends[i] == img.Balances[i].Ends { // it opens none
				p.Ends[i] = v.Image.Balances[i].Ends
			}
		}
	}
	return p
}

// keepsEnds has an operator fill windows that end when they did.
type keepsEnds struct{ wire.API }

func (c *keepsEnds) UpdateItem(
	ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	for _, m := range equalPattern.FindAllStringSubmatch(*in.UpdateExpression, -1) {
		for _, of := range equalPattern.FindAllStringSubmatch(*in.ConditionExpression, -1) {
			if m[1] == of[1] && strings.HasSuffix(in.ExpressionAttributeNames[m[1]], "_we") {
				in.ExpressionAttributeValues[m[2]] = in.ExpressionAttributeValues[of[2]]
			}
		}
	}
	return c.API.UpdateItem(ctx, in, opts...)
}

// lastTry notes for each acquire the windows that the last try for it was to charge.
type lastTry struct{ wire.API }

func (c *lastTry) UpdateItem(
	ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	ends := make([]int64, simLimits)
	for i, name := range simNames {
		for _, placeholder := range []string{":" + name + "_we0", ":" + name + "_we"} {
			if v, ok := in.ExpressionAttributeValues[placeholder]; ok {
				ends[i] = number(v)
			}
		}
	}
	noteTried(ctx, in.Key, ends)
	return c.API.UpdateItem(ctx, in, opts...)
}

func (c *lastTry) PutItem(
	ctx context.Context, in *dynamodb.PutItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.PutItemOutput, error) {
	ends := make([]int64, simLimits)
	for i, name := range simNames {
		if v, ok := in.Item["b_"+name+"_we"].(*types.AttributeValueMemberN); ok {
			ends[i] = number(v)
		}
	}
	noteTried(ctx, in.Item, ends)
	return c.API.PutItem(ctx, in, opts...)
}

func noteTried(ctx context.Context, key codec.Item, ends []int64) {
	where, _ := ctx.Value(tagKey{}).(tag)
	for _, a := range where.calls {
		a.tried[entityOf(keyOf(key))] = ends
	}
}

// TestAllowancesCatch shows that the books of TestSimulationOfAllowances see what each of these is there for.
func TestAllowancesCatch(t *testing.T) {
	skipOnLocal(t)
	longform.Control(t)
	t.Parallel()
	mail, all := mailResource(t), allowanceHistories()
	for name, c := range allowanceControls() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.caught(t, mail, all, name)
		})
	}
}
