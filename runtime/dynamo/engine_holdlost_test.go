package dynamo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-go/sluice/gen/testdata/golden/inflight/out"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/store"
)

// TestHoldOfALostReply: an acquire takes a slot, and its reply is lost. Its process goes on, and cannot give
// it back. The slot is back two minutes later at the latest, whether anybody calls meanwhile or not.
func TestHoldOfALostReply(t *testing.T) {
	for _, busy := range []bool{false, true} {
		for _, second := range []int{1, 29, 31, 58} {
			t.Run(fmt.Sprintf("busy %t, at second %d", busy, second), func(t *testing.T) {
				inFlight(t, func(t *testing.T, a *airfield) {
					t.Helper()
					loseSlot(t, a, busy, time.Duration(second)*time.Second)
				})
			})
		}
	}
}

// loseSlot plays one case of TestHoldOfALostReply.
func loseSlot(t *testing.T, a *airfield, busy bool, at time.Duration) {
	t.Helper()
	wire := &line{API: a.client}
	lim, other := a.process(t, wire), a.open(t)
	user := inflight.SlotsEntity(inflight.User{ID: "1"})
	take(t, lim.Slots, user, inflight.SlotsCost{}).Keep(t.Context())
	take(t, other.Slots, user, inflight.SlotsCost{}).Keep(t.Context())
	nextMinute(at)
	var requests atomic.Int64
	a.engine.Faults().Script(func(memdynamo.Request) memdynamo.Fault {
		if requests.Add(1) == 1 {
			return memdynamo.LoseReply
		}
		return memdynamo.LoseRequest
	})
	if _, err := lim.Slots.Acquire(t.Context(), user, inflight.SlotsCost{}); !isA[*store.UnavailableError](err) {
		t.Fatalf("%v, want that the store did not answer", err)
	}
	wire.mu.Lock()
	wire.until = time.Now().Add(20 * time.Second) // else the process would give the slot back
	wire.mu.Unlock()
	a.engine.Faults().Clear()
	if s := a.slots(t, "user-1", inflight.Slots); s.free != 4 || s.used != 3 {
		t.Fatalf("%+v after the lost reply, want a slot taken", s)
	}
	for began := time.Now(); time.Since(began) < 2*time.Minute; {
		elapse(10 * time.Second)
		if busy {
			take(t, other.Slots, user, inflight.SlotsCost{}).Keep(t.Context())
		}
	}
	var all []*inflight.SlotsLease
	for range 5 {
		all = append(all, take(t, other.Slots, user, inflight.SlotsCost{}))
	}
	for _, lease := range all {
		lease.Keep(t.Context())
	}
	take(t, lim.Slots, user, inflight.SlotsCost{}).Keep(t.Context())
	if err := lim.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if s := a.slots(t, "user-1", inflight.Slots); s.free != 5 {
		t.Errorf("%+v after all leases ended", s)
	}
}

// TestHoldCreateRace: of 32 calls at once that are the first on a new entity with five slots, exactly five
// are admitted. The processes are one, four, or as many as calls.
func TestHoldCreateRace(t *testing.T) {
	const callers = 32
	for _, processes := range []int{1, 4, callers} {
		for _, wait := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d processes, wait %t", processes, wait), func(t *testing.T) {
				inFlight(t, func(t *testing.T, a *airfield) {
					t.Helper()
					createRace(t, a, processes, callers, wait)
				})
			})
		}
	}
}

// createRace has callers call at once for new entities, one after the other.
func createRace(t *testing.T, a *airfield, processes, callers int, wait bool) {
	t.Helper()
	a.engine.Faults().Latency(memdynamo.LogNormal(2*time.Millisecond, 0.5))
	all := make([]*inflight.Limiter, processes)
	for i := range all {
		all[i] = a.open(t)
	}
	for n := range 10 {
		user := inflight.SlotsEntity(inflight.User{ID: fmt.Sprint(n)})
		var denied atomic.Int64
		var calls sync.WaitGroup
		leases := make([]*inflight.SlotsLease, callers)
		for i := range callers {
			calls.Go(func() {
				from, opts := all[i%processes].Slots, []runtime.CallOption{}
				acquire := from.Acquire
				if wait {
					acquire, opts = from.Wait, []runtime.CallOption{runtime.MaxWait(3 * time.Second)}
				}
				var err error
				leases[i], err = acquire(t.Context(), user, inflight.SlotsCost{}, opts...)
				if isA[*store.DeniedError](err) {
					denied.Add(1)
				} else if err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
		admitted := 0
		for _, lease := range leases {
			if lease != nil {
				admitted++
			}
		}
		if admitted != 5 || denied.Load() != int64(callers-5) {
			t.Errorf("%d admitted and %d denied, want 5 of %d admitted", admitted, denied.Load(), callers)
		}
		if s := a.slots(t, fmt.Sprint("user-", n), inflight.Slots); s.free != 0 || s.used != 5 {
			t.Errorf("%+v after the race", s)
		}
		for _, lease := range leases {
			if lease != nil {
				lease.Keep(t.Context())
			}
		}
	}
}

// TestThrottledExtension: a lease is kept while DynamoDB answers that it has not extended its hold. It is
// lost if that gets no answer.
func TestThrottledExtension(t *testing.T) {
	for name, test := range map[string]struct {
		fault memdynamo.Fault
		lost  bool
	}{"throttled": {memdynamo.Throttle, false}, "no answer": {memdynamo.LoseRequest, true}} {
		t.Run(name, func(t *testing.T) {
			inFlight(t, func(t *testing.T, a *airfield) {
				t.Helper()
				lim := a.open(t)
				lease := take(t, lim.Slots, inflight.SlotsEntity(inflight.User{ID: "1"}), inflight.SlotsCost{})
				ctx := lease.Context(t.Context())
				began := time.Now()
				a.engine.Faults().Script(func(memdynamo.Request) memdynamo.Fault {
					if time.Since(began) < 105*time.Second {
						return test.fault
					}
					return 0
				})
				elapse(125 * time.Second)
				if lost := ctx.Err() != nil; lost != test.lost {
					t.Errorf("lost: %t, want %t", lost, test.lost)
				}
				lease.Keep(t.Context())
			})
		})
	}
}

// TestHoldsOfASlowClock: a process whose clock is behind gives up before others have its slots, extends them
// in time, and looks at DynamoDB's dates for that.
func TestHoldsOfASlowClock(t *testing.T) {
	for _, behind := range []time.Duration{10 * time.Second, 40 * time.Second} {
		for _, cut := range []bool{false, true} {
			t.Run(fmt.Sprint(behind, " behind, cut off ", cut), func(t *testing.T) {
				inFlight(t, func(t *testing.T, a *airfield) {
					t.Helper()
					wire := &line{API: a.client}
					slow, right := a.process(t, wire, runtime.WithClock(offsetClock(-behind))), a.open(t)
					user := inflight.SlotsEntity(inflight.User{ID: "1"})
					take(t, slow.Slots, user, inflight.SlotsCost{}).Keep(t.Context())
					nextMinute(0)
					lease := take(t, slow.Slots, user, inflight.SlotsCost{Parallel: 5})
					ctx := lease.Context(t.Context())
					if cut {
						wire.mu.Lock()
						wire.until = time.Now().Add(5 * time.Minute)
						wire.mu.Unlock()
					}
					var ended, had time.Duration
					for start := time.Now(); time.Since(start) < 4*time.Minute; elapse(time.Second) {
						select {
						case <-ctx.Done():
							ended = cmp.Or(ended, time.Since(start))
						default:
						}
						if other, err := right.Slots.Acquire(t.Context(), user, inflight.SlotsCost{}); err == nil {
							had = cmp.Or(had, time.Since(start))
							other.Keep(t.Context())
						}
					}
					if !cut && ended+had > 0 || cut && (ended == 0 || ended >= had || had > 121*time.Second) {
						t.Errorf("its context ended after %v, others had a slot after %v", ended, had)
					}
					lease.Keep(t.Context())
				})
			})
		}
	}
}

// TestHoldOfACallerWhoLeaves: an acquire's context ends while its write is under way. The slot comes back at
// once, although another process writes to the bucket meanwhile.
func TestHoldOfACallerWhoLeaves(t *testing.T) {
	inFlight(t, func(t *testing.T, a *airfield) {
		t.Helper()
		lim, other := a.open(t), a.open(t)
		user := inflight.SlotsEntity(inflight.User{ID: "1"})
		take(t, lim.Slots, user, inflight.SlotsCost{}).Keep(t.Context())
		take(t, other.Slots, user, inflight.SlotsCost{}).Keep(t.Context())
		a.engine.Faults().Latency(memdynamo.Constant(10 * time.Millisecond))
		var calls sync.WaitGroup
		calls.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 15*time.Millisecond)
			defer cancel()
			if _, err := lim.Slots.Acquire(ctx, user, inflight.SlotsCost{}); !errors.Is(err, ctx.Err()) {
				t.Errorf("%v, want that the context has ended", err)
			}
		})
		elapse(time.Millisecond)
		take(t, other.Slots, user, inflight.SlotsCost{}).Keep(t.Context())
		calls.Wait()
		elapse(100 * time.Millisecond)
		if s := a.slots(t, "user-1", inflight.Slots); s.free != s.burst || s.used != 3 {
			t.Errorf("%+v, want all slots free after three calls", s)
		}
	})
}
