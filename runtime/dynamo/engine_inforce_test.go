package dynamo

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// manager is an operator who changes overrides of one resource, which has one limit.
type manager struct {
	*operator.Overrides
	spec *store.Spec
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
			_, err = o.Set(
				t.Context(),
				o.spec,
				store.Stored{At: at, Limits: []*bucket.Limit{limit}, Revision: stored[0].Revision},
			)
		}
		if _, lost := errors.AsType[*store.ConflictError](err); lost {
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
		case isA[*store.DeniedError](err):
			return n
		case err != nil:
			t.Fatal(err)
		}
		n++
	}
}

// TestOverridesInForce changes the limit of one bucket under three processes whose caches expire at different
// times. Each change reaches the bucket by one write, with the first acquire of a process that knows of it,
// and nobody takes it back.
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
	// Expired overrides are read at half price, beside the write. They have changed, so what it took is given
	// back. Those that the bucket is to be given are read once more, consistently and together.
	then := []string{
		"levels found", "reshape applied", "retry applied", "retry applied", "retry applied", "retry applied",
	}
	if !slices.Contains(a.Paths, "adjust applied") { // the read was back before the write was planned
		a.calls(t, append([]string{"levels found"}, then...)...)
	} else {
		a.callsBeside(t, "normal applied", "levels found", append([]string{"adjust applied"}, then...)...)
	}
	if n := drain(t, b); n != 0 {
		t.Errorf("%d admitted by a process that knows the old limit", n)
	}
	b.calls(
		t,
		"normal refused",
		"levels found",
	) // a write by what it knew; the image sends it to read what others know
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

// TestOverrideOfMissing: a bucket is created with the limits in force, and a cost above an override's burst
// can never be served.
func TestOverrideOfMissing(t *testing.T) {
	_, embeddings := generated(t)
	def := withNumbers(embeddings, 1, *per(200))
	e := newEngine(t)
	e.manager(def, 0).set(t, "user", per(7))
	d := e.desk(t, e.client, def)
	_, err := d.Acquire(t.Context(), "1", tokens{8})
	if exceeds, ok := errors.AsType[*store.CostTooLargeError](err); !ok || exceeds.Burst != 7 {
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

// TestOverridesStorm has many processes at work on one bucket while two operators, whose clocks differ, keep
// changing and deleting its limits on both levels. Each write of a reshape raises cv: as many as there are
// changes at the most, however many processes see them and whatever each has in its cache. Overrides are read
// once a TTL, and once more where a process meets newer ones, not per acquire.
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
	if _, err := desks[0].Acquire(t.Context(), "1", tokens{1}); err != nil {
		// or all may change before there is a bucket
		t.Fatal(err)
	}
	var admitted atomic.Int64
	var changed atomic.Bool
	var wg sync.WaitGroup
	for i, d := range desks {
		wg.Go(func() {
			for n := 0; n < acquires/processes || !changed.Load(); n++ {
				// or all might be done before anything has changed
				switch _, err := d.Acquire(t.Context(), "1", tokens{1}); {
				case err == nil:
					admitted.Add(1)
				case isA[*store.DeniedError](err), isA[*store.ContendedError](err):
				default:
					t.Errorf("process %d: %v", i, err)
				}
				e.clock.Since.Add(100)
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
	changed.Store(true)
	wg.Wait()
	reshapes := 0
	for _, d := range desks {
		reshapes += d.count("reshape applied")
	}
	if reshapes == 0 || reshapes > changes {
		t.Errorf("%d reshapes for %d changes", reshapes, changes)
	}
	lasted := time.Duration(e.clock.Since.Load()) * time.Millisecond
	if most := processes * (2*int(lasted/e.ttl) + 2); counter.n > most {
		t.Errorf(
			"overrides were read %d times in %v by %d processes, want %d at the most",
			counter.n,
			lasted,
			processes,
			most,
		)
	}

	// Once it is calm and caches have expired, everybody works by what is stored.
	want := e.final(t, def)
	e.clock.Since.Add(120_000)
	for _, d := range desks {
		if _, err := d.Acquire(t.Context(), "1", tokens{1}); err != nil && !isA[*store.DeniedError](err) {
			t.Fatal(err)
		}
	}
	item := e.get(t, item.BucketKey("user-1", "embeddings"))
	if got := number(item["b_rps_cp"]); got != want.Capacity {
		t.Errorf("the bucket has capacity %d, want %d", got, want.Capacity)
	}
	t.Logf(
		"%d admitted, %d reshapes for %d changes, overrides read %d times",
		admitted.Load(),
		reshapes,
		changes,
		counter.n,
	)
}

// final is the limit in force for user-1 as it is stored.
func (e *engine) final(t *testing.T, def codec.Resource) bucket.Limit {
	t.Helper()
	overrides, err := e.manager(def, 0).Get(t.Context(), def.Spec(), "user-1", "user")
	if err != nil {
		t.Fatal(err)
	}
	return store.Resolve(def.Spec().Kinds[0].Limits, overrides...)[0]
}

// levelReads counts reads of config items.
type levelReads struct {
	wire.API
	mu sync.Mutex
	n  int
}

func (l *levelReads) BatchGetItem(
	ctx context.Context,
	in *dynamodb.BatchGetItemInput,
	opts ...func(*dynamodb.Options),
) (*dynamodb.BatchGetItemOutput, error) {
	l.mu.Lock()
	for _, wanted := range in.RequestItems {
		for _, key := range wanted.Keys {
			if k := item.KeyOf(key); k == item.KeyOf(item.OverrideKey("embeddings", "user-1")) {
				l.n++
			}
		}
	}
	l.mu.Unlock()
	return l.API.BatchGetItem(ctx, in, opts...)
}

// batches is an API whose BatchGetItem a test may answer in DynamoDB's place, nil leaving it to that, and
// follow.
type batches struct {
	wire.API
	answer func(*dynamodb.BatchGetItemInput) (*dynamodb.BatchGetItemOutput, error)
	then   func()
	calls  atomic.Int64
}

func (b *batches) BatchGetItem(
	ctx context.Context,
	in *dynamodb.BatchGetItemInput,
	opts ...func(*dynamodb.Options),
) (*dynamodb.BatchGetItemOutput, error) {
	if b.calls.Add(1) > 100 {
		return nil, errors.New("the test's limit of calls") // ends what would not
	}
	if b.answer != nil {
		if out, err := b.answer(in); out != nil || err != nil {
			return out, err
		}
	}
	out, err := b.API.BatchGetItem(ctx, in, opts...)
	if b.then != nil {
		b.then()
	}
	return out, err
}

// TestStaleOverridesServe: overrides that are due but cannot be read serve a second longer, and are read
// then.
func TestStaleOverridesServe(t *testing.T) {
	_, embeddings := generated(t)
	e := newEngine(t)
	e.ttl = time.Minute
	var failure error
	api := &batches{
		API:    e.client,
		answer: func(*dynamodb.BatchGetItemInput) (*dynamodb.BatchGetItemOutput, error) { return nil, failure },
	}
	d := e.desk(t, api, withNumbers(embeddings, 1, *per(200)))
	acquire := func() {
		t.Helper()
		if _, err := d.Acquire(t.Context(), "1", tokens{1}); err != nil {
			t.Fatal(err)
		}
	}
	acquire()
	d.calls(t, "read missing", "create applied")
	e.clock.set(60_000)
	failure = errWire
	acquire()
	d.callsBeside(t, "normal applied", "levels failed")
	e.clock.set(60_999)
	acquire()
	d.calls(t, "normal applied")
	e.clock.set(61_000)
	acquire()
	d.callsBeside(t, "retry applied", "levels failed")
	failure = nil
	e.clock.set(62_000)
	acquire()
	d.callsBeside(t, "normal applied", "levels missing")
}

// TestDeniedOverridesFail: overrides that are due and may not be read do not serve. The charge that was
// made beside the read is given back.
func TestDeniedOverridesFail(t *testing.T) {
	_, embeddings := generated(t)
	e := newEngine(t)
	e.ttl = time.Minute
	var failure error
	writes, sent := &hung{API: e.client}, make(chan struct{})
	api := &batches{
		API: writes,
		answer: func(*dynamodb.BatchGetItemInput) (*dynamodb.BatchGetItemOutput, error) {
			if failure != nil {
				<-sent // a read that fails earlier has nothing to be given back
			}
			return nil, failure
		},
	}
	d := e.desk(t, api, withNumbers(embeddings, 1, *per(200)))
	if _, err := d.Acquire(t.Context(), "1", tokens{1}); err != nil {
		t.Fatal(err)
	}
	e.clock.set(60_000)
	writes.hang(func(operation string, n int) bool {
		if operation == "UpdateItem" && n == 1 {
			close(sent)
		}
		return false
	})
	failure = &smithy.GenericAPIError{Code: "AccessDeniedException"}
	d.calls(t, "read missing", "create applied")
	acquire := func() {
		t.Helper()
		_, err := d.Acquire(t.Context(), "1", tokens{1})
		if _, ok := errors.AsType[*store.SetupError](err); !ok {
			t.Errorf("%v, want a *SetupError", err)
		}
	}
	acquire()
	d.callsBeside(t, "normal applied", "levels failed", "adjust applied", "levels failed")
	acquire()
	d.calls(t, "levels failed")
}

// TestOverridesAreReadOnce in a call, however short they are remembered, and whether they can be read or not.
func TestOverridesAreReadOnce(t *testing.T) {
	_, embeddings := generated(t)
	for _, ttl := range []time.Duration{time.Nanosecond, 5 * time.Millisecond, 500 * time.Millisecond,
		time.Second, time.Minute} {
		t.Run(ttl.String(), func(t *testing.T) {
			e := newEngine(t)
			e.ttl = ttl
			var failure error
			api := &batches{
				API: e.client,
				answer: func(*dynamodb.BatchGetItemInput) (*dynamodb.BatchGetItemOutput, error) {
					e.clock.Since.Add(900) // what it takes
					return nil, failure
				},
			}
			d := e.desk(t, api, withNumbers(embeddings, 1, *per(200)))
			for n, err := range []error{nil, nil, errWire, nil, errWire} {
				failure = err
				if _, err := d.Acquire(t.Context(), "1", tokens{1}); err != nil {
					t.Fatal(err)
				}
				if got := api.calls.Load(); got != int64(n+1) {
					t.Fatalf("%d reads of the overrides by call %d", got, n+1)
				}
				e.clock.Since.Add(60_000)
			}
		})
	}
}

// TestOverridesLeftUnread: where DynamoDB keeps leaving them out of a batch, for want of throughput, the old
// ones serve.
func TestOverridesLeftUnread(t *testing.T) {
	_, embeddings := generated(t)
	e := newEngine(t)
	e.ttl = time.Minute
	unread := false
	api := &batches{
		API: e.client,
		answer: func(in *dynamodb.BatchGetItemInput) (*dynamodb.BatchGetItemOutput, error) {
			if unread {
				return &dynamodb.BatchGetItemOutput{UnprocessedKeys: in.RequestItems}, nil
			}
			return nil, nil
		},
	}
	d := e.desk(t, api, withNumbers(embeddings, 1, *per(200)))
	acquire := func() {
		t.Helper()
		if _, err := d.Acquire(t.Context(), "1", tokens{1}); err != nil {
			t.Fatal(err)
		}
		e.clock.Since.Add(61_000)
		unread = true
	}
	acquire()
	d.calls(t, "read missing", "create applied")
	acquire()
	d.callsBeside(t, "normal applied", "levels missing")
	_, err := d.Acquire(t.Context(), "2", tokens{1}) // of which nothing is known
	if u, ok := errors.AsType[*store.UnavailableError](err); !ok || !u.Throttled {
		t.Errorf("%v, want that it is throttled", err)
	}
}

// TestKindReadMeanwhile: who did not ask for a kind's override, because it was known, does not take it for
// missing when somebody else has read it later than the asking.
func TestKindReadMeanwhile(t *testing.T) {
	_, embeddings := generated(t)
	def := withNumbers(embeddings, 1, *per(200))
	e := newEngine(t)
	e.ttl = time.Minute
	e.manager(def, 0).set(t, "user", per(5))
	var d *desk
	acquire := func(id user) {
		t.Helper()
		if _, err := d.Acquire(t.Context(), id, tokens{1}); err != nil {
			t.Fatal(err)
		}
	}
	api := &batches{API: e.client}
	d = e.desk(t, api, def)
	acquire("1")
	e.clock.set(59_999) // the kind's is remembered for another millisecond
	api.then = func() {
		api.then = nil
		e.clock.set(60_000)
		acquire("3") // reads it again
	}
	acquire("2")
	for _, id := range []string{"user-1", "user-2", "user-3"} {
		if got := number(e.get(t, item.BucketKey(id, "embeddings"))["b_rps_cp"]); got != 5_000 {
			t.Errorf("%s has a bucket of capacity %d, want 5,000", id, got)
		}
	}
}

// TestMalformedOverride names the item and the cure, and nothing is charged.
func TestMalformedOverride(t *testing.T) {
	_, embeddings := generated(t)
	def := withNumbers(embeddings, 1, *per(200))
	e := newEngine(t)
	item := item.OverrideKey("embeddings", "user")
	item["ver"], item["l_rps_cp"] = codec.N(1), codec.S("many")
	e.put(t, item)
	_, err := e.desk(t, e.client, def).Acquire(t.Context(), "1", tokens{1})
	wantSetup(t, err, "embeddings at user ", "attribute l_rps_cp S", "KIND#user / #CONFIG#embeddings")
}
