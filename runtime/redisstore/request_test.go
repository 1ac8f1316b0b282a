package redisstore

import (
	"math"
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/text"
	"github.com/sluice-go/sluice/runtime/store"
)

// TestServes: requests share a script call, which carries each limit once, if they have the same buckets with
// the same limits in force.
func TestServes(t *testing.T) {
	one, two := &script{}, &script{}
	alice, bob := &cachedBucket{}, &cachedBucket{}
	before, after, bobs := &limitSet{cachedBucket: alice}, &limitSet{cachedBucket: alice},
		&limitSet{cachedBucket: bob}
	of := func(s *script, all ...*limitSet) *request {
		r := &request{script: s}
		for _, l := range all {
			r.portions = append(r.portions, portion{cachedBucket: l.cachedBucket, inForce: l})
		}
		return r
	}
	c := &call{requests: []*request{of(one, before)}}
	for name, test := range map[string]struct {
		r    *request
		want bool
	}{
		"the same":                        {of(one, before), true},
		"the same bucket by newer limits": {of(one, after), false},
		"another bucket":                  {of(one, bobs), false},
		"another script":                  {of(two, before), false},
		"with a parent":                   {of(one, before, bobs), false},
	} {
		if got := c.serves(test.r); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

// TestDeniedForLess: a refund in the same script call may have left more than a denied request wanted. Its
// error has less than it wanted: "20 of 10 tokens" would be no reason for a denial.
func TestDeniedForLess(t *testing.T) {
	for tokens, want := range map[int64]int64{20_000: 9, 10_000: 9, 9999: 9, 4000: 4, -3000: 0} {
		limit := bucket.Per(60, time.Minute)
		r := &request{retryAfter: []int64{500}, images: []*bucket.Image{{
			Balances: []bucket.Balance{{Limit: limit, Tokens: tokens}},
		}}}
		spec := &store.Spec{Resource: "gpt-4", Limits: []string{"rpm"}}
		r.portions = []portion{{spec: spec, cachedBucket: &cachedBucket{
			resource: &resource{spec: spec}, entity: "user-1", has: []int{0},
		}, cost: []int64{10_000}}}
		e := r.deniedError()
		if e.Requested != 10 || e.Available != want || e.RetryAfter != 500*time.Millisecond {
			t.Errorf("%d millitokens: %v, want %d of 10", tokens, e, want)
		}
	}
}

// TestLongestWait: a wait beyond what a time.Duration holds is the longest one.
func TestLongestWait(t *testing.T) {
	const most = math.MaxInt64 / int64(time.Millisecond)
	for ms, want := range map[int64]time.Duration{
		0: 0, 1500: 1500 * time.Millisecond, most: time.Duration(most) * time.Millisecond,
		most + 1: math.MaxInt64, math.MaxInt64: math.MaxInt64, -1: math.MaxInt64, math.MinInt64: math.MaxInt64,
	} {
		if got := text.Milliseconds(ms); got != want {
			t.Errorf("%d ms are %v, want %v", ms, got, want)
		}
	}
}
