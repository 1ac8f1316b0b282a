package plan

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// t0 is an instant, in ms, at which both limits of bucketOf are at the beginning of a period.
const t0 = 1_700_000_040_000

// none is no bound.
const (
	noLo = math.MinInt64
	noHi = math.MaxInt64
)

// bucketOf is a bucket of 60 and 600 tokens a minute, with these balances in millitokens, as of t0.
func bucketOf(rpm, tpm int64) *bucket.Image {
	return &bucket.Image{
		Refilled: t0, Op: "before", Missing: make([]bool, 2), Balances: []bucket.Balance{
			{Limit: bucket.Per(60, time.Minute), Tokens: rpm}, {Limit: bucket.Per(600, time.Minute), Tokens: tpm},
		},
	}
}

// guards are the bounds of a plan's path.
type guards struct {
	path   Path
	fill   []int64
	lo, hi []int64
	after  string
}

// TestGuards holds under which balances each path applies, for a write a second after the image. A limit gets
// 1 and 10 tokens in that time.
func TestGuards(t *testing.T) {
	for name, test := range map[string]struct {
		img    *bucket.Image
		demand Demand
		state  State
		want   guards
	}{
		"retry: enough for the cost, and room for the refill since": {
			img: bucketOf(30_000, 300_000), demand: Demand{Take: []int64{2000, 0}, Called: t0 + 1000},
			want: guards{Retry, []int64{0, 0}, []int64{2000, noLo}, []int64{59_000, noHi}, ""},
		},
		"normal: with the refill enough for the cost, and all of it claimed": {
			img: bucketOf(1500, 300_000), demand: Demand{Take: []int64{2000, 0}},
			want: guards{Normal, []int64{1000, 10_000}, []int64{1000, noLo}, []int64{59_000, noHi}, ""},
		},
		"normal of both limits": {
			img: bucketOf(1500, 300_000), demand: Demand{Take: []int64{2000, 20_000}},
			want: guards{Normal, []int64{1000, 10_000}, []int64{1000, 10_000}, []int64{59_000, 590_000}, ""},
		},
		"clamped normal: the balance is the image's": {
			img: bucketOf(1500, 595_000), demand: Demand{Take: []int64{2000, 0}},
			want: guards{Normal, []int64{1000, 5000}, []int64{1000, 595_000}, []int64{59_000, 595_000}, ""},
		},
		"clamped normal that leaves slack: the balance may be a little lower": {
			img: bucketOf(1500, 595_000), demand: Demand{Take: []int64{2000, 0}}, state: State{LeaveSlack: true},
			want: guards{Normal, []int64{1000, 4750}, []int64{1000, 594_750}, []int64{59_000, 595_000}, ""},
		},
		"normal above the burst: what is above is cut, exactly": {
			img: bucketOf(1500, 601_000), demand: Demand{Take: []int64{2000, 0}}, state: State{LeaveSlack: true},
			want: guards{Normal, []int64{1000, -1000}, []int64{1000, 601_000}, []int64{59_000, 601_000}, ""},
		},
		"a settle charges into debt": {
			img: bucketOf(0, 300_000), demand: Demand{Change: []int64{2000, 0}, Called: t0 + 1000},
			want: guards{Retry, []int64{0, 0}, []int64{noLo, noLo}, []int64{59_000, noHi}, ""},
		},
		"a settle that is clamped charges by a normal": {
			img: bucketOf(59_500, 300_000), demand: Demand{Change: []int64{2000, 0}, Called: t0 + 1000},
			want: guards{Normal, []int64{500, 10_000}, []int64{59_500, noLo}, []int64{59_500, noHi}, ""},
		},
		"a release": {
			img: bucketOf(1500, 300_000), demand: Demand{Change: []int64{-2000, 0}}, state: State{SoleWriter: true},
			want: guards{Adjust, []int64{0, 0}, []int64{noLo, noLo}, []int64{noHi, noHi}, "before"},
		},
		"a release beside other writers": {
			img: bucketOf(1500, 300_000), demand: Demand{Change: []int64{-2000, 0}},
			want: guards{Adjust, []int64{0, 0}, []int64{noLo, noLo}, []int64{noHi, noHi}, ""},
		},
		"a release that an acquire takes from": {
			img:    bucketOf(1500, 300_000),
			demand: Demand{Take: []int64{3000, 0}, Change: []int64{-2000, 0}, Called: t0 + 1000},
			state:  State{SoleWriter: true},
			want:   guards{Retry, []int64{0, 0}, []int64{1000, noLo}, []int64{57_000, noHi}, "before"},
		},
	} {
		d := test.demand
		d.Shape = &Shape{Limits: []bucket.Limit{test.img.Balances[0].Limit, test.img.Balances[1].Limit}}
		test.state.Image = test.img
		p := Choose(&d, test.state, t0+1000)
		got := guards{p.Path, p.Fill, p.Lo, p.Hi, p.After}
		if p.Decision != Write || got.path != test.want.path || got.after != test.want.after ||
			!slices.Equal(got.fill, test.want.fill) || !slices.Equal(got.lo, test.want.lo) ||
			!slices.Equal(got.hi, test.want.hi) {
			t.Errorf("%s: decision %d,\n%+v, want\n%+v", name, p.Decision, got, test.want)
		}
	}
}

// TestVectorPool: no vector is lent twice before a reset, even if a plan takes more of them than any does, or
// vectors of several lengths. A plan within the bound allocates nothing once an earlier one has done so.
func TestVectorPool(t *testing.T) {
	var pool VectorPool
	for _, lengths := range [][]int{{1}, {2}, {3}, {1, 2, 3}, {0, 3, 2}} {
		pool.reset()
		var lent [][]int64
		for i := range 3 * vectorsPerLimit {
			v := pool.vector(lengths[i%len(lengths)])
			if slices.ContainsFunc(v, func(x int64) bool { return x != 0 }) {
				t.Fatalf("lengths %d: vector %d is %d, want zeros", lengths, i, v)
			}
			for j := range v {
				v[j] = int64(i + 1)
			}
			lent = append(lent, v)
		}
		for i, v := range lent {
			if slices.ContainsFunc(v, func(x int64) bool { return x != int64(i+1) }) {
				t.Errorf("lengths %d: vector %d was lent again: it has %d", lengths, i, v)
			}
		}
	}
	if n := testing.AllocsPerRun(100, func() {
		pool.reset()
		for range vectorsPerLimit {
			pool.vector(3)
		}
	}); n > 0 {
		t.Errorf("a plan allocates %v times", n)
	}
}
