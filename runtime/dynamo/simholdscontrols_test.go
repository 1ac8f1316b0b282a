package dynamo

import (
	"context"
	"regexp"
	"slices"
	"testing"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/store"
)

// holdControl is a broken variant of a history, and what the oracle has to find.
type holdControl struct {
	history string
	finding string
	breaks  func(*holdHistory)
}

// eachHold breaks each hold of what is planned, where that is a write.
func eachHold(breakage func(p *plan.Plan, hold *bucket.Hold)) func(*holdHistory) {
	return func(h *holdHistory) {
		h.choose = func(d *plan.Demand, s plan.State, now int64) plan.Plan {
			p := plan.Choose(d, s, now)
			for i := range p.Holds {
				if p.Decision == plan.Write && p.Holds[i].Epoch != 0 {
					breakage(&p, &p.Holds[i])
				}
			}
			return p
		}
	}
}

// hopeful is a store that takes an extension of unknown outcome for one that was not sent.
type hopeful struct{ runtime.Store }

func (h hopeful) Open(env *store.Env, defs ...store.Definition) (store.Session, error) {
	s, err := h.Store.Open(env, defs...)
	return hopefulSession{s}, err
}

type hopefulSession struct{ store.Session }

func (h hopefulSession) Extend(ctx context.Context, call *store.Call) error {
	err := h.Session.Extend(ctx, call)
	if b := &call.Parts[0].Buckets[0]; err != nil {
		b.Epochs = slices.Clone(b.Charges[0].Epochs)
	}
	return err
}

// holdControls are variants that the design gives reasons against, by name. The others need writes that race
// around the end of a minute: TestHoldsModelCatches plays all of these.
func holdControls() map[string]holdControl {
	return map[string]holdControl{
		"holders that do not give up": {"a fault in three", `^\S+: calls with \d+ slots run at`,
			func(h *holdHistory) { h.deaf = true }},
		"extensions that are repeated in doubt": {"a fault in three", `a cell below 0|calls with \d+ slots run at`,
			func(h *holdHistory) { h.wraps = func(s runtime.Store) runtime.Store { return hopeful{s} } }},
		"slots that stay taken": {"calm", `^\S+: \d+ of 20 slots are back|^forged or lost slots`,
			eachHold(func(p *plan.Plan, _ *bucket.Hold) {
				if p.Path == plan.Adjust {
					clear(p.Fill)
				}
			})},
	}
}

// TestSimulationOfHoldsCatches plays broken variants until the oracle finds what is wrong with each.
func TestSimulationOfHoldsCatches(t *testing.T) {
	skipOnLocal(t)
	longform.Control(t)
	t.Parallel()
	for name, control := range holdControls() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := holdHistories()[control.history]
			control.breaks(&h)
			for seed := range 40 {
				h.seed = uint64(seed + 1)
				switch judge := h.play(t); {
				case judge.wrong == "":
				case regexp.MustCompile(control.finding).MatchString(judge.wrong):
					t.Logf("seed %d: %s", h.seed, judge.wrong)
					return
				default:
					t.Fatalf("seed %d: %s, want %s", h.seed, judge.wrong, control.finding)
				}
			}
			t.Error("not caught in 40 histories")
		})
	}
}
