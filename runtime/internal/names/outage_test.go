package names_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/store"
)

// TestHungStore: what is known serves while reads hang. A call gives a read that is due half of its time, at
// most half a second, and those that come later do not wait for the same read anew.
func TestHungStore(t *testing.T) {
	run(t, func(w *world) {
		w.is("a", "model/a")
		w.catalog.hangs.Store(true)
		pause(2 * time.Minute)
		ctx, cancel := context.WithTimeout(w.Context(), 300*time.Millisecond)
		defer cancel()
		began := time.Now()
		if _, err := w.Get(ctx, "a"); err != nil || time.Since(began) != 150*time.Millisecond {
			w.Errorf("after %v: %v, want what is known after half of the call's time", time.Since(began), err)
		}
		waited, calls := time.Duration(0), 0
		for began = time.Now(); time.Since(began) < time.Minute; pause(100 * time.Millisecond) {
			called := time.Now()
			w.is("a", "model/a")
			waited += time.Since(called)
			calls++
		}
		if waited > 16*time.Second {
			w.Errorf("%d calls of a minute have waited for %v", calls, waited)
		}
		w.catalog.hangs.Store(false)
		w.catalog.entries["a"] = store.Entry{Name: "a", Version: 2, Buckets: "old-a"}
		pause(3 * time.Second)
		w.is("a", "old-a")
	})
}

// TestReadsInAnOutage: while reads fail, there is one a second, also before what is known is due.
func TestReadsInAnOutage(t *testing.T) {
	for name, failure := range map[string]error{
		"down": &store.UnavailableError{Err: errors.New("down")}, "denied": &store.SetupError{What: "denied"},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(w *world) {
				w.is("a", "model/a")
				w.reads(1, 0)
				w.catalog.failure = failure
				pause(35 * time.Second)
				for range 2 { // the second time when it is due
					began := time.Now()
					for time.Since(began) < 10*time.Second {
						_, _ = w.Get(w.Context(), "a")
						pause(time.Millisecond)
					}
					w.reads(10, 0)
					pause(time.Minute)
				}
			})
		})
	}
}

// TestInventedWhileHung: a crowd of invented names has its answers, though reads hang. No more of them wait
// for reads than may begin.
func TestInventedWhileHung(t *testing.T) {
	run(t, func(w *world) {
		w.is("a", "model/a")
		w.catalog.hangs.Store(true)
		began := time.Now()
		var crowd sync.WaitGroup
		var mu sync.Mutex
		unread, down := 0, 0
		for i := range 1000 {
			crowd.Go(func() {
				_, err := w.Get(context.WithoutCancel(w.Context()), fmt.Sprint("invented-", i))
				mu.Lock()
				defer mu.Unlock()
				if unknown, ok := errors.AsType[*store.UnknownNameError](err); ok && unknown.Unread {
					unread++
				} else if _, ok := errors.AsType[*store.UnavailableError](err); ok {
					down++
				} else {
					w.Errorf("an invented name: %v", err)
				}
			})
		}
		crowd.Wait()
		if took := time.Since(began); unread != 950 || down != 50 || took > 2*time.Second {
			w.Errorf("%d are unread and %d without an answer after %v, want 950 and 50 in two seconds", unread, down,
				took)
		}
	})
}

// TestEarlierRead: a read that shows an earlier state takes nothing back, and what an alias was of is not
// what is made for the entry that it becomes.
func TestEarlierRead(t *testing.T) {
	run(t, func(w *world) {
		w.catalog.entries["a"] = store.Entry{Name: "a", Version: 7, Buckets: "new-a"}
		a := w.is("a", "new-a")
		w.is("c", "old-b")
		w.catalog.entries["a"] = store.Entry{Name: "a", Version: 6}
		w.catalog.entries["c"] = store.Entry{Name: "c", Version: w.catalog.entries["b"].Version}
		pause(31 * time.Second)
		w.is("a", "new-a") // begins a read
		pause(time.Second)
		if w.is("a", "new-a") != a {
			w.Error("what was made for a name is made again")
		}
		w.is("c", "model/c")
	})
}
