package plan_test

import (
	"math"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
)

// The controls: variants of the rules, each with a fault.
const (
	takesInAnyEpoch   = "a take without e >= E-1"
	returnsInAnyEpoch = "a return without e <= E"
	sweepsAnyCell     = "a sweep without exact cells"
	neverGivesUp      = "a holder that does not give up"
	doubtIsFailure    = "an extension in doubt taken as failed"
	sameTTL           = "another epoch without a higher ttl"
	returnsLost       = "a lost hold returned all the same"
	resetKeepsEpoch   = "a reset after which cells count from the same epoch"
	resetFarAhead     = "a reset after which cells count from a much later epoch"
	shortTTL          = "a ttl before the end of the holds"
	returnsNothing    = "a return that gives no tokens back"
	returnsUsage      = "a return that changes usage"
)

// brokenImage returns img, or what a broken variant takes for it.
func (c *holdsChecker) brokenImage(img *bucket.Image, r request, now int64) *bucket.Image {
	if img == nil {
		return nil
	}
	own := *img
	own.Balances = []bucket.Balance{img.Balances[0]}
	b := &own.Balances[0]
	switch {
	case c.broken == takesInAnyEpoch && r.act == actTake:
		b.Epoch = max(b.Epoch, bucket.Epoch(now))
	case c.broken == returnsLost && r.act == actEnd && r.epoch > 0:
		b.Epoch = min(b.Epoch, epochOf(r.epoch))
	default:
		return img
	}
	return &own
}

// breakPlan takes from p, which does act, what a broken variant does without.
func (c *holdsChecker) breakPlan(p *plan.Plan, act action) {
	h, ends := &p.Holds[0], act == actEnd
	switch {
	case c.broken == takesInAnyEpoch && p.Path == plan.Retry:
		h.First = math.MinInt64
	case c.broken == returnsInAnyEpoch && ends, c.broken == returnsLost && ends:
		h.Last = math.MaxInt64
	case c.broken == sweepsAnyCell:
		h.Lo, h.Hi = [2]int64{math.MinInt64, math.MinInt64}, [2]int64{math.MaxInt64, math.MaxInt64}
	case c.broken == returnsNothing && ends:
		p.Fill[0] = p.Cost[0]
	case c.broken == returnsUsage && ends:
		p.Fill[0], p.Cost[0] = p.Fill[0]-bucket.Milli, p.Cost[0]-bucket.Milli
	}
}

// TestHoldsModelCatches: each control is found, by the invariant that it breaks first.
func TestHoldsModelCatches(t *testing.T) {
	longform.NoRace(t, "it has one goroutine")
	for name, test := range map[string]struct {
		model holdsModel
		want  string
	}{
		takesInAnyEpoch:               {slots(minutes, 0), invCells},
		returnsInAnyEpoch:             {slots(minutes, 0), invCells},
		returnsInAnyEpoch + ", spent": {reservations(minutes, 0), invCells},
		sweepsAnyCell:                 {slots(minutes, 0), invCells},
		neverGivesUp:                  {slots(minutes, 0), invBelievers},
		neverGivesUp + ", spent":      {reservations(minutes, 0), invUnheld},
		doubtIsFailure:                {slots(minutes, 1), invNegative},
		doubtIsFailure + ", spent":    {reservations(minutes, 1), invNegative},
		sameTTL:                       {slots(edges, 2).skewed(-modelSkew, modelSkew), invNegative},
		returnsLost:                   {slots(minutes, 0), invCells},
		resetKeepsEpoch:               {slots(minutes, 0).withReset(), invNegative},
		resetFarAhead:                 {slots(minutes, 0).withReset(), invEnd},
		shortTTL:                      {slots(far, 0).withDeletion(), invBelievers},
		returnsNothing:                {slots(minutes, 0), invSum},
		returnsUsage:                  {slots(minutes, 0), invUsage},
	} {
		t.Run(name, func(t *testing.T) {
			test.model.broken, _, _ = strings.Cut(name, ", ")
			test.model.symmetric = false // the names of a trace stay
			c := newHoldsChecker(test.model)
			f := c.explore()
			if f.broken != test.want {
				t.Errorf("%q is broken, want %q:\n%s", f.broken, test.want, f.trace)
			}
			t.Logf("after %d states: %s:\n%s", f.states, f.broken, f.trace)
		})
	}
}
