package runtime_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/store"
)

// Users of project-3, whose bucket, like their own, holds 6000 tokens and gets 100 a second.
func ofProject3(user string) links { return typed(user, "", "3", "") }

// chained returns waits on users that are charged together with their project, and a lease that has emptied
// the project's bucket.
func chained(t *testing.T, store *fake) (*waits, *runtime.Lease[cost]) {
	t.Helper()
	lim, r := openAs(t, store, tree(together, ofUser, ofProject))
	w := &waits{t: t, lim: lim, r: r, start: time.Now(), ended: make(chan outcome, 100)}
	return w, acquire(t, r, ofProject3("9"), cost{TPM: 6000})
}

// asked returns how often the store was asked to charge user's chain.
func (f *fake) asked(user string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, call := range f.calls {
		if call == "acquire user-"+user+",project-3" {
			n++
		}
	}
	return n
}

// TestWaitForAnAncestor: the wait is over the chain, and the store is asked twice.
func TestWaitForAnAncestor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fake{}
		w, _ := chained(t, store)
		w.joinAs(t.Context(), "a", ofProject3("1"), cost{TPM: 500})
		w.joinAs(t.Context(), "b", ofProject3("1"), cost{TPM: 100}) // behind a, though user-1 has plenty
		w.joinAs(within(t, 6*time.Second), "c", ofProject3("1"), cost{TPM: 100})
		w.next("c", 0, "denied gpt-4 project-3 tpm 0/100 7s deadline")
		w.gaveUp("tpm", 7*time.Second)
		equal(t, "asked", store.asked("1"), 1)
		w.next("a", 5*time.Second, "")
		w.next("b", 6*time.Second, "")
		equal(t, "asked", store.asked("1"), 4)
	})
}

// TestGivenBackToAnAncestor: who waits for it, in whichever line, hears of it.
func TestGivenBackToAnAncestor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fake{}
		w, lease := chained(t, store)
		w.joinAs(t.Context(), "a", ofProject3("1"), cost{TPM: 5000})
		w.joinAs(t.Context(), "b", ofProject3("1"), cost{TPM: 400})
		elapse(time.Second)
		// and the same user: third in line
		w.joinAs(t.Context(), "other project", typed("1", "", "5", ""), cost{TPM: 100})
		w.done(0)
		lease.Release(t.Context())
		w.next("a", time.Second, "")
		w.next("b", time.Second, "")
		w.next("other project", time.Second, "")
		equal(t, "asked", store.asked("1"), 3)
	})
}

// TestGivenBackToManyLines: the first of each line asks once; who is not served waits as long as it takes.
func TestGivenBackToManyLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fake{}
		w, lease := chained(t, store)
		users := []string{"1", "2", "3"}
		for _, user := range users {
			w.joinAs(t.Context(), "first of "+user, ofProject3(user), cost{TPM: 4000})
			w.joinAs(t.Context(), "second of "+user, ofProject3(user), cost{TPM: 4000})
		}
		check(t, lease.Settle(t.Context(), cost{TPM: 2000}), "") // gives 4000 back: enough for one
		w.done(1)
		served := w.take()
		w.open--
		asked := 0
		for _, user := range users {
			n := store.asked(user)
			asked += n
			if first := "first of " + user; n > 3 || (n == 3) != (served.name == first) {
				t.Errorf("%s asked %d times, and %s was served", first, n, served.name)
			}
		}
		if asked > 7 { // each first before; each first now; the next first after the one that was served
			t.Errorf("asked %d times", asked)
		}
		for range 2*len(users) - 1 {
			got := w.take()
			check(t, got.err, "")
		}
		equal(t, "the last of six, 4000 of them given back", time.Since(w.start), 200*time.Second)
		synctest.Wait()
		equal(t, "lines left", runtime.Waiting(w.lim), 0)
	})
}

// TestNewsThatIsNone: what changes nothing for who is first makes it ask nobody.
func TestNewsThatIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fake{}
		w, lease := chained(t, store)
		w.joinAs(t.Context(), "a", ofProject3("1"), cost{TPM: 5000})
		ctx, cancel := context.WithCancel(t.Context())
		w.joinAs(ctx, "b", ofProject3("1"), cost{TPM: 1})
		cancel() // those who stay look again
		w.next("b", 0, "context canceled gpt-4 user-1")
		acquire(t, w.r, typed("1", "", "5", ""), cost{TPM: 10}).Release(t.Context()) // to the user, who has enough
		// 1000 of 5000: 40 s to go, not 50
		check(t, lease.Settle(t.Context(), cost{TPM: 5000}), "")
		synctest.Wait()
		equal(t, "asked", store.asked("1"), 1)
		w.next("a", 40*time.Second, "")
		equal(t, "asked", store.asked("1"), 2)
	})
}

// TestGivenUpAfterNews: a waiter that leaves unserved does not bring back what it saw before the news.
func TestGivenUpAfterNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &fake{}
		w, lease := chained(t, backend)
		ctx, cancel := context.WithCancel(t.Context())
		w.joinAs(ctx, "a", ofProject3("1"), cost{TPM: 5500})
		w.joinAs(t.Context(), "b", ofProject3("1"), cost{TPM: 100})
		check(t, lease.Settle(t.Context(), cost{TPM: 5000}), "") // gives 1000 back
		backend.hook(func(context.Context, string, *store.Call) error {
			elapse(400 * time.Millisecond)
			return nil
		})
		cancel()
		w.next("a", 0, "context canceled gpt-4 user-1")
		w.joinAs(within(t, time.Second), "c", ofProject3("1"), cost{TPM: 100}) // there is enough for b and c
		w.next("b", 400*time.Millisecond, "")
		w.next("c", 800*time.Millisecond, "")
	})
}

// TestOtherChainsInOneLine: what those ahead want of their own ancestors is not wanted of this one's.
func TestOtherChainsInOneLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fake{}
		w, _ := chained(t, store)
		deep := acquire(t, w.r, typed("8", "", "5", ""), cost{TPM: 3000})
		little := acquire(t, w.r, typed("8", "", "5", ""), cost{TPM: 3000})
		check(t, deep.Settle(t.Context(), cost{TPM: 8100}), "")
		w.joinAs(t.Context(), "a", ofProject3("1"), cost{TPM: 5900})
		w.joinAs(within(t, 60*time.Second), "b", typed("1", "", "5", ""), cost{TPM: 100})
		check(t, little.Settle(t.Context(), cost{TPM: 2900}), "") // project-5 has -5000: 51 s to go for b
		w.done(0)
		w.next("a", 59*time.Second, "")
		w.next("b", 59*time.Second, "")
	})
}

// TestUnknownEntitiesStandInNoLine: those who wait already do not keep the error from the one that made it.
func TestUnknownEntitiesStandInNoLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fake{}
		w, _ := chained(t, store)
		w.joinAs(t.Context(), "a", ofProject3("1"), cost{TPM: 100})
		w.joinAs(t.Context(), "b", lookedUp(ofUser, "1"), cost{TPM: 100})
		w.next("b", 0, `invalid gpt-4 entity "user-1"`)
		store.known = family()
		w.joinAs(t.Context(), "c", lookedUp(ofUser, "1"), cost{TPM: 100})
		w.next("a", time.Second, "")
		w.next("c", 2*time.Second, "")
		lookups := slices.DeleteFunc(slices.Clone(store.calls), func(call string) bool {
			return call[:6] != "member"
		})
		equal(t, "look-ups, one of them in vain", len(lookups), 3)
	})
}
