package dynamo

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/store"
)

// A call to DynamoDB that gets no reply takes a bounded part of the time of callers that do not need it.

// hung is an API in which some calls get no reply: they end with their context.
type hung struct {
	wire.API

	mu    sync.Mutex
	hangs func(operation string, n int) bool // of calls of an operation since hang, from 1; nil for none
	count map[string]int
}

// hang has calls hang from now on.
func (h *hung) hang(hangs func(operation string, n int) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hangs, h.count = hangs, map[string]int{}
}

// called returns how many calls of an operation there were since hang.
func (h *hung) called(operation string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.count[operation]
}

// wait waits for the end of ctx if the call hangs.
func (h *hung) wait(ctx context.Context, operation string) error {
	h.mu.Lock()
	hangs := false
	if h.hangs != nil {
		h.count[operation]++
		hangs = h.hangs(operation, h.count[operation])
	}
	h.mu.Unlock()
	if !hangs {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

func (h *hung) BatchGetItem(
	ctx context.Context, in *dynamodb.BatchGetItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.BatchGetItemOutput, error) {
	if err := h.wait(ctx, "BatchGetItem"); err != nil {
		return nil, err
	}
	return h.API.BatchGetItem(ctx, in, opts...)
}

func (h *hung) UpdateItem(
	ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	if err := h.wait(ctx, "UpdateItem"); err != nil {
		return nil, err
	}
	return h.API.UpdateItem(ctx, in, opts...)
}

func (h *hung) TransactWriteItems(
	ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options),
) (*dynamodb.TransactWriteItemsOutput, error) {
	if err := h.wait(ctx, "TransactWriteItems"); err != nil {
		return nil, err
	}
	return h.API.TransactWriteItems(ctx, in, opts...)
}

// callsOf has every call of an operation hang.
func callsOf(operation string) func(string, int) bool {
	return func(called string, _ int) bool { return called == operation }
}

// hanging runs f with a process whose calls may hang. Each takes 10 ms otherwise. Overrides are due.
func hanging(
	t *testing.T, cascade store.Cascade, limits [][]bucket.Limit, who kin,
	f func(*testing.T, *bubble, *hung, *post, codec.Resource),
) {
	t.Helper()
	inBubble(t, 1, func(t *testing.T, b *bubble) {
		t.Helper()
		api := &hung{API: b.client}
		def := lineage(second(generated(t)), cascade, limits...)
		p := newPost(t, New(api, "faults"), []runtime.Option{runtime.WithCacheTTL(time.Minute)}, def)
		if _, err := p.at[0].Acquire(t.Context(), who, tokens{1}); err != nil {
			t.Fatal(err)
		}
		elapse(time.Minute)
		b.Faults().Latency(memdynamo.Constant(10 * time.Millisecond))
		f(t, b, api, p, def)
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// override gives org-1 20 tokens a minute of def.
func (b *bubble) override(t *testing.T, def codec.Resource) {
	t.Helper()
	overrides := operator.OverridesWith(b.client, wire.NewRetrier("faults"), time.Now)
	manager{overrides, def.Spec()}.set(t, "org-1", per(20))
}

// TestHungRefresh: overrides that are due cannot be read, since the read beside the first caller's write
// hangs. All callers of the bucket are served by the old ones. None waits longer than half of its Budget, or
// half a second.
func TestHungRefresh(t *testing.T) {
	budgets := []time.Duration{400 * time.Millisecond, time.Second, 3 * time.Second}
	const callers, trips = 80, 100 * time.Millisecond // the writes that serve the callers
	for first, budget := range budgets {
		t.Run(fmt.Sprint("first ", budget), func(t *testing.T) {
			hanging(t, store.CascadeNone, [][]bucket.Limit{minute(1000)}, kin{"1"}, func(
				t *testing.T, b *bubble, api *hung, p *post, _ codec.Resource,
			) {
				t.Helper()
				api.hang(callsOf("BatchGetItem"))
				var calls sync.WaitGroup
				for i := range callers {
					budget := budgets[(first+i)%len(budgets)]
					calls.Go(func() {
						began := time.Now()
						_, err := p.at[0].Acquire(t.Context(), kin{"1"}, tokens{1}, runtime.Budget(budget))
						took, most := time.Since(began), min(budget/2, 500*time.Millisecond)+trips
						if err != nil || took > most {
							t.Errorf("a caller with %v: %v after %v, want to be served in %v", budget, err, took, most)
						}
					})
				}
				calls.Wait()
				if n := api.called("BatchGetItem"); n != 1 {
					t.Errorf("the overrides were read %d times, want once: for a second the old ones serve", n)
				}
				b.charged(t, 1, 1+callers)
			})
		})
	}
}

// TestHungRefund: a charge is given back before the call is decided anew, or denied. If that write hangs, the
// caller has its answer within its Budget all the same.
func TestHungRefund(t *testing.T) {
	const budget = 100 * time.Millisecond
	for name, test := range map[string]struct {
		limits [][]bucket.Limit
		who    kin
		before func(*testing.T, *bubble, codec.Resource)
		writes int // before the refund
	}{
		"overrides have changed": {
			[][]bucket.Limit{minute(1000)}, kin{"1"},
			func(t *testing.T, b *bubble, def codec.Resource) {
				t.Helper()
				b.override(t, def)
			}, 1,
		},
		"a later bucket denies": {
			[][]bucket.Limit{minute(1000), minute(10)}, kin{"1", "2"},
			func(t *testing.T, b *bubble, def codec.Resource) {
				t.Helper()
				if _, err := b.post(t, nil, def).at[0].Acquire(t.Context(), kin{"1"}, tokens{999}); err != nil {
					t.Fatal(err)
				}
			}, 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			hanging(t, store.CascadeCompensated, test.limits, test.who, func(
				t *testing.T, b *bubble, api *hung, p *post, def codec.Resource,
			) {
				t.Helper()
				test.before(t, b, def)
				api.hang(func(operation string, n int) bool { return operation == "UpdateItem" && n > test.writes })
				began := time.Now()
				_, err := p.at[0].Acquire(t.Context(), test.who, tokens{5}, runtime.Budget(budget))
				if took := time.Since(began); took > budget {
					t.Errorf("answered %v after %v, want to be answered in %v", err, took, budget)
				}
				if n := api.called("UpdateItem"); n != test.writes+1 {
					t.Errorf("%d writes, and %v: want one that gives back", n, err)
				}
				api.hang(nil)
			})
		})
	}
}

// TestHungTransaction: a chain's transaction hangs. Callers of its root alone are served meanwhile. Siblings
// wait for it, but no longer than their own Budget.
func TestHungTransaction(t *testing.T) {
	limits := [][]bucket.Limit{minute(1000), minute(1000)}
	hanging(t, store.CascadeAtomic, limits, kin{"1", "2"}, func(
		t *testing.T, _ *bubble, api *hung, p *post, _ codec.Resource,
	) {
		t.Helper()
		api.hang(callsOf("TransactWriteItems"))
		var calls sync.WaitGroup
		for _, test := range []struct {
			who          kin
			budget, most time.Duration
			served       bool
		}{
			{kin{"1", "2"}, 3 * time.Second, 3 * time.Second, false},
			{kin{"1", "3"}, 400 * time.Millisecond, 400 * time.Millisecond, false},
			{kin{"1", "2"}, time.Second, time.Second, false},
			{kin{"1"}, 400 * time.Millisecond, 100 * time.Millisecond, true},
			{kin{"1"}, 3 * time.Second, 100 * time.Millisecond, true},
		} {
			calls.Go(func() {
				began := time.Now()
				_, err := p.at[0].Acquire(t.Context(), test.who, tokens{1}, runtime.Budget(test.budget))
				if took := time.Since(began); took > test.most || test.served != (err == nil) {
					t.Errorf("%v with %v: %v after %v", test.who, test.budget, err, took)
				}
			})
			synctest.Wait()
		}
		calls.Wait()
		api.hang(nil)
	})
}

// TestOwnerAnsweredInACrowd: the first caller of a bucket has its overrides read beside its write, and that
// read hangs. Others join, and the outcome of the write is unknown. The first caller is denied meanwhile and
// leaves. Its request stays, and the batch may still write to it: under -race this shows if the caller reads
// it. A late copy of the write is found to have charged it, and is given back.
func TestOwnerAnsweredInACrowd(t *testing.T) {
	for name, test := range map[string]struct {
		first mishap // of the owner's own write
		late  bool   // the write of both arrives late
		left  int64
	}{
		"in the write with others": {reject("ThrottlingException", "slow down"), true, 30},
		"in a write of its own":    {delay, false, 5},
	} {
		t.Run(name, func(t *testing.T) {
			crowdedFor(t, time.Second, 50, []int64{10}, func(t *testing.T, c *crowd, held []*runtime.Lease[tokens]) {
				t.Helper()
				api := &hung{API: c.gate.API}
				api.hang(callsOf("BatchGetItem"))
				c.gate.API = api
				_, embeddings := generated(t)
				other := c.engine.desk(t, c.client, withNumbers(embeddings, 1, bucket.Per(100, time.Hour)))
				var taken *runtime.Lease[tokens]
				mishaps := []mishap{
					test.first, delay,
					func(_ *network, apply func() (*http.Response, error)) (*http.Response, error) { // refused: 25 are left
						var err error
						if taken, err = other.Acquire(context.WithoutCancel(t.Context()), "1", tokens{25}); err != nil {
							t.Error(err)
						}
						return apply()
					},
					func(w *network, apply func() (*http.Response, error)) (*http.Response, error) { // for the settle
						<-time.After(time.Millisecond) // the owner leaves
						if test.late {
							taken.Release(context.WithoutCancel(t.Context()))
							w.arrive(t)
						}
						return apply()
					},
				}
				if !test.late {
					mishaps = slices.Delete(mishaps, 1, 2)
				}
				c.wire.expect(mishaps...)
				owner, up := c.ask(30), c.settle(held[0], 30)
				c.end()
				if err := c.Close(t.Context()); err != nil { // which waits for what is given back
					t.Error(err)
				}
				c.denied(owner)
				c.admitted(up)
				if api.called("BatchGetItem") == 0 {
					t.Error("the overrides were not due")
				}
				c.left(test.left)
			})
		})
	}
}

// lateReply is an API that holds the reply to one read of overrides until the test lets it arrive.
type lateReply struct {
	wire.API
	calls atomic.Int64
	holds atomic.Pointer[chan struct{}] // nil for no reply
}

func (l *lateReply) BatchGetItem(
	ctx context.Context, in *dynamodb.BatchGetItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.BatchGetItemOutput, error) {
	l.calls.Add(1)
	held := l.holds.Swap(nil)
	out, err := l.API.BatchGetItem(ctx, in, opts...)
	if held != nil {
		<-*held
	}
	return out, err
}

// TestLateOverrides: a caller leaves while overrides are read beside its write. Others read newer ones
// meanwhile, which the late reply does not replace: they are not read once more.
func TestLateOverrides(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, b *bubble) {
		t.Helper()
		api, arrives := &lateReply{API: b.client}, make(chan struct{})
		def := lineage(second(generated(t)), store.CascadeNone, minute(1000))
		p := newPost(t, New(api, "faults"), []runtime.Option{runtime.WithCacheTTL(time.Minute)}, def)
		acquire := func(ctx context.Context, p *post) {
			t.Helper()
			if _, err := p.at[0].Acquire(ctx, kin{"1"}, tokens{1}); err != nil {
				t.Error(err)
			}
		}
		acquire(t.Context(), p)
		elapse(time.Minute)
		api.holds.Store(&arrives)
		ctx, cancel := context.WithCancel(t.Context())
		var leaves sync.WaitGroup
		leaves.Go(func() { acquire(ctx, p) }) // is charged, and waits for the read
		synctest.Wait()
		cancel()
		leaves.Wait()
		b.override(t, def)
		acquire(t.Context(), b.post(t, nil, def)) // gives the bucket its new limit
		acquire(t.Context(), p)                   // meets that, and reads the override
		if n := api.calls.Swap(0); n != 3 {
			t.Errorf("%d reads of overrides, want 3: at first, the late one, and one for the new limit", n)
		}
		close(arrives)
		synctest.Wait()
		acquire(t.Context(), p)
		if n := api.calls.Load(); n != 0 {
			t.Errorf("%d more reads of overrides: the late reply has replaced newer ones", n)
		}
		closeAll(t, p.Limiter)
	})
}

// TestHungChangedOverrides: a chain whose transaction hangs, and whose root has other overrides meanwhile,
// holds up callers of the root alone for half of their time at most.
func TestHungChangedOverrides(t *testing.T) {
	limits := [][]bucket.Limit{minute(1000), minute(1000)}
	hanging(t, store.CascadeAtomic, limits, kin{"1", "2"}, func(
		t *testing.T, b *bubble, api *hung, p *post, def codec.Resource,
	) {
		t.Helper()
		b.override(t, def) // of the root
		api.hang(callsOf("TransactWriteItems"))
		var calls sync.WaitGroup
		ask := func(who kin, budget time.Duration) {
			calls.Go(func() {
				began := time.Now()
				_, err := p.at[0].Acquire(t.Context(), who, tokens{1}, runtime.Budget(budget))
				if took := time.Since(began); len(who) == 1 && (err != nil || took > 3*budget/4) {
					t.Errorf("the root alone: %v after %v of %v", err, took, budget)
				}
			})
			synctest.Wait()
		}
		ask(kin{"1", "2"}, 3*time.Second)
		for range 5 {
			ask(kin{"1"}, 400*time.Millisecond)
			elapse(400 * time.Millisecond)
		}
		calls.Wait()
		api.hang(nil)
	})
}
