package redisstore

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	peer "github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/internal/test/errtext"
	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/database"
	"github.com/sluice-go/sluice/runtime/store"
)

// gated returns a process on a simulated server. Its overrides are cached, and its script calls wait for
// the test.
func gated(t *testing.T) (*server, *process, *gate) {
	t.Helper()
	s := simulated(t)
	client := s.client(t)
	d := s.process(t, client, gpt4())
	for _, entity := range []caller{alice, bob, carol, dave} {
		d.left(t, entity, tokens2{60, 6000})
		d.calls(t, "levels missing", "peek missing")
	}
	return s, d, newGate(client)
}

var alice, bob, carol, dave = caller{user: "alice"}, caller{user: "bob"}, caller{user: "carol"},
	caller{user: "dave"}

// TestCoalesced: waiting requests share the next script call, in their order, and each has an outcome of
// its own.
func TestCoalesced(t *testing.T) {
	_, d, g := gated(t)
	others := d.busy(t, g)
	var all []*pendingCall
	for i, cost := range []int64{40, 25, 15, 6, 5} { // of 60
		all = append(all, d.ask(t.Context(), alice, tokens2{cost, 0}))
		d.queued(i + 1)
	}
	others[0]()
	under := g.comes(t, "evalsha")
	others[1]()
	under(pass)
	for i, admitted := range []bool{true, false, true, false, true} {
		err := all[i].end()
		if denied, ok := errors.AsType[*store.DeniedError](err); admitted && err != nil || !admitted &&
			!ok {
			t.Errorf("%d: %v", i, err)
		} else if !admitted && (denied.RetryAfter != time.Duration(denied.Requested)*time.Second ||
			denied.Available != 0) {
			t.Errorf("%d: %v, want by what the script call left", i, denied)
		}
	}
	g.open(t)
	d.left(t, alice, tokens2{0, 6000})
	d.calls(t, "acquire applied", "acquire applied", "acquire applied for 5", "peek found")
}

// TestOvertakes: two pipelines call one bucket at the same time, and the second one that Redis runs gets
// the balance the first has left.
func TestOvertakes(t *testing.T) {
	if left := overtakes(t); left != (tokens2{30, 6000}) {
		t.Errorf("%v left", left)
	}
}

// TestOvertakesControl: a client that sends everything twice is caught.
func TestOvertakesControl(t *testing.T) {
	longform.NoRace(t, "a control, whose broken variant ships nowhere")
	if left := overtakes(t, repeater{}); left != (tokens2{0, 6000}) {
		t.Errorf("%v left, want that the call for 30 of 60 was charged twice", left)
	}
}

// overtakes lets a call for 30 of alice's 60 tokens overtake one for 40, through hooks, and returns the
// balance.
func overtakes(t *testing.T, hooks ...redis.Hook) tokens2 {
	t.Helper()
	_, d, g := gated(t)
	for _, hook := range hooks {
		d.store.db.Client.AddHook(hook)
	}
	first := d.ask(t.Context(), alice, tokens2{40, 0})
	slow := g.comes(t, "evalsha")
	second := d.ask(t.Context(), alice, tokens2{30, 0})
	g.comes(t, "evalsha")(pass)
	if err := second.end(); err != nil && len(hooks) == 0 {
		t.Error(err)
	}
	slow(pass)
	if err := first.end(); !isA[*store.DeniedError](err) {
		t.Errorf("%v, want that it was overtaken", err)
	}
	g.open(t)
	snap, err := d.Peek(t.Context(), alice)
	if err != nil {
		t.Fatal(err)
	}
	return snap.Available
}

// TestFull: script calls and pipelines have a maximum size. A request without room goes in the next script
// call, in order, or in another pipeline, at once if one may start.
func TestFull(t *testing.T) {
	_, d, g := gated(t)
	q := d.session.(*session).queues.single
	taken := func(places int) {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.pipelines = make([]*pipeline, places)
		q.dispatch()
	}
	taken(maxPipelines)
	var all []*pendingCall
	for i := range maxRequests + 1 { // of 60 tokens
		all = append(all, d.ask(t.Context(), alice, tokens2{1, 0}))
		d.queued(i + 1)
	}
	for i := range maxCalls - 1 {
		all = append(all, d.ask(t.Context(), caller{user: strconv.Itoa(i)}, tokens2{1, 0}))
		d.queued(len(all))
	}
	taken(0)
	one, other := <-g.arrived, <-g.arrived // in either order
	sizes := []int{strings.Count(one.scripts, "evalsha"), strings.Count(other.scripts, "evalsha")}
	if slices.Sort(sizes); !slices.Equal(sizes, []int{1, maxCalls}) {
		t.Errorf("pipelines of %v calls", sizes)
	}
	one.delivery <- pass
	other.delivery <- pass
	for i, h := range all {
		err := h.end()
		if denied := i >= 60 && i <= maxRequests; denied != isA[*store.DeniedError](err) || !denied &&
			err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// TestPipelined: requests for other keys are sent at once while few pipelines are under way, and else share
// the next one.
func TestPipelined(t *testing.T) {
	_, d, g := gated(t)
	var all []*pendingCall
	var under []func(delivery)
	for _, entity := range []caller{alice, bob} {
		all = append(all, d.ask(t.Context(), entity, tokens2{1, 0}))
		under = append(under, g.comes(t, "evalsha"))
	}
	for i, entity := range []caller{carol, dave} {
		all = append(all, d.ask(t.Context(), entity, tokens2{1, 0}))
		d.queued(i + 1)
	}
	under[0](pass)
	g.comes(t, "evalsha evalsha")(pass)
	under[1](pass)
	for _, h := range all {
		if err := h.end(); err != nil {
			t.Error(err)
		}
	}
	d.calls(t, slices.Repeat([]string{"acquire applied"}, 4)...)
}

// TestSettleInOrder: a settle submitted before an acquire makes room for it, in the same script call.
func TestSettleInOrder(t *testing.T) {
	_, d, g := gated(t)
	ctx := t.Context()
	lease := d.ask(ctx, alice, tokens2{60, 0})
	g.comes(t, "evalsha")(pass)
	if err := lease.end(); err != nil {
		t.Fatal(err)
	}
	others := d.busy(t, g)
	early := d.ask(ctx, alice, tokens2{5, 0})
	d.queued(1)
	settled := lease.settle(ctx, tokens2{50, 0})
	d.queued(2)
	late := d.ask(ctx, alice, tokens2{10, 0})
	d.queued(3)
	others[0]()
	g.comes(t, "evalsha")(pass)
	others[1]()
	if err := early.end(); !isA[*store.DeniedError](err) {
		t.Errorf("%v, want that it came before there was room", err)
	}
	if err := errors.Join(settled.end(), late.end()); err != nil {
		t.Error(err)
	}
	g.open(t)
	d.left(t, alice, tokens2{0, 6000})
}

// TestAbandonedInQueue: a request whose time ends before it is sent costs nothing.
func TestAbandonedInQueue(t *testing.T) {
	_, d, g := gated(t)
	others := d.busy(t, g)
	ctx, cancel := context.WithCancel(t.Context())
	cancelled := d.ask(ctx, alice, tokens2{10, 0})
	d.queued(1)
	cancel()
	if err := cancelled.end(); !errors.Is(err, context.Canceled) || isA[*store.UnavailableError](err) {
		t.Errorf("%v, want the caller's own", err)
	}
	late := d.ask(t.Context(), alice, tokens2{10, 0}, runtime.Budget(time.Millisecond))
	if err := late.end(); !isA[*store.UnavailableError](err) || !errors.Is(err, store.ErrNotSent) ||
		!errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want that it was not sent", err)
	}
	last := d.ask(t.Context(), alice, tokens2{2, 0})
	d.queued(1)
	others[0]()
	under := g.comes(t, "evalsha")
	others[1]()
	under(pass)
	if err := last.end(); err != nil {
		t.Error(err)
	}
	g.open(t)
	d.left(t, alice, tokens2{58, 6000})
	d.calls(t, "acquire applied", "acquire applied", "acquire applied", "peek found")
}

// TestAbandonedInPipeline: a request abandoned while its call is under way is refunded, and delays no other
// request.
func TestAbandonedInPipeline(t *testing.T) {
	_, d, g := gated(t)
	ctx, cancel := context.WithCancel(t.Context())
	var abandoned []*pendingCall
	var under []func(delivery)
	for range maxPipelines {
		abandoned = append(abandoned, d.ask(ctx, alice, tokens2{10, 0}))
		under = append(under, g.comes(t, "evalsha"))
	}
	next := d.ask(t.Context(), alice, tokens2{40, 0})
	d.queued(1)
	cancel()
	for _, h := range abandoned {
		if err := h.end(); !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want the caller's own", err)
		}
	}
	g.comes(t, "evalsha")(pass) // next does not wait for pipelines without callers
	if err := next.end(); err != nil {
		t.Error(err)
	}
	var refunds []func(delivery)
	for _, late := range under {
		late(pass)
		refunds = append(refunds, g.comes(t, "evalsha"))
	}
	for _, back := range refunds {
		back(pass)
	}
	if err := d.Close(t.Context()); err != nil {
		t.Error(err)
	}
	g.open(t)
	d.left(t, alice, tokens2{20, 6000})
	d.calls(t, "acquire applied", "acquire applied", "acquire applied", "undo applied", "undo applied",
		"peek found")
}

// TestSlow: script calls without a reply delay later requests only for a moment.
func TestSlow(t *testing.T) {
	s, _, _ := gated(t)
	s.slowAfter = time.Millisecond
	client := s.client(t)
	d, g := s.process(t, client, gpt4()), newGate(client)
	var hung []*pendingCall
	var under []func(delivery)
	for range maxPipelines {
		hung = append(hung, d.ask(t.Context(), alice, tokens2{10, 0}))
		under = append(under, g.comes(t, "evalsha"))
	}
	next := d.ask(t.Context(), alice, tokens2{5, 0})
	g.comes(t, "evalsha")(pass)
	if err := next.end(); err != nil {
		t.Error(err)
	}
	for i, h := range hung {
		under[i](pass)
		if err := h.end(); err != nil {
			t.Error(err)
		}
	}
	g.open(t)
	d.left(t, alice, tokens2{35, 6000})
}

// TestLostReply: a call that may have been applied is not repeated, neither a charge nor a refund.
func TestLostReply(t *testing.T) {
	_, d, g := gated(t)
	ctx := t.Context()
	first := d.ask(ctx, alice, tokens2{10, 0})
	g.comes(t, "evalsha")(lose)
	down, ok := errors.AsType[*store.UnavailableError](first.end())
	if !ok || down.Attempts != 1 || down.Resource != "gpt-4" || down.Throttled {
		t.Errorf("%#v", first.err)
	}
	lease := d.ask(ctx, alice, tokens2{20, 0})
	g.comes(t, "evalsha")(pass)
	if err := lease.end(); err != nil {
		t.Fatal(err)
	}
	back := lease.settle(ctx, tokens2{5, 0})
	g.comes(t, "evalsha")(lose)
	if err := back.end(); !isA[*store.UnavailableError](err) {
		t.Errorf("%v", err)
	}
	g.open(t)
	d.left(t, alice, tokens2{60 - 10 - 5, 6000})
	d.calls(t, "acquire unknown", "acquire applied", "settle unknown", "peek found")
}

// redisError is an error that Redis answers with.
type redisError string

func (e redisError) Error() string { return string(e) }
func (redisError) RedisError()     {}

// TestNotApplied: a call that Redis has not run is sent once more, a refund too.
func TestNotApplied(t *testing.T) {
	for _, answer := range []string{
		"LOADING Redis is loading the dataset in memory",
		"READONLY You can't write against a read only replica.",
		"ERR max number of clients reached", "OOM command not allowed when used memory > 'maxmemory'.",
		"ERR Error running script (call to f_1): @user_script:1: -OOM command not allowed when used " +
			"memory > 'maxmemory'.",
	} {
		t.Run(answer, func(t *testing.T) {
			_, d, g := gated(t)
			lease := d.ask(t.Context(), alice, tokens2{10, 0})
			g.comes(t, "evalsha")(delivery{refused: redisError(answer)})
			g.comes(t, "evalsha")(pass)
			if err := lease.end(); err != nil {
				t.Fatal(err)
			}
			back := lease.settle(t.Context(), tokens2{4, 0})
			for range maxAttempts {
				g.comes(t, "evalsha")(delivery{refused: redisError(answer)})
			}
			down, ok := errors.AsType[*store.UnavailableError](back.end())
			if !ok || down.Attempts != 2 || down.Throttled {
				t.Errorf("%#v", back.err)
			}
			g.open(t)
			d.left(t, alice, tokens2{50, 6000})
			d.calls(t, "acquire unapplied", "acquire applied", "settle unapplied", "settle unapplied",
				"peek found")
		})
	}
}

// pausing is a clock with timers that fire when the test says so.
type pausing struct {
	store.Clock
	over chan time.Time
}

func (p pausing) After(time.Duration) <-chan time.Time { return p.over }

// TestNotDelayed: only its own callers wait for a call that is repeated after a pause: neither others in
// its pipeline nor later ones.
func TestNotDelayed(t *testing.T) {
	s := simulated(t)
	client, pause := s.client(t), make(chan time.Time)
	d := s.process(t, client, gpt4(), runtime.WithClock(pausing{&handClock{}, pause}))
	for _, entity := range []caller{alice, bob, carol, dave} {
		d.left(t, entity, tokens2{60, 6000})
	}
	g := newGate(client)
	others := d.busy(t, g)
	var all []*pendingCall
	for i, entity := range []caller{alice, bob} {
		all = append(all, d.ask(t.Context(), entity, tokens2{1, 0}))
		d.queued(i + 1)
	}
	others[0]()
	both := g.comes(t, "evalsha evalsha")
	next := d.ask(t.Context(), alice, tokens2{2, 0})
	d.queued(1)
	var refused atomic.Bool
	s.mini.Server().SetPreHook(func(c *peer.Peer, cmd string, args ...string) bool {
		if cmd != "EVALSHA" || !slices.ContainsFunc(args,
			func(arg string) bool { return strings.HasSuffix(arg, ":user-bob") }) || refused.Swap(true) {
			return false
		}
		c.WriteError("LOADING Redis is loading the dataset in memory")
		return true
	})
	both(pass)
	g.comes(t, "evalsha")(pass)
	if err := errors.Join(all[0].end(), next.end()); err != nil {
		t.Error(err)
	}
	close(pause)
	g.comes(t, "evalsha")(pass)
	if err := all[1].end(); err != nil {
		t.Error(err)
	}
	others[1]()
	g.open(t)
	d.left(t, alice, tokens2{57, 6000})
	d.left(t, bob, tokens2{59, 6000})
}

// TestSetup: a setup error says what to do, and no policy decides it.
func TestSetup(t *testing.T) {
	for answer, want := range map[string]string{
		"NOPERM this user has no permissions to run the 'evalsha' command": "setup: Redis denies the " +
			"user what the store needs | " +
			"NOPERM this user has no permissions to run the 'evalsha' command | grant it: " +
			"ACL SETUSER <user> ~sluice:* +@read +@write +@scripting +@connection +info +time",
		"WRONGPASS invalid username-password pair": "setup: Redis does not accept the credentials | " +
			"WRONGPASS invalid username-password pair | set the client's Username and Password",
		"ERR The user executing the script can't run this command or subcommand script: 104ae, on " +
			"@user_script:1.": "setup: Redis denies the user " +
			"what the store needs | ERR The user executing the script can't run this command or subcommand " +
			"script: 104ae, on @user_script:1. | " +
			"grant it: ACL SETUSER <user> ~sluice:* +@read +@write +@scripting +@connection +info +time",
		"MOVED 7 10.0.0.1:6379": "setup: Redis is a cluster, and the client, a *redis.Client, is not one " +
			"of a cluster: keys of a call would lie " +
			"in different slots | MOVED 7 10.0.0.1:6379 | pass redisstore.New what redis.NewClusterClient " +
			"returns",
		"ERR unknown command 'evalsha'": "setup: this Redis does not have a command that the store " +
			"needs | ERR unknown command 'evalsha' | " +
			"use Redis 5 or newer, with scripts; for a Sentinel, create the client with " +
			"redis.NewFailoverClient, in a URL ?master_name=NAME",
	} {
		store := New(redis.NewClient(&redis.Options{}))
		o := store.db.Classify(redisError(answer))
		if got := errtext.Of(store.db.SetupError(redisError(answer))); o != database.Failed || got != want {
			t.Errorf("%v: %s, want %s", o, got, want)
		}
		if err := store.db.Client.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestLazy: a lazy settle returns at once, shares the next script call for its keys, and Close waits for it.
func TestLazy(t *testing.T) {
	_, d, g := gated(t)
	lazy := d.Resource.With(runtime.LazySettle(true))
	var lease *runtime.Lease[tokens2]
	acquired := make(chan error)
	go func() {
		var err error
		lease, err = lazy.Acquire(t.Context(), alice, tokens2{60, 0})
		acquired <- err
	}()
	g.comes(t, "evalsha")(pass)
	if err := <-acquired; err != nil {
		t.Fatal(err)
	}
	others := d.busy(t, g)
	if err := lease.Settle(t.Context(), tokens2{50, 0}); err != nil {
		t.Error(err)
	}
	d.queued(1)
	second := d.ask(t.Context(), alice, tokens2{10, 0})
	d.queued(2)
	others[0]()
	under := g.comes(t, "evalsha")
	others[1]()
	under(pass)
	if err := second.end(); err != nil {
		t.Error(err)
	}
	if err := d.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if got := lease.Remaining(); got != (tokens2{0, 6000}) {
		t.Errorf("%v remain, want what the settle's script call left", got)
	}
	d.calls(t, "acquire applied", "acquire applied", "acquire applied", "settle applied for 2")
}

// TestCrowd: in any interleaving, no more is admitted than there is, and refunds are there.
func TestCrowd(t *testing.T) {
	s := newServer(t)
	if admitted, missing := crowd(t, s, s.client(t)); admitted != missing {
		t.Errorf("%d were admitted and stay, %d are missing", admitted, missing)
	}
}

// TestCrowdControl: a client that sends everything twice is caught.
func TestCrowdControl(t *testing.T) {
	longform.NoRace(t, "a control, whose broken variant ships nowhere")
	s := newServer(t)
	client := s.client(t)
	client.AddHook(repeater{})
	if admitted, missing := crowd(t, s, client); admitted >= missing {
		t.Errorf("%d were admitted and stay, %d are missing, want more: calls were run twice", admitted, missing)
	}
}

// repeater is a client's hook that sends everything twice and returns the second reply.
type repeater struct{ redis.Hook }

func (repeater) DialHook(next redis.DialHook) redis.DialHook { return next }
func (repeater) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		_ = next(ctx, cmds)
		return next(ctx, cmds)
	}
}
func (repeater) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		_ = next(ctx, cmd)
		return next(ctx, cmd)
	}
}

// crowd runs many callers that acquire, release and leave. It returns how many of their project's tokens
// the admitted callers hold in the end, and how many are missing from the bucket.
func crowd(t *testing.T, s *server, client redis.UniversalClient) (held, missing int64) {
	t.Helper()
	d := s.process(t, client, slow())
	var admitted, denied atomic.Int64
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			for j := range 25 {
				ctx, cancel := context.WithCancel(t.Context())
				if (i*j)%7 == 3 {
					go cancel() // somewhere on the way
				}
				lease, err := d.Acquire(ctx, caller{strconv.Itoa((i + j) % 4), "1"}, tokens2{1, 0})
				cancel()
				switch {
				case err == nil && j%3 == 0:
					lease.Release(t.Context())
				case err == nil:
					admitted.Add(1)
				case isA[*store.DeniedError](err):
					denied.Add(1)
				case !errors.Is(err, context.Canceled):
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if err := d.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if denied.Load() == 0 {
		t.Error("no call was denied, which proves little")
	}
	snap, err := d.Peek(t.Context(), caller{"x", "1"})
	if err != nil {
		t.Fatal(err)
	}
	return admitted.Load(), 60 - snap.Buckets[1].Available[0]
}
