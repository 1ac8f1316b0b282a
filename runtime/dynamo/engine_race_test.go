package dynamo

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/runtime/dynamo/internal/known"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/item"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// TestTrace is the trace of seed 001: 90 tokens, 100 a minute, and at T0+1s A takes 3 and B takes 7 at once,
// both by what they saw before.
func TestTrace(t *testing.T) {
	// Both by Normal first, as in the seed: the second takes from what the first one left.
	normalFirst := func(w *plan.Demand, v plan.State, now int64) plan.Plan {
		if !v.Confirmed && v.Image != nil {
			b := plan.BalancesOf(v.Image)
			if p, ok := plan.NewNormal(w, v, b, b.Net(w), now); ok {
				return p
			}
		}
		return plan.Choose(w, v, now)
	}
	for _, test := range []struct {
		name   string
		choose func(*plan.Demand, plan.State, int64) plan.Plan
		after  row
		counts map[string]int
	}{
		{"as in the seed", normalFirst,
			row{RF: 1000, CV: 1, TTL: 181, Limits: holds(81_666, 20_000, 15_000_000, 0)},
			map[string]int{"normal applied": 1, "normal refused": 1, "retry applied": 1}},
		// The stored tokens suffice for both, so neither claims refill and neither loses a race: the level is the
		// same.
		{"as the store does it", plan.Choose,
			row{CV: 1, TTL: 181, Limits: holds(80_000, 20_000, 15_000_000, 0)},
			map[string]int{"retry applied": 2}},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := newEngine(t)
			e.put(t, row{CV: 1, Op: "before", Limits: holds(90_000, 10_000, 15_000_000, 0)}.Item(t))
			processes := make([]demo, 2)
			e.clock.set(-1) // what is seen now is no longer the truth at 1000
			for i := range processes {
				processes[i] = e.demo(t, e.client, func(s *Store) { s.seams.Choose = test.choose })
				if _, err := processes[i].GPT4.Peek(t.Context(), alice); err != nil {
					t.Fatal(err)
				}
			}
			e.clock.set(1000)
			together(t, len(processes), func(i int) error {
				_, err := processes[i].GPT4.Acquire(t.Context(), alice, limits.GPT4Cost{RPM: int64(3 + 4*i)})
				return err
			})
			e.stored(t, test.after)
			for what, want := range test.counts {
				if got := processes[0].count(what) + processes[1].count(what); got != want {
					t.Errorf("%q %d times, want %d", what, got, want)
				}
			}
			snapshot, err := processes[0].GPT4.Peek(t.Context(), alice)
			if err != nil || snapshot.Available.RPM != 81 {
				t.Errorf("available %+v, %v; want 81", snapshot, err)
			}
		})
	}
}

// TestDoubt: while others write to a bucket, a write that needs refill by an older image is likely to fail.
// So the bucket is read first. A limit that is not asked for, be it in debt, casts no doubt.
func TestDoubt(t *testing.T) {
	gpt4, _ := generated(t)
	e := newEngine(t)
	e.put(t, row{CV: 1, Op: "before", Limits: holds(50_000, 50_000, -5_000_000, 20_000_000)}.Item(t))
	def := withNumbers(gpt4, 1, userRPM, userTPM)
	d, other := e.desk(t, e.client, def), e.desk(t, e.client, def)
	if _, err := d.Peek(t.Context(), "1"); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Acquire(t.Context(), "1", tokens{45, 0}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Acquire(t.Context(), "1", tokens{10, 0}); !isA[*store.DeniedError](err) {
		t.Fatal(err)
	}
	d.calls(t, "read found", "retry refused") // so that d knows of others
	for _, step := range []struct {
		at, n int64
		calls []string
	}{
		{known.StaleAfter + 1, 3, []string{"retry applied"}}, // of 5
		{3000, 6, []string{"read found", "normal applied"}},
		{3000 + known.StaleAfter, 1, []string{"retry applied"}},
		{9000, 6, []string{"read found", "normal applied"}},
		{15_000, 6, []string{"normal applied"}}, // no race has been lost for long enough
	} {
		e.clock.set(step.at)
		if _, err := d.Acquire(t.Context(), "1", tokens{step.n, 0}); err != nil {
			t.Errorf("at %d: %v", step.at, err)
		}
		d.calls(t, step.calls...)
	}
}

// TestCreationRace has 16 processes find no bucket at once: one creates it, and all costs count.
func TestCreationRace(t *testing.T) {
	const processes = 16
	e := newEngine(t)
	def := withNumbers(second(generated(t)), 1, bucket.Per(10_000, time.Minute))
	desks := make([]*desk, processes)
	var read sync.WaitGroup
	read.Add(processes)
	for i := range desks {
		desks[i] = e.desk(t, &waitingReader{API: e.client, all: &read}, def)
	}
	var cost int64
	for i := range desks {
		cost += int64(i + 1)
	}
	together(t, processes, func(i int) error {
		for {
			_, err := desks[i].Acquire(t.Context(), "1", tokens{int64(i + 1)})
			if _, contended := errors.AsType[*store.ContendedError](err); !contended {
				return err
			}
		}
	})
	var created, lost int
	for _, d := range desks {
		created += d.count("create applied")
		lost += d.count("create refused")
	}
	if created != 1 || lost != processes-1 {
		t.Errorf("%d creations and %d that came too late, want 1 and %d", created, lost, processes-1)
	}
	tk, tc := e.balance(t, "embeddings", "rps")
	if tc != cost*bucket.Milli || tk != 10_000*bucket.Milli-tc {
		t.Errorf("%d left and %d charged, want all %d charged", tk, tc, cost*bucket.Milli)
	}
}

// second drops the first of two values.
func second[A, B any](_ A, b B) B { return b }

// TestNoneTooMany has 16 processes with caches of their own ask one bucket of 100, which has no refill to
// speak of, for more than it has. Some settle for less, which others then take.
func TestNoneTooMany(t *testing.T) {
	const processes, burst = 16, 100
	e := newEngine(t)
	def := withNumbers(second(generated(t)), 1, bucket.Per(burst, 366*24*time.Hour))
	desks := make([]*desk, processes)
	for i := range desks {
		desks[i] = e.desk(t, e.client, def)
	}
	var held, calls atomic.Int64
	done, polled := make(chan struct{}), make(chan int64)
	go func() { polled <- e.poll(t, done) }()
	together(t, processes, func(i int) error {
		for denied := 0; denied < 3; {
			lease, err := desks[i].Acquire(t.Context(), "1", tokens{2})
			_, contended := errors.AsType[*store.ContendedError](err)
			_, refused := errors.AsType[*store.DeniedError](err)
			switch {
			case refused:
				denied++
				e.clock.Since.Add(1001) // what denied may not do so again
				continue
			case contended:
				continue
			case err != nil:
				return err
			}
			held.Add(2)
			if calls.Add(1)%3 > 0 {
				continue
			}
			if err := lease.Settle(t.Context(), tokens{1}); err != nil {
				return err
			}
			held.Add(-1)
		}
		return nil
	})
	e.clock.Since.Add(1001)
	for { // what was settled last may be there still
		_, err := desks[0].Acquire(t.Context(), "1", tokens{1})
		if err != nil {
			break
		}
		held.Add(1)
	}
	close(done)
	if least := <-polled; least < 0 {
		t.Errorf("the balance fell to %d", least)
	}
	if held.Load() != burst {
		t.Errorf("%d tokens admitted, net of settles, want %d", held.Load(), burst)
	}
	if tk, tc := e.balance(t, "embeddings", "rps"); tk != 0 || tc != burst*bucket.Milli {
		t.Errorf("%d left and %d charged, want 0 and %d", tk, tc, burst*bucket.Milli)
	}
}

// TestNoneTooManySeesIt shows that the check above sees what the guards are for: without them more is
// admitted.
func TestNoneTooManySeesIt(t *testing.T) {
	e := newEngine(t)
	def := withNumbers(second(generated(t)), 1, bucket.Per(1, 366*24*time.Hour))
	blind := func(w *plan.Demand, v plan.State, now int64) plan.Plan {
		p := plan.Choose(w, v, now)
		for i := range p.Lo {
			p.Lo[i], p.Hi[i] = math.MinInt64, math.MaxInt64
		}
		return p
	}
	var desks [2]*desk
	for i := range desks {
		desks[i] = e.desk(t, e.client, def, func(s *Store) { s.seams.Choose = blind })
		if lease, err := desks[i].Acquire(t.Context(), "1", tokens{1}); err == nil {
			lease.Release(t.Context())
		} else {
			t.Fatal(err)
		}
	}
	for _, d := range desks { // both remember a bucket with one token
		if _, err := d.Acquire(t.Context(), "1", tokens{1}); err != nil {
			t.Fatal(err)
		}
	}
	if tk, _ := e.balance(t, "embeddings", "rps"); tk >= 0 {
		t.Errorf("%d left: without guards, two should have had the one token", tk)
	}
}

// poll reads the balance until done is closed, and returns the least that it saw.
func (e *engine) poll(t *testing.T, done <-chan struct{}) int64 {
	t.Helper()
	least := int64(1 << 62)
	for {
		select {
		case <-done:
			return least
		default:
			if item := e.get(t, item.BucketKey("user-1", "embeddings")); item != nil {
				least = min(least, number(item["b_rps_tk"]))
			}
		}
	}
}

// waitingReader is an API whose first read ends when everybody's has.
type waitingReader struct {
	wire.API
	all  *sync.WaitGroup
	once sync.Once
}

func (r *waitingReader) BatchGetItem(
	ctx context.Context,
	in *dynamodb.BatchGetItemInput,
	opts ...func(*dynamodb.Options),
) (*dynamodb.BatchGetItemOutput, error) {
	out, err := r.API.BatchGetItem(ctx, in, opts...)
	r.once.Do(func() {
		r.all.Done()
		r.all.Wait()
	})
	return out, err
}
