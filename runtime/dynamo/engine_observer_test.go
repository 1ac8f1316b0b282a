package dynamo

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

	"github.com/google/go-cmp/cmp"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/store"
)

// account is what calls of one operation cost.
type account struct {
	Calls       int
	Read, Write float64
}

// reportedOf adds up the reports to an observer, by operation.
func reportedOf(all []store.StoreEvent) map[string]account {
	sums := map[string]account{}
	for _, e := range all {
		sum := sums[e.Call]
		sums[e.Call] = account{sum.Calls + 1, sum.Read + e.Read, sum.Write + e.Write}
	}
	return sums
}

// billedOf is what the engine would have billed, by operation.
func billedOf(c memdynamo.Consumption, table string) map[string]account {
	sums := map[string]account{}
	for operation, n := range c.Requests {
		units := c.Tables[table][operation].Total()
		sums[operation] = account{n, units.Read, units.Write}
	}
	return sums
}

// observed is an engine in the process, of which it is known what it bills.
type observed struct {
	*testing.T
	*engine
	db   *memdynamo.Engine
	seen []*events
}

func newObserved(t *testing.T) *observed {
	t.Helper()
	db := memdynamo.New()
	client := db.Client()
	return &observed{
		T: t,
		engine: &engine{
			client: client, ttl: time.Minute,
			table: dynamotest.Table(t, client, dynamotest.Streamless(operator.Table)),
		},
		db: db,
	}
}

// gateway is a process of the demonstration's, with its chains and its look-ups.
func (o *observed) gateway(t testing.TB, opts ...runtime.Option) *limits.Limiter {
	t.Helper()
	seen := &events{}
	o.seen = append(o.seen, seen)
	l, err := limits.New(New(o.client, o.table), append(o.options(seen), opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (o *observed) desk(t testing.TB, def store.Definition, opts ...storeChange) *desk {
	t.Helper()
	d := o.engine.desk(t, o.client, def, opts...)
	o.seen = append(o.seen, d.events)
	return d
}

func (o *observed) reported(keep func(store.StoreEvent) bool) map[string]account {
	var all []store.StoreEvent
	for _, seen := range o.seen {
		all = append(all, seen.All...)
	}
	return reportedOf(slices.DeleteFunc(all, func(e store.StoreEvent) bool { return !keep(e) }))
}

func everything(store.StoreEvent) bool { return true }

// scenes are ways to have the store make every kind of call. Each ends with its processes closed, so that
// nothing is under way.
var scenes = []struct {
	name  string
	paths []string // that have to be met
	play  func(o *observed)
}{
	{
		"a chain: created, charged by transactions, settled, released, denied",
		[]string{"read missing", "transact applied", "settle applied", "adjust applied"},
		func(o *observed) {
			l := o.gateway(o.T)
			for range 3 {
				lease := must(
					l.GPT4.Acquire(
						o.Context(),
						limits.User{ID: "1", Project: limits.Project{ID: "2"}},
						limits.GPT4Cost{TPM: 100},
					),
				)
				o.clock.set(o.clock.Since.Load() + 1000)
				if err := lease.Settle(o.Context(), limits.GPT4Cost{TPM: 150}); err != nil {
					o.Error(err)
				}
			}
			must(
				l.GPT4.Acquire(
					o.Context(),
					limits.User{ID: "1", Project: limits.Project{ID: "2"}},
					limits.GPT4Cost{TPM: 100},
				),
			).Release(o.Context())
			_, err := l.GPT4.Acquire(
				o.Context(),
				limits.User{ID: "1", Project: limits.Project{ID: "2"}},
				limits.GPT4Cost{TPM: 15_000},
			)
			if !isA[*store.DeniedError](err) {
				o.Error(err)
			}
			closeAll(o.T, l.Limiter)
		},
	},
	{
		"a stranger's writes: refused conditions, alone and in transactions",
		[]string{"transact refused", "retry refused"},
		func(o *observed) {
			a, b := o.gateway(o.T), o.gateway(o.T)
			for _, l := range []*limits.Limiter{a, b, a, b} { // the last of each kind is denied
				_, _ = l.GPT4.Acquire(
					o.Context(),
					limits.User{ID: "1", Project: limits.Project{ID: "2"}},
					limits.GPT4Cost{TPM: 4000},
				)
				_, _ = l.Embeddings.Acquire(o.Context(), limits.Project{ID: "2"}, limits.EmbeddingsCost{RPS: 6})
			}
			closeAll(o.T, a.Limiter, b.Limiter)
		},
	},
	{"look-ups and peeks", []string{"member found", "member missing", "read found"},
		func(o *observed) {
			members := operator.NewMembers(o.client, o.table, store.SystemClock().Now)
			if err := members.Put(o.Context(), store.Member{Entity: "user-1", Parent: "project-2",
				Cascade: true}); err != nil {
				o.Fatal(err)
			}
			o.db.ResetConsumed()
			l := o.gateway(o.T)
			must(l.GPT4.Acquire(o.Context(), limits.UserByID("1"), limits.GPT4Cost{TPM: 100}))
			if _, err := l.GPT4.Acquire(o.Context(), limits.UserByID("3"),
				limits.GPT4Cost{TPM: 100}); !isA[*store.InvalidError](
				err,
			) {
				o.Error(err)
			}
			o.clock.set(120_000) // nothing that is remembered serves
			must(l.GPT4.Peek(o.Context(), limits.UserByID("1")))
			must(l.Embeddings.Peek(o.Context(), limits.Project{ID: "2"}))
			closeAll(o.T, l.Limiter)
		}},
	{"many at once, served together; leases that close lazily", []string{"create applied"},
		func(o *observed) {
			l := o.gateway(o.T, runtime.WithCallDefaults(runtime.LazySettle(true)))
			var calls sync.WaitGroup
			for range 15 {
				calls.Go(func() {
					lease, err := l.Embeddings.Acquire(o.Context(), limits.Project{ID: "2"}, limits.EmbeddingsCost{RPS: 1})
					if err != nil {
						o.Error(err)
						return
					}
					if err := lease.Settle(o.Context(), limits.EmbeddingsCost{RPS: 1}); err != nil {
						o.Error(err)
					}
					lease.Release(o.Context())
				})
			}
			calls.Wait()
			closeAll(o.T, l.Limiter)
		}},
	{"several resources, and buckets charged one by one", []string{"transact applied", "adjust applied"},
		func(o *observed) {
			l := o.gateway(o.T)
			all := []runtime.AnyClaim{
				l.GPT4.Claim(
					limits.Project{ID: "2"},
					limits.GPT4Cost{TPM: 1},
				), l.Embeddings.Claim(limits.Project{ID: "2"}, limits.EmbeddingsCost{RPS: 1}),
			}
			if err := l.AcquireAll(o.Context(), all...); err != nil {
				o.Error(err)
			}
			gpt4, _ := generated(o.T)
			each := []bucket.Limit{userRPM, userTPM}
			apart := family(gpt4, store.CascadeCompensated, each, each)
			h, other := o.house(o.T, o.client, apart), o.house(o.T, o.client, apart)
			o.seen = append(o.seen, h.events, other.events)
			h.acquire(o.T, member{"1", "3"}, 50, 1)
			other.acquire(o.T, member{"4", "3"}, 40, 1)
			_, err := h.at[0].Acquire(
				o.Context(),
				member{"1", "3"},
				tokens{20, 1},
			) // the user is charged, and given back
			if !isA[*store.DeniedError](err) {
				o.Error(err)
			}
			closeAll(o.T, l.Limiter, h.Limiter, other.Limiter)
		}},
	{"new numbers, and overrides that change", []string{"reshape applied", "levels found", "system applied"},
		func(o *observed) {
			gpt4, _ := generated(o.T)
			stored := store.Stored{At: "user-1", Limits: []*bucket.Limit{per(1000), nil}}
			if _, err := o.operator(o.client, 0).Set(o.Context(), withNumbers(gpt4, 1, userRPM, userTPM).Spec(),
				stored); err != nil {
				o.Fatal(err)
			}
			o.db.ResetConsumed()
			of := func(revision int64, rpm bucket.Limit) *desk {
				return o.desk(o.T, withNumbers(gpt4, revision, rpm, userTPM))
			}
			before, after := of(1, userRPM), of(2, bucket.Per(200, time.Minute))
			for _, d := range []*desk{before, after, before, after} {
				must(d.Acquire(o.Context(), "1", tokens{1, 1}))
			}
			for range 3 {
				o.clock.set(o.clock.Since.Load() + 61_000)
				must(after.Acquire(o.Context(), "1", tokens{1, 1}))
			}
			closeAll(o.T, before.Limiter, after.Limiter)
		}},
	{"a table that throttles, and meets transactions", []string{"transact throttled", "member failed"},
		func(o *observed) {
			l := o.gateway(o.T)
			var n atomic.Int64
			o.db.Faults().Script(func(memdynamo.Request) memdynamo.Fault {
				if n.Add(1)%3 == 1 {
					return memdynamo.Throttle
				}
				return memdynamo.None
			})
			for range 4 {
				_, _ = l.GPT4.Acquire(o.Context(), limits.UserByID("9"), limits.GPT4Cost{TPM: 100})
				_, _ = l.GPT4.Acquire(
					o.Context(),
					limits.User{ID: "1", Project: limits.Project{ID: "2"}},
					limits.GPT4Cost{TPM: 100},
				)
				_, _ = l.Embeddings.Acquire(o.Context(), limits.Project{ID: "2"}, limits.EmbeddingsCost{RPS: 1})
			}
			closeAll(o.T, l.Limiter)
		}},
}

// must returns v, or panics: scenes end where they cannot go on.
func must[V any](v V, err error) V {
	if err != nil {
		panic(err)
	}
	return v
}

func closeAll(t *testing.T, all ...*runtime.Limiter) {
	t.Helper()
	for _, l := range all {
		if err := l.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}
}

// TestObserverSeesEveryCall: once each, with the capacity that it is billed.
func TestObserverSeesEveryCall(t *testing.T) {
	for _, scene := range scenes {
		t.Run(scene.name, func(t *testing.T) {
			o := newObserved(t)
			o.db.ResetConsumed()
			scene.play(o)
			if diff := cmp.Diff(billedOf(o.db.Consumed(), o.table), o.reported(everything)); diff != "" {
				t.Errorf("by operation, - as billed, + as reported:\n%s", diff)
			}
			found := map[string]bool{}
			for _, seen := range o.seen {
				for _, e := range seen.All {
					found[e.Path+" "+e.Outcome] = true
					if e.System != "dynamodb" || e.Began.IsZero() {
						t.Errorf("reported %+v", e)
					}
				}
			}
			for _, path := range scene.paths {
				if !found[path] {
					t.Errorf("no call was %q: %v", path, found)
				}
			}
		})
	}
}

// TestAccountsSee: the check above sees a call that is not reported, is reported twice, or has another
// capacity.
func TestAccountsSee(t *testing.T) {
	o := newObserved(t)
	o.db.ResetConsumed()
	scenes[0].play(o)
	billed, all := billedOf(o.db.Consumed(), o.table), o.seen[0].All
	last := len(all) - 1
	for name, wrong := range map[string][]store.StoreEvent{
		"not reported":   all[:last],
		"reported twice": append(slices.Clone(all), all[last]),
		"no capacity": append(slices.Clone(all[:last]), func(e store.StoreEvent) store.StoreEvent {
			e.Write = 0
			return e
		}(all[last])),
	} {
		if cmp.Equal(billed, reportedOf(wrong)) {
			t.Errorf("%s goes unseen", name)
		}
	}
}

type callerKey struct{}

// TestStoreContext: a call to the store is reported with the context values of its caller. A call for several
// has those of the first. The context never ends, even if the callers leave.
func TestStoreContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newObserved(t)
		var mu sync.Mutex
		var got []string
		observer := &store.Observer{Store: func(ctx context.Context, e store.StoreEvent) {
			mu.Lock()
			defer mu.Unlock()
			got = append(
				got,
				fmt.Sprint(e.Path, " for ", e.Coalesced, " by ", ctx.Value(callerKey{}), ": ", ctx.Err()),
			)
		}}
		l, err := limits.New(New(o.client, o.table), runtime.WithObserver(observer))
		if err != nil {
			t.Fatal(err)
		}
		hold := make(chan struct{})
		o.db.Faults().Script(func(r memdynamo.Request) memdynamo.Fault {
			if r.Operation == "UpdateItem" && r.Number == 1 {
				<-hold
			}
			return memdynamo.None
		})
		var calls sync.WaitGroup
		acquire := func(caller string) context.CancelFunc {
			ctx, cancel := context.WithCancel(context.WithValue(t.Context(), callerKey{}, caller))
			calls.Go(func() {
				_, _ = l.Embeddings.Acquire(ctx, limits.Project{ID: "1"}, limits.EmbeddingsCost{RPS: 1})
			})
			synctest.Wait()
			return cancel
		}
		defer acquire("a")()
		defer acquire("b")() // is held up, and c and d gather behind it
		defer acquire("c")()
		defer acquire("d")()
		close(hold)
		calls.Wait()
		closeAll(t, l.Limiter)
		want := []string{
			"read for 0 by a: <nil>",
			"create for 1 by a: <nil>",
			"retry for 1 by b: <nil>",
			"retry for 2 by c: <nil>",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("reported (-want +got):\n%s", diff)
		}
	})
}

// TestStoreContextOfAbandoned: a caller that has left does not end the context.
func TestStoreContextOfAbandoned(t *testing.T) {
	o := newObserved(t)
	var reported []error
	ctx, cancel := context.WithCancel(t.Context())
	l, err := limits.New(New(o.client, o.table), runtime.WithObserver(&store.Observer{
		Store: func(ctx context.Context, _ store.StoreEvent) { reported = append(reported, ctx.Err()) },
	}))
	if err != nil {
		t.Fatal(err)
	}
	o.db.Faults().Script(func(memdynamo.Request) memdynamo.Fault {
		cancel()
		return memdynamo.LoseRequest
	})
	if _, err := l.Embeddings.Acquire(ctx, limits.Project{ID: "1"}, limits.EmbeddingsCost{RPS: 1}); !errors.Is(
		err,
		context.Canceled,
	) {
		t.Error(err)
	}
	o.db.Faults().Clear()
	closeAll(t, l.Limiter)
	if len(reported) != 1 || reported[0] != nil {
		t.Errorf("reported with %v", reported)
	}
}
