package dynamo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/known"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// crowd is a process, in a bubble of testing/synctest, whose callers all want the bucket of user-1: 100 an
// hour. Its cached image may not deny, so that every request gets into the queue.
type crowd struct {
	*testing.T
	*engine
	*desk
	wire *network
	gate *gate // shut
	wg   sync.WaitGroup
}

// Name returns the test's name, not the resource's, which the engine has too.
func (c *crowd) Name() string { return c.T.Name() }

// customer is who asks, and what it was told, once ended.
type customer struct {
	lease *runtime.Lease[tokens]
	err   error
	ended chan struct{}
}

// crowded runs f with a bucket of so many tokens. Each lease is one that holds so many of them already.
func crowded(
	t *testing.T,
	level int64,
	leases []int64,
	f func(*testing.T, *crowd, []*runtime.Lease[tokens]),
	opts ...storeChange,
) {
	t.Helper()
	crowdedFor(t, 10*time.Minute, level, leases, f, opts...)
}

// crowdedFor is crowded where overrides are remembered for so long.
func crowdedFor(
	t *testing.T,
	ttl time.Duration,
	level int64,
	leases []int64,
	f func(*testing.T, *crowd, []*runtime.Lease[tokens]),
	opts ...storeChange,
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		_, embeddings := generated(t)
		c := newCrowd(t, ttl, withNumbers(embeddings, 1, bucket.Per(100, time.Hour)), opts...)
		for _, n := range leases {
			level += n
		}
		c.put(c, row{Resource: "embeddings", CV: 1, Op: "before", Limits: map[string]bucket.Balance{
			"rps": {
				Limit:    bucket.Per(100, time.Hour),
				Tokens:   level * bucket.Milli,
				Consumed: (100 - level) * bucket.Milli,
			},
		}}.Item(t))
		if _, err := c.Peek(t.Context(), "1"); err != nil {
			t.Fatal(err)
		}
		var held []*runtime.Lease[tokens]
		for _, n := range leases {
			lease, err := c.Acquire(t.Context(), "1", tokens{n})
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, lease)
		}
		c.Paths = nil
		c.clock.set(known.TrustedFor + 1)
		c.wire.expect()
		c.gate.shut()
		f(t, c, held)
		c.wg.Wait()
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func newCrowd(t *testing.T, ttl time.Duration, def store.Definition, opts ...storeChange) *crowd {
	t.Helper()
	e, _ := newFaulty(t)
	e.ttl = ttl
	client, w := e.withNetwork()
	c := &crowd{T: t, engine: e, wire: w, gate: &gate{API: client, entity: "user-1"}}
	c.desk = e.desk(t, c.gate, def, opts...)
	return c
}

// ask has one more caller ask for n. When it returns, that one waits: for its turn, or for what it has sent.
func (c *crowd) ask(n int64, opts ...runtime.CallOption) *customer {
	return c.askWithin(c.Context(), n, opts...)
}

func (c *crowd) askWithin(ctx context.Context, n int64, opts ...runtime.CallOption) *customer {
	a := &customer{ended: make(chan struct{})}
	c.wg.Go(func() {
		defer close(a.ended)
		a.lease, a.err = c.Acquire(ctx, "1", tokens{n}, opts...)
	})
	synctest.Wait()
	return a
}

// settle has a caller state what a lease has cost.
func (c *crowd) settle(lease *runtime.Lease[tokens], n int64) *customer {
	a := &customer{ended: make(chan struct{})}
	c.wg.Go(func() {
		defer close(a.ended)
		a.err = lease.Settle(c.Context(), tokens{n})
	})
	synctest.Wait()
	return a
}

func (c *crowd) release(lease *runtime.Lease[tokens]) {
	c.wg.Go(func() { lease.Release(c.Context()) })
	synctest.Wait()
}

// pass lets one call through, and returns once the next is there.
func (c *crowd) pass() {
	c.gate.pass()
	synctest.Wait()
}

// end lets all through, and returns once everybody has been told.
func (c *crowd) end() {
	c.gate.open()
	c.wg.Wait()
}

// left holds the bucket to so many tokens, each of the others being consumed.
func (c *crowd) left(n int64) {
	c.Helper()
	tk, tc := c.balance(c, "embeddings", "rps")
	fill := bucket.Refill(
		bucket.Per(100, time.Hour),
		t0,
		number(c.get(c, item.BucketKey("user-1", "embeddings"))["rf"]),
	)
	if tk != n*bucket.Milli+fill || tc != (100-n)*bucket.Milli {
		c.Errorf("%d left and %d consumed, want %d and %d", tk, tc, n*bucket.Milli+fill, (100-n)*bucket.Milli)
	}
}

// admitted holds that all were.
func (c *crowd) admitted(all ...*customer) {
	c.Helper()
	for i, a := range all {
		if <-a.ended; a.err != nil {
			c.Errorf("caller %d: %v", i, a.err)
		}
	}
}

// denied holds that all were.
func (c *crowd) denied(all ...*customer) {
	c.Helper()
	for i, a := range all {
		if <-a.ended; !isA[*store.DeniedError](a.err) {
			c.Errorf("caller %d: %v, want a denial", i, a.err)
		}
	}
}

// TestOneWriteForAll serves the requests that come while a write is in flight by the next one, first come,
// first served. A request that no longer fits is decided by what is left at its turn.
func TestOneWriteForAll(t *testing.T) {
	crowded(t, 50, nil, func(t *testing.T, c *crowd, _ []*runtime.Lease[tokens]) {
		t.Helper()
		first := c.ask(10)
		second, large, third, fourth := c.ask(30), c.ask(20), c.ask(5), c.ask(3)
		c.end()
		c.admitted(first, second, third, fourth)
		denied, _ := errors.AsType[*store.DeniedError](large.err)
		want := []store.Refusal{{
			Resource: "embeddings", Entity: "user-1", Limit: "rps", Requested: 20, Available: 2,
			RetryAfter: 18*36*time.Second - 1001*time.Millisecond,
		}}
		if denied == nil {
			t.Fatalf("%v, want a denial", large.err)
		}
		if diff := cmp.Diff(want, denied.Refusals); diff != "" {
			t.Error(diff)
		}
		for _, a := range []*customer{second, third, fourth} {
			if got := a.lease.Remaining()[0]; got != 2 {
				t.Errorf("%d remain, want the 2 that their write left", got)
			}
		}
		c.calls(t, "retry applied", "retry applied")
		c.left(2)
	})
}

// TestNobodyWaitsTwice: a request that does not fit behind others is denied from the write that served these,
// without another wait. A later request is decided by the next write.
func TestNobodyWaitsTwice(t *testing.T) {
	crowded(t, 50, []int64{30}, func(t *testing.T, c *crowd, held []*runtime.Lease[tokens]) {
		t.Helper()
		first := c.ask(10)
		a, b, large, small := c.ask(15), c.ask(15), c.ask(30), c.ask(5)
		c.pass() // the first; then there are 40
		x, y := c.ask(2), c.ask(35)
		c.release(held[0])
		c.pass() // a, b and small; then there are 5
		<-large.ended
		denied, _ := errors.AsType[*store.DeniedError](large.err)
		if denied == nil || denied.Refusals[0].Available != 5 ||
			denied.RetryAfter != 25*36*time.Second-1001*time.Millisecond {
			t.Errorf("%v, want a denial with 5 left", large.err)
		}
		c.end() // x, and by the release y, whom 35 less x's 2 do not suffice
		c.admitted(first, a, b, small, x)
		c.denied(y)
		c.calls(t, "retry applied", "retry applied", "retry applied")
		c.left(33)
	})
}

// TestEachCallerItsOwn: those of one line end each in its own way, at its own time.
func TestEachCallerItsOwn(t *testing.T) {
	crowded(t, 50, nil, func(t *testing.T, c *crowd, _ []*runtime.Lease[tokens]) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		soon, over := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer over()
		began := time.Now()
		first, admitted := c.ask(10), c.ask(5)
		cancelled, hasty, timed := c.askWithin(
			ctx,
			6,
		), c.ask(
			6,
			runtime.Budget(10*time.Millisecond),
		), c.askWithin(
			soon,
			6,
		)
		never, denied, last := c.ask(101), c.ask(41), c.ask(7)

		// An abandoned call returns at once, though nothing has come back yet.
		cancel()
		<-cancelled.ended
		if took := time.Since(began); took != 0 {
			t.Errorf("the cancelled left after %v", took)
		}
		wantErr(t, cancelled.err, "context canceled embeddings user-1")
		for _, due := range []struct {
			*customer
			after time.Duration
		}{{hasty, 10 * time.Millisecond}, {timed, 20 * time.Millisecond}} {
			<-due.ended
			if took := time.Since(began); took != due.after || !errors.Is(due.err, context.DeadlineExceeded) {
				t.Errorf("left after %v, want %v: %v", took, due.after, due.err)
			}
		}
		wantErr(t, hasty.err, "unavailable embeddings: "+store.ErrNotSent.Error()+": context deadline exceeded")
		if !errors.Is(hasty.err, store.ErrNotSent) {
			t.Errorf("%v is not ErrNotSent", hasty.err)
		}
		c.end()
		c.admitted(first, admitted, last)
		c.denied(denied)
		if exceeds, ok := errors.AsType[*store.CostTooLargeError](never.err); !ok || exceeds.Requested != 101 {
			t.Errorf("%v, want that it can never be", never.err)
		}
		c.calls(t, "retry applied", "retry applied")
		c.left(50 - 10 - 5 - 7)
	})
}

// TestLeavesInFlight: who leaves while its write is in flight is given back what that has charged; the others
// stay served.
func TestLeavesInFlight(t *testing.T) {
	crowded(t, 50, nil, func(t *testing.T, c *crowd, _ []*runtime.Lease[tokens]) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		first, a, abandoned, b := c.ask(10), c.ask(5), c.askWithin(ctx, 7), c.ask(9)
		c.pass()
		cancel()
		<-abandoned.ended
		wantErr(t, abandoned.err, "context canceled embeddings user-1")
		c.end()
		c.admitted(first, a, b)
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		c.calls(t, "retry applied", "retry applied", "adjust applied")
		c.left(50 - 10 - 5 - 9)
	})
}

// TestFirstLeavesInFlight: who works for itself when others come may leave as well, and they do not suffer
// for it.
func TestFirstLeavesInFlight(t *testing.T) {
	crowded(t, 50, nil, func(t *testing.T, c *crowd, _ []*runtime.Lease[tokens]) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		first, a, b := c.askWithin(ctx, 10), c.ask(5), c.ask(9)
		cancel() // what it has sent never arrives
		<-first.ended
		wantErr(t, first.err, "context canceled embeddings user-1")
		c.end()
		c.admitted(a, b)
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		for what, want := range map[string]int{"retry unknown": 1, "retry applied": 1, "undo refused": 1} {
			if got := c.count(what); got != want {
				t.Errorf("%d times %s, want %d", got, what, want)
			}
		}
		c.left(50 - 5 - 9)
	})
}

// TestDeadlineInFlight: a request whose deadline passes while its write is in flight fails. Its part is given
// back once the outcome is known; the rest of the write goes on.
func TestDeadlineInFlight(t *testing.T) {
	for name, mishap := range map[string]mishap{"lost reply": loseReply, "lost request": loseRequest} {
		t.Run(name, func(t *testing.T) {
			crowded(t, 50, nil, func(t *testing.T, c *crowd, _ []*runtime.Lease[tokens]) {
				t.Helper()
				c.wire.expect(pass, mishap)
				first, a, hasty, b := c.ask(10), c.ask(5), c.ask(7, runtime.Budget(200*time.Millisecond)), c.ask(9)
				c.pass()
				c.pass() // now nobody knows whether all three are charged; and what goes again is held
				<-hasty.ended
				if !isA[*store.UnavailableError](hasty.err) || !errors.Is(hasty.err, context.DeadlineExceeded) {
					t.Errorf("%v, want that its time was up", hasty.err)
				}
				c.end()
				c.admitted(first, a, b)
				if err := c.Close(t.Context()); err != nil {
					t.Error(err)
				}
				c.left(50 - 10 - 5 - 9)
			})
		})
	}
}

// TestDeadlineAfterALostRace: whose time is up while another try is under way is promised nothing.
func TestDeadlineAfterALostRace(t *testing.T) {
	crowded(t, 50, nil, func(t *testing.T, c *crowd, _ []*runtime.Lease[tokens]) {
		t.Helper()
		_, embeddings := generated(t)
		other := c.engine.desk(t, c.client, withNumbers(embeddings, 1, bucket.Per(100, time.Hour)))
		first, a, hasty := c.ask(10), c.ask(15), c.ask(12, runtime.Budget(300*time.Millisecond))
		c.pass()
		if _, err := other.Acquire(t.Context(), "1", tokens{20}); err != nil {
			t.Fatal(err)
		}
		c.pass() // refused: 20 are left, which hasty might have after a
		<-hasty.ended
		// The next write may be under way by now: what it charges is given back.
		if lost, ok := errors.AsType[*store.ContendedError](hasty.err); !ok || lost.Attempts == 0 {
			t.Errorf("%#v, want lost races", hasty.err)
		}
		c.end()
		c.admitted(first, a)
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		c.left(50 - 10 - 20 - 15)
	})
}

// TestAllLeaveInFlight: where nobody is left who would care for the outcome of a write, it is given back as a
// whole.
func TestAllLeaveInFlight(t *testing.T) {
	for name, test := range map[string]struct {
		mishap   mishap
		reversal string
	}{"lost reply": {loseReply, "undo applied"}, "lost request": {loseRequest, "undo refused"}} {
		t.Run(name, func(t *testing.T) {
			crowded(t, 50, nil, func(t *testing.T, c *crowd, _ []*runtime.Lease[tokens]) {
				t.Helper()
				ctx, cancel := context.WithCancel(t.Context())
				c.wire.expect(pass, test.mishap)
				first, a, b := c.ask(10), c.askWithin(ctx, 5), c.askWithin(ctx, 9)
				c.pass()
				cancel()
				<-a.ended
				<-b.ended
				c.end()
				c.admitted(first)
				if err := c.Close(t.Context()); err != nil {
					t.Error(err)
				}
				c.calls(t, "retry applied", "retry unknown", test.reversal)
				c.left(50 - 10)
			})
		})
	}
}

// TestCloseWaitsForTheLine: Close returns when the last write that somebody waited for is done with, and what
// became of it.
func TestCloseWaitsForTheLine(t *testing.T) {
	crowded(t, 50, nil, func(t *testing.T, c *crowd, _ []*runtime.Lease[tokens]) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		first, a, b := c.ask(10), c.askWithin(ctx, 5), c.askWithin(ctx, 9)
		c.pass()
		cancel()
		<-a.ended
		<-b.ended
		if err := c.Close(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Close with a context that is over: %v", err)
		}
		c.end()
		c.admitted(first)
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		c.left(50 - 10)
	})
}

// TestSettlesTogether: acquires, settles and releases that wait at once are one write.
func TestSettlesTogether(t *testing.T) {
	crowded(t, 50, []int64{10, 10}, func(t *testing.T, c *crowd, held []*runtime.Lease[tokens]) {
		t.Helper()
		first := c.ask(5)
		up := c.settle(held[0], 25)
		c.release(held[1])
		last := c.ask(3)
		c.end()
		c.admitted(first, up, last)
		c.calls(t, "retry applied", "retry applied")
		c.left(50 - 5 - 15 + 10 - 3)
		for _, lease := range []*runtime.Lease[tokens]{held[0], held[1], last.lease} {
			if got := lease.Remaining()[0]; got != 37 {
				t.Errorf("%d remain, want 37", got)
			}
		}
		if len(c.Failures) > 0 {
			t.Errorf("reported %v", c.Failures)
		}
	})
}

// TestGivenToTheNext: released tokens are there for acquires in the same write, in any order of arrival.
// Settles that take go into debt, and deny no acquire of the same write.
func TestGivenToTheNext(t *testing.T) {
	t.Run("released before", func(t *testing.T) {
		crowded(t, 10, []int64{30}, func(t *testing.T, c *crowd, held []*runtime.Lease[tokens]) {
			t.Helper()
			first := c.ask(5)
			c.release(held[0])
			second := c.ask(20)
			c.end()
			c.admitted(first, second)
			c.calls(t, "retry applied", "retry applied")
			c.left(15)
		})
	})
	t.Run("released after", func(t *testing.T) {
		crowded(t, 10, []int64{30}, func(t *testing.T, c *crowd, held []*runtime.Lease[tokens]) {
			t.Helper()
			first, second := c.ask(5), c.ask(20)
			c.release(held[0])
			c.end()
			c.admitted(first, second)
			c.calls(t, "retry applied", "retry applied")
			c.left(15)
		})
	})
	t.Run("beyond the burst", func(t *testing.T) { // more than there can be at once is not given away
		crowded(t, 20, []int64{40, 40}, func(t *testing.T, c *crowd, held []*runtime.Lease[tokens]) {
			t.Helper()
			first := c.ask(5)
			c.release(held[0])
			c.release(held[1])
			a, b := c.ask(60), c.ask(50)
			c.end()
			c.admitted(first, a)
			c.denied(b)
			c.left(35)
		})
	})
	t.Run("into debt", func(t *testing.T) {
		crowded(t, 15, []int64{1}, func(t *testing.T, c *crowd, held []*runtime.Lease[tokens]) {
			t.Helper()
			first := c.ask(5)
			up := c.settle(held[0], 21)
			second := c.ask(8)
			c.end()
			c.admitted(first, second, up)
			c.calls(t, "retry applied", "retry applied")
			c.left(15 - 5 - 8 - 20)
		})
	})
}

// TestTogetherOnce lets each way in which a reply is lost befall a write for several: all are admitted, and
// charged once.
func TestTogetherOnce(t *testing.T) {
	for path, at := range map[string]struct{ now, last int64 }{
		"retry":  {known.TrustedFor + 1, 1},
		"normal": {360_000, 16}, // 10 more by then
	} {
		for name, test := range map[string]struct {
			mishap mishap
			calls  []string
		}{
			"lost reply":   {loseReply, []string{" unknown", " refused"}},
			"cut reply":    {cutReply, []string{" unknown", " refused"}},
			"lost request": {loseRequest, []string{" unknown", " applied"}},
			"500":          {fail500, []string{" unknown", " refused"}},
			"duplicate":    {duplicate, []string{" refused"}},
			"throttled":    {reject("ThrottlingException", "slow down"), []string{" throttled", " applied"}},
		} {
			t.Run(path+"/"+name, func(t *testing.T) {
				crowded(t, 50, nil, func(t *testing.T, c *crowd, _ []*runtime.Lease[tokens]) {
					t.Helper()
					c.clock.set(at.now)
					c.wire.expect(pass, test.mishap)
					first, a, b, last := c.ask(5), c.ask(10), c.ask(20), c.ask(at.last)
					c.end()
					c.admitted(first, a, b, last)
					calls := []string{"retry applied"}
					for _, outcome := range test.calls {
						calls = append(calls, path+outcome)
					}
					c.calls(t, calls...)
					c.wire.writes(t, len(calls))
					c.left(50 - 5 - 10 - 20 - at.last)
				})
			})
		}
	}
}

// TestOpOfTheIncluded: the op of a write of unknown outcome stands for the requests that it included. One
// that comes later, or that was left over, is in none of its repetitions, though it would fit by then.
func TestOpOfTheIncluded(t *testing.T) {
	for name, late := range map[string]bool{"late": true, "left over": false} {
		t.Run(name, func(t *testing.T) {
			crowded(t, 15, nil, func(t *testing.T, c *crowd, _ []*runtime.Lease[tokens]) {
				t.Helper()
				c.wire.expect(pass, func(w *network, apply func() (*http.Response, error)) (*http.Response, error) {
					c.clock.set(100_000) // 2 more, which Retry does not take
					return loseReply(w, apply)
				}, loseReply, pass)
				first, a := c.ask(5), c.ask(5)
				var other *customer
				if !late {
					other = c.ask(7)
				}
				c.pass()
				if late {
					other = c.ask(7)
				}
				c.end()
				c.admitted(first, a, other)
				c.calls(t, "retry applied", "retry unknown", "retry unknown", "retry refused", "normal applied")
				c.left(15 - 5 - 5 - 7)
			})
		})
	}
}

// TestLateCallerWasNotSent: a caller that comes while the outcome of others' write is unknown, and leaves
// before there is one, was certainly not charged.
func TestLateCallerWasNotSent(t *testing.T) {
	crowded(t, 15, nil, func(t *testing.T, c *crowd, _ []*runtime.Lease[tokens]) {
		t.Helper()
		c.wire.expect(loseRequest)
		first := c.ask(5)
		c.pass()
		late := c.ask(5, runtime.Budget(time.Second))
		<-late.ended
		c.end()
		c.admitted(first)
		unavailable, ok := errors.AsType[*store.UnavailableError](late.err)
		if !ok || unavailable.Attempts != 0 || !errors.Is(late.err, store.ErrNotSent) ||
			!errors.Is(late.err, context.DeadlineExceeded) {
			t.Errorf("%v, want that nothing was sent", late.err)
		}
		c.left(10)
	})
}

// TestReleaseTogetherOnce: a release in a write of unknown outcome is not sent again, and says so; who came
// with it is served.
func TestReleaseTogetherOnce(t *testing.T) {
	for name, test := range map[string]struct {
		mishap mishap
		calls  []string
		back   int64
		fails  bool
	}{
		"lost reply":   {loseReply, []string{"retry applied", "retry unknown", "retry refused"}, 10, true},
		"lost request": {loseRequest, []string{"retry applied", "retry unknown", "retry applied"}, 0, true},
		"throttled": {reject("ThrottlingException", ""), []string{"retry applied", "retry throttled",
			"retry applied"}, 10, false},
		"duplicate": {duplicate, []string{"retry applied", "retry refused"}, 10, false},
	} {
		t.Run(name, func(t *testing.T) {
			crowded(t, 40, []int64{10}, func(t *testing.T, c *crowd, held []*runtime.Lease[tokens]) {
				t.Helper()
				c.wire.expect(pass, test.mishap)
				first, a := c.ask(5), c.ask(3)
				c.release(held[0])
				b := c.ask(7)
				c.end()
				c.admitted(first, a, b)
				c.calls(t, test.calls...)
				c.left(40 - 5 - 3 - 7 + test.back)
				if reported := len(c.Failures) > 0; reported != test.fails {
					t.Errorf("reported %v", c.Failures)
				}
				for _, err := range c.Failures {
					if u, ok := errors.AsType[*store.UnavailableError](err); !ok || u.Attempts != 1 {
						t.Errorf("reported %v, want an UnavailableError after 1 attempt", err)
					}
				}
			})
		})
	}
}

// TestTogetherTooLate: others have taken what a write for several was to take. They are chosen anew by what
// is left.
func TestTogetherTooLate(t *testing.T) {
	crowded(t, 50, nil, func(t *testing.T, c *crowd, _ []*runtime.Lease[tokens]) {
		t.Helper()
		_, embeddings := generated(t)
		other := c.engine.desk(t, c.client, withNumbers(embeddings, 1, bucket.Per(100, time.Hour)))
		first, a, b, small := c.ask(10), c.ask(12), c.ask(10), c.ask(3)
		c.pass()
		if _, err := other.Acquire(t.Context(), "1", tokens{25}); err != nil {
			t.Fatal(err)
		}
		c.end()
		c.admitted(first, a, small)
		c.denied(b)
		c.calls(t, "retry applied", "retry refused", "retry applied")
		c.left(50 - 10 - 25 - 12 - 3)
	})
}

// TestLateCopyOfTheWhole: a request that was for more callers than its repetition arrives after all, and
// ahead of that: it is for all of them. A caller who was denied meanwhile is given back what it charged, also
// if the repetition may have been applied instead. If that was, nothing is given back.
func TestLateCopyOfTheWhole(t *testing.T) {
	for name, test := range map[string]struct {
		burst, b   int64  // what there is, and what the second of two callers takes
		repetition mishap // nil: the reply is not lost
		late       bool
		denied     bool
		calls      []string
		left       int64
	}{
		"both wait":     {45, 20, nil, true, false, []string{"retry refused"}, 0},
		"one is denied": {55, 30, nil, true, true, []string{"retry refused", "adjust applied"}, 30},
		"one is denied, and the repetition is lost": {
			55, 30, loseRequest, true, true, []string{"retry unknown", "retry refused", "adjust applied"}, 30,
		},
		"one is denied, and the repetition is applied": {
			55, 30, loseReply, false, true, []string{"retry unknown", "retry refused"}, 5,
		},
	} {
		t.Run(name, func(t *testing.T) {
			crowded(t, test.burst, nil, func(t *testing.T, c *crowd, _ []*runtime.Lease[tokens]) {
				t.Helper()
				_, embeddings := generated(t)
				other := c.engine.desk(t, c.client, withNumbers(embeddings, 1, bucket.Per(100, time.Hour)))
				var taken *runtime.Lease[tokens]
				mishaps := []mishap{
					pass, delay,
					// refused: 25 are left
					func(_ *network, apply func() (*http.Response, error)) (*http.Response, error) {
						var err error
						took := tokens{test.burst - 5 - 25}
						if taken, err = other.Acquire(context.WithoutCancel(t.Context()), "1", took); err != nil {
							t.Error(err)
						}
						return apply()
					},
				}
				if test.repetition != nil {
					mishaps = append(mishaps, test.repetition)
				}
				if test.late {
					mishaps = append(mishaps, // for one of the two
						func(w *network, apply func() (*http.Response, error)) (*http.Response, error) {
							taken.Release(context.WithoutCancel(t.Context()))
							if codes := w.arrive(t); !slices.Equal(codes, []int{http.StatusOK}) {
								t.Errorf("the late copy was answered %v, want it applied", codes)
							}
							return apply()
						})
				}
				c.wire.expect(mishaps...)
				first, a, b := c.ask(5), c.ask(20), c.ask(test.b)
				c.end()
				if err := c.Close(t.Context()); err != nil { // which waits for what is given back
					t.Error(err)
				}
				c.admitted(first, a)
				if test.denied {
					c.denied(b)
				} else {
					c.admitted(b)
				}
				c.calls(t, append([]string{"retry applied", "retry unknown", "retry refused"}, test.calls...)...)
				c.left(test.left)
			})
		})
	}
}

// TestLateCopyIsReversed: the caller of the repetition leaves too. All that the late copy charged is given
// back, not only what the repetition asked for.
func TestLateCopyIsReversed(t *testing.T) {
	crowded(t, 55, nil, func(t *testing.T, c *crowd, _ []*runtime.Lease[tokens]) {
		t.Helper()
		_, embeddings := generated(t)
		other := c.engine.desk(t, c.client, withNumbers(embeddings, 1, bucket.Per(100, time.Hour)))
		var taken *runtime.Lease[tokens]
		ctx, cancel := context.WithCancel(t.Context())
		arrived := make(chan struct{})
		c.wire.expect(pass, delay,
			func(_ *network, apply func() (*http.Response, error)) (*http.Response, error) {
				var err error
				if taken, err = other.Acquire(context.WithoutCancel(t.Context()), "1", tokens{25}); err != nil {
					t.Error(err)
				}
				return apply()
			},
			// a alone: lost, and a leaves
			func(*network, func() (*http.Response, error)) (*http.Response, error) {
				cancel()
				return nil, errWire
			},
			// The reversals of the two writes, at the same time: neither comes before the late copy.
			func(w *network, apply func() (*http.Response, error)) (*http.Response, error) {
				defer close(arrived)
				taken.Release(context.WithoutCancel(t.Context()))
				if codes := w.arrive(t); !slices.Equal(codes, []int{http.StatusOK}) {
					t.Errorf("the late copy was answered %v, want it applied", codes)
				}
				return apply()
			},
			func(_ *network, apply func() (*http.Response, error)) (*http.Response, error) {
				<-arrived
				return apply()
			},
		)
		first, a, b := c.ask(5), c.askWithin(ctx, 20), c.ask(30)
		c.end()
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if !errors.Is(a.err, context.Canceled) {
			t.Errorf("who left: %v", a.err)
		}
		c.admitted(first)
		c.denied(b)
		c.left(50) // 55-5: a has left, b was denied
	})
}

// TestTogetherDeleted: a bucket that has been deleted meanwhile is created for all who wait. Refunds of
// settles count against what settles take, and no more: the rest is there already.
func TestTogetherDeleted(t *testing.T) {
	crowded(t, 50, []int64{10, 10}, func(t *testing.T, c *crowd, held []*runtime.Lease[tokens]) {
		t.Helper()
		first, a := c.ask(5), c.ask(7)
		up := c.settle(held[0], 30)
		c.release(held[1])
		b := c.ask(3)
		if _, err := c.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
			TableName: &c.table, Key: item.BucketKey("user-1", "embeddings"),
		}); err != nil {
			t.Fatal(err)
		}
		c.end()
		c.admitted(first, a, up, b)
		c.calls(t, "retry refused", "create applied")
		if tk, tc := c.balance(t, "embeddings", "rps"); tk != 75_000 || tc != 25_000 {
			t.Errorf("%d left and %d consumed, want 75000 and 25000", tk, tc)
		}
		if len(c.Failures) > 0 {
			t.Errorf("reported %v", c.Failures)
		}
	})
}

// TestTogetherReshaped: a bucket that is to have other limits is given them with all who acquire; who settles
// follows.
func TestTogetherReshaped(t *testing.T) {
	ttl := 500 * time.Millisecond // too short to write before they are read
	crowdedFor(t, ttl, 40, []int64{10}, func(t *testing.T, c *crowd, held []*runtime.Lease[tokens]) {
		t.Helper()
		_, embeddings := generated(t)
		c.manager(withNumbers(embeddings, 1, bucket.Per(100, time.Hour)), 0).set(t, "user-1", per(60))
		c.clock.set(600_000)
		first, a := c.ask(5), c.ask(7) // the first reads what is due
		c.release(held[0])
		b := c.ask(3)
		c.end()
		c.admitted(first, a, b)
		c.calls(t, "levels found", "levels found", "reshape applied", "adjust applied")
		if tk, tc := c.balance(t, "embeddings", "rps"); tk != 40_000+16_666-15_000+10_000 ||
			tc != 60_000+15_000-10_000 {
			t.Errorf("%d left and %d consumed, want 51666 and 65000", tk, tc)
		}
	})
}

// TestTogetherExhausted: where the store does not answer, each is told after how many attempts; who comes
// then is served.
func TestTogetherExhausted(t *testing.T) {
	crowded(t, 50, nil, func(t *testing.T, c *crowd, _ []*runtime.Lease[tokens]) {
		t.Helper()
		c.wire.expect(pass, refuseConnection, refuseConnection)
		first, a, b := c.ask(10), c.ask(5), c.ask(9)
		c.pass()
		c.pass()
		late := c.ask(3) // has only one of the attempts
		c.end()
		c.admitted(first, late)
		for _, r := range []*customer{a, b} {
			if u, ok := errors.AsType[*store.UnavailableError](r.err); !ok || u.Attempts != 2 || u.Throttled {
				t.Errorf("%v, want an UnavailableError after 2 attempts", r.err)
			}
		}
		c.left(50 - 10 - 3)
	}, option(Attempts(2)))
}

// TestTogetherRefused: all requests of a write get its *store.SetupError.
func TestTogetherRefused(t *testing.T) {
	crowded(t, 50, []int64{10}, func(t *testing.T, c *crowd, held []*runtime.Lease[tokens]) {
		t.Helper()
		c.wire.expect(pass, reject("AccessDeniedException", "not you"))
		first, a, b, up := c.ask(10), c.ask(5), c.ask(9), c.settle(held[0], 20)
		c.end()
		c.admitted(first)
		for _, r := range []*customer{a, b, up} {
			if !isA[*store.SetupError](r.err) {
				t.Errorf("%v, want a SetupError", r.err)
			}
		}
		if _, err := c.Acquire(t.Context(), "1", tokens{1}); err != nil {
			t.Error(err)
		}
		c.calls(t, "retry applied", "retry failed", "retry applied")
		c.left(50 - 10 - 1)
	})
}

// TestTogetherDropped: in a bucket where a limit is missing, no request of a batch is charged for it, and
// none gives it back.
func TestTogetherDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gpt4, _ := generated(t)
		c := newCrowd(t, 10*time.Minute, withNumbers(gpt4, 2, userRPM, userTPM))
		c.ttl = 24 * time.Hour
		c.put(
			t,
			row{
				CV:     3,
				Op:     "before",
				Limits: map[string]bucket.Balance{"rpm": {Limit: userRPM, Tokens: 50_000, Consumed: 50_000}},
			}.Item(
				t,
			),
		)
		c.gate.shut()
		var all []*customer
		for range 4 {
			a := &customer{ended: make(chan struct{})}
			c.wg.Go(func() {
				defer close(a.ended)
				a.lease, a.err = c.Acquire(t.Context(), "1", tokens{10, 500})
			})
			synctest.Wait()
			all = append(all, a)
		}
		c.end()
		c.admitted(all...)
		c.calls(t, "read found", "generic retry applied") // who waits for a read is served together with who reads
		c.charged(t, 40_000)
		c.gate.shut()
		for _, a := range all {
			c.release(a.lease)
		}
		c.end()
		c.calls(t, "generic adjust applied", "generic adjust applied")
		c.charged(t, 0)
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestDifferentBucketsDoNotWait for each other.
func TestDifferentBucketsDoNotWait(t *testing.T) {
	crowded(t, 50, nil, func(t *testing.T, c *crowd, _ []*runtime.Lease[tokens]) {
		t.Helper()
		first := c.ask(10)
		if _, err := c.Acquire(t.Context(), "2", tokens{10}); err != nil {
			t.Error(err)
		}
		c.calls(t, "read missing", "create applied")
		c.end()
		c.admitted(first)
	})
}

// TestSameChainTogether: acquires of chains with the same parent are one transaction, siblings included. One
// that is denied, or can never be served, fails no other.
func TestSameChainTogether(t *testing.T) {
	for name, test := range map[string]struct {
		mishap mishap
		calls  []string
	}{
		"as it should be": {pass, []string{"transact applied"}},
		"lost reply":      {loseReply, []string{"transact unknown", "transact applied"}},
		"lost request":    {loseRequest, []string{"transact unknown", "transact applied"}},
		"conflict": {cancel("TransactionConflict", "None", "None"),
			[]string{"transact conflict", "transact applied"}},
		"throttled": {
			cancel("ThrottlingError", "None", "None"), []string{"transact throttled", "transact applied"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			chained(t, func(t *testing.T, c *chain) {
				t.Helper()
				first := c.ask(t.Context(), alicesHome, 1)
				a, b, tooMuch, never := c.ask(t.Context(), alicesHome, 3), c.ask(t.Context(), alicesHome, 4),
					c.ask(t.Context(), alicesHome, 95), c.ask(t.Context(), alicesHome, 101)
				sibling := c.ask(t.Context(), member{"2", "1"}, 20)
				c.wire.expect(pass, test.mishap)
				c.end()
				for _, r := range []*customer{first, a, b, sibling} {
					if r.err != nil {
						t.Error(r.err)
					}
				}
				denied, ok := errors.AsType[*store.DeniedError](tooMuch.err)
				if !ok || denied.Entity != "user-1" || len(denied.Refusals) != 1 {
					t.Errorf("%v, want a denial by the user alone", tooMuch.err)
				}
				if !isA[*store.CostTooLargeError](never.err) {
					t.Errorf("%v, want that it can never be", never.err)
				}
				if got := c.Paths; !slices.Equal(
					slices.DeleteFunc(slices.Clone(got), func(s string) bool { return s == "read found" }),
					append([]string{"transact applied"}, test.calls...),
				) {
					t.Errorf("calls %q", got)
				}
				c.holding(t, "user-1 91 9", "user-2 79 21", "project-1 970 30")
			})
		})
	}
}

// TestChainLeftInFlight: who leaves while the transaction is in flight is given back in every bucket what it
// turns out to have been charged.
func TestChainLeftInFlight(t *testing.T) {
	for name, mishap := range map[string]mishap{"applied": pass, "lost reply": loseReply,
		"lost request": loseRequest} {
		t.Run(name, func(t *testing.T) {
			chained(t, func(t *testing.T, c *chain) {
				t.Helper()
				ctx, cancel := context.WithCancel(t.Context())
				c.wire.expect(pass, mishap)
				first, a, abandoned := c.ask(
					t.Context(),
					alicesHome,
					1,
				), c.ask(
					t.Context(),
					alicesHome,
					3,
				), c.ask(
					ctx,
					alicesHome,
					4,
				)
				c.gate.pass()
				synctest.Wait()
				cancel()
				<-abandoned.ended
				if !errors.Is(abandoned.err, context.Canceled) {
					t.Error(abandoned.err)
				}
				c.end()
				if first.err != nil || a.err != nil {
					t.Error(first.err, a.err)
				}
				if err := c.Close(t.Context()); err != nil {
					t.Error(err)
				}
				c.holding(t, "user-1 95 5", "project-1 994 6")
			})
		})
	}
}

// TestChainTogetherTooLate: others have drained the parent. Those of the line are chosen anew by what it has
// left.
func TestChainTogetherTooLate(t *testing.T) {
	chained(t, func(t *testing.T, c *chain) {
		t.Helper()
		first, a, b, last := c.ask(
			t.Context(),
			alicesHome,
			1,
		), c.ask(
			t.Context(),
			alicesHome,
			30,
		), c.ask(
			t.Context(),
			alicesHome,
			40,
		), c.ask(
			t.Context(),
			alicesHome,
			10,
		)
		c.gate.pass()
		synctest.Wait()
		c.other.acquire(t, member{project: "1"}, 955) // of 997
		c.end()
		if first.err != nil || a.err != nil || last.err != nil {
			t.Error(first.err, a.err, last.err)
		}
		if denied, ok := errors.AsType[*store.DeniedError](b.err); !ok || denied.Entity != "project-1" {
			t.Errorf("%v, want a denial by the project", b.err)
		}
		if n := c.count("transact refused"); n != 1 {
			t.Errorf("%d transactions were refused, want 1", n)
		}
		c.holding(t, "user-1 58 42", "project-1 2 998")
	})
}

// TestChainBehind: a transaction returns no image, so that what it leaves is predicted. That refuses nobody:
// others may have given something back.
func TestChainBehind(t *testing.T) {
	chained(t, func(t *testing.T, c *chain) {
		t.Helper()
		c.gate.open()
		c.acquire(t, alicesHome, 40)
		c.gate.shut()
		back := c.get(t, item.BucketKey("user-1", "embeddings")) // 59 are left
		back["b_rps_tk"], back["b_rps_tc"] = codec.N(99_000), codec.N(1000)
		c.put(t, back)
		first, a, b := c.ask(
			t.Context(),
			alicesHome,
			1,
		), c.ask(
			t.Context(),
			alicesHome,
			30,
		), c.ask(
			t.Context(),
			alicesHome,
			50,
		)
		c.end()
		if first.err != nil || a.err != nil || b.err != nil {
			t.Error(first.err, a.err, b.err)
		}
		c.holding(t, "user-1 18 82")
	})
}

// TestParentTogether: children of one parent, compensated: each is charged by itself, their parent for all
// who wait.
func TestParentTogether(t *testing.T) {
	const children = 16
	synctest.Test(t, func(t *testing.T) {
		e, _ := newFaulty(t)
		e.ttl = 24 * time.Hour
		s := spend(t, e, &meter{API: e.client}, store.CascadeCompensated)
		for i := range children {
			s.h.acquire(t, member{fmt.Sprint(i), "1"}, 1)
		}
		s.take(member{project: "1"}, 1000-children-10) // 10 are left
		s.later()
		s.h.calls(t, s.h.Paths...)
		errs := make([]error, children)
		s.atOnce(
			sixteen(
				func(i int) { _, errs[i] = s.h.at[0].Acquire(t.Context(), member{fmt.Sprint(i), "1"}, tokens{1}) },
			)...)
		admitted := 0
		for i, err := range errs {
			_, tc := s.held(t, fmt.Sprint("user-", i))
			switch {
			case err == nil && tc == 2:
				admitted++
			case !isA[*store.DeniedError](err) || tc != 1: // given back
				t.Errorf("child %d was charged %d: %v", i, tc, err)
			}
		}
		s.holding(t, "project-1 0 1000")
		if admitted != 10 || s.h.count("retry applied") > children+2 {
			t.Errorf("%d admitted by %d charges, want 10 by %d", admitted, s.h.count("retry applied"), children+2)
		}
	})
}

// chain is a process, in a bubble of testing/synctest, that has charged a token each to alice and bob, of
// project 1.
type chain struct {
	*engine
	*house
	other *house
	wire  *network
	gate  *gate // shut, for user-1
	wg    sync.WaitGroup
}

func chained(t *testing.T, f func(*testing.T, *chain)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		_, embeddings := generated(t)
		hour := func(n int64) []bucket.Limit { return []bucket.Limit{bucket.Per(n, time.Hour)} }
		def := family(embeddings, store.CascadeAtomic, hour(1000), hour(100))
		e, _ := newFaulty(t)
		e.ttl = 24 * time.Hour
		client, w := e.withNetwork()
		c := &chain{
			engine: e,
			wire:   w,
			gate:   &gate{API: client, entity: "user-1"},
			other:  e.house(t, e.client, def),
		}
		c.house = e.house(t, c.gate, def)
		c.acquire(t, alicesHome, 1)
		c.acquire(t, member{"2", "1"}, 1)
		c.Paths = nil
		c.gate.shut()
		f(t, c)
		c.wg.Wait()
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func (c *chain) ask(ctx context.Context, m member, n int64) *customer {
	a := &customer{ended: make(chan struct{})}
	c.wg.Go(func() {
		defer close(a.ended)
		a.lease, a.err = c.at[0].Acquire(ctx, m, tokens{n})
	})
	synctest.Wait()
	return a
}

func (c *chain) end() {
	c.gate.open()
	c.wg.Wait()
}
