package runtime_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	goruntime "runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// log is a log that may be read while it is written.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *log) option() runtime.Option {
	return runtime.WithLogger(slog.New(slog.NewTextHandler(l, nil)))
}

// lineBefore returns the file and line above its caller's, as the log has the place of an acquire.
func lineBefore() string {
	_, file, line, _ := goruntime.Caller(1)
	return fmt.Sprintf("acquired=%s:%d", file, line-1)
}

// TestLeaseLost: a lease whose hold is not extended is over three seconds before the hold's end, whatever the
// reason. Its context ends, More fails, and the observer and the log have it once. Its end writes nothing
// more, and the slot comes back by itself.
func TestLeaseLost(t *testing.T) {
	down := errors.New("no reply")
	reset := func(f *fake) { // as sluice reset does
		f.mu.Lock()
		defer f.mu.Unlock()
		b := &f.buckets["jobs user-1"].Balances[0]
		b.Tokens, b.Cells, b.Epoch = b.Burst, [2]int64{}, b.Epoch+bucket.NewRing
	}
	for name, test := range map[string]struct {
		extend func(f *fake, call *store.Call) error
		free   int64 // a second before the end of the hold
		want   error
	}{
		"unknown, not applied": {func(*fake, *store.Call) error { return down }, 19, down},
		"unknown, applied": {func(f *fake, call *store.Call) error {
			f.hook(nil)
			err := f.Extend(t.Context(), call)
			call.Parts[0].Buckets[0].Epochs = nil // which is what a lost reply says
			return errors.Join(err, down)
		}, 19, down},
		"refused": {func(f *fake, _ *store.Call) error { reset(f); return nil }, 20, runtime.ErrLeaseLost},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				backend, out := &fake{}, &log{}
				var events []runtime.Event
				lim, r := openSlots(t, backend, out.option(), runtime.WithObserver(&runtime.Observer{
					LeaseLost: func(_ context.Context, e runtime.Event) { events = append(events, e) },
				}))
				start := time.Now()
				lease, err := r.Acquire(t.Context(), user{"1"}, cost{})
				at := lineBefore()
				check(t, err, "")
				ctx := lease.Context(t.Context())
				extensions := 0
				backend.hook(func(_ context.Context, op string, call *store.Call) error {
					if op == "extend" {
						extensions++
						return test.extend(backend, call)
					}
					return nil
				})
				<-ctx.Done()
				equal(t, "lost after", time.Since(start), 117*time.Second)
				equal(t, "cause", context.Cause(ctx), runtime.ErrLeaseLost)
				check(t, lease.More(t.Context(), cost{TPM: 1}), runtime.ErrLeaseLost.Error())
				if late := lease.Context(t.Context()); !errors.Is(context.Cause(late), runtime.ErrLeaseLost) {
					t.Error("a context of a lost lease is open")
				}
				elapse(2 * time.Second)
				equal(t, "free before the end", backend.free("user-1"), test.free)
				lease.Keep(t.Context())
				equal(t, "extensions", extensions, 1)
				equal(t, "events", len(events), 1)
				e := events[0]
				equal(t, "event", fmt.Sprint(e.Operation, e.Resource, e.Entity, e.Kind, e.Took),
					"extendjobsuser-1user1m57s")
				if !errors.Is(e.Err, test.want) {
					t.Errorf("event of %v, want %v", e.Err, test.want)
				}
				if got := out.String(); strings.Count(got, "\n") != 1 ||
					!strings.Contains(got, "a lease is lost: what it holds could not be extended") ||
					!strings.Contains(got, at+" ") {
					t.Errorf("logged %q, want one loss and %s", got, at)
				}
				elapse(61 * time.Second)
				equal(t, "free after it", backend.free("user-1"), 20)
				check(t, lim.Close(t.Context()), "")
				backend.addUp(t)
			})
		})
	}
}

// TestExtensionNotSent: an extension that was not sent is tried again every five seconds, and the lease is
// lost as late as if nobody had tried. Its end gives the slot back, as the hold is not over.
func TestExtensionNotSent(t *testing.T) {
	down := errors.New("connection refused")
	for name, test := range map[string]struct {
		until time.Duration // since the acquire
		least int           // extensions
		lost  bool
	}{"for 10 s": {110 * time.Second, 2, false}, "for longer": {117 * time.Second, 3, true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				backend := &fake{}
				var events []runtime.Event
				lim, r := openSlots(t, backend, runtime.WithObserver(&runtime.Observer{
					LeaseLost: func(_ context.Context, e runtime.Event) { events = append(events, e) },
				}))
				start := time.Now()
				lease := acquire(t, r, user{"1"}, cost{})
				ctx := lease.Context(t.Context())
				backend.hook(func(_ context.Context, op string, call *store.Call) error {
					if op != "extend" || time.Since(start) >= test.until {
						return nil
					}
					b := &call.Parts[0].Buckets[0]
					b.Epochs = b.Charges[0].Epochs
					return down
				})
				elapse(118 * time.Second)
				equal(t, "lost", ctx.Err() != nil, test.lost)
				if n := backend.of("extend"); n < test.least || n > 6 {
					t.Errorf("%d extensions, want %d to 6", n, test.least)
				}
				equal(t, "free", backend.free("user-1"), 19)
				lease.Keep(t.Context())
				equal(t, "free at the end", backend.free("user-1"), 20)
				equal(t, "events", len(events) == 1, test.lost)
				for _, e := range events {
					if !errors.Is(e.Err, down) {
						t.Errorf("event of %v, want %v", e.Err, down)
					}
				}
				check(t, lim.Close(t.Context()), "")
				backend.addUp(t)
			})
		})
	}
}

// TestSlowObserver: an observer that takes its time delays neither the contexts of other lost leases nor the
// extensions of others. Close waits for it.
func TestSlowObserver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &fake{}
		reported := 0
		lim, r := openSlots(t, backend, runtime.WithObserver(&runtime.Observer{
			LeaseLost: func(context.Context, runtime.Event) { elapse(70 * time.Second); reported++ },
		}))
		start := time.Now()
		var lost []context.Context
		for range 2 {
			lost = append(lost, acquire(t, r, user{"1"}, cost{}).Context(t.Context()))
		}
		backend.hook(func(_ context.Context, op string, call *store.Call) error {
			if op == "extend" && call.Parts[0].Buckets[0].Entity == "user-1" {
				return errors.New("no reply")
			}
			return nil
		})
		elapse(61 * time.Second)
		kept := acquire(t, r, user{"2"}, cost{})
		for _, ctx := range lost {
			<-ctx.Done()
			equal(t, "lost after", time.Since(start), 117*time.Second)
		}
		elapse(64 * time.Second) // the hold of user 2 was over after three minutes
		check(t, kept.Context(t.Context()).Err(), "")
		kept.Keep(t.Context())
		check(t, lim.Close(t.Context()), "")
		equal(t, "reported", reported, 2)
	})
}

// TestEndDuringExtension: while an extension gets no answer, the end of its lease takes no longer than the
// settle time-out, and More no longer than its context.
func TestEndDuringExtension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &fake{}
		_, r := openSlots(t, backend)
		ended, more := acquire(t, r, user{"1"}, cost{}), acquire(t, r, user{"1"}, cost{})
		extends := make(chan struct{}, 1)
		backend.hook(func(ctx context.Context, op string, _ *store.Call) error {
			switch op {
			case "extend":
				extends <- struct{}{}
			case "settle":
			default:
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		})
		<-extends
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := more.More(ctx, cost{TPM: 1}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("More: %v, want that its context has ended", err)
		}
		equal(t, "More took", time.Since(start), 100*time.Millisecond)
		start = time.Now()
		_ = ended.Settle(t.Context(), cost{})
		equal(t, "Settle took", time.Since(start), store.DefaultSettleTimeout)
		backend.hook(nil)
		more.Keep(t.Context())
	})
}

// TestContextsOfALease: those that have ended are not kept.
func TestContextsOfALease(t *testing.T) {
	_, r := openSlots(t, &fake{})
	lease := acquire(t, r, user{"1"}, cost{})
	for range 1000 {
		ctx, cancel := context.WithCancel(t.Context())
		lease.Context(ctx)
		cancel()
	}
	if n := runtime.OpenContexts(lease); n > 10 {
		t.Errorf("a lease keeps %d contexts, of which none is open", n)
	}
	lease.Keep(t.Context())
}

// TestBusyLease: an extension waits for a More under way, and is written once that has ended. A More that
// takes too long loses the lease, and a settle waits for the extension.
func TestBusyLease(t *testing.T) {
	for name, test := range map[string]struct {
		more time.Duration
		lost bool
	}{"short": {101 * time.Second, false}, "too long": {118 * time.Second, true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				backend := &fake{}
				_, r := openSlots(t, backend)
				lease := acquire(t, r, user{"1"}, cost{})
				ctx := lease.Context(t.Context())
				backend.hook(func(_ context.Context, op string, _ *store.Call) error {
					if op == "acquire" {
						elapse(test.more - 80*time.Second)
					}
					return nil
				})
				elapse(80 * time.Second)
				check(t, lease.More(t.Context(), cost{TPM: 1}), "")
				equal(t, "lost after More", ctx.Err() != nil, test.lost)
				elapse(time.Second + 1)
				equal(t, "extensions", backend.of("extend"), map[bool]int{false: 1}[test.lost])
				if test.lost {
					equal(t, "cause", context.Cause(ctx), runtime.ErrLeaseLost)
				}
				lease.Keep(t.Context())
				equal(t, "free", backend.free("user-1"), 20)
				backend.addUp(t)
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		backend := &fake{}
		_, r := openSlots(t, backend)
		lease := acquire(t, r, user{"1"}, cost{})
		var ended atomic.Bool
		backend.hook(func(_ context.Context, op string, _ *store.Call) error {
			if op == "extend" {
				elapse(11 * time.Second)
				ended.Store(true)
			}
			return nil
		})
		elapse(100 * time.Second)
		synctest.Wait()
		equal(t, "ended before settle", ended.Load(), false)
		check(t, lease.Settle(t.Context(), cost{}), "")
		equal(t, "ended after it", ended.Load(), true)
		equal(t, "free", backend.free("user-1"), 20)
		backend.addUp(t)
	})
}

// TestCollected: leases that are dropped without an end are ended once they are collected, by one keep each,
// and the log names the place of their acquire. Leases that something refers to are not: that is what a
// keeper that refers to leases would do.
func TestCollected(t *testing.T) {
	for _, refers := range []bool{false, true} {
		t.Run(fmt.Sprint("referred to ", refers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				backend, out := &fake{}, &log{}
				lim, r := openSlots(t, backend, out.option())
				var kept []any
				var at string
				for range 20 {
					lease, err := r.Acquire(t.Context(), user{"1"}, cost{TPM: 1})
					at = lineBefore()
					check(t, err, "")
					if refers {
						kept = append(kept, lease.Context(t.Context())) // a context refers to its lease
					}
				}
				back := false
				for range 200 { // a cleanup runs some time after its collection
					goruntime.GC()
					elapse(5 * time.Second)
					synctest.Wait()
					if back = backend.free("user-1") == 20; back {
						break
					}
					if goruntime.Gosched(); !refers {
						continue
					}
				}
				equal(t, "all slots are back", back, !refers)
				if got := strings.Count(out.String(), at+"\n"); got != map[bool]int{false: 20}[refers] {
					t.Errorf("the log has %s %d times:\n%s", at, got, out)
				}
				equal(t, "tokens", backend.buckets["jobs user-1"].Balances[1].Tokens >= 5980*bucket.Milli, true)
				goruntime.KeepAlive(kept)
				check(t, lim.Close(t.Context()), "")
				equal(t, "free after Close", backend.free("user-1"), 20)
				backend.addUp(t)
			})
		})
	}
}
