package dynamo

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/known"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/pace"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/store"
)

// Requests in one queue must not suffer for each other: not for a slow table, an unanswered request, a lost
// reply, or a caller with less time.

// slowReads is an API whose reads take longer than an image stays young.
type slowReads struct {
	wire.API
	clock *handClock
}

func (c *slowReads) GetItem(
	ctx context.Context,
	in *dynamodb.GetItemInput,
	opts ...func(*dynamodb.Options),
) (*dynamodb.GetItemOutput, error) {
	defer c.clock.Since.Add(known.StaleAfter + 1)
	return c.API.GetItem(ctx, in, opts...)
}

func (c *slowReads) BatchGetItem(
	ctx context.Context,
	in *dynamodb.BatchGetItemInput,
	opts ...func(*dynamodb.Options),
) (*dynamodb.BatchGetItemOutput, error) {
	defer c.clock.Since.Add(known.StaleAfter + 1)
	return c.API.BatchGetItem(ctx, in, opts...)
}

// waits holds that a has not ended yet, or that it has.
func (c *crowd) waits(a *customer, want bool) {
	c.Helper()
	synctest.Wait()
	got := true
	select {
	case <-a.ended:
		got = false
	default:
	}
	if got != want {
		c.Errorf("the caller waits: %t, want %t", got, want)
	}
}

// TestDoubtEnds: what was read for a write is written by, however long the read took. It would be doubted for
// its age again and again, until the caller's time is up.
func TestDoubtEnds(t *testing.T) {
	gpt4, _ := generated(t)
	for name, ttl := range map[string]time.Duration{
		"the bucket alone": time.Hour, "the bucket and its overrides": 500 * time.Millisecond,
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			e.ttl = ttl
			e.put(t, row{CV: 1, Op: "before", Limits: holds(50_000, 50_000, 10_000_000, 5_000_000)}.Item(t))
			def := withNumbers(gpt4, 1, userRPM, userTPM)
			d, other := e.desk(t, &slowReads{e.client, &e.clock}, def), e.desk(t, e.client, def)
			if _, err := d.Peek(t.Context(), "1"); err != nil {
				t.Fatal(err)
			}
			if _, err := other.Acquire(t.Context(), "1", tokens{48, 0}); err != nil {
				t.Fatal(err)
			}
			if _, err := d.Acquire(t.Context(), "1", tokens{10, 0}); !isA[*store.DeniedError](err) {
				t.Fatal(err)
			}
			d.calls(t, "read found", "retry refused") // so that d knows of others
			e.clock.set(4000)
			if _, err := d.Acquire(t.Context(), "1", tokens{6, 0}); err != nil {
				t.Error(err)
			}
			d.calls(t, "read found", "normal applied")
		})
	}
}

// TestAdmittedByALostReply: a release made room for two, and the reply to the write of all three is lost. The
// second is not judged by what was there before, which has no room for it without the release: it was
// charged.
func TestAdmittedByALostReply(t *testing.T) {
	for name, test := range map[string]struct {
		a, b  int64
		calls []string
	}{
		"it would fit alone":     {5, 5, []string{"retry applied", "retry unknown", "retry refused"}},
		"it would not fit alone": {4, 6, []string{"retry applied", "retry unknown", "read found"}},
	} {
		t.Run(name, func(t *testing.T) {
			crowded(t, 6, []int64{14}, func(t *testing.T, c *crowd, held []*runtime.Lease[tokens]) {
				t.Helper()
				c.wire.expect(pass, loseReply)
				first := c.ask(1)
				back := c.settle(held[0], 9)
				a, b := c.ask(test.a), c.ask(test.b)
				c.end()
				c.admitted(first, a, b)
				if <-back.ended; !isA[*store.UnavailableError](back.err) {
					t.Errorf("%v, want that it is not known what became of the give-back", back.err)
				}
				c.calls(t, test.calls...)
				c.left(0)
			})
		})
	}
}

// TestReleasesOfDifferentTime: a release is not cut off by the deadline of another in the same write. It
// could not go again.
func TestReleasesOfDifferentTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, embeddings := generated(t)
		def := withNumbers(embeddings, 1, bucket.Per(100, time.Hour))
		table := newSimTable(1, embeddings.Decode)
		table.maxDelay = 0
		g := &gate{API: table, entity: "user-1"}
		p := newProcess(t, g, 1, 0, nil, def)
		acquire := func() *store.Call {
			call, err := p.acquire(t.Context(), def, []int64{10_000})
			if err != nil {
				t.Error(err)
			}
			return call
		}
		a, b := acquire(), acquire()
		g.shut()
		hasty, cancel := context.WithTimeout(t.Context(), 350*time.Millisecond)
		defer cancel()
		var errHasty, err error
		var wg sync.WaitGroup
		wg.Go(func() { acquire() })
		synctest.Wait()
		wg.Go(func() { errHasty = p.settle(hasty, a, []int64{0}) })
		wg.Go(func() { err = p.settle(t.Context(), b, []int64{0}) })
		synctest.Wait()
		g.pass()
		synctest.Wait() // both are in what is held now
		<-hasty.Done()
		synctest.Wait()
		g.open()
		wg.Wait()
		if !errors.Is(errHasty, context.DeadlineExceeded) {
			t.Errorf("%v, want that its time was up", errHasty)
		}
		if err != nil {
			t.Errorf("with time left: %v", err)
		}
		if err := p.session.Close(t.Context()); err != nil {
			t.Error(err)
		}
		last := table.log[len(table.log)-1].after.Balances[0]
		if len(table.log) != 4 || last.Consumed != 10_000 {
			t.Errorf(
				"%d writes left %d consumed, want 4 and 10000: both are given back in one",
				len(table.log),
				last.Consumed,
			)
		}
	})
}

// TestBehindAHungRelease: an acquire behind a release that nobody answers is served within its budget, far
// below the time that a release has.
func TestBehindAHungRelease(t *testing.T) {
	crowded(t, 50, []int64{10}, func(t *testing.T, c *crowd, held []*runtime.Lease[tokens]) {
		t.Helper()
		c.release(held[0]) // held for as long as it is waited for
		a := c.ask(5, runtime.Budget(settleTry+time.Second))
		elapse(settleTry)
		c.pass()
		c.waits(a, false)
		c.end()
		c.admitted(a)
		c.calls(t, "adjust unknown", "retry applied")
		c.left(50 - 5)
	})
}

// TestHungRepair: an unanswered repair holds up neither the requests of the write before it nor those behind.
func TestHungRepair(t *testing.T) {
	crowded(t, 95, []int64{1, 1}, func(t *testing.T, c *crowd, held []*runtime.Lease[tokens]) {
		t.Helper()
		_, embeddings := generated(t)
		other := c.engine.desk(t, c.client, withNumbers(embeddings, 1, bucket.Per(100, time.Hour)))
		lease, err := other.Acquire(t.Context(), "1", tokens{1})
		if err != nil {
			t.Fatal(err)
		}
		if err := lease.Settle(t.Context(), tokens{300}); err != nil { // debt that a ttl does not last for
			t.Fatal(err)
		}
		first := c.settle(held[0], 2)
		c.pass()
		c.waits(first, true)
		up := c.settle(held[1], 3)
		elapse(settleTry)
		c.waits(first, false)
		c.pass()
		c.waits(up, false)
		c.end()
		c.admitted(first, up)
		c.calls(t, "settle applied", "repair unknown", "settle applied")
		c.left(95 - 300 - 1 - 2)
	})
}

// TestLeavesAfterALostRace: a request may time out in the attempt after a lost race. It gets the race's error
// and is not charged: what the attempt charges for it is given back.
func TestLeavesAfterALostRace(t *testing.T) {
	crowded(t, 50, nil, func(t *testing.T, c *crowd, _ []*runtime.Lease[tokens]) {
		t.Helper()
		_, embeddings := generated(t)
		other := c.engine.desk(t, c.client, withNumbers(embeddings, 1, bucket.Per(100, time.Hour)))
		first, hasty := c.ask(10), c.ask(12, runtime.Budget(pace.ShortestAttempt*9/10))
		much, little := c.ask(16), c.ask(5) // much does not fit even once hasty has given back
		c.pass()
		if _, err := other.Acquire(t.Context(), "1", tokens{20}); err != nil {
			t.Fatal(err)
		}
		c.pass() // refused: 20 are left, for hasty and little
		c.waits(hasty, true)
		<-hasty.ended // before the try is over, which has pace.ShortestAttempt
		if lost, ok := errors.AsType[*store.ContendedError](hasty.err); !ok || lost.Attempts == 0 {
			t.Errorf("%#v, want lost races", hasty.err)
		}
		c.end()
		c.admitted(first, little)
		c.denied(much)
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		c.calls(t, "retry applied", "retry refused", "retry applied", "adjust applied")
		c.left(50 - 10 - 20 - 5)
	})
}

// settleTry is how long a try of a settle may take, of the 20 s that tests on the engine have.
const settleTry = pace.LongestAttempt
