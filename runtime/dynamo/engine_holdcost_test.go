package dynamo

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"sync"
	"testing"
	"time"

	"github.com/sluice-go/sluice/gen/testdata/golden/inflight/out"
	"github.com/sluice-go/sluice/internal/test/storetest"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/store"
)

// acme and its user have ids as UUIDs are.
var (
	acme    = inflight.Org{ID: "8d7c1ab4-3c0a-4b0e-9a5f-7f3f1a2b4c5d"}
	someone = inflight.User{ID: "0f1e2d3c-4b5a-4978-8695-a4b3c2d1e0f9", Org: acme}
)

// each is a call that takes of all three limits.
var each = inflight.CallsCost{RPM: 1, Month: 2}

// TestHoldCapacity holds what a call in flight costs, by the engine's own bill: one unit to take a slot and
// one to give it back, for each bucket. A transaction costs two. Nothing is read.
func TestHoldCapacity(t *testing.T) {
	less := inflight.CallsCost{RPM: 1, Month: 1}
	ends := map[string]func(context.Context, *inflight.CallsLease){
		"keep":    func(ctx context.Context, l *inflight.CallsLease) { l.Keep(ctx) },
		"release": func(ctx context.Context, l *inflight.CallsLease) { l.Release(ctx) },
		"settle":  func(ctx context.Context, l *inflight.CallsLease) { _ = l.Settle(ctx, less) },
	}
	for name, test := range map[string]struct {
		who       inflight.CallsEntity
		take, end bill
	}{
		"a bucket":       {acme, bill{1, 1, 0}, bill{1, 1, 0}},
		"a chain of two": {someone, bill{1, 4, 0}, bill{2, 2, 0}},
	} {
		for how, end := range ends {
			t.Run(name+", "+how, func(t *testing.T) {
				inFlight(t, func(t *testing.T, a *airfield) {
					t.Helper()
					lim := a.open(t)
					take(t, lim.Calls, test.who, each).Keep(t.Context())
					a.billed()
					for range 3 {
						elapse(time.Second)
						lease := take(t, lim.Calls, test.who, each)
						a.costs(t, "a take", test.take)
						elapse(time.Second)
						end(t.Context(), lease)
						a.costs(t, "the end", test.end)
					}
					if s := a.slots(t, acme.String(), inflight.Calls); s.free != 20 {
						t.Errorf("%+v after all leases ended", s)
					}
				})
			})
		}
	}
}

// TestHoldItemSize: an item of a limit that refills, one with windows and one in flight, at its most, takes
// less than a write unit by far.
func TestHoldItemSize(t *testing.T) {
	inFlight(t, func(t *testing.T, a *airfield) {
		t.Helper()
		elapse(27 * 365 * 24 * time.Hour) // a bubble begins in 2000
		lim := a.open(t)
		var open []*inflight.CallsLease
		for range 20 {
			open = append(open, take(t, lim.Calls, inflight.CallsEntity(someone), each))
			elapse(3 * time.Second)
		}
		table := storetest.Table{Client: a.client, Name: a.table}
		for _, entity := range []string{someone.String(), acme.String()} {
			got := itemSize(table.Get(t, storetest.BucketKey(entity, inflight.Calls)))
			if t.Logf("%s: %d bytes", entity, got); got > 700 || got < 600 {
				t.Errorf("%s takes %d bytes, want 600 to 700", entity, got)
			}
		}
		for _, lease := range open {
			lease.Keep(t.Context())
		}
	})
}

// TestHoldLazyPairs: with lazy settles, a busy bucket pays one unit a call, and a chain one transaction.
func TestHoldLazyPairs(t *testing.T) {
	const pairs = 50
	for name, test := range map[string]struct {
		who  inflight.CallsEntity
		want bill
	}{
		"a bucket":       {acme, bill{pairs, pairs, 0}},
		"a chain of two": {someone, bill{pairs, 4 * pairs, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			inFlight(t, func(t *testing.T, a *airfield) {
				t.Helper()
				lim := a.open(t, runtime.WithCallDefaults(runtime.LazySettle(true)))
				lease := take(t, lim.Calls, test.who, each)
				a.billed()
				for range pairs {
					elapse(20 * time.Millisecond)
					lease.Keep(t.Context())
					elapse(20 * time.Millisecond)
					lease = take(t, lim.Calls, test.who, each)
				}
				a.costs(t, "50 calls", test.want)
				if s := a.slots(t, acme.String(), inflight.Calls); s.free != 19 || s.used != pairs+1 {
					t.Errorf("%+v while one call runs", s)
				}
			})
		})
	}
}

// TestHoldDenialCosts: a full limit denies without a request if the bucket was seen within a second, and by
// one read otherwise. A process that never saw the bucket reads it once, too.
func TestHoldDenialCosts(t *testing.T) {
	inFlight(t, func(t *testing.T, a *airfield) {
		t.Helper()
		lim, other := a.open(t), a.open(t)
		user := inflight.User{ID: "1"}
		held := take(t, lim.Slots, inflight.SlotsEntity(user), inflight.SlotsCost{Parallel: 5})
		a.billed()
		deny := func(what string, by *inflight.Limiter, want bill) {
			t.Helper()
			_, err := by.Slots.Acquire(t.Context(), user, inflight.SlotsCost{})
			denied, ok := errors.AsType[*store.DeniedError](err)
			if !ok || denied.RetryAfter != time.Second || denied.Available != 0 {
				t.Errorf("%s: %+v, want a denial for a second", what, err)
			}
			a.costs(t, what, want)
		}
		for range 100 {
			deny("a denial at once", lim, bill{})
		}
		elapse(999 * time.Millisecond)
		deny("a denial 999 ms later", lim, bill{})
		elapse(2 * time.Millisecond)
		deny("a denial after more than a second", lim, bill{1, 0, 1})
		deny("the next denial", lim, bill{})
		_, err := other.Slots.Acquire(t.Context(), user, inflight.SlotsCost{})
		if !isA[*store.DeniedError](err) {
			t.Errorf("another process: %v, want a denial", err)
		}
		if got := a.billed(); got.write != 0 {
			t.Errorf("another process's first denial cost %+v, want no write", got)
		}
		deny("another process's next denial", other, bill{})
		held.Keep(t.Context())
	})
}

// TestHoldExtensionCosts: 50 open leases of a process are extended for one unit a minute and bucket, over
// ten minutes. So are those of each of four processes that hold slots of one bucket, but for the few that
// meet. They extend at instants of their own, and read the bucket first.
func TestHoldExtensionCosts(t *testing.T) {
	const leases, minutes = 50, 10
	for name, test := range map[string]struct {
		who       inflight.CallsEntity
		buckets   int
		processes int
		most      float64 // units a minute, bucket and process
	}{
		"a bucket":                 {acme, 1, 1, 1},
		"a chain of two":           {someone, 2, 1, 1},
		"a bucket, 4 processes":    {acme, 1, 4, 1.25},
		"two buckets, 4 processes": {someone, 2, 4, 1.25},
	} {
		t.Run(name, func(t *testing.T) {
			inFlight(t, func(t *testing.T, a *airfield) {
				t.Helper()
				raise(t, a, int64(leases*test.processes))
				a.engine.Faults().Latency(memdynamo.LogNormal(2*time.Millisecond, 0.5))
				var open []*inflight.CallsLease // a lease that nobody refers to would end
				for range test.processes {
					lim := a.open(t)
					for range leases {
						open = append(open, take(t, lim.Calls, test.who, inflight.CallsCost{}))
						elapse(500 * time.Millisecond)
					}
				}
				nextMinute(0)
				a.billed()
				bound, sum := test.most*float64(test.buckets*test.processes), bill{}
				for n := range minutes {
					nextMinute(0)
					got := a.billed()
					sum = bill{sum.requests + got.requests, sum.write + got.write, sum.read + got.read}
					if reads := 2 * float64(test.buckets*(test.processes-1)); got.write > bound || got.read > 2*reads {
						t.Errorf("minute %d: %+v, want %v units at most", n, got, bound)
					}
				}
				if s := a.slots(t, acme.String(), inflight.Calls); s.free != 0 || sum.write < minutes {
					t.Errorf("%+v after extensions for %+v", s, sum)
				}
				t.Logf("%d leases: %+v in %d minutes", len(open), sum, minutes)
				for _, lease := range open {
					lease.Keep(t.Context())
				}
				if s := a.slots(t, acme.String(), inflight.Calls); s.free != s.burst {
					t.Errorf("%+v after all leases ended", s)
				}
			})
		})
	}
}

// raise has acme and its user have so many slots.
func raise(t testing.TB, a *airfield, n int64) {
	t.Helper()
	lim := a.open(t)
	for _, who := range []inflight.CallsEntity{acme, someone} {
		config := lim.Config.Calls.Entity(who)
		if _, err := config.Set(t.Context(), inflight.CallsLimits{Parallel: &n}, ""); err != nil {
			t.Fatal(err)
		}
	}
}

// TestHoldShortCalls: calls of half a minute cost nothing but their takes and ends, whenever they begin.
func TestHoldShortCalls(t *testing.T) {
	inFlight(t, func(t *testing.T, a *airfield) {
		t.Helper()
		lim := a.open(t)
		take(t, lim.Calls, inflight.CallsEntity(acme), each).Keep(t.Context())
		for second := range 60 {
			nextMinute(time.Duration(second) * time.Second)
			a.billed()
			lease := take(t, lim.Calls, inflight.CallsEntity(acme), each)
			elapse(30*time.Second - time.Millisecond)
			lease.Keep(t.Context())
			a.costs(t, fmt.Sprintf("a call from second %d", second), bill{2, 2, 0})
		}
	})
}

// TestHoldSweepCosts: the first acquire of a minute sweeps what a dead process held, for no write of its own.
func TestHoldSweepCosts(t *testing.T) {
	for name, held := range map[string]int64{"room is left": 3, "it was full": 5} {
		t.Run(name, func(t *testing.T) {
			inFlight(t, func(t *testing.T, a *airfield) {
				t.Helper()
				user, all := inflight.SlotsEntity(inflight.User{ID: "1"}), inflight.SlotsCost{Parallel: 5}
				wire := &line{API: a.client}
				dying, lim := a.process(t, wire), a.open(t)
				take(t, lim.Slots, user, all).Keep(t.Context())
				lost := take(t, dying.Slots, user, inflight.SlotsCost{Parallel: held})
				wire.die(dying)
				goruntime.KeepAlive(lost)
				if _, err := lim.Slots.Acquire(t.Context(), user, all); !isA[*store.DeniedError](err) {
					t.Errorf("%v, want a denial", err)
				}
				nextMinute(time.Minute)
				a.billed()
				lease := take(t, lim.Slots, user, all)
				a.costs(t, "the first acquire after the holds' end", bill{1, 1, 0})
				if s := a.slots(t, "user-1", inflight.Slots); s.free != 0 || s.used != 10+held {
					t.Errorf("%+v after the sweep", s)
				}
				lease.Keep(t.Context())
			})
		})
	}
}

// TestSweptIsReported: the observer gets what a dead process held, by one write of a bucket and by a
// transaction, once.
func TestSweptIsReported(t *testing.T) {
	for name, test := range map[string]struct {
		who  inflight.CallsEntity
		want int64
	}{"a bucket": {acme, 5}, "a chain of two": {someone, 10}} {
		t.Run(name, func(t *testing.T) {
			inFlight(t, func(t *testing.T, a *airfield) {
				t.Helper()
				var mu sync.Mutex
				var got int64
				lim := a.open(t, runtime.WithObserver(&runtime.Observer{
					Store: func(_ context.Context, e runtime.StoreEvent) {
						mu.Lock()
						defer mu.Unlock()
						got += e.Swept
					},
				}))
				wire := &line{API: a.client}
				dying := a.process(t, wire)
				lost := take(t, dying.Calls, test.who, inflight.CallsCost{Month: 2, Parallel: 3})
				wire.die(dying)
				goruntime.KeepAlive(lost)
				nextMinute(time.Minute)
				for range 3 {
					take(t, lim.Calls, test.who, each).Keep(t.Context())
				}
				mu.Lock()
				defer mu.Unlock()
				if got != test.want {
					t.Errorf("%d tokens were swept, want %d", got, test.want)
				}
			})
		})
	}
}

// die kills a process: no request of it gets through any more. Its goroutines end, so that the bubble can.
func (l *line) die(process *inflight.Limiter) {
	l.mu.Lock()
	l.dead = true
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = process.Close(ctx) // which tells the table nothing
}
