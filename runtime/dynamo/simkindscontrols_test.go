package dynamo

import (
	"slices"
	"strings"
	"testing"

	kinds "github.com/sluice-go/sluice/gen/testdata/golden/kinds/out"
	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
)

// kindControls are variants that are wrong about the limits of a kind, by name.
func kindControls() map[string]control {
	mistaking := func(kind, other string) func(*history) {
		return func(h *history) { h.mistake = map[string]string{kind: other} }
	}
	return map[string]control{
		"projects with the limits of organisations": {"atomic", mistaking("project", "org")},
		"organisations with the limits of projects": {"compensated", mistaking("org", "project")},
		"a limit that organisations have is not charged": {"atomic", func(h *history) {
			h.choose = func(w *plan.Demand, v plan.State, now int64) plan.Plan {
				const rpm, rpd = 0, 2
				less := *w
				if w.Take != nil && w.Shape.Limits[rpm].Absent() {
					less.Take = slices.Clone(w.Take)
					less.Take[rpd] = 0
				}
				return plan.Choose(&less, v, now)
			}
		}},
		"limits that end for a kind stay": {"limits end", func(h *history) {
			h.edit = func(p plan.Path, w *codec.Write) {
				if p == plan.Reshape {
					w.Update, _, _ = strings.Cut(w.Update, "REMOVE")
				}
			}
		}},
	}
}

// TestKindsCatch shows that the books of TestSimulationOfKinds see each of these.
func TestKindsCatch(t *testing.T) {
	skipOnLocal(t)
	longform.NoRace(t, "a control, whose broken variant ships nowhere")
	t.Parallel()
	model, all := kindsApart(t, kinds.Model), kindHistories(t)
	for name, c := range kindControls() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.caught(t, model, all, name)
		})
	}
}
