package runtime_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// queueSlots opens slots, all of which user 1 has taken. The end of the test closes the Limiter.
func queueSlots(t *testing.T, backend *fake) (*waits, []*runtime.Lease[cost]) {
	t.Helper()
	lim, r := openSlots(t, backend)
	var leases []*runtime.Lease[cost]
	for range 20 {
		leases = append(leases, acquire(t, r, user{"1"}, cost{}))
	}
	return &waits{t: t, lim: lim, r: r, start: time.Now(), ended: make(chan outcome, 100)}, leases
}

// others changes what other processes hold of user 1's slots. No lease of this process knows of it.
func (f *fake) others(more int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	img := *f.buckets["jobs user-1"]
	balances := append([]bucket.Balance{}, img.Balances...)
	b := &balances[0]
	b.Tokens -= more * bucket.Milli
	b.Cells[b.Epoch&1] += more * bucket.Milli
	img.Balances = balances
	f.buckets["jobs user-1"] = &img
}

// TestFull: a denial has a hint, and no end of a window.
func TestFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := queueSlots(t, &fake{})
		_, err := w.r.Acquire(t.Context(), user{"1"}, cost{})
		check(t, err, "denied jobs user-1 parallel 0/1 1s")
		_, err = w.r.Acquire(t.Context(), user{"1"}, cost{RPM: 21})
		check(t, err, "exceeds burst jobs user-1 parallel 21/20")
		check(t, w.lim.Close(t.Context()), "")
	})
}

// TestWaitForSlots: first come first served, and at once when a lease of the process ends. Meanwhile the
// first alone reads the bucket, and no write is tried in vain.
func TestWaitForSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &fake{}
		w, leases := queueSlots(t, backend)
		for _, name := range []string{"a", "b", "c"} {
			w.joinCost(t.Context(), name, cost{})
		}
		elapse(9900 * time.Millisecond)
		w.done(0)
		equal(t, "acquires", backend.of("acquire"), 21) // a's was denied
		equal(t, "reads", backend.of("peek"), 49)       // five times a second
		leases[0].Keep(t.Context())
		w.next("a", 9900*time.Millisecond, "")
		check(t, leases[1].Settle(t.Context(), cost{}), "")
		w.next("b", 9900*time.Millisecond, "")
		elapse(time.Second)
		w.done(0)
		leases[2].Release(t.Context())
		w.next("c", 10900*time.Millisecond, "")
		check(t, w.lim.Close(t.Context()), "")
		backend.addUp(t)
	})
}

// TestOthersGiveBack: a waiter learns within a second of a slot that another process gives back, and of one
// whose process has died.
func TestOthersGiveBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &fake{}
		w, leases := queueSlots(t, backend)
		leases[0].Keep(t.Context())
		backend.others(1)
		w.joinCost(t.Context(), "a", cost{})
		elapse(20*time.Second + 100*time.Millisecond)
		backend.others(-1)
		w.next("a", 20*time.Second+374*time.Millisecond, "")

		leases[1].Keep(t.Context())
		backend.others(1) // in the epoch that ends after a minute
		w.joinCost(t.Context(), "b", cost{})
		elapse(39 * time.Second)
		w.done(0)
		got := <-w.ended
		if check(t, got.err, ""); got.at < time.Minute || got.at > 61*time.Second {
			t.Errorf("%s ended after %v, want within a second after a minute", got.name, got.at)
		}
		check(t, w.lim.Close(t.Context()), "")
		backend.addUp(t)
	})
}

// TestHintIsNoDenial: a wait with less time than the hint waits, since a slot may be free at any moment. A
// limit that refills still denies at once.
func TestHintIsNoDenial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &fake{}
		w, leases := queueSlots(t, backend)
		half := runtime.MaxWait(500 * time.Millisecond)
		w.joinCost(t.Context(), "in vain", cost{}, half)
		w.next("in vain", 500*time.Millisecond, "denied jobs user-1 parallel 0/1 1s deadline")
		w.joinCost(t.Context(), "in time", cost{}, half)
		elapse(300 * time.Millisecond)
		leases[0].Keep(t.Context())
		w.next("in time", 800*time.Millisecond, "")
		check(t, acquire(t, w.r, project{"1"}, cost{TPM: 6000}).Settle(t.Context(), cost{TPM: 6000}), "")
		w.joinAs(t.Context(), "refills", project{"1"}, cost{TPM: 100}, half)
		w.next("refills", 800*time.Millisecond, "denied jobs project-1 tpm 0/100 1s deadline")
		check(t, w.lim.Close(t.Context()), "")
	})
}

// TestMaxWaitEndsAnAttempt: a wait that was denied is denied at its end too, although a slot seems to be free
// by then.
func TestMaxWaitEndsAnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &fake{}
		w, leases := queueSlots(t, backend)
		w.joinCost(t.Context(), "a", cost{}, runtime.MaxWait(time.Second))
		elapse(500 * time.Millisecond)
		backend.hook(func(ctx context.Context, op string, _ *store.Call) error {
			if op != "acquire" {
				return nil
			}
			<-ctx.Done()
			return &runtime.UnavailableError{Resource: "jobs", Attempts: 1, Err: ctx.Err()}
		})
		leases[0].Keep(t.Context())
		w.next("a", time.Second, "denied jobs user-1 parallel 0/1 1s deadline")
		backend.hook(nil)
		check(t, w.lim.Close(t.Context()), "")
	})
}
