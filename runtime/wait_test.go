package runtime_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/store"
)

// waits runs waiters on user 1 in a bubble, and notes when and how each ended.
type waits struct {
	t     *testing.T
	lim   *runtime.Limiter
	r     *resource
	start time.Time
	ended chan outcome
	same  []outcome // received from ended, of one instant
	open  int
	last  error // of the waiter that ended last

	mu      sync.Mutex
	answers []string // names of the waiters whose acquires the store has answered, in this order
}

type outcome struct {
	name string
	at   time.Duration // since start
	err  error
}

// queue opens a resource whose user 1 has no tpm left, and 60 rpm.
func queue(t *testing.T, store *fake, opts ...runtime.Option) *waits {
	t.Helper()
	lim, r := open(t, store, opts...)
	store.put(0, 60, 0)
	return &waits{t: t, lim: lim, r: r, start: time.Now(), ended: make(chan outcome, 100)}
}

// join starts a waiter for tpm, which is in line, or has ended, when join returns.
func (w *waits) join(ctx context.Context, name string, tpm int64, opts ...runtime.CallOption) {
	w.joinCost(ctx, name, cost{TPM: tpm}, opts...)
}

func (w *waits) joinCost(ctx context.Context, name string, c cost, opts ...runtime.CallOption) {
	w.joinAs(ctx, name, user{"1"}, c, opts...)
}

func (w *waits) joinAs(ctx context.Context, name string, e entity, c cost, opts ...runtime.CallOption) {
	w.open++
	go func() {
		ctx := context.WithValue(patient(w.t, ctx), onAnswer{}, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.answers = append(w.answers, name)
		})
		lease, err := w.r.Wait(ctx, e, c, opts...)
		if (lease == nil) == (err == nil) {
			w.t.Errorf("%s: lease %v beside error %v", name, lease, err)
		}
		w.ended <- outcome{name, time.Since(w.start), err}
	}()
	synctest.Wait()
}

// done reports that n waiters have ended by now.
func (w *waits) done(n int) {
	w.t.Helper()
	synctest.Wait()
	equal(w.t, "waiters ended", len(w.same)+len(w.ended), n)
}

// take waits for the next waiter to end. Waiters that end at one instant are taken in the order in which the
// store answered them last. The scheduler decides which of their goroutines reports its end first.
func (w *waits) take() outcome {
	if len(w.same) == 0 {
		w.same = append(w.same, <-w.ended)
		synctest.Wait()
		for range len(w.ended) {
			w.same = append(w.same, <-w.ended)
		}
		w.mu.Lock()
		last := map[string]int{}
		for i, name := range w.answers {
			last[name] = i
		}
		w.mu.Unlock()
		slices.SortStableFunc(w.same, func(a, b outcome) int {
			return cmp.Or(cmp.Compare(a.at, b.at), last[a.name]-last[b.name])
		})
	}
	first := w.same[0]
	w.same = w.same[1:]
	return first
}

// TestTake is the control of take: it does not hide that the store answered c and b before a, whatever the
// order in which their goroutines report.
func TestTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := queue(t, &fake{})
		w.answers = []string{"a", "c", "b", "a"}
		for _, o := range []outcome{{"d", 2, nil}, {"a", 1, nil}, {"b", 1, nil}, {"c", 1, nil}} {
			w.ended <- o
		}
		for _, want := range []string{"c", "b", "a", "d"} {
			equal(t, "taken", w.take().name, want)
		}
	})
}

// next waits for the next waiter to end, and holds it against name, instant and error text.
func (w *waits) next(name string, at time.Duration, want string) {
	w.t.Helper()
	got := w.take()
	w.open--
	if got.name != name || got.at != at {
		w.t.Errorf("%s ended after %v, want %s after %v", got.name, got.at, name, at)
	}
	check(w.t, got.err, want)
	if w.open == 0 {
		synctest.Wait()
		equal(w.t, "lines left", runtime.Waiting(w.lim), 0)
	}
	w.last = got.err
}

func TestWaitWithTokensThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, r := open(t, &fake{})
		start := time.Now()
		lease, err := r.Wait(t.Context(), user{"1"}, cost{TPM: 6000})
		check(t, err, "")
		equal(t, "remaining", lease.Remaining(), cost{59, 0})
		equal(t, "took", time.Since(start), 0)
	})
}

// TestWaitServesInOrder: first come first served, each when the tokens of all up to it have come, to the
// millisecond.
func TestWaitServesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := queue(t, &fake{})
		w.join(t.Context(), "a", 100)
		w.join(t.Context(), "b", 501)
		w.join(t.Context(), "c", 1) // would have been served at once, were it not for those ahead
		w.join(t.Context(), "d", 6000)
		w.join(t.Context(), "e", 50)
		elapse(500 * time.Millisecond)
		w.join(t.Context(), "f", 50)
		w.done(0)
		w.next("a", time.Second, "")
		w.next("b", 6010*time.Millisecond, "")
		w.next("c", 6020*time.Millisecond, "")
		w.next("d", 66020*time.Millisecond, "")
		w.next("e", 66520*time.Millisecond, "")
		w.next("f", 67020*time.Millisecond, "")
	})
}

// TestWaitBetweenMilliseconds: a wait that starts between two of them is not served before its tokens are
// there.
func TestWaitBetweenMilliseconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fake{}
		w := queue(t, store)
		elapse(300 * time.Microsecond)
		w.join(t.Context(), "a", 100)
		w.next("a", time.Second+300*time.Microsecond, "")
		equal(t, "tries", store.count(), 2)
	})
}

func TestOtherBucketsDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := queue(t, &fake{})
		w.join(t.Context(), "a", 100)
		_, err := w.r.Wait(t.Context(), user{"2"}, cost{TPM: 6000})
		check(t, err, "")
		_, err = w.r.With(runtime.Budget(1)).Wait(t.Context(), project{"1"}, cost{TPM: 6000})
		check(t, err, "")
		equal(t, "took", time.Since(w.start), 0)
		w.next("a", time.Second, "")
	})
}

// TestTriesOfAWait: each is an acquire of its own, called when it is tried, with a budget of its own.
func TestTriesOfAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var called []time.Duration
		var start time.Time
		backend := &fake{}
		backend.hook(func(ctx context.Context, _ string, call *store.Call) error {
			deadline, _ := ctx.Deadline()
			equal(t, "budget", time.Until(deadline), 2*time.Second)
			called = append(called, call.Called.Sub(start))
			if len(called) == 2 {
				backend.put(0, 60, 50) // somebody else took half of it
			}
			return nil
		})
		w := queue(t, backend)
		start = w.start
		w.join(t.Context(), "a", 100, runtime.Budget(2*time.Second))
		w.next("a", 1500*time.Millisecond, "")
		if want := []time.Duration{0, time.Second, 1500 * time.Millisecond}; !slices.Equal(called, want) {
			t.Errorf("tried at %v, want %v", called, want)
		}
	})
}

// TestManyWaiters: a line of 50 whose deadlines leave them no more than half a second each. A waiter that is
// served must not count as waiting beside what it has taken already, or those behind give up. Whether they
// get to look in between is up to the scheduler, about once in 50 lines; hence the repetition.
func TestManyWaiters(t *testing.T) {
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			w := queue(t, &fake{})
			for i := range 50 {
				w.join(within(t, time.Duration(i+1)*time.Second+500*time.Millisecond), string(rune('A'+i)), 100)
			}
			for i := range 50 {
				w.next(string(rune('A'+i)), time.Duration(i+1)*time.Second, "")
			}
		})
	}
}

func TestContendedKeepsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &fake{}
		w := queue(t, backend)
		tries := 0
		backend.hook(func(context.Context, string, *store.Call) error {
			elapse(10 * time.Millisecond) // as its attempts do
			if tries++; tries < 4 {
				return &runtime.ContendedError{Resource: "gpt-4", Entity: "user-1", Attempts: 8}
			}
			return nil
		})
		w.join(t.Context(), "a", 1)
		w.join(t.Context(), "b", 1)
		w.next("a", 190*time.Millisecond, "") // and three pauses of 50 ms
		w.next("b", 200*time.Millisecond, "")
	})
}

// TestOtherErrorsEndAWait: and the next in line is served.
func TestOtherErrorsEndAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &fake{}
		w := queue(t, backend)
		w.join(t.Context(), "a", 100, runtime.OnUnavailable(runtime.Deny))
		w.join(t.Context(), "b", 100)
		failed := false
		backend.hook(func(context.Context, string, *store.Call) error {
			if failed {
				return nil
			}
			failed = true
			return &runtime.UnavailableError{Resource: "gpt-4", Attempts: 3, Err: errors.New("reset")}
		})
		w.next("a", time.Second, "unavailable gpt-4 3: reset")
		w.next("b", time.Second, "")
	})
}

// TestWaitOnAClockOfItsOwn: deadlines and MaxWait are the system's, however far the injected clock is from
// it.
func TestWaitOnAClockOfItsOwn(t *testing.T) {
	for _, clock := range []ahead{ahead(3 * time.Hour), -ahead(3 * time.Hour)} {
		synctest.Test(t, func(t *testing.T) {
			w := queue(t, &fake{}, runtime.WithClock(clock))
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			w.join(ctx, "a", 1000, runtime.MaxWait(11*time.Second))
			w.next("a", 10*time.Second, "")
			w.join(ctx, "b", 1001)
			w.next("b", 10*time.Second, "denied gpt-4 user-1 tpm 0/1001 10.01s deadline")
		})
	}
}
