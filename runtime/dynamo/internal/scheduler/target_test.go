package scheduler

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
)

// attempt plans and notes an attempt of unknown outcome for all, whose own balances need a ttl.
func (t *target) attempt(ttl int64, all []*Request) int64 {
	p := plan.Plan{TTL: max(ttl, t.leastTTL(all))}
	t.noteUnknown(p, all)
	return p.TTL
}

// TestTTLTellsAttempts: attempts of unknown outcome share an op, and any one of them may have been applied.
// The bucket's ttl tells which. A charge is reversed under its op and ttl, and one reversal goes to each ttl.
// So no two of them can apply, and none is left out.
func TestTTLTellsAttempts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := []*Request{{}, {}, {}, {}}
		at := &target{}
		byTTL := map[int64][]*Request{}
		for range rapid.IntRange(1, 8).Draw(t, "attempts") {
			if len(all) > 1 && rapid.Bool().Draw(t, "one leaves") {
				all = all[1:]
			}
			ttl := at.attempt(rapid.Int64Range(100, 104).Draw(t, "ttl"), all)
			if others, ok := byTTL[ttl]; ok && !slices.Equal(others, all) {
				t.Fatalf("two attempts for other requests have ttl %d", ttl)
			}
			byTTL[ttl] = all
		}
		reversals := 0
		for s := at.sent; s != nil; s = s.earlier {
			reversals++
			if s.earlier != nil && s.earlier.plan.TTL >= s.plan.TTL {
				t.Fatalf("ttl %d comes after %d", s.plan.TTL, s.earlier.plan.TTL)
			}
		}
		if reversals != len(byTTL) {
			t.Fatalf("%d reversals for attempts of %d ttls", reversals, len(byTTL))
		}
		for ttl, served := range byTTL {
			at.Image = &bucket.Image{TTL: ttl}
			if p, got := at.covered(nil); p.TTL != ttl || !slices.Equal(got, served) {
				t.Fatalf("ttl %d: the plan of %d, for %d requests, want %d", ttl, p.TTL, len(got), len(served))
			}
		}
		at.Image = &bucket.Image{TTL: at.sent.plan.TTL + 1}
		if p, got := at.covered(all); p != &at.plan || !slices.Equal(got, all) {
			t.Fatal("a newer attempt is taken for one of unknown outcome")
		}
	})
}

// TestAttemptsOfTwoWindows: of two attempts for the same requests with one ttl, both are kept if they charge
// different windows, since either may have been applied. Control: of one window, the later replaces the
// first.
func TestAttemptsOfTwoWindows(t *testing.T) {
	all := []*Request{{}}
	for _, test := range []struct {
		first, second int64
		both          bool
	}{{100, 200, true}, {100, 100, false}} {
		at := &target{}
		for _, ends := range []int64{test.first, test.second} {
			at.noteUnknown(plan.Plan{TTL: 5, Ends: []int64{0, ends}}, all)
		}
		if both := at.sent.earlier != nil; both != test.both {
			t.Errorf("windows until %d and %d: both are kept: %t, want %t", test.first, test.second, both, test.both)
		}
		p := at.sent.plan.OfUnknownWindows(test.both)
		want := []int64{0, test.second}
		if test.both { // nothing comes back to a window that is not known
			want = []int64{-1, -1}
		}
		if got := p.ChargedEnds(nil, ""); !slices.Equal(got, want) {
			t.Errorf("charged windows until %d, want %d", got, want)
		}
	}
}

// TestNewestCalendars: an acquire that joins a settle opens windows by its own calendars: those of the
// settle's lease may be hours old.
func TestNewestCalendars(t *testing.T) {
	older, newer := []*bucket.Calendar{{Unit: bucket.Day}}, []*bucket.Calendar{{Unit: bucket.Month}}
	for name, test := range map[string]struct {
		acquires bool
		want     *bucket.Calendar
	}{"with an acquire": {true, newer[0]}, "control: alone": {false, older[0]}} {
		at := &target{windows: older}
		settle := &Request{settle: true, portions: []portion{{target: at, windows: older, cost: []int64{1}}}}
		acquire := &Request{portions: []portion{{target: at, windows: newer, cost: []int64{1}}}}
		all := []*Request{settle}
		if test.acquires {
			all = append(all, acquire)
		}
		at.add(all, 0)
		if got := at.demand.Windows; len(got) != 1 || got[0] != test.want {
			t.Errorf("%s: windows open by %v, want %v", name, got, test.want)
		}
	}
}
