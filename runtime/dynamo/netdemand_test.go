package dynamo

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
)

// stream is a batch, and the bucket that its write finds: other writers may have been there since the image
// was seen.
type stream struct {
	img         *bucket.Image
	limits      []bucket.Limit
	now, called int64
	leaveSlack  bool
	takes       [][]int64 // of acquires, in order
	change      []int64   // of settles, together; nil for none
	found       []int64   // tokens stored
	refilled    int64     // what is stored, where the path allows for it to differ
}

func drawStream(t *rapid.T) *stream {
	const base = 1_000_000
	n := rapid.IntRange(1, 3).Draw(t, "limits")
	s := &stream{
		img:        &bucket.Image{Refilled: base, Version: bucket.RevisionUnit, Missing: make([]bool, n)},
		now:        base + rapid.Int64Range(-50, 3000).Draw(t, "now"),
		leaveSlack: rapid.Bool().Draw(t, "yield"),
		refilled: base + rapid.SampledFrom([]int64{0, 1}).
			Draw(t, "claimed by others")*
			rapid.Int64Range(0, 3000).
				Draw(t, "when"),
	}
	s.called = s.now - rapid.Int64Range(0, 200).Draw(t, "age")
	vector := func(lo, hi int64, what string) []int64 {
		v := make([]int64, n)
		for i := range v {
			v[i] = rapid.Int64Range(lo, hi).Draw(t, what)
		}
		return v
	}
	for range n {
		burst := rapid.Int64Range(1, 60).Draw(t, "burst")
		l := bucket.Limit{
			Capacity: burst, Burst: burst,
			Refill: rapid.Int64Range(1, 40).Draw(t, "refill"), Period: rapid.Int64Range(1, 1000).Draw(t, "period"),
		}
		s.limits = append(s.limits, l)
		held := rapid.Int64Range(-10, burst+15).Draw(t, "held")
		s.img.Balances = append(s.img.Balances, bucket.Balance{Limit: l, Tokens: held})
		if rapid.Bool().Draw(t, "drifts") {
			held += rapid.Int64Range(-20, 20).Draw(t, "drift")
		}
		s.found = append(s.found, held)
	}
	for range rapid.IntRange(0, 3).Draw(t, "acquires") {
		s.takes = append(s.takes, vector(0, 12, "take"))
	}
	if rapid.Bool().Draw(t, "settles") || len(s.takes) == 0 {
		s.change = vector(-15, 15, "change")
	}
	return s
}

// want is what s wants of the bucket.
func (s *stream) want() *plan.Demand {
	w := &plan.Demand{
		Shape:  &plan.Shape{Limits: s.limits, Version: bucket.RevisionUnit},
		Called: s.called,
		Change: slices.Clone(s.change),
		Pool:   &plan.VectorPool{},
	}
	for i, take := range s.takes {
		if i == 0 {
			w.Take = make([]int64, len(take))
		}
		for j, n := range take {
			w.Take[j] += n
		}
	}
	return w
}

// flows chooses a write and, if its condition is met, compares the bucket that it leaves with an ideal one.
// There, refunds, acquires and debts are applied in this order, and all acquires must find their tokens. At
// no later instant may the bucket have more, or less by more than a Normal's slack. It returns the path, ""
// for no write, and what is wrong.
func (s *stream) flows(choose func(*plan.Demand, plan.State, int64) plan.Plan) (path, wrong string) {
	p := choose(s.want(), plan.State{Image: s.img, Confirmed: true, LeaveSlack: s.leaveSlack}, s.now)
	if p.Decision != plan.Write {
		return "", ""
	}
	for i, tokens := range s.found {
		if tokens < p.Lo[i] || tokens > p.Hi[i] {
			return "", ""
		}
	}
	before, at := s.img.Refilled, s.now
	if p.Path != plan.Normal { // the others hold after any claim of the refill
		before = s.refilled
	}
	if p.Path == plan.Retry { // whose guard is of the call's instant
		at = s.called
	}
	after := before
	if p.Path == plan.Normal {
		after = p.Refilled
	}
	at = max(at, after)
	for i, l := range s.limits {
		ideal := bucket.Balance{
			Limit:  l,
			Tokens: bucket.Available(bucket.Balance{Limit: l, Tokens: s.found[i]}, before, at),
		}
		change := int64(0)
		if s.change != nil {
			change = s.change[i]
		}
		if change < 0 {
			ideal.Tokens = min(ideal.Tokens-change, l.Burst)
		}
		for _, take := range s.takes {
			if take[i] > 0 && ideal.Tokens < take[i] {
				return p.Path.String(), fmt.Sprintf("limit %d: an acquire of %d finds %d", i, take[i], ideal.Tokens)
			}
			ideal.Tokens -= take[i]
		}
		ideal.Tokens -= max(change, 0)
		slack := int64(0)
		if s.leaveSlack && p.Path == plan.Normal {
			slack = plan.Slack(l)
		}
		left := bucket.Balance{Limit: l, Tokens: s.found[i] + p.Fill[i] - p.Cost[i]}
		for _, later := range []int64{0, 1, 7, 100, 1000, 60_000, math.MaxInt32} {
			got, want := bucket.Available(left, after, at+later), bucket.Available(ideal, at, at+later)
			if got > want || got < want-slack {
				return p.Path.String(), fmt.Sprintf(
					"limit %d has %d %d ms later, want %d, or up to %d less",
					i,
					got,
					later,
					want,
					slack,
				)
			}
		}
	}
	return p.Path.String(), ""
}

// TestNetDemand compares the arithmetic of batches, of any requests and after any other writes, with an ideal
// bucket's.
func TestNetDemand(t *testing.T) {
	skipOnLocal(t)
	t.Parallel()
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		for range 50 {
			s := drawStream(t)
			path, wrong := s.flows(plan.Choose)
			if seen[path]++; wrong != "" {
				t.Fatalf("%s: %s\n%+v", path, wrong, s)
			}
		}
	})
	t.Log(seen)
	for _, p := range []plan.Path{plan.Normal, plan.Retry, plan.Adjust} {
		if seen[p.String()] == 0 {
			t.Errorf("no %v was chosen whose condition held", p)
		}
	}
}

// TestNetDemandSees is TestNetDemand's negative control: a choice that nets what is given back with what is
// taken, and so leaves the guards out, is caught.
func TestNetDemandSees(t *testing.T) {
	skipOnLocal(t)
	t.Parallel()
	netting := func(w *plan.Demand, v plan.State, now int64) plan.Plan {
		for i := range w.Take {
			if w.Change != nil && w.Change[i] < 0 {
				both := min(w.Take[i], -w.Change[i])
				w.Take[i], w.Change[i] = w.Take[i]-both, w.Change[i]+both
			}
		}
		return plan.Choose(w, v, now)
	}
	streams := rapid.Custom(drawStream)
	for seed := range 2000 {
		if _, wrong := streams.Example(seed).flows(netting); strings.Contains(wrong, ": an acquire of ") {
			t.Logf("example %d: %s", seed, wrong)
			return
		}
	}
	t.Error("netting was not seen")
}
