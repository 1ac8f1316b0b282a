package prefetch_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-go/sluice/internal/test/redistest"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/redisstore"
	"github.com/sluice-go/sluice/runtime/store"
)

// onRedis is a resource that was generated for Redis, with other numbers.
type onRedis struct {
	redisstore.Scripter
	numbers *store.Spec
}

// Spec implements store.Definition.
func (o *onRedis) Spec() *store.Spec { return o.numbers }

// TestRedis has a process on Redis: most calls make no request, and the bucket has exactly the tokens that
// calls left.
func TestRedis(t *testing.T) { playRedis(t, redistest.New(t)) }

// TestRedisCluster is TestRedis on a cluster.
func TestRedisCluster(t *testing.T) { playRedis(t, redistest.StartCluster(t).New(t)) }

// playRedis is TestRedis on r.
func playRedis(t *testing.T, r *redistest.Redis) {
	t.Helper()
	const calls = 400
	spec := *forBoth(t).Spec()
	limits := []bucket.Limit{bucket.Per(10_000, 366*24*time.Hour), bucket.InWindows(20_000, 24*time.Hour)}
	spec.Kinds = []store.Kind{{
		Name: "project", Prefix: "project-", Parent: store.NoParent, Limits: limits, PerCall: []int64{1, 1},
		Windows: []*bucket.Calendar{nil, {Unit: bucket.Day, Length: 24 * time.Hour.Milliseconds()}},
	}}
	spec.Prefetch = life
	var asked atomic.Int64
	observer := &runtime.Observer{Store: func(_ context.Context, e runtime.StoreEvent) {
		if e.Path == "acquire" {
			asked.Add(1)
		}
	}}
	start := func() *process {
		return openOn(t, redisstore.New(r.Client, redisstore.Prefix(r.Prefix)),
			&onRedis{forBoth(t).(redisstore.Scripter), &spec}, runtime.WithClock(r), runtime.WithObserver(observer))
	}
	p := start()
	for range calls {
		lease, err := p.Acquire(t.Context(), hot(), [2]int64{2, 2})
		if err != nil {
			t.Fatal(err)
		}
		if err := lease.Settle(t.Context(), [2]int64{1, 1}); err != nil {
			t.Fatal(err)
		}
		r.Advance(5 * time.Millisecond)
	}
	p.close(t)
	if n := asked.Load(); n > calls/2 {
		t.Errorf("%d calls asked Redis %d times, want at most half of them", calls, n)
	} else {
		t.Logf("%d calls asked Redis %d times", calls, n)
	}
	other := start()
	defer other.close(t)
	found, err := other.Peek(t.Context(), hot())
	if err != nil {
		t.Fatal(err)
	}
	if want := [2]int64{10_000 - calls, 20_000 - calls}; found.Available != want {
		t.Errorf("%v are left, want %v", found.Available, want)
	}
}
