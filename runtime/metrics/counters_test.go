package metrics_test

import (
	"context"
	"encoding/json"
	"errors"
	"expvar"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	budgets "github.com/sluice-go/sluice/gen/testdata/golden/money/out"
	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/metrics"
	"github.com/sluice-go/sluice/runtime/store"
)

var _ expvar.Var = (*metrics.Counters)(nil)

// TestCounters: what a service's calls come to, on the engine in the process.
func TestCounters(t *testing.T) {
	engine := memdynamo.New()
	client := engine.Client()
	if _, err := operator.CreateTable(t.Context(), client, "rate_limits"); err != nil {
		t.Fatal(err)
	}
	engine.ResetConsumed()
	c := &metrics.Counters{}
	lim, err := limits.New(dynamo.New(client, "rate_limits"),
		runtime.WithObserver(metrics.Observer(c)), runtime.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, alice := t.Context(), limits.User{ID: "1", Project: limits.Project{ID: "2"}}
	lease, err := lim.GPT4.Acquire(ctx, alice, limits.GPT4Cost{TPM: 10_000})
	if err == nil {
		err = lease.Settle(ctx, limits.GPT4Cost{TPM: 14_000})
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := errors.AsType[*runtime.InvalidError](acquired(t, lim).Settle(ctx,
		limits.GPT4Cost{TPM: -1})); !ok {
		t.Error("tokens below 0 are settled for")
	}
	_, _ = lim.GPT4.Acquire(ctx, alice, limits.GPT4Cost{TPM: 10_000})
	_, _ = lim.GPT4.Acquire(ctx, alice, limits.GPT4Cost{TPM: 20_000})
	_, _ = lim.GPT4.Acquire(ctx, alice, limits.GPT4Cost{TPM: 10_000}, runtime.Shadow(true))
	_ = lim.AcquireAll(ctx, lim.GPT4.Claim(alice, limits.GPT4Cost{TPM: 10_000}),
		lim.Embeddings.Claim(alice.Project, limits.EmbeddingsCost{RPS: 1}))
	engine.Faults().Down(true)
	_, _ = lim.Embeddings.Acquire(ctx, alice.Project, limits.EmbeddingsCost{RPS: 1},
		runtime.Budget(10*time.Millisecond))
	engine.Faults().Down(false)
	if err := lim.Close(ctx); err != nil {
		t.Fatal(err)
	}

	got := c.Snapshot()
	for _, want := range []struct {
		of     *metrics.Metric
		labels []string
		sum    float64
	}{
		{metrics.Decisions, nil, 8},
		{metrics.Decisions, []string{metrics.Resource, "gpt-4", metrics.EntityKind, "project"}, 1},
		{metrics.Decisions, []string{metrics.Resource, "gpt-4", metrics.Outcome, "acquired"}, 2},
		{metrics.Decisions, []string{metrics.Resource, "gpt-4", metrics.Outcome, "denied", metrics.LimitName, "tpm",
			metrics.LimitKind, "user"}, 2},
		{metrics.Decisions, []string{metrics.Resource, "embeddings", metrics.Outcome, "denied", metrics.LimitName,
			""}, 1},
		{metrics.Decisions, []string{metrics.Outcome, "shadowed", metrics.LimitName, "tpm", metrics.LimitKind,
			"user", metrics.ErrorType, "denied"}, 1},
		{metrics.Decisions, []string{metrics.ErrorType, "exceeds_burst"}, 1},
		{metrics.Decisions, []string{metrics.Resource, "embeddings", metrics.Outcome, "degraded", metrics.ErrorType,
			"unavailable"}, 1},
		{metrics.Decisions, []string{metrics.Path, "normal"}, 0}, // no label of it
		{metrics.Settlements, []string{metrics.Outcome, "settled", metrics.EntityKind, "user"}, 1},
		{metrics.Settlements, []string{metrics.Outcome, "invalid", metrics.ErrorType, "invalid", metrics.EntityKind,
			"project"}, 1},
		{metrics.Settlements, []string{metrics.Outcome, "failed"}, 0}, // nothing is lost: the lease is as it was
		{metrics.StoreCapacity, []string{metrics.Capacity, "write"}, engine.Consumed().Total().Total().Write},
		{metrics.StoreCapacity, []string{metrics.Capacity, "read"}, engine.Consumed().Total().Total().Read},
		{metrics.BreakersOpen, nil, 0},
	} {
		if sum := got.Sum(want.of, want.labels...); sum != want.sum {
			t.Errorf("%s %q: %v, want %v", want.of.Name, want.labels, sum, want.sum)
		}
	}

	var parsed map[string][]struct {
		Labels map[string]string
		Value  *float64
		Count  uint64
	}
	if err := json.Unmarshal([]byte(c.String()), &parsed); err != nil {
		t.Fatal(err)
	}
	if n := parsed["sluice.decision.duration"][0].Count; n == 0 {
		t.Errorf("%s", c)
	}
	if open := parsed["sluice.breakers.open"]; len(open) != 1 || *open[0].Value != 0 ||
		len(open[0].Labels) != 0 {
		t.Errorf("%s", c)
	}
}

// acquired is a lease of a project's.
func acquired(t *testing.T, lim *limits.Limiter) *limits.GPT4Lease {
	t.Helper()
	lease, err := lim.GPT4.Acquire(t.Context(), limits.Project{ID: "3"}, limits.GPT4Cost{TPM: 1})
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// TestText: the whole text of little.
func TestText(t *testing.T) {
	c := &metrics.Counters{}
	if text := c.String(); text != "{}" {
		t.Errorf("nothing is %s", text)
	}
	for range 2 {
		c.Measure(t.Context(), metrics.Settlements, 1, metrics.Values{"gpt-4", "user", "settle", "settled"})
		c.Measure(t.Context(), metrics.StoreCoalesced, 1.5, metrics.Values{"gpt-4", "redis"})
		c.Measure(t.Context(), metrics.BreakersOpen, 2, metrics.Values{})
	}
	const want = `{"sluice.breakers.open":[{"labels":{},"value":2}],` +
		`"sluice.settlements":[{"labels":{"sluice.entity.kind":"user",` +
		`"sluice.operation":"settle","sluice.outcome":"settled","sluice.resource":"gpt-4"},"value":2}],` +
		`"sluice.store.coalesced":[{"labels":{"db.system.name":"redis","sluice.resource":"gpt-4"},` +
		`"count":2,"sum":3}]}`
	if diff := cmp.Diff(want, c.String()); diff != "" {
		t.Error(diff)
	}
}

// TestCountersTogether: nothing is lost among many, who add new series meanwhile.
func TestCountersTogether(t *testing.T) {
	c := &metrics.Counters{}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 1000 {
				c.Measure(t.Context(), metrics.Decisions, 1, metrics.Values{fmt.Sprint("r", (n+i)%10)})
				if n%100 == 0 {
					_ = c.Snapshot()
				}
			}
		})
	}
	all.Wait()
	snapshot := c.Snapshot()
	if n := snapshot.Sum(metrics.Decisions); n != 8000 || len(snapshot) != 10 {
		t.Errorf("%v in %d series", n, len(snapshot))
	}
	for _, s := range snapshot {
		if s.Count != 800 || s.Sum != 800 {
			t.Errorf("%s: %d and %v", s.Values[0], s.Count, s.Sum)
		}
	}
}

// TestEveryMetricIsMeasured: what is defined comes from some event.
func TestEveryMetricIsMeasured(t *testing.T) {
	c := &metrics.Counters{}
	o := metrics.Observer(c)
	ctx := t.Context()
	o.Acquired(ctx, runtime.Event{Operation: store.OperationAcquire, Resource: "hot", Kind: "org", Pooled: true})
	o.Prefetched(ctx, runtime.Event{Operation: store.OperationTake, Limit: "rps", Millitokens: 40_000})
	o.Prefetched(ctx, runtime.Event{
		Operation: store.OperationTake, Limit: "cost", Millitokens: 40, Currency: "USD",
	})
	o.Prefetched(ctx, runtime.Event{Operation: store.OperationReturn, Resource: "hot", Millitokens: 2_500})
	o.Shadowed(ctx, runtime.Event{Operation: store.OperationAcquire})
	o.Degraded(ctx, runtime.Event{Operation: store.OperationAcquire, Uncharged: 5, Currency: "USD"})
	o.Failed(ctx, runtime.Event{Operation: store.OperationRelease, Err: context.Canceled})
	o.Failed(ctx, runtime.Event{Operation: store.OperationWait, Err: context.Canceled})
	o.Store(ctx, runtime.StoreEvent{System: "dynamodb", Read: 0.5, Write: 1, Coalesced: 3, Swept: 7})
	o.LeaseLost(ctx, runtime.Event{Operation: store.OperationExtend, Resource: "jobs", Kind: "org"})
	o.Skew(-2 * time.Second)
	o.Breaker(true, errors.New("down"))
	o.Breaker(true, errors.New("down"))
	o.Breaker(false, nil)
	got := c.Snapshot()
	seen := map[*metrics.Metric]bool{}
	for _, s := range got {
		seen[s.Metric] = true
	}
	for _, m := range metrics.All() {
		if !seen[m] {
			t.Errorf("%s comes from nothing", m.Name)
		}
	}
	if open, behind := got.Sum(metrics.BreakersOpen), got.Sum(metrics.ClockSkew, metrics.Clock,
		"behind"); open != 1 || behind != 2 {
		t.Errorf("%v open, %v behind", open, behind)
	}
	if lost, swept := got.Sum(metrics.LeasesLost, metrics.Resource, "jobs", metrics.EntityKind, "org"),
		got.Sum(metrics.SlotsSwept); lost != 1 || swept != 7 {
		t.Errorf("%v lost, %v swept", lost, swept)
	}
	if pooled, taken, returned := got.Sum(metrics.PrefetchAdmitted, metrics.EntityKind, "org"),
		got.Sum(metrics.PrefetchTaken, metrics.LimitName, "rps"),
		got.Sum(metrics.PrefetchReturned, metrics.Resource, "hot"); pooled != 1 || taken != 40 || returned != 2.5 ||
		got.Sum(metrics.PrefetchTaken, metrics.LimitName, "cost") != 40 {
		t.Errorf("%v admitted of %v taken, %v returned", pooled, taken, returned)
	}
	for outcome, want := range map[string]float64{"acquired": 1, "shadowed": 1, "failed": 1} {
		if n := got.Sum(metrics.Decisions, metrics.Outcome, outcome); n != want {
			t.Errorf("%v %s", n, outcome)
		}
	}
	if n := got.Sum(metrics.Settlements, metrics.Outcome, "failed", metrics.Operation, "release"); n != 1 {
		t.Errorf("%v releases failed", n)
	}
}

// TestTypeOf: each kind of error, and that docs/observability.md says what to do about it.
func TestTypeOf(t *testing.T) {
	docs, err := os.ReadFile("../../docs/observability.md")
	if err != nil {
		t.Fatal(err)
	}
	down := &runtime.UnavailableError{Err: errors.New("reset")}
	for want, err := range map[string]error{
		"": nil, "denied": &runtime.DeniedError{}, "exceeds_burst": &runtime.CostTooLargeError{},
		"invalid":   &runtime.InvalidError{},
		"contended": &runtime.ContendedError{}, "unavailable": fmt.Errorf("settle: %w", down),
		"throttled":    &runtime.UnavailableError{Throttled: true, Err: errors.New("throttled")},
		"breaker_open": &runtime.UnavailableError{Err: fmt.Errorf("%w; last: %w", runtime.ErrBreakerOpen, down)},
		"queue_full":   fmt.Errorf("chat: %w", &runtime.QueueFullError{}),
		"setup":        &runtime.SetupError{Err: down}, "cancelled": context.Canceled,
		"deadline": context.DeadlineExceeded,
		"_OTHER":   errors.New("else"),
	} {
		if got := metrics.TypeOf(err); got != want {
			t.Errorf("%v is %q, want %q", err, got, want)
		}
		if !regexp.MustCompile("(?m)^\\| [^|]*`"+want+"`").Match(docs) && want != "" {
			t.Errorf("docs/observability.md has no %s", want)
		}
	}
}

// observed is an acquire and the call that it made, as the store tells them.
func observed(o *runtime.Observer) {
	ctx := context.Background()
	o.Store(ctx, runtime.StoreEvent{
		System: "dynamodb", Call: "UpdateItem", Resource: "gpt-4", Path: "retry", Outcome: "applied", Write: 1,
		Coalesced: 1, Took: time.Millisecond,
	})
	o.Acquired(ctx, runtime.Event{Operation: store.OperationAcquire, Resource: "gpt-4", Kind: "user",
		Entity: "user-1", Took: time.Millisecond})
}

// TestCountersAllocateNothing once they know a series.
func TestCountersAllocateNothing(t *testing.T) {
	o := metrics.Observer(&metrics.Counters{})
	if n := testing.AllocsPerRun(100, func() { observed(o) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkCounters(b *testing.B) {
	o := metrics.Observer(&metrics.Counters{})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			observed(o)
		}
	})
}

// TestCountersOfMoney: the money of calls that were admitted in an outage is counted, once for all budgets.
// That of other calls is not.
func TestCountersOfMoney(t *testing.T) {
	for _, policy := range []runtime.Policy{runtime.Allow, runtime.Local} {
		synctest.Test(t, func(t *testing.T) {
			engine := memdynamo.New()
			client := engine.Client()
			if _, err := operator.CreateTable(t.Context(), client, "rate_limits"); err != nil {
				t.Fatal(err)
			}
			c := &metrics.Counters{}
			lim, err := budgets.New(dynamo.New(client, "rate_limits"),
				runtime.WithObserver(metrics.Observer(c)), runtime.WithLogger(slog.New(slog.DiscardHandler)))
			if err != nil {
				t.Fatal(err)
			}
			ctx, user := t.Context(), budgets.User{ID: "1", Project: budgets.Project{ID: "2"}}
			acquire := func(policy runtime.Policy) {
				t.Helper()
				cost := budgets.GPT4Usage{Input: 1_000, Output: 500, Call: 1}.Cost()
				lease, err := lim.GPT4.Acquire(ctx, user, cost,
					runtime.OnUnavailable(policy), runtime.Budget(10*time.Millisecond))
				if (err != nil) != (policy == runtime.Deny) {
					t.Fatal(err)
				}
				if err == nil && lease.Settle(ctx, budgets.GPT4Usage{Call: 1}.Cost()) != nil {
					t.Error("a settle fails")
				}
			}
			acquire(policy)
			engine.Faults().Down(true)
			acquire(policy)
			acquire(policy)
			acquire(runtime.Deny)
			_, err = lim.Tokens.Acquire(ctx, user, budgets.TokensCost{TPM: 1},
				runtime.OnUnavailable(policy), runtime.Budget(10*time.Millisecond))
			engine.Faults().Down(false)
			if err := errors.Join(err, lim.Close(ctx)); err != nil {
				t.Fatal(err)
			}
			// 0.002500001 + 0.0050000035 + 0.004, rounded up, and twice
			const want = 2 * 11_500_005
			got := c.Snapshot()
			all, dollars := got.Sum(metrics.DegradedNano), got.Sum(metrics.DegradedNano, metrics.Resource, "gpt-4",
				metrics.Currency, "USD")
			if all != want || dollars != want {
				t.Errorf("%v: %v, and %v in dollars, want %d", policy, all, dollars, want)
			}
		})
	}
}
