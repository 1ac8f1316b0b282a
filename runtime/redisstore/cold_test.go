package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/internal/test/pipenet"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/store"
)

// coldReads counts the reads of overrides, and holds their replies while held is open.
type coldReads struct {
	noReads

	mu        sync.Mutex
	keys      map[string]int // how often each was read
	pipelines int
	held      chan struct{} // nil to hold nothing
	failure   error         // what is answered then, in place of the reply
}

func (c *coldReads) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		if cmds[0].Name() != "hgetall" {
			return err
		}
		c.mu.Lock()
		if c.keys == nil {
			c.keys = map[string]int{}
		}
		for _, cmd := range cmds {
			c.keys[cmd.Args()[1].(string)]++
		}
		c.pipelines++
		held := c.held
		c.mu.Unlock()
		if held == nil {
			return err
		}
		select {
		case <-held:
		case <-ctx.Done(): // as a client fails that has ContextTimeoutEnabled
			return ctx.Err()
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		return cmp.Or(c.failure, err)
	}
}

// hold makes replies wait from now on, until the function that it returns is called, once. With a failure,
// they are not delivered then: the reads fail with it. Further replies wait for nothing.
func (c *coldReads) hold(t *testing.T) (deliver func(failure error)) {
	t.Helper()
	held := make(chan struct{})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = held
	var once sync.Once
	deliver = func(failure error) {
		once.Do(func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.held, c.failure = nil, failure
			close(held)
		})
	}
	t.Cleanup(func() { deliver(nil) }) // before the process is closed, which waits for its reads
	return deliver
}

// free makes further replies wait for nothing.
func (c *coldReads) free() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = nil
}

// sent returns the number of reads and of pipelines since the last time, and how often the same was read at
// most.
func (c *coldReads) sent() (reads, pipelines, most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.keys {
		reads += n
		most = max(most, n)
	}
	pipelines = c.pipelines
	c.keys, c.pipelines = nil, 0
	return reads, pipelines, most
}

// want compares the reads and pipelines since the last time.
func (c *coldReads) want(t *testing.T, reads, pipelines int) {
	t.Helper()
	if r, p, _ := c.sent(); r != reads || p != pipelines {
		t.Errorf("%d HGETALLs in %d pipelines, want %d in %d", r, p, reads, pipelines)
	}
}

// cold returns a process that knows no overrides, for a bubble. A read may be joined for joinable.
func cold(t *testing.T, joinable time.Duration) (*process, *coldReads, *handClock) {
	t.Helper()
	s := &server{
		mini: miniredis.NewMiniRedis(), addr: "127.0.0.1:0", prefix: "sluice-test:", slowAfter: joinable,
	}
	t.Cleanup(s.mini.Close)
	client := s.client(t, func(o *redis.Options) {
		o.PoolSize = 1000 // the client's timers of those who wait for a connection outlive the bubble
		o.Dialer = func(context.Context, string, string) (net.Conn, error) {
			conn, err := s.mini.Dial()
			if err != nil {
				return nil, err
			}
			return pipenet.Buffered(conn), nil
		}
	})
	reads, clock := &coldReads{}, &handClock{}
	client.AddHook(reads)
	return s.process(t, client, slow(), runtime.WithClock(clock)), reads, clock
}

// callers200 is 200 callers: the same user of project 1, or a user each.
func callers200(same bool) []caller {
	all := make([]caller, 200)
	for i := range all {
		if all[i] = (caller{"1", "1"}); !same {
			all[i].user = strconv.Itoa(i)
		}
	}
	return all
}

// askAll starts an acquire of each, which ends once the test lets it, and waits until all wait.
func (d *process) askAll(ctx context.Context, all []caller, opts ...runtime.CallOption) []*pendingCall {
	calls := make([]*pendingCall, len(all))
	for i, entity := range all {
		calls[i] = d.ask(ctx, entity, tokens2{0, 1}, opts...)
	}
	synctest.Wait()
	return calls
}

// TestColdCallers: 200 callers at once who need overrides read each of them once, whether the process knows
// none or those that it knows have expired. Callers of one entity send one pipeline, and so one event.
func TestColdCallers(t *testing.T) {
	for name, test := range map[string]struct {
		same             bool
		reads, pipelines int
	}{
		"one entity":           {true, 4, 1},
		"users of one project": {false, 200 + 3, 200},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, reads, clock := cold(t, time.Hour)
				for _, state := range []string{"cold", "expired"} {
					deliver := reads.hold(t)
					calls := d.askAll(t.Context(), callers200(test.same))
					deliver(nil)
					for _, call := range calls {
						if err := call.end(); err != nil {
							t.Fatal(state, err)
						}
					}
					if n, pipelines, most := reads.sent(); n != test.reads || pipelines != test.pipelines || most != 1 {
						t.Errorf("%s: %d HGETALLs in %d pipelines, %d of the same, want %d in %d, 1 of the same",
							state, n, pipelines, most, test.reads, test.pipelines)
					}
					if n := d.events.reads(); n != test.pipelines {
						t.Errorf("%s: %d events, want %d", state, n, test.pipelines)
					}
					clock.pass(time.Minute)
				}
			})
		})
	}
}

// TestColdCallersControl: where no read is joined, each of 200 callers reads all.
func TestColdCallersControl(t *testing.T) {
	longform.NoRace(t, "a control, whose broken variant ships nowhere")
	synctest.Test(t, func(t *testing.T) {
		d, reads, _ := cold(t, 0)
		deliver := reads.hold(t)
		calls := d.askAll(t.Context(), callers200(true))
		deliver(nil)
		for _, call := range calls {
			if err := call.end(); err != nil {
				t.Fatal(err)
			}
		}
		reads.want(t, 800, 200)
	})
}

// reads returns how many reads of overrides were reported since the last time.
func (e *events) reads() (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, event := range e.store {
		if event == "levels missing" {
			n++
		}
	}
	e.store = nil
	return n
}

// TestSetDuringRead: a call after an override was set does not join a read from before, and its limits stay
// in force when that read ends.
func TestSetDuringRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, reads, _ := cold(t, time.Hour)
		deliver := reads.hold(t)
		first := d.askAll(t.Context(), []caller{alice})[0]
		reads.free()
		_, err := d.session.Overrides().Set(t.Context(), slow().spec, store.Stored{At: "user-alice",
			Limits: rpm(30)})
		if err != nil {
			t.Fatal(err)
		}
		d.left(t, alice, tokens2{30, 6000})
		reads.want(t, 4, 2)
		deliver(nil)
		if err := first.end(); err != nil {
			t.Fatal(err)
		}
		d.left(t, alice, tokens2{30, 5999})
		reads.want(t, 0, 0)
	})
}

// TestColdCallerLeaves: a caller whose context ends does not end the read that it began. Others who wait for
// it get their answer, and what was read is kept although nobody waits.
func TestColdCallerLeaves(t *testing.T) {
	for name, others := range map[string][]caller{"others wait": {alice, alice}, "nobody waits": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, reads, _ := cold(t, time.Hour)
				ctx, cancel := context.WithCancel(t.Context())
				deliver := reads.hold(t)
				leader := d.askAll(ctx, []caller{alice})[0]
				calls := d.askAll(t.Context(), others)
				cancel()
				if err := leader.end(); !errors.Is(err, context.Canceled) {
					t.Errorf("%v, want that its context was cancelled", err)
				}
				deliver(nil)
				for _, call := range calls {
					if err := call.end(); err != nil {
						t.Error(err)
					}
				}
				synctest.Wait()
				d.left(t, alice, tokens2{60, int64(6000 - len(others))})
				reads.want(t, 2, 1)
			})
		})
	}
}

// TestColdCloseWaits: Close waits for a read whose callers have all left.
func TestColdCloseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, reads, _ := cold(t, time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		deliver := reads.hold(t)
		call := d.askAll(ctx, []caller{alice})[0]
		cancel()
		if err := call.end(); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		soon, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if err := d.Close(soon); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close during a read: %v", err)
		}
		deliver(nil)
		if err := d.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestSilentRead: while Redis does not answer, cold callers fail at half of their time, each at its own, and
// callers whose overrides have expired go by these. All have sent one pipeline. Its failure is not kept.
func TestSilentRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, reads, clock := cold(t, time.Hour)
		d.left(t, bob, tokens2{60, 6000})
		clock.pass(time.Minute)
		reads.sent()
		deliver, began := reads.hold(t), time.Now()
		var calls []*pendingCall
		for i := range 10 {
			budget := time.Duration(i+1) * time.Second
			calls = append(calls, d.askAll(t.Context(), []caller{alice, bob}, runtime.Budget(budget))...)
		}
		for i, call := range calls {
			err := call.end()
			took, want := time.Since(began), time.Duration(i/2+1)*time.Second/2
			if took < want || i%2 == 0 && took > want {
				t.Errorf("call %d ended after %v, want %v", i, took, want)
			}
			down, isDown := errors.AsType[*store.UnavailableError](err)
			switch {
			case i%2 == 1 && err != nil:
				t.Errorf("call %d: %v, want it to go by expired overrides", i, err)
			case i%2 == 0 && (!isDown || down.Resource != "gpt-4" || down.Attempts != 1 ||
				!errors.Is(err, context.DeadlineExceeded)):
				t.Errorf("call %d: %#v, want an UnavailableError", i, err)
			}
		}
		if n, pipelines, most := reads.sent(); n != 3 || pipelines != 2 || most != 1 {
			t.Errorf("%d HGETALLs in %d pipelines, %d of the same, want 3 in 2", n, pipelines, most)
		}
		deliver(redisError("LOADING"))
		synctest.Wait()
		d.left(t, alice, tokens2{60, 6000})
		reads.want(t, 1, 1) // the kind's expired override serves for a second
	})
}

// TestFailedReadOfMany: if a read fails, all who wait for it get an error of their own, or go by their
// expired overrides, and the next call reads again.
func TestFailedReadOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, reads, clock := cold(t, time.Hour)
		for _, expired := range []bool{false, true} {
			deliver := reads.hold(t)
			calls := d.askAll(t.Context(), callers200(true))
			deliver(redisError("LOADING"))
			different := map[error]bool{}
			for _, call := range calls {
				err := call.end()
				different[err] = true
				if expired != (err == nil) || !expired && !isA[*store.UnavailableError](err) {
					t.Fatalf("expired %t: %v", expired, err)
				}
			}
			if want := len(calls); !expired && len(different) != want {
				t.Errorf("%d errors, want %d", len(different), want)
			}
			reads.want(t, 4, 1)
			if clock.pass(time.Second); !expired {
				d.left(t, caller{"1", "1"}, tokens2{60, 6000})
				reads.want(t, 4, 1)
			}
			clock.pass(time.Minute)
		}
	})
}

// TestMalformedOverrideOfAnother: callers that have joined the read of a project's override do not fail
// because of the user's override that was read in the same pipeline.
func TestMalformedOverrideOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, reads, _ := cold(t, time.Hour)
		k := d.store.db.Keys
		for user, write := range map[string]func(key string) error{
			"malformed": func(key string) error { return d.store.db.Client.HSet(t.Context(), key, "ver", "x").Err() },
			"no hash":   func(key string) error { return d.store.db.Client.Set(t.Context(), key, "x", 0).Err() },
		} {
			if err := write(k.Config("gpt-4", "user-"+user)); err != nil {
				t.Fatal(err)
			}
			deliver := reads.hold(t)
			project := "of " + user
			first := d.askAll(t.Context(), []caller{{user, project}})[0]
			second := d.askAll(t.Context(), []caller{{"1 " + user, project}})[0]
			deliver(nil)
			if err := first.end(); !isA[*store.SetupError](err) {
				t.Errorf("%s: %v, want a SetupError", user, err)
			}
			if err := second.end(); err != nil {
				t.Errorf("%s: another user got %v", user, err)
			}
			if _, _, most := reads.sent(); most != 1 {
				t.Errorf("%s: the same was read %d times", user, most)
			}
		}
	})
}

// TestHungRead: a read is joined for a while only, so that one that hangs does not hold up all later callers.
// Its result does not replace one that was read after it.
func TestHungRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, reads, clock := cold(t, slowAfter)
		deliver := reads.hold(t)
		calls := d.askAll(t.Context(), []caller{alice})
		clock.pass(slowAfter - time.Millisecond)
		calls = append(calls, d.askAll(t.Context(), []caller{alice})...)
		reads.free()
		reads.want(t, 2, 1)
		other := New(d.store.db.Client, Prefix(d.store.db.Keys.Prefix)).Overrides()
		_, err := other.Set(t.Context(), slow().spec, store.Stored{At: "user-alice", Limits: rpm(30)})
		if err != nil {
			t.Fatal(err)
		}
		clock.pass(time.Millisecond)
		d.left(t, alice, tokens2{30, 6000})
		reads.want(t, 2, 1)
		deliver(nil)
		for _, call := range calls {
			if err := call.end(); err != nil {
				t.Error(err)
			}
		}
		d.left(t, alice, tokens2{30, 5998})
		reads.want(t, 0, 0)
		clock.pass(time.Minute - time.Millisecond)
		d.left(t, alice, tokens2{30, 5998})
		reads.want(t, 0, 0)
		clock.pass(time.Millisecond)
		d.left(t, alice, tokens2{30, 5998})
		reads.want(t, 2, 1)
	})
}

// TestAgeOfSharedRead: overrides are cached from when their read began, not from when a caller joined it.
func TestAgeOfSharedRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, reads, clock := cold(t, time.Hour)
		deliver := reads.hold(t)
		calls := d.askAll(t.Context(), []caller{alice})
		clock.pass(59 * time.Second)
		calls = append(calls, d.askAll(t.Context(), []caller{alice})...)
		deliver(nil)
		for _, call := range calls {
			if err := call.end(); err != nil {
				t.Error(err)
			}
		}
		reads.want(t, 2, 1)
		clock.pass(time.Second)
		d.left(t, alice, tokens2{60, 5998})
		reads.want(t, 2, 1)
	})
}

// TestOwnSetsAreSeen: no call goes by overrides from before a Set of this process that had returned when the
// call began.
func TestOwnSetsAreSeen(t *testing.T) {
	s := newServer(t)
	d := s.process(t, s.client(t), slow())
	if stale := staleCalls(t, d, d); len(stale) > 0 {
		t.Errorf("calls went by limits from before a Set: %q", stale)
	}
}

// TestOwnSetsAreSeenControl: of what another process sets, calls that go by cached overrides see nothing.
func TestOwnSetsAreSeenControl(t *testing.T) {
	longform.NoRace(t, "a control, whose broken variant ships nowhere")
	s := newServer(t)
	d := s.process(t, s.client(t), slow())
	d.left(t, caller{user: "1"}, tokens2{60, 6000})
	if stale := staleCalls(t, d, s.process(t, s.client(t), slow())); len(stale) == 0 {
		t.Error("calls saw all that another process has set")
	}
}

// staleCalls has many goroutines of d call, while those of by raise the limits of the same two users. It
// returns the calls that went by limits below those that were set when they began.
func staleCalls(t *testing.T, d, by *process) (stale []string) {
	t.Helper()
	users := []string{"1", "2"}
	var set [2]atomic.Int64
	var mu sync.Mutex
	peek := func(i int) {
		least := set[i].Load()
		snap, err := d.Peek(t.Context(), caller{user: users[i]})
		switch {
		case err != nil:
			t.Error(err)
		case snap.Available[0] < least:
			mu.Lock()
			defer mu.Unlock()
			stale = append(stale, fmt.Sprintf("%s: %d, not %d", users[i], snap.Available[0], least))
		}
	}
	var running sync.WaitGroup
	for i, user := range users {
		running.Go(func() {
			var revision store.Revision
			var err error
			for n := int64(61); n < 90 && err == nil; n++ {
				revision, err = by.session.Overrides().Set(t.Context(), slow().spec,
					store.Stored{At: "user-" + user, Limits: rpm(n), Revision: revision})
				set[i].Store(n)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	for range 8 {
		running.Go(func() {
			for i := range 60 {
				peek(i % 2)
			}
		})
	}
	running.Wait()
	peek(0)
	peek(1)
	return stale
}
