package dynamo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// manager is an operator who changes overrides of one resource, which has one limit.
type manager struct {
	*Overrides
	spec *runtime.Spec
}

func (e *engine) manager(def codec.Resource, ahead int64) manager {
	return manager{e.operator(e.client, ahead), def.Spec()}
}

// set makes limit, nil for none, what a level says, whatever it said.
func (o manager) set(t testing.TB, at string, limit *bucket.Limit) {
	t.Helper()
	for {
		stored, err := o.Get(t.Context(), o.spec, at)
		if err == nil {
			_, err = o.Set(t.Context(), o.spec, runtime.Stored{At: at, Limits: []*bucket.Limit{limit}, Revision: stored[0].Revision})
		}
		if _, lost := errors.AsType[*runtime.ConflictError](err); lost {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
}

// per is a limit of so many tokens a minute.
func per(n int64) *bucket.Limit {
	l := bucket.Per(n, time.Minute)
	return &l
}

// drain acquires single tokens until it is denied, and returns how many it got.
func drain(t *testing.T, d *desk) (n int) {
	t.Helper()
	for {
		switch _, err := d.Acquire(t.Context(), "1", tokens{1}); {
		case isA[*runtime.DeniedError](err):
			return n
		case err != nil:
			t.Fatal(err)
		}
		n++
	}
}

// TestOverridesInForce changes the limit of one bucket under three processes whose caches expire at different times. Each change
// reaches the bucket by one write, with the first acquire of a process that knows of it, and nobody takes it back.
func TestOverridesInForce(t *testing.T) {
	_, embeddings := generated(t)
	def := withNumbers(embeddings, 1, *per(200))
	e := newEngine(t)
	e.ttl = time.Minute
	a, b, c := e.desk(t, e.client, def), e.desk(t, e.client, def), e.desk(t, e.client, def)
	early, late := e.manager(def, -5000), e.manager(def, 5000)
	acquire := func(d *desk) {
		t.Helper()
		if _, err := d.Acquire(t.Context(), "1", tokens{1}); err != nil {
			t.Fatal(err)
		}
	}
	acquire(a) // its overrides are due at 60 s
	e.clock.set(30_000)
	acquire(b) // and these at 90 s
	late.set(t, "user-1", per(5))
	acquire(a)
	a.calls(t, "read missing", "create applied", "normal refused", "retry applied")
	b.calls(t, "read found", "normal applied")

	e.clock.set(60_000)
	if n := drain(t, a); n != 5 {
		t.Errorf("%d admitted after the limit came down to 5", n)
	}
	// What is due is read at half price, what the bucket is to be given once more, consistently and together.
	a.calls(t, "levels found", "levels found", "reshape applied", "retry applied", "retry applied", "retry applied", "retry applied", "read found")
	if n := drain(t, b); n != 0 {
		t.Errorf("%d admitted by a process that knows the old limit", n)
	}
	b.calls(t, "normal refused", "levels found") // a write by what it knew; the image sends it to read what others know
	if n := drain(t, c); n != 0 {
		t.Errorf("%d admitted by a new process", n)
	}

	// Up: the balance stays, and refills to the new burst.
	early.set(t, "user-1", per(60)) // by a clock ten seconds behind: versions rise all the same
	e.clock.set(120_000)
	if n := drain(t, a); n != 5 { // of the old limit's refill; the new one counts from now on
		t.Errorf("%d admitted when the limit went up from 5 to 60, want the 5 that had come by then", n)
	}
	e.clock.set(130_000)
	if n := drain(t, c); n != 10 {
		t.Errorf("%d admitted after ten seconds of 60 a minute, want 10", n)
	}

	// The kind's override counts where the entity has none.
	late.set(t, "user", per(120))
	e.clock.set(200_000)
	if n := drain(t, b); n != 60 {
		t.Errorf("%d admitted, want the entity's 60 whatever its kind says", n)
	}
	early.set(t, "user-1", nil)
	e.clock.set(270_000)
	if n := drain(t, a); n != 60 {
		t.Errorf("%d admitted, want the 60 that had come by the override's end", n)
	}
	e.clock.set(340_000)
	if n := drain(t, c); n != 120 {
		t.Errorf("%d admitted, want the kind's 120", n)
	}
	late.set(t, "user", nil)
	e.clock.set(410_000)
	drain(t, b)
	e.clock.set(480_000)
	if n := drain(t, a); n != 200 {
		t.Errorf("%d admitted, want the schema's 200", n)
	}

	reshapes := a.count("reshape applied") + b.count("reshape applied") + c.count("reshape applied")
	if changes := 5; reshapes > changes {
		t.Errorf("%d reshapes for %d changes", reshapes, changes)
	}
}

// TestOverrideOfMissing: a bucket is created with the limits in force, and a cost above an override's burst can never be
// served.
func TestOverrideOfMissing(t *testing.T) {
	_, embeddings := generated(t)
	def := withNumbers(embeddings, 1, *per(200))
	e := newEngine(t)
	e.manager(def, 0).set(t, "user", per(7))
	d := e.desk(t, e.client, def)
	_, err := d.Acquire(t.Context(), "1", tokens{8})
	if exceeds, ok := errors.AsType[*runtime.CostExceedsBurstError](err); !ok || exceeds.Burst != 7 {
		t.Errorf("%v, want a burst of 7", err)
	}
	snap, err := d.Peek(t.Context(), "1")
	if err != nil || snap.Available[0] != 7 || snap.Buckets[0].Exists {
		t.Errorf("%+v, %v; want 7 of a bucket that is not there", snap, err)
	}
	if n := drain(t, d); n != 7 {
		t.Errorf("%d admitted, want 7", n)
	}
}

// TestOverridesStorm has many processes at work on one bucket while two operators, whose clocks differ, keep changing and
// deleting its limits on both levels. Each write of a reshape raises cv: as many as there are changes at the most, however
// many processes see them and whatever each has in its cache. Overrides are read once a TTL, and once more where a
// process meets newer ones, not per acquire.
func TestOverridesStorm(t *testing.T) {
	const processes, changes, acquires = 8, 40, 1500
	_, embeddings := generated(t)
	def := withNumbers(embeddings, 1, *per(200))
	e := newEngine(t)
	e.ttl = time.Minute
	counter := &levelReads{API: e.client}
	desks := make([]*desk, processes)
	for i := range desks {
		desks[i] = e.desk(t, counter, def)
	}
	var admitted atomic.Int64
	var wg sync.WaitGroup
	for i, d := range desks {
		wg.Go(func() {
			for range acquires / processes {
				switch _, err := d.Acquire(t.Context(), "1", tokens{1}); {
				case err == nil:
					admitted.Add(1)
				case isA[*runtime.DeniedError](err), isA[*runtime.ContendedError](err):
				default:
					t.Errorf("process %d: %v", i, err)
				}
				e.clock.since.Add(100)
			}
		})
	}
	operators := []manager{e.manager(def, -3000), e.manager(def, 3000)}
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range changes {
		at, limit := []string{"user-1", "user"}[rng.IntN(2)], per(5+rng.Int64N(300))
		if rng.IntN(4) == 0 {
			limit = nil
		}
		operators[n%2].set(t, at, limit)
	}
	wg.Wait()
	reshapes := 0
	for _, d := range desks {
		reshapes += d.count("reshape applied")
	}
	if reshapes == 0 || reshapes > changes {
		t.Errorf("%d reshapes for %d changes", reshapes, changes)
	}
	lasted := time.Duration(e.clock.since.Load()) * time.Millisecond
	if most := processes * (2*int(lasted/e.ttl) + 2); counter.n > most {
		t.Errorf("overrides were read %d times in %v by %d processes, want %d at the most", counter.n, lasted, processes, most)
	}

	// Once it is calm and caches have expired, everybody works by what is stored.
	want := e.final(t, def)
	e.clock.since.Add(120_000)
	for _, d := range desks {
		if _, err := d.Acquire(t.Context(), "1", tokens{1}); err != nil && !isA[*runtime.DeniedError](err) {
			t.Fatal(err)
		}
	}
	item := e.get(t, bucketItemKey("user-1", "embeddings"))
	if got := number(item["b_rps_cp"]); got != want.Capacity {
		t.Errorf("the bucket has capacity %d, want %d", got, want.Capacity)
	}
	t.Logf("%d admitted, %d reshapes for %d changes, overrides read %d times", admitted.Load(), reshapes, changes, counter.n)
}

// final is the limit in force for user-1 as it is stored.
func (e *engine) final(t *testing.T, def codec.Resource) bucket.Limit {
	t.Helper()
	levels, err := e.manager(def, 0).Get(t.Context(), def.Spec(), "user-1", "user")
	if err != nil {
		t.Fatal(err)
	}
	return runtime.Resolve(def.Spec().Kinds[0].Limits, levels...)[0]
}

// levelReads counts reads of config items.
type levelReads struct {
	API
	mu sync.Mutex
	n  int
}

func (l *levelReads) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	l.mu.Lock()
	for _, wanted := range in.RequestItems {
		for _, key := range wanted.Keys {
			if k := primaryKeyOf(key); k == primaryKeyOf(levelKey("embeddings", "user-1")) {
				l.n++
			}
		}
	}
	l.mu.Unlock()
	return l.API.BatchGetItem(ctx, in, opts...)
}

// TestStaleOverridesServe: overrides that are due but cannot be read serve a second longer, and are read then.
func TestStaleOverridesServe(t *testing.T) {
	_, embeddings := generated(t)
	def := withNumbers(embeddings, 1, *per(200))
	e := newEngine(t)
	e.ttl = time.Minute
	api := &noBatches{API: e.client}
	d := e.desk(t, api, def)
	acquire := func(want ...string) {
		t.Helper()
		if _, err := d.Acquire(t.Context(), "1", tokens{1}); err != nil {
			t.Fatal(err)
		}
		d.calls(t, want...)
	}
	acquire("read missing", "create applied")
	e.clock.set(60_000)
	api.broken = true
	acquire("levels failed", "normal applied")
	e.clock.set(60_999)
	acquire("normal applied")
	e.clock.set(61_000)
	acquire("levels failed", "retry applied")
	api.broken = false
	e.clock.set(62_000)
	acquire("levels missing", "normal applied")
}

// TestShortCache: overrides are read once in a call, though the cache lasts for less than the reading, and a failure serves
// no longer than the cache.
func TestShortCache(t *testing.T) {
	_, embeddings := generated(t)
	def := withNumbers(embeddings, 1, *per(200))
	e := newEngine(t)
	e.ttl = time.Millisecond
	api := &noBatches{API: e.client, clock: &e.clock}
	d := e.desk(t, api, def)
	for _, want := range [][]string{{"read missing", "create applied"}, {"levels missing", "retry applied"}, {"levels failed", "retry applied"}} {
		api.broken = want[0] == "levels failed"
		if _, err := d.Acquire(t.Context(), "1", tokens{1}); err != nil {
			t.Fatal(err)
		}
		d.calls(t, want...)
	}
}

// noBatches is an API whose batches are not answered while it is broken.
type noBatches struct {
	API
	broken bool
	clock  *handClock // nil, or what each batch takes 5 ms of
}

func (n *noBatches) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	if n.clock != nil {
		n.clock.since.Add(5)
	}
	if n.broken {
		return nil, errWire
	}
	return n.API.BatchGetItem(ctx, in, opts...)
}

// TestMalformedOverride names the item and the cure, and nothing is charged.
func TestMalformedOverride(t *testing.T) {
	_, embeddings := generated(t)
	def := withNumbers(embeddings, 1, *per(200))
	e := newEngine(t)
	item := levelKey("embeddings", "user")
	item["ver"], item["l_rps_cp"] = codec.N(1), codec.S("many")
	e.put(t, item)
	_, err := e.desk(t, e.client, def).Acquire(t.Context(), "1", tokens{1})
	if !isA[*runtime.SetupError](err) {
		t.Fatal(err)
	}
	wantText(t, err, fmt.Sprint("sluice: the override of embeddings at user is malformed: attribute l_rps_cp: of type S, want an integer ",
		"of 64 bits; mend the item KIND#user / #CONFIG#embeddings and raise its ver"))
}
