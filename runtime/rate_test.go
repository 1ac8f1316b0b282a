package runtime_test

import (
	"errors"
	"math"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// TestRate: what a Rate leaves out is its capacity, and the period of the schema. Stored, it is in full.
func TestRate(t *testing.T) {
	for _, test := range []struct {
		name string
		rate runtime.Rate
		want runtime.Rate // stored; none if it is refused
	}{
		{"capacity", runtime.Rate{Capacity: 600}, runtime.Rate{600, 600, 600, time.Minute}},
		{"burst", runtime.Rate{Capacity: 600, Burst: 900}, runtime.Rate{600, 900, 600, time.Minute}},
		{"refill", runtime.Rate{Capacity: 600, Refill: 10}, runtime.Rate{600, 600, 10, time.Minute}},
		{"every", runtime.Rate{Capacity: 600, Every: time.Hour}, runtime.Rate{600, 600, 600, time.Hour}},
		{"a millisecond", runtime.Rate{Capacity: 1, Every: time.Millisecond},
			runtime.Rate{1, 1, 1, time.Millisecond}},
		{"no capacity", runtime.Rate{Burst: 600, Refill: 600}, runtime.Rate{}},
		{"negative", runtime.Rate{Capacity: -1}, runtime.Rate{}},
		{"negative refill", runtime.Rate{Capacity: 1, Refill: -1}, runtime.Rate{}},
		{"negative every", runtime.Rate{Capacity: 1, Every: -time.Second}, runtime.Rate{}},
		{"less than a millisecond", runtime.Rate{Capacity: 1, Every: 1500 * time.Microsecond}, runtime.Rate{}},
		{"more than there can be", runtime.Rate{Capacity: math.MaxInt64 / 2}, runtime.Rate{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			stored := &overrides{}
			o := openConfig(t, stored).Entity(user{"1"})
			_, err := o.Set(t.Context(), numbers{TPM: &test.rate}, "")
			if test.want == (runtime.Rate{}) {
				if _, invalid := errors.AsType[*runtime.InvalidError](err); !invalid || stored.written != 0 {
					t.Errorf("%v, and %d written; want an InvalidError", err, stored.written)
				}
				return
			}
			check(t, err, "")
			got, _, err := o.Get(t.Context())
			check(t, err, "")
			equal(t, "stored", *got.TPM, test.want)
		})
	}
}

// TestRateRoundTrip: what is read can be written again. That changes nothing, or drops parts of a token from
// what a bucket holds. The rate of refill stays.
func TestRateRoundTrip(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n, unit := rapid.Int64Range(1, 1_000_000), rapid.SampledFrom([]int64{1, 10, bucket.Milli})
		l := bucket.Limit{
			Capacity: n.Draw(r, "capacity") * unit.Draw(r, "unit of capacity"),
			Refill:   n.Draw(r, "refill") * unit.Draw(r, "unit of refill"),
			Period:   rapid.Int64Range(1, 86_400_000).Draw(r, "period"),
		}
		l.Burst = l.Capacity + rapid.Int64Range(0, 1_000_000).Draw(r, "more")
		if l.Check(0) != "" {
			r.Skip("no limit can be so")
		}
		stored := &overrides{listed: []store.Stored{
			{At: "user-1", Limits: []*bucket.Limit{nil, &l}, Revision: "1"},
		}}
		o := openConfig(t, stored).Entity(user{"1"})
		read, rev, err := o.Get(t.Context())
		check(t, err, "")
		_, err = o.Set(t.Context(), read, rev)
		if _, invalid := errors.AsType[*runtime.InvalidError](err); invalid { // as less than a token
			return
		}
		check(t, err, "")
		got := *stored.listed[0].Limits[1]
		equal(t, "capacity", got.Capacity, l.Capacity/bucket.Milli*bucket.Milli)
		equal(t, "burst", got.Burst, l.Burst/bucket.Milli*bucket.Milli)
		if was, is := big.NewRat(l.Refill, l.Period), big.NewRat(got.Refill, got.Period); was.Cmp(is) != 0 {
			t.Errorf("the rate is %v, was %v", is, was)
		}
	})
}
