package dynamo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/scheduler"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/store"
)

// idler is a process with lazy settles, in a bubble of testing/synctest and on its time. project-1's bucket
// has 1000 tokens an hour, those of its users 100.
type idler struct {
	*engine
	*house
	m    *meter
	wire *network
	gate *gate // of project-1
}

var solo = member{project: "1"}

func idle(t *testing.T, f func(*testing.T, *idler)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		_, embeddings := generated(t)
		hour := func(n int64) []bucket.Limit { return []bucket.Limit{bucket.Per(n, time.Hour)} }
		i := &idler{engine: &engine{client: memdynamo.New().Client(), ttl: 24 * time.Hour}}
		i.table = dynamotest.Table(t, i.client, dynamotest.Streamless(operator.Table))
		client, w := i.withNetwork0()
		i.wire, i.m = w, &meter{API: client}
		i.gate = &gate{API: i.m, entity: "project-1"}
		i.house = i.onBubblesTime(t, i.gate, family(embeddings, store.CascadeAtomic, hour(1000), hour(100)))
		f(t, i)
		if err := i.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// onBubblesTime is a house whose clock is the bubble's, and whose settles are lazy.
func (e *engine) onBubblesTime(t testing.TB, api wire.API, def store.Definition) *house {
	t.Helper()
	return e.houseWith(t, api, []runtime.Option{
		runtime.WithClock(offsetClock(0)), runtime.WithCallDefaults(runtime.LazySettle(true)),
	}, def)
}

// wire0 is the engine's wire, which the field hides.
func (i *idler) withNetwork0() (*dynamodb.Client, *network) { return i.engine.withNetwork() }

// spent holds what was called for since the last time.
func (i *idler) spent(t *testing.T, want usage) {
	t.Helper()
	if got := i.m.take(); got != want {
		t.Errorf("cost %+v, want %+v", got, want)
	}
}

func (i *idler) settle(t *testing.T, lease *runtime.Lease[tokens], n int64) {
	t.Helper()
	if err := lease.Settle(t.Context(), tokens{n}); err != nil {
		t.Error(err)
	}
}

// reported holds how acquires and what closed them ended, and forgets it. Those that one write served are
// told in any order.
func (i *idler) reported(t *testing.T, want ...string) {
	t.Helper()
	i.Mu.Lock()
	defer i.Mu.Unlock()
	slices.Sort(i.Verbs)
	if slices.Sort(want); !slices.Equal(i.Verbs, want) {
		t.Errorf("reported %q, want %q", i.Verbs, want)
	}
	i.Verbs = nil
}

// elapse lets d pass, and what is due then happen.
func elapse(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // in a bubble of testing/synctest
	synctest.Wait()
}

// TestLazyPairs: a reserve and its settle cost one write of a bucket where another acquire follows.
func TestLazyPairs(t *testing.T) {
	const pairs = 10
	for name, test := range map[string]struct {
		who  member
		pair usage
	}{
		"a bucket": {solo, usage{Calls: 1, Writes: 1, Units: 1}},
		"a chain":  {alicesHome, usage{Calls: 1, Writes: 1, Units: 4}},
	} {
		t.Run(name, func(t *testing.T) {
			idle(t, func(t *testing.T, i *idler) {
				t.Helper()
				lease := i.acquire(t, test.who, 5)
				i.m.take()
				for range pairs {
					i.settle(t, lease, 3)
					lease = i.acquire(t, test.who, 5)
					i.spent(t, test.pair)
				}
				i.holding(t, fmt.Sprint("project-1 ", 1000-5-3*pairs, " ", 5+3*pairs))
			})
		})
	}
}

// TestLazyWhileBusy: settles that come while a write is in flight are in the next one, with who else has
// come.
func TestLazyWhileBusy(t *testing.T) {
	idle(t, func(t *testing.T, i *idler) {
		t.Helper()
		var held []*runtime.Lease[tokens]
		for range 8 {
			held = append(held, i.acquire(t, solo, 5))
		}
		i.m.take()
		i.gate.shut()
		var wg sync.WaitGroup
		wg.Go(func() { i.acquire(t, solo, 5) })
		synctest.Wait()
		for n, lease := range held {
			i.settle(t, lease, int64(n+1))
		}
		wg.Go(func() { i.acquire(t, solo, 5) })
		synctest.Wait()
		i.gate.open()
		wg.Wait()
		i.spent(t, usage{Calls: 2, Writes: 2, Units: 2})
		i.holding(t, "project-1 954 46")
		elapse(scheduler.DeferFor)
		i.spent(t, usage{})
	})
}

// TestLazyWhileIdle: without other writes, all settles of a bucket go together once the first has waited as
// long as it may. Until then no outcome is reported, and the bucket is as the acquire left it.
func TestLazyWhileIdle(t *testing.T) {
	idle(t, func(t *testing.T, i *idler) {
		t.Helper()
		a, b, c, d := i.acquire(t, solo, 10), i.acquire(t, solo, 10), i.acquire(t, solo, 10), i.acquire(t, solo, 10)
		i.reported(t, "acquired", "acquired", "acquired", "acquired")
		i.m.take()
		began := time.Now()
		i.settle(t, a, 4)
		a.Release(t.Context())
		i.settle(t, d, 10) // which is nothing to write
		i.reported(t, "settled")
		elapse(scheduler.DeferFor / 2)
		i.settle(t, b, 30)
		c.Release(t.Context())
		elapse(scheduler.DeferFor/2 - time.Millisecond)
		if took := time.Since(began); took != scheduler.DeferFor-time.Millisecond {
			t.Errorf("to settle took %v", took)
		}
		i.spent(t, usage{})
		i.reported(t)
		if left := a.Remaining()[0]; left != 990 {
			t.Errorf("%d remain, want 990", left)
		}
		elapse(time.Millisecond)
		i.spent(t, usage{Calls: 1, Writes: 1, Units: 1})
		i.reported(t, "settled", "settled", "released")
		i.holding(t, "project-1 956 44")
		for _, lease := range []*runtime.Lease[tokens]{a, b, c} {
			if left := lease.Remaining()[0]; left != 956 {
				t.Errorf("%d remain, want 956", left)
			}
		}

		// A second time, the same.
		e := i.acquire(t, solo, 1)
		i.m.take()
		e.Release(t.Context())
		elapse(scheduler.DeferFor - time.Millisecond)
		i.spent(t, usage{})
		elapse(time.Millisecond)
		i.spent(t, usage{Calls: 1, Writes: 1, Units: 1})
	})
}

// TestLazyClose: Close has what is owed written, and does not wait for when it would be due. Nor does what
// settles then.
func TestLazyClose(t *testing.T) {
	idle(t, func(t *testing.T, i *idler) {
		t.Helper()
		a, b := i.acquire(t, alicesHome, 10), i.acquire(t, alicesHome, 10)
		began := time.Now()
		i.settle(t, a, 4)
		if err := i.Close(t.Context()); err != nil {
			t.Error(err)
		}
		i.holding(t, "user-1 86 14", "project-1 986 14")
		b.Release(t.Context())
		if err := i.Close(t.Context()); err != nil {
			t.Error(err)
		}
		i.holding(t, "user-1 96 4", "project-1 996 4")
		if took := time.Since(began); took != 0 {
			t.Errorf("Close took %v", took)
		}
	})
}

// TestLazyCloseBehindAnAcquire: what is owed is written before Close returns, though a caller is at work on
// the bucket.
func TestLazyCloseBehindAnAcquire(t *testing.T) {
	idle(t, func(t *testing.T, i *idler) {
		t.Helper()
		lease := i.acquire(t, solo, 10)
		i.gate.shut()
		var wg sync.WaitGroup
		wg.Go(func() { i.acquire(t, solo, 5) })
		synctest.Wait()
		i.settle(t, lease, 4)
		closed := false
		wg.Go(func() {
			if err := i.Close(t.Context()); err != nil {
				t.Error(err)
			}
			closed = true
		})
		synctest.Wait()
		if closed {
			t.Error("Close has returned, and the settle is not written")
		}
		i.gate.open()
		wg.Wait()
		i.holding(t, "project-1 991 9")
	})
}

// TestLazyIsThere: tokens given back lazily are there for the next acquire, by the same write, whatever the
// process has seen before.
func TestLazyIsThere(t *testing.T) {
	for name, who := range map[string]member{"a bucket": solo, "a chain": alicesHome} {
		t.Run(name, func(t *testing.T) {
			idle(t, func(t *testing.T, i *idler) {
				t.Helper()
				most := int64(100)
				if who == solo {
					most = 1000
				}
				lease := i.acquire(t, who, most)
				if _, err := i.at[0].Acquire(t.Context(), who, tokens{most}); !isA[*store.DeniedError](err) {
					t.Fatal(err)
				}
				i.m.take()
				lease.Release(t.Context())
				i.acquire(t, who, most)
				if writes := i.m.take().Writes; writes != 1 {
					t.Errorf("%d writes, want 1", writes)
				}
				synctest.Wait()
				slices.Sort(i.Verbs)
				i.reported(t, "acquired", "acquired", "denied", "released")
				if who != solo { // a transaction returns no image that denies
					return
				}
				if _, err := i.at[0].Acquire(t.Context(), who, tokens{most}); !isA[*store.DeniedError](err) {
					t.Fatal(err)
				}
				if got := i.m.take(); got.Calls != 0 {
					t.Errorf("%d calls for a denial after the release was written, want none", got.Calls)
				}
			})
		})
	}
}

// TestLazyUnderWay: it is there also while it is on its way.
func TestLazyUnderWay(t *testing.T) {
	idle(t, func(t *testing.T, i *idler) {
		t.Helper()
		lease := i.acquire(t, solo, 1000)
		i.gate.shut()
		lease.Release(t.Context())
		elapse(scheduler.DeferFor)
		var wg sync.WaitGroup
		var err error
		wg.Go(func() { _, err = i.at[0].Acquire(t.Context(), solo, tokens{1000}) })
		synctest.Wait()
		i.gate.open()
		wg.Wait()
		if err != nil {
			t.Errorf("what has been released is not there: %v", err)
		}
	})
}

// TestLazyDenied: a denial keeps nothing from being settled.
func TestLazyDenied(t *testing.T) {
	for name, who := range map[string]member{"a bucket": solo, "a chain": alicesHome} {
		t.Run(name, func(t *testing.T) {
			idle(t, func(t *testing.T, i *idler) {
				t.Helper()
				lease := i.acquire(t, who, 90)
				i.settle(t, lease, 91)
				most := int64(20)
				if who == solo {
					most = 920
				}
				if _, err := i.at[0].Acquire(t.Context(), who, tokens{most}); !isA[*store.DeniedError](err) {
					t.Error(err)
				}
				elapse(scheduler.DeferFor)
				slices.Sort(i.Verbs) // who is denied need not be told first
				i.reported(t, "acquired", "denied", "settled")
				i.holding(t, "project-1 909 91")
				if who != solo {
					i.holding(t, "user-1 9 91")
				}
			})
		})
	}
}

// TestLazyOnceAfterItsCaller: the acquirer of a transaction of unknown outcome leaves, and its charge is
// given back. The lazy settle in it takes 6 more. It is not written again under another op: it would count
// twice, and hide the write that is to be given back.
func TestLazyOnceAfterItsCaller(t *testing.T) {
	idle(t, func(t *testing.T, i *idler) {
		t.Helper()
		lease := i.acquire(t, alicesHome, 10)
		throttled := reject("ThrottlingException", "")
		i.wire.expect(append([]mishap{loseReply}, slices.Repeat([]mishap{throttled}, 40)...)...)
		i.settle(t, lease, 16)
		ctx, cancel := context.WithTimeout(t.Context(), 60*time.Millisecond)
		defer cancel()
		if _, err := i.at[0].Acquire(ctx, alicesHome, tokens{10}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want an error of the deadline", err)
		}
		elapse(2 * time.Second)
		i.wire.expect()
		if err := i.Close(t.Context()); err != nil {
			t.Error(err)
		}
		i.holding(t, "project-1 984 16")
		i.holding(t, "user-1 84 16")
	})
}

// TestLazyOnce: whatever befalls the write that a lazy settle rides on, what takes is charged once, and what
// gives back at most once. How it ended is reported to the observer.
func TestLazyOnce(t *testing.T) {
	for name, test := range map[string]struct {
		who      member
		joins    bool // on an acquire of 10
		actual   int64
		mishaps  []mishap
		consume  int64 // of the project, in the end
		reported bool  // that it is not known
	}{
		"down, alone, lost reply":    {solo, false, 4, []mishap{loseReply}, 4, true},
		"down, alone, lost request":  {solo, false, 4, []mishap{loseRequest}, 10, true},
		"down, alone, throttled":     {solo, false, 4, []mishap{reject("ThrottlingException", "")}, 4, false},
		"up, alone, lost reply":      {solo, false, 16, []mishap{loseReply}, 16, false},
		"up, alone, lost request":    {solo, false, 16, []mishap{loseRequest}, 16, false},
		"down, riding, lost reply":   {solo, true, 4, []mishap{loseReply}, 14, true},
		"down, riding, lost request": {solo, true, 4, []mishap{loseRequest}, 20, true},
		"up, riding, lost reply":     {solo, true, 16, []mishap{loseReply}, 26, false},
		"up, riding, lost request":   {solo, true, 16, []mishap{loseRequest}, 26, false},
		"chain, down, alone":         {alicesHome, false, 4, []mishap{loseReply}, 4, true},
		"chain, down, riding":        {alicesHome, true, 4, []mishap{pass}, 14, false},
		"chain, down, lost reply":    {alicesHome, true, 4, []mishap{loseReply}, 14, false}, // by its token
		"chain, down, lost request":  {alicesHome, true, 4, []mishap{loseRequest}, 14, false},
		"chain, up, lost reply":      {alicesHome, true, 16, []mishap{loseReply}, 26, false},
		"chain, down, conflict": {alicesHome, true, 4, []mishap{cancel("TransactionConflict", "None")}, 14,
			false},
		"chain, down, conflict, twice": {alicesHome, true, 4, []mishap{cancel("TransactionConflict", "None"),
			cancel("None", "TransactionConflict")}, 14, false},
		"chain, down, throttled": {alicesHome, true, 4, []mishap{cancel("ThrottlingError", "None")}, 14,
			false},
		"chain, down, lost, and fatal": {alicesHome, true, 4,
			[]mishap{loseReply, reject("AccessDeniedException", "")}, 4, true},
		"chain, up, lost twice, 3rd ok": {alicesHome, true, 16, []mishap{loseRequest, loseReply}, 26, false},
	} {
		t.Run(name, func(t *testing.T) {
			idle(t, func(t *testing.T, i *idler) {
				t.Helper()
				lease := i.acquire(t, test.who, 10)
				i.wire.expect(test.mishaps...)
				i.settle(t, lease, test.actual)
				if test.joins {
					_, err := i.at[0].Acquire(t.Context(), test.who, tokens{10})
					if fatal := isA[*store.SetupError](err); err != nil && !fatal {
						t.Error(err)
					}
				}
				if err := i.Close(t.Context()); err != nil {
					t.Error(err)
				}
				i.holding(t, fmt.Sprint("project-1 ", 1000-test.consume, " ", test.consume))
				if test.who == alicesHome && name != "chain, down, alone" {
					i.holding(t, fmt.Sprint("user-1 ", 100-test.consume, " ", test.consume))
				}
				var failed error
				for _, err := range i.Failures {
					if !isA[*store.SetupError](err) {
						failed = err
					}
				}
				if _, ok := errors.AsType[*store.UnavailableError](failed); ok != test.reported || !ok && failed != nil {
					t.Errorf("reported %v", failed)
				}
			})
		})
	}
}

// TestLazyGivesUp: where the store does not answer, it is told at the settle time-out.
func TestLazyGivesUp(t *testing.T) {
	idle(t, func(t *testing.T, i *idler) {
		t.Helper()
		lease := i.acquire(t, solo, 10)
		throttle := reject("ThrottlingException", "")
		i.wire.expect(slices.Repeat([]mishap{throttle}, 10_000)...)
		began := time.Now()
		i.settle(t, lease, 20)
		for i.failures() == 0 {
			elapse(time.Second)
			if time.Since(began) > time.Minute {
				t.Fatal("nothing is reported")
			}
		}
		if took := time.Since(began); took > 21*time.Second {
			t.Errorf("reported after %v", took)
		}
		if !isA[*store.UnavailableError](i.Failures[0]) {
			t.Error(i.Failures[0])
		}
		i.wire.expect()
	})
}

func (i *idler) failures() int {
	i.Mu.Lock()
	defer i.Mu.Unlock()
	return len(i.Failures)
}

// TestLazyDeleted: to a bucket that has been deleted nothing is given back, and what settles take is.
func TestLazyDeleted(t *testing.T) {
	for name, test := range map[string]struct {
		actual int64
		want   string
	}{"down": {4, "project-1 0 0"}, "up": {15, "project-1 995 5"}} {
		t.Run(name, func(t *testing.T) {
			idle(t, func(t *testing.T, i *idler) {
				t.Helper()
				lease := i.acquire(t, solo, 10)
				if _, err := i.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
					TableName: &i.table, Key: item.BucketKey("project-1", "embeddings"),
				}); err != nil {
					t.Fatal(err)
				}
				i.settle(t, lease, test.actual)
				elapse(scheduler.DeferFor)
				i.reported(t, "acquired", "settled")
				i.holding(t, test.want)
			})
		})
	}
}

// TestMixtureIsExact has processes acquire, settle and release, lazily or not, on a slow network. The calls
// are of single buckets, chains and several buckets. In the end each bucket was charged what its leases stand
// for, and holds the rest. With callers who leave it may be more, as what they leave cannot be given back
// where others have written meanwhile.
func TestMixtureIsExact(t *testing.T) {
	const processes, workers, rounds = 3, 24, 12
	seeds := longform.Histories[uint64](t, "histories of each kind", 4, 1)
	// so that nothing comes back
	year := func(n int64) []bucket.Limit { return []bucket.Limit{bucket.Per(n, 366*24*time.Hour)} }
	for name, cascade := range map[string]store.Cascade{"atomic": store.CascadeAtomic,
		"compensated": store.CascadeCompensated} {
		for seed := range uint64(8) {
			leave := seed >= 4
			if seed%4 >= seeds {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d/leaving=%t", name, seed, leave), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					memory := memdynamo.New(memdynamo.WithSeed(seed))
					memory.Faults().Latency(memdynamo.Uniform(time.Millisecond, 4*time.Millisecond))
					memory.Faults().HoldTransactions(time.Millisecond)
					e := &engine{client: memory.Client(), ttl: 24 * time.Hour}
					e.table = dynamotest.Table(t, e.client, dynamotest.Streamless(operator.Table))
					_, embeddings := generated(t)
					var all [processes]*house
					for i := range all {
						all[i] = e.onBubblesTime(t, e.client, family(embeddings, cascade, year(400), year(250)))
					}
					var mu sync.Mutex
					charged := map[string]int64{"project-1": 0, "user-1": 0, "user-2": 0}
					together(t, workers, func(w int) error {
						rng := rand.New(rand.NewPCG(seed, uint64(w)))
						for range rounds {
							h, cost := all[rng.IntN(processes)], 1+rng.Int64N(6)
							chain := [][]string{{"project-1"}, {"user-1", "project-1"}, {"user-2", "project-1"}}[rng.IntN(3)]
							who := member{project: "1"}
							if id, ok := strings.CutPrefix(chain[0], "user-"); ok {
								who.user = id
							}
							budget := time.Minute
							if leave && rng.IntN(3) == 0 {
								budget = time.Duration(1+rng.IntN(20)) * time.Millisecond
							}
							ctx, cancel := context.WithTimeout(t.Context(), budget)
							lease, err := h.at[0].Acquire(ctx, who, tokens{cost}, runtime.LazySettle(rng.IntN(2) == 0))
							cancel()
							if isA[*store.DeniedError](err) || isA[*store.ContendedError](err) ||
								errors.Is(err, context.DeadlineExceeded) {
								continue
							}
							if err != nil {
								return err
							}
							switch rng.IntN(3) {
							case 0:
								lease.Release(t.Context())
								cost = 0
							case 1:
								cost = 1 + rng.Int64N(8)
								if err := lease.Settle(t.Context(), tokens{cost}); err != nil {
									return err
								}
							}
							mu.Lock()
							for _, entity := range chain {
								charged[entity] += cost
							}
							mu.Unlock()
						}
						return nil
					})
					for _, h := range all {
						if err := h.Close(t.Context()); err != nil {
							t.Error(err)
						}
					}
					for entity, want := range charged {
						item := e.get(t, item.BucketKey(entity, "embeddings"))
						tk, tc, bx := number(item["b_rps_tk"]), number(item["b_rps_tc"]), number(item["b_rps_bx"])
						if lost := tc - want*bucket.Milli; lost < 0 || lost > 0 && !leave || tk != bx-tc {
							t.Errorf(
								"%s was charged %d and holds %d of %d, want %d charged",
								entity,
								tc,
								tk,
								bx,
								want*bucket.Milli,
							)
						}
					}
				})
			})
		}
	}
}
