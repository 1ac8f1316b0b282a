package region

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/runtime/bucket"
)

func TestTargets(t *testing.T) {
	tests := map[string]struct {
		pool, floor int64
		demand      []int64
		want        []int64
	}{
		"3:1 above a floor of 5 percent":                    {1000, bucket.Floor(1000, 2, 5), []int64{3, 1}, []int64{725, 275}},
		"3:1 above a floor of 10 percent":                   {1000, bucket.Floor(1000, 2, 10), []int64{3, 1}, []int64{700, 300}},
		"three equal":                                       {100, bucket.Floor(100, 3, 5), []int64{7, 7, 7}, []int64{34, 33, 33}},
		"no demand":                                         {100, 5, []int64{0, 0, 0}, []int64{34, 33, 33}},
		"one has all demand":                                {100, 5, []int64{0, 9, 0}, []int64{5, 90, 5}},
		"fewer tokens than regions":                         {2, bucket.Floor(2, 3, 5), []int64{100, 1, 2}, []int64{1, 0, 1}},
		"fewer tokens, no demand":                           {2, 0, []int64{0, 0, 0}, []int64{1, 1, 0}},
		"as many tokens as regions":                         {3, bucket.Floor(3, 3, 5), []int64{9, 0, 0}, []int64{1, 1, 1}},
		"fewer tokens than regions, of which some are away": {2, 0, []int64{0, 7}, []int64{1, 1}},
		"a token for each, and the rest for nobody":         {2, 0, []int64{7}, []int64{1}},
		"less than the floors":                              {9, 5, []int64{1, 1, 1}, []int64{3, 3, 3}},
		"nothing":                                           {0, 0, []int64{1, 2}, []int64{0, 0}},
		"the highest limit, the fastest use":                {most, most / 20, []int64{math.MaxInt64, math.MaxInt64}, []int64{most / 2, most / 2}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Targets(test.pool, test.floor, test.demand); !slices.Equal(got, test.want) {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

// TestTargetsShareOutAll holds for any demand: all is shared out, nobody is below the floor, and who wants more has no less.
func TestTargetsShareOutAll(t *testing.T) {
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
			t.Errorf("%d shares are %d, want %d", targets, sum, whole)
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
		if got := exhausted(test.left, test.rate, window); got != test.want {
			t.Errorf("%d left at %d a second: exhausted %v", test.left, test.rate, got)
		}
	}
	for _, test := range []struct {
		configured, due int64
		want            bool
	}{{100, 115, false}, {100, 116, true}, {100, 85, false}, {100, 84, true}, {0, 1, true}, {0, 0, false}, {most, 0, true}} {
		if got := drifted(test.configured, test.due, 15); got != test.want {
			t.Errorf("%d is due in place of %d: drifted %v", test.due, test.configured, got)
		}
	}
}
