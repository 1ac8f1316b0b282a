package region

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

func TestTargets(t *testing.T) {
	tests := map[string]struct {
		pool, floor int64
		demand      []int64
		want        []int64
	}{
		"3:1 above a floor of 5 percent":  {1000, bucket.Floor(1000, 2, 5), []int64{3, 1}, []int64{725, 275}},
		"3:1 above a floor of 10 percent": {1000, bucket.Floor(1000, 2, 10), []int64{3, 1}, []int64{700, 300}},
		"three equal":                     {100, bucket.Floor(100, 3, 5), []int64{7, 7, 7}, []int64{34, 33, 33}},
		"no demand":                       {100, 5, []int64{0, 0, 0}, []int64{34, 33, 33}},
		"one has all demand":              {100, 5, []int64{0, 9, 0}, []int64{5, 90, 5}},
		"fewer tokens than regions":       {2, bucket.Floor(2, 3, 5), []int64{100, 1, 2}, []int64{1, 0, 1}},
		"fewer tokens, no demand":         {2, 0, []int64{0, 0, 0}, []int64{1, 1, 0}},
		"as many tokens as regions":       {3, bucket.Floor(3, 3, 5), []int64{9, 0, 0}, []int64{1, 1, 1}},
		"less than the floors":            {9, 5, []int64{1, 1, 1}, []int64{3, 3, 3}},
		"nothing":                         {0, 0, []int64{1, 2}, []int64{0, 0}},
		"the highest limit, the fastest use": {maxTokens, maxTokens / 20, []int64{math.MaxInt64, math.MaxInt64},
			[]int64{maxTokens / 2, maxTokens / 2}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Targets(test.pool, test.floor, test.demand); !slices.Equal(got, test.want) {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

// TestTargetsDivideAll holds for any demand: all is shared out, nobody is below the floor, and who wants
// more has no less.
func TestTargetsDivideAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := rapid.Int64Range(1, 1<<rapid.IntRange(0, 39).Draw(t, "size")).Draw(t, "whole")
		demand := rapid.SliceOfN(rapid.Int64Range(0, 1<<50), 1, 9).Draw(t, "demand")
		floor := bucket.Floor(whole, len(demand), rapid.Int64Range(0, 50).Draw(t, "percent"))
		targets := Targets(whole, floor, demand)
		sum := int64(0)
		for i, n := range targets {
			sum += n
			if n < floor {
				t.Errorf("%d of %d is below the floor %d", n, whole, floor)
			}
			for j := range i {
				if demand[j] > demand[i] && targets[j] < n || demand[j] < demand[i] && targets[j] > n {
					t.Errorf("demands %d are served with %d", demand, targets)
				}
			}
		}
		if sum != whole {
			t.Errorf("%d quotas are %d, want %d", targets, sum, whole)
		}
	})
}

func TestTriggers(t *testing.T) {
	const window = 10 * time.Second
	for _, test := range []struct {
		left, rate int64
		want       bool
	}{
		{10_000, 400, false}, // 25 s
		{10_000, 600, true},
		{12_000, 600, false}, // 20 s, which are not less than two windows
		{11_999, 600, true},
		{0, 0, false},
		{0, 1, true},
		{-5_000, 1, true}, // in debt
		{math.MaxInt64, 1, false},
		{1, math.MaxInt64, true},
	} {
		if got := exhausted(test.left, test.rate, 2*window); got != test.want {
			t.Errorf("%d left at %d a second: exhausted %v", test.left, test.rate, got)
		}
	}
	for _, test := range []struct {
		configured, target int64
		want               bool
	}{{100, 115, false}, {100, 116, true}, {100, 85, false}, {100, 84, true}, {0, 1, true}, {0, 0, false},
		{maxTokens, 0, true}} {
		if got := drifted(test.configured, test.target, 15); got != test.want {
			t.Errorf("%d is due in place of %d: drifted %v", test.target, test.configured, got)
		}
	}
}

// TestEven has what floors leave over go to the largest demand, one each, and what is reserved for who is
// away stay there.
func TestEven(t *testing.T) {
	for _, test := range []struct {
		pool, floor  int64
		demand, want []int64
	}{
		{2, 0, []int64{0, 7, 1}, []int64{0, 1, 1}},
		{2, 0, []int64{0, 7}, []int64{1, 1}},
		{2, 0, []int64{7}, []int64{1}},
		{100, 33, []int64{1, 1, 9}, []int64{33, 33, 34}},
		{8, 2, []int64{0, 0, 5}, []int64{3, 2, 3}},
		{0, 2, []int64{1}, []int64{0}},
		{3, 2, []int64{1, 1}, []int64{2, 1}},
	} {
		if got := even(test.pool, test.floor, test.demand); !slices.Equal(got, test.want) {
			t.Errorf("%d above a floor of %d for %d: %d, want %d", test.pool, test.floor, test.demand, got, test.want)
		}
	}
}

// TestRaised: if one region holds all that the others do not, a limit may rise by any number of tokens, and
// each region has its new floor at once. Without the reserve it may not.
func TestRaised(t *testing.T) {
	above := func(reserved func(int64, *store.Regions) (int64, bool)) (worst string) {
		for n := int64(2); n <= 6; n++ {
			for _, percent := range []int64{0, 1, 2, 5, 7, 10, 16, 20, 33, 50} {
				regions := &store.Regions{Names: make([]string, n), Floor: percent}
				for whole := int64(1); whole <= 300; whole++ {
					m, tight := reserved(whole, regions)
					maxTokens, rest := m+whole-n*m, whole-n*m // of one region, and for how many more there is a token
					if tight {
						maxTokens = m + min(1, rest)
					}
					for raised := whole + 1; raised <= whole+40; raised++ {
						floor, sum := bucket.Floor(raised, int(n), percent), int64(0)
						for i := range n {
							switch {
							case i == 0:
								sum += max(maxTokens, floor)
							case tight && i < rest:
								sum += max(m+1, floor)
							default:
								sum += max(m, floor)
							}
						}
						if sum > raised {
							worst = fmt.Sprintf("%d regions, a floor of %d %%: %d raised from %d has %d in force", n, percent,
								raised, whole, sum)
						}
					}
				}
			}
		}
		return worst
	}
	if wrong := above(reserve); wrong != "" {
		t.Error(wrong)
	}
	if above(func(whole int64, r *store.Regions) (int64, bool) {
		return bucket.Floor(whole, len(r.Names), r.Floor), false
	}) == "" {
		t.Error("floors alone are enough, so this is no test")
	}
}
