package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/store"
)

// inDebt is a number of tokens that user 1 has when a call for one token has to wait for 12 hours.
const inDebt = 1 - 12*3600*100

// TestWaitNoticesOthers: what another process gives back ends a wait of 12 hours at the next read.
func TestWaitNoticesOthers(t *testing.T) {
	for _, test := range []struct{ given, served time.Duration }{
		{500 * time.Millisecond, time.Second},
		{2900 * time.Millisecond, 3 * time.Second},
		{3100 * time.Millisecond, 7 * time.Second},
		{time.Hour, time.Hour + time.Second}, // one read every 30 s
	} {
		synctest.Test(t, func(t *testing.T) {
			backend := &fake{}
			w := queue(t, backend)
			backend.put(0, 60, inDebt)
			w.join(t.Context(), "a", 1)
			w.join(t.Context(), "b", 1)
			elapse(test.given)
			backend.put(0, 60, 6000)
			w.next("a", test.served, "")
			w.next("b", test.served, "")
		})
	}
}

// readsOf returns a function that returns the instants of reads so far, and the buckets that they read.
func (f *fake) readsOf() func() []string {
	var mu sync.Mutex
	var reads []string
	start := time.Now()
	f.hook(func(_ context.Context, op string, call *store.Call) error {
		if op == "peek" {
			b := call.Parts[0].Buckets
			mu.Lock()
			defer mu.Unlock()
			reads = append(reads, fmt.Sprint(time.Since(start).Seconds(), " ", b[0].Entity))
			if len(b) != 1 || call.Parts[0].Cost != nil {
				return errors.New("more than one bucket, or a cost")
			}
		}
		return nil
	})
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(reads)
	}
}

// another is a further process on a fake that is open already.
type another struct{ *fake }

func (a another) Open(*store.Env, ...store.Definition) (store.Session, error) { return a.fake, nil }

// TestOneReadForAll: 1,000 waiters cost one read of the bucket that they wait for at a time, be it their own
// or their project's. The control has two processes, and twice the reads.
func TestOneReadForAll(t *testing.T) {
	ofTheirs := func(i int) entity { return ofProject3(fmt.Sprint(i)) }
	for name, test := range map[string]struct {
		bucket    string
		processes int
		who       func(i int) entity
	}{
		"of an entity":                {"user-1", 1, func(int) entity { return user{"1"} }},
		"of a project":                {"project-3", 1, ofTheirs},
		"of a project, two processes": {"project-3", 2, ofTheirs},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				backend, def := &fake{}, tree(together, ofUser, ofProject)
				lim, r := openAs(t, backend, def)
				processes := []*resource{r}
				if test.processes == 2 {
					b := runtime.NewBuilder(another{backend})
					processes = append(processes, runtime.Bind[entity](b, def, toVector, fromVector))
					if _, err := b.Limiter(); err != nil {
						t.Fatal(err)
					}
				}
				backend.putOf(test.bucket, 0, 60, inDebt)
				reads := backend.readsOf()
				ctx, stop := context.WithCancel(patient(t, t.Context()))
				for i := range 1000 {
					go func() { _, _ = processes[i%len(processes)].Wait(ctx, test.who(i), cost{TPM: 1}) }()
				}
				elapse(100 * time.Second)
				var want []string
				for _, at := range []int{1, 3, 7, 15, 31, 61, 91} {
					want = append(want, slices.Repeat([]string{fmt.Sprint(at, " ", test.bucket)}, test.processes)...)
				}
				if got := reads(); !slices.Equal(got, want) {
					t.Errorf("reads: %v, want %v", got, want)
				}
				stop()
				synctest.Wait()
				equal(t, "queues left", runtime.Waiting(lim), 0)
			})
		})
	}
}

// TestReadThatFails: while the store does not answer, or its answer says nothing new, a wait goes on as it
// was. Shorter waits than a second cost no read.
func TestReadThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &fake{}
		w := queue(t, backend)
		backend.hook(func(ctx context.Context, op string, _ *store.Call) error {
			if op == "peek" && time.Since(w.start) < 3*time.Second {
				<-ctx.Done()
				return &runtime.UnavailableError{Resource: "gpt-4", Attempts: 1, Err: ctx.Err()}
			}
			return nil
		})
		w.join(t.Context(), "a", 1000, runtime.Budget(300*time.Millisecond))
		ctx, leave := context.WithCancel(patient(t, t.Context()))
		w.join(t.Context(), "b", 10)
		w.join(ctx, "c", 10)
		elapse(1100 * time.Millisecond) // a reads
		leave()
		w.next("c", 1100*time.Millisecond, "context canceled gpt-4 user-1")
		w.next("a", 10*time.Second, "")
		reads := backend.of("peek")
		w.next("b", 10100*time.Millisecond, "")
		equal(t, "reads for b", backend.of("peek")-reads, 0)
	})
}

// TestReadFindsLess: what a read finds that other processes have taken ends the waits that it makes too late.
func TestReadFindsLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &fake{}
		w := queue(t, backend)
		w.join(t.Context(), "a", 1000)
		w.join(within(t, 20*time.Second), "b", 500)
		w.join(within(t, 50*time.Second), "c", 500)
		elapse(500 * time.Millisecond)
		backend.put(0, 60, -1000) // 20.5 s until a is served, and 25.5 s for b
		w.next("b", time.Second, "denied gpt-4 user-1 tpm 0/500 24.5s deadline")
		w.gaveUp("tpm", 24500*time.Millisecond)
		w.next("a", 20500*time.Millisecond, "")
		w.next("c", 25500*time.Millisecond, "")
	})
}

// TestMaxWaiters: one call more than may wait for an entity fails at once. Other entities, and calls that do
// not wait, are not concerned.
func TestMaxWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &fake{}
		w := queue(t, backend, runtime.WithMaxWaiters(2))
		ctx, leave := context.WithCancel(patient(t, t.Context()))
		w.join(t.Context(), "a", 100)
		w.join(ctx, "b", 100)
		asked := backend.count()
		w.join(t.Context(), "c", 100)
		w.next("c", 0, "queue full gpt-4 user-1 2")
		equal(t, "calls of the store", backend.count()-asked, 0)
		_, err := w.r.Wait(t.Context(), user{"2"}, cost{TPM: 100})
		check(t, err, "")
		_, err = w.r.Acquire(t.Context(), user{"1"}, cost{TPM: 100})
		check(t, err, "denied gpt-4 user-1 tpm 0/100 1s")
		leave()
		w.next("b", 0, "context canceled gpt-4 user-1")
		w.join(t.Context(), "d", 100)
		w.next("a", time.Second, "")
		w.next("d", 2*time.Second, "")
	})
}

// TestManyLeave: 10,000 waiters whose callers leave do not ask the store once more each.
func TestManyLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &fake{}
		w := queue(t, backend)
		ctx, leave := context.WithCancel(patient(t, t.Context()))
		var ended atomic.Int64
		for range 10_000 {
			go func() {
				if _, err := w.r.Wait(ctx, user{"1"}, cost{TPM: 100}); errors.Is(err, context.Canceled) {
					ended.Add(1)
				}
			}()
		}
		synctest.Wait()
		_, err := w.r.Wait(patient(t, t.Context()), user{"1"}, cost{TPM: 1})
		check(t, err, "queue full gpt-4 user-1 10000")
		leave()
		synctest.Wait()
		equal(t, "ended", ended.Load(), 10_000)
		equal(t, "acquires", backend.of("acquire"), 1)
		equal(t, "queues left", runtime.Waiting(w.lim), 0)
	})
}
