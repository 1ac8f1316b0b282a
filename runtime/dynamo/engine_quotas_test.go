package dynamo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// window is that of the tests' regions, ms. A heartbeat lasts for three.
const window = 10_000

// daily is what all regions have together: so much that every region keeps 50, and so slow that little
// refills within a test.
var daily = bucket.Per(1000, 24*time.Hour)

// inRegions returns r as if two regions shared its limits out.
func inRegions(r *variant) *variant {
	spec := *r.Numbers
	spec.Regions = &store.Regions{
		Names:  []string{"eu-west-1", "us-east-1"},
		Floor:  5,
		Window: window * time.Millisecond,
	}
	return &variant{Resource: r.Resource, Numbers: &spec}
}

// global is embeddings with daily as all regions' limit.
func global(t testing.TB) *variant {
	t.Helper()
	_, embeddings := generated(t)
	return inRegions(withNumbers(embeddings, 1, daily))
}

// sync1 is regional sync of one resource of one limit.
type sync1 struct {
	*operator.Regional
	t    testing.TB
	e    *engine
	spec *store.Spec
}

func (e *engine) sync(t testing.TB, def codec.Resource) sync1 {
	t.Helper()
	return sync1{operator.RegionalWith(e.client, e.retrier(), e.clock.Now), t, e, def.Spec()}
}

// alive writes the heartbeat of an epoch, for three windows from now.
func (s sync1) alive(epoch int64) {
	s.t.Helper()
	err := s.PutHeartbeat(
		s.t.Context(),
		store.Heartbeat{Epoch: epoch, Expires: s.e.clock.Now().UnixMilli() + 3*window},
	)
	if err != nil {
		s.t.Fatal(err)
	}
}

// gives makes whole tokens the quota of an entity under an epoch, none of them the tombstone where tokens are
// below 0.
func (s sync1) gives(epoch int64, entity string, tokens int64) {
	s.t.Helper()
	quota := store.Stored{At: entity, Epoch: epoch, Limits: []*bucket.Limit{nil}}
	if tokens >= 0 {
		part := daily.Quota(tokens)
		quota.Limits[0] = &part
	}
	if _, err := s.PutQuota(s.t.Context(), s.spec, quota); err != nil {
		s.t.Fatal(err)
	}
}

// drainOf acquires single tokens for an entity until it is denied, and returns how many it got.
func drainOf(t testing.TB, d *desk, id string) (n int) {
	t.Helper()
	for {
		switch _, err := d.Acquire(t.Context(), user(id), tokens{1}); {
		case isA[*store.DeniedError](err):
			return n
		case err != nil:
			t.Fatal(err)
		}
		n++
	}
}

// TestWhatIsInForce: an operator's override is always in force. A quota is in force under the epoch of a live
// heartbeat. Else each region keeps the floor of what schema or kind override give all regions, never the
// whole.
func TestWhatIsInForce(t *testing.T) {
	for name, test := range map[string]struct {
		set  func(sync1, manager)
		want int
	}{
		"nothing":  {func(sync1, manager) {}, 50},
		"no quota": {func(s sync1, _ manager) { s.alive(3) }, 50},
		"a quota": {func(s sync1, _ manager) {
			s.alive(3)
			s.gives(3, "user-1", 300)
		}, 300},
		"a quota below the floor":   {func(s sync1, _ manager) { s.alive(3); s.gives(3, "user-1", 7) }, 7},
		"a quota of another epoch":  {func(s sync1, _ manager) { s.alive(3); s.gives(2, "user-1", 300) }, 50},
		"a quota without heartbeat": {func(s sync1, _ manager) { s.gives(3, "user-1", 300) }, 50},
		"a tombstone of sync": {func(s sync1, _ manager) {
			s.alive(3)
			s.gives(3, "user-1", 300)
			s.gives(3, "user-1", -1)
		}, 50},
		"an operator's override": {func(s sync1, o manager) {
			s.alive(3)
			o.set(s.t, "user-1", per(8))
		}, 8},
		"an operator's without heartbeat": {func(s sync1, o manager) { o.set(s.t, "user-1", per(8)) }, 8},
		"an entry taken over": {func(s sync1, o manager) {
			s.alive(3)
			s.gives(3, "user-1", 300)
			o.set(s.t, "user-1", per(8))
		}, 8},
		"an entry given back": {func(s sync1, o manager) {
			s.alive(3)
			o.set(s.t, "user-1", per(8))
			o.set(s.t, "user-1", nil)
		}, 50},
		"an override of the kind": {func(s sync1, o manager) {
			o.set(s.t, "user", &bucket.Limit{Capacity: 4e5, Burst: 4e5, Refill: 1000, Period: 86_400_000})
		}, 20},
		"a version from the future": {func(s sync1, _ manager) {
			s.alive(3)
			ahead := manager{s.e.operator(s.e.client, 4*window), s.spec}
			ahead.set(s.t, "user-1", per(8))
			ahead.set(s.t, "user-1", nil)
			s.gives(3, "user-1", 300) // its version is beyond the heartbeat's end: that could not take it back
		}, 50},
	} {
		t.Run(name, func(t *testing.T) {
			def := global(t)
			e := newEngine(t)
			test.set(e.sync(t, def), e.manager(def, 0))
			if n := drainOf(t, e.desk(t, e.client, def), "1"); n != test.want {
				t.Errorf("%d admitted, want %d", n, test.want)
			}
		})
	}
}

// lapse takes two processes, whose caches expire at different times, from a quota to the floor and back. It
// returns what the bucket held at each stage: its capacity, and its cv without the revision.
func lapse(t *testing.T, opts ...storeChange) (capacities, versions []int64, reshapes int) {
	t.Helper()
	def := global(t)
	e := newEngine(t)
	s := e.sync(t, def)
	a, b := e.desk(t, e.client, def, opts...), e.desk(t, e.client, def, opts...)
	s.alive(1)
	s.gives(1, "user-1", 300)
	acquire := func(d *desk) {
		t.Helper()
		if _, err := d.Acquire(t.Context(), "1", tokens{1}); err != nil && !isA[*store.DeniedError](err) {
			t.Fatal(err)
		}
	}
	stage := func(at int64, all ...*desk) {
		t.Helper()
		e.clock.set(at)
		for _, d := range all {
			acquire(d)
		}
		item := e.get(t, item.BucketKey("user-1", "embeddings"))
		capacities = append(capacities, number(item["b_rps_cp"])/bucket.Milli)
		versions = append(versions, number(item["cv"])%bucket.RevisionUnit)
	}
	stage(1000, a)
	stage(22_000, a)       // its cache is good until 32 s,
	stage(27_000, b)       // and this one's until 37 s
	stage(29_999, a, b)    // the last moment of the heartbeat
	stage(30_000, a)       // and its end, which either sees
	stage(30_000, b)       //
	e.clock.set(34_000)    //
	s.alive(1)             // back, for both to see by 40 s at the latest
	stage(39_999, b)       // by what it read at 30 s
	stage(40_000, b, a)    // back
	stage(44_000, a, b, a) //
	e.clock.set(60_000)
	s.alive(1) // in time: nothing changes
	stage(66_000, a, b)
	return capacities, versions, a.count("reshape applied") + b.count("reshape applied")
}

// TestQuotaLapses: the change from a quota to the floor and back counts in cv. So the bucket follows the
// first process that sees it, and no process keeps to the former numbers.
func TestQuotaLapses(t *testing.T) {
	capacities, versions, reshapes := lapse(t)
	if want := []int64{300, 300, 300, 300, 50, 50, 50, 300, 300, 300}; !slices.Equal(capacities, want) {
		t.Errorf("the bucket had %v, want %v", capacities, want)
	}
	if reshapes != 2 {
		t.Errorf("%d reshapes, want one for each change", reshapes)
	}
	quota, end, back := versions[0], versions[4], versions[9]
	if end != t0+30_000 || back <= end || quota >= end {
		t.Errorf(
			"versions rose from %d to %d and %d, want that at the end to be the end's, and the next above it",
			quota,
			end,
			back,
		)
	}
}

// TestQuotaLapsesControl: where the version is the item's own, TestQuotaLapses fails.
func TestQuotaLapsesControl(t *testing.T) {
	capacities, _, _ := lapse(t, func(store *Store) {
		store.seams.Choose = func(w *plan.Demand, v plan.State, now int64) plan.Plan {
			if w.Shape != nil {
				own := *w.Shape
				own.Version = own.Version - own.Version%bucket.RevisionUnit + 1
				w.Shape = &own
			}
			return plan.Choose(w, v, now)
		}
	})
	if !slices.Equal(capacities, slices.Repeat([]int64{300}, len(capacities))) {
		t.Errorf("the bucket had %v, want it to stay as it was", capacities)
	}
}

// TestNewEpoch: a quota of the last epoch ends with it; a process that caches the old heartbeat follows
// within a window. A quota of the new epoch is in force once it is read, even beside an old heartbeat.
func TestNewEpoch(t *testing.T) {
	def := global(t)
	e := newEngine(t)
	s := e.sync(t, def)
	s.alive(1)
	s.gives(1, "user-1", 300)
	d := e.desk(t, e.client, def)
	holds := func(entity string, want int64) {
		t.Helper()
		if _, err := d.Acquire(t.Context(), user(entity), tokens{1}); err != nil {
			t.Fatal(err)
		}
		if got := number(e.get(t, item.BucketKey("user-"+entity, "embeddings"))["b_rps_cp"]) / bucket.Milli; got !=
			want {
			t.Errorf("user-%s has a bucket of %d, want %d", entity, got, want)
		}
	}
	holds("1", 300)
	e.clock.set(5000)
	s.alive(2)
	s.gives(2, "user-2", 400)
	holds("2", 400)
	holds("1", 300) // as it is remembered
	e.clock.set(10_000)
	holds("1", 50)
	s.gives(2, "user-1", 200)
	e.clock.set(20_000)
	s.alive(2)
	holds("1", 200)
}

// TestQuotasAreNotKept: an expired quota that cannot be read is not used, though other limits serve for a
// second more: the failure policy decides. A local policy uses the quota until the heartbeat ends, and then
// the floor.
func TestQuotasAreNotKept(t *testing.T) {
	def := global(t)
	e := newEngine(t)
	s := e.sync(t, def)
	s.alive(1)
	s.gives(1, "user-1", 300)
	var failure error
	api := &batches{
		API:    e.client,
		answer: func(*dynamodb.BatchGetItemInput) (*dynamodb.BatchGetItemOutput, error) { return nil, failure },
	}
	d, other := e.desk(t, api, def), e.desk(t, api, withNumbers(def.Resource, 1, daily), option(Attempts(2)))
	local := d.With(runtime.OnUnavailable(store.Local))
	for _, p := range []*desk{d, other} {
		if _, err := p.Acquire(t.Context(), "1", tokens{1}); err != nil {
			t.Fatal(err)
		}
	}
	failure = errWire
	e.clock.set(window - 1)
	if _, err := d.Acquire(t.Context(), "1", tokens{1}); err != nil {
		t.Errorf("%v, within the window", err)
	}
	e.clock.set(window)
	if _, err := d.Acquire(t.Context(), "1", tokens{1}); !isA[*store.UnavailableError](err) {
		t.Errorf("%v, want it unavailable once a window is over", err)
	}
	lease, err := local.Acquire(t.Context(), "1", tokens{200})
	if err != nil || !lease.Degraded() {
		t.Errorf("%v, want a local lease of the quota as it was known", err)
	}
	e.clock.set(3 * window)
	_, err = local.Acquire(t.Context(), "1", tokens{60})
	if denied, ok := errors.AsType[*store.DeniedError](err); !ok ||
		denied.RetryAfter != window*time.Millisecond {
		t.Errorf("%v, want more than the floor to be denied for a window once the heartbeat has ended", err)
	}
	if _, err = local.Acquire(t.Context(), "1", tokens{50}); err != nil {
		t.Errorf("%v, want a local lease of the floor", err)
	}
	if _, err = local.Acquire(t.Context(), "1", tokens{1001}); !isA[*store.CostTooLargeError](err) {
		t.Errorf("%v, want what all regions have not got to be refused for good", err)
	}
	if _, err = local.Acquire(t.Context(), "9", tokens{51}); !isA[*store.DeniedError](err) {
		t.Errorf("%v, want a bucket that nothing is known of to be the floor", err)
	}

	// The control: what no regions share goes on.
	e.ttl = window * time.Millisecond
	failure = nil
	plain := e.desk(t, api, withNumbers(def.Resource, 1, daily))
	if _, err := plain.Acquire(t.Context(), "2", tokens{1}); err != nil {
		t.Fatal(err)
	}
	failure = errWire
	e.clock.set(5 * window)
	if _, err := plain.Acquire(t.Context(), "2", tokens{1}); err != nil {
		t.Errorf("%v, of a limit that no regions share", err)
	}
}

// TestDeniedByQuota: more than the quota will ever hold is denied for a window, and nothing is taken; more
// than all regions have is refused for good. Regional sync sees by the bucket that somebody has called.
func TestDeniedByQuota(t *testing.T) {
	def := global(t)
	e := newEngine(t)
	s := e.sync(t, def)
	s.alive(1)
	s.gives(1, "user-1", 300)
	s.gives(1, "user-2", 0)
	d := e.desk(t, e.client, def)
	denied := func(id string, cost, available int64) {
		t.Helper()
		_, err := d.Acquire(t.Context(), user(id), tokens{cost})
		got, ok := errors.AsType[*store.DeniedError](err)
		if !ok || got.RetryAfter != window*time.Millisecond || got.Requested != cost ||
			got.Available != available ||
			got.Limit != "rps" {
			t.Errorf("%d for %s: %v, want a denial for a window, with %d available", cost, id, err, available)
		}
	}
	never := func(id string, cost int64) {
		t.Helper()
		_, err := d.Acquire(t.Context(), user(id), tokens{cost})
		if got, ok := errors.AsType[*store.CostTooLargeError](err); !ok || got.Burst != 1000 {
			t.Errorf("%d for %s: %v, want it to exceed the burst of 1000", cost, id, err)
		}
	}

	// Of a bucket that is not there yet.
	denied("1", 301, 300)
	denied("1", 1000, 300)
	never("1", 1001)
	denied("2", 1, 0)
	never("2", 1001)
	denied("2", 1, 0)
	for _, id := range []string{"user-1", "user-2"} {
		if item := e.get(t, item.BucketKey(id, "embeddings")); item == nil || item["b_rps_cp"] != nil {
			t.Errorf("%s has %v, want a bucket without limits", id, plain(item))
		}
	}
	d.calls(t, "read missing", "create applied", "read missing", "create applied")
	var listed []string
	err := s.Each(
		t.Context(),
		"embeddings",
		func(entity string, _ *bucket.Image) { listed = append(listed, entity) },
	)
	if slices.Sort(listed); err != nil || !slices.Equal(listed, []string{"user-1", "user-2"}) {
		t.Errorf("sync sees %v, %v; want both", listed, err)
	}

	// Of one that is: by memory, and by a read where that is old.
	if _, err := d.Acquire(t.Context(), "1", tokens{100}); err != nil {
		t.Fatal(err)
	}
	d.calls(t, "reshape applied")
	denied("1", 301, 200)
	never("1", 1001)
	d.calls(t)
	e.clock.set(2000)
	denied("1", 301, 200)
	denied("1", 301, 200)
	d.calls(t, "read found")

	// And of one whose quota has been taken from it: it is left as it is.
	s.gives(1, "user-1", 0)
	e.clock.set(12_000)
	denied("1", 1, 0)
	denied("1", 1, 0)
	if cp := number(e.get(t, item.BucketKey("user-1", "embeddings"))["b_rps_cp"]); cp != 300*bucket.Milli {
		t.Errorf("the bucket has capacity %d, want nothing written", cp)
	}
	d.calls(t, "levels found", "read found")
	snap, err := d.Peek(t.Context(), "1")
	if err != nil || snap.Available[0] != 0 || snap.Buckets[0].Capacity[0] != 0 {
		t.Errorf("%+v, %v; want a closed bucket", snap, err)
	}
}

// TestClosedBucket: a bucket that is closed in the table is so for a process that does not know why.
func TestClosedBucket(t *testing.T) {
	def := global(t)
	e := newEngine(t)
	s := e.sync(t, def)
	s.alive(1)
	s.gives(1, "user-1", 300)
	knows := e.desk(t, e.client, def)
	lease, err := knows.Acquire(t.Context(), "1", tokens{1})
	if err != nil {
		t.Fatal(err)
	}
	s.gives(1, "user-1", 0)
	e.clock.set(window)
	stale := e.desk(t, e.client, def) // as a process that comes too late: its own levels are the bucket's
	item := e.get(t, item.BucketKey("user-1", "embeddings"))
	closed := daily.Quota(0)
	item["b_rps_cp"], item["b_rps_bx"], item["b_rps_ra"], item["b_rps_rp"] = codec.N(
		0,
	), codec.N(
		closed.Burst,
	), codec.N(
		closed.Refill,
	), codec.N(
		closed.Period,
	)
	item["b_rps_tk"] = codec.N(closed.Burst)
	item["cv"] = codec.N(number(item["cv"]) + 5*window)
	e.put(t, item)
	for name, d := range map[string]*desk{"a new process": stale, "one that knew it open": knows} {
		_, err = d.Acquire(t.Context(), "1", tokens{1})
		if denied, ok := errors.AsType[*store.DeniedError](err); !ok ||
			denied.RetryAfter != window*time.Millisecond ||
			denied.Available != 0 {
			t.Errorf("%s: %v, want a denial for a window", name, err)
		}
	}
	if err = lease.Settle(t.Context(), tokens{5}); err != nil { // what was admitted is settled, into debt
		t.Error(err)
	}
	if tk, _ := e.balance(t, "embeddings", "rps"); tk != closed.Burst-4*bucket.Milli {
		t.Errorf("tk %d after the settle", tk)
	}
}

// TestClosedParent: a chain is denied before any of it is charged, whatever its cascade, also where its
// nearest bucket has plenty.
func TestClosedParent(t *testing.T) {
	_, embeddings := generated(t)
	for name, cascade := range map[string]store.Cascade{"atomic": store.CascadeAtomic,
		"compensated": store.CascadeCompensated} {
		t.Run(name, func(t *testing.T) {
			def := inRegions(family(embeddings, cascade, []bucket.Limit{daily}, []bucket.Limit{daily}))
			e := newEngine(t)
			s := e.sync(t, def)
			s.alive(1)
			s.gives(1, "project-1", 0)
			h := e.house(t, e.client, def)
			for _, cost := range []int64{1, 51} { // of a user, too, a region has no more than 50
				_, err := h.at[0].Acquire(t.Context(), alicesHome, tokens{cost})
				denied, ok := errors.AsType[*store.DeniedError](err)
				if !ok || denied.RetryAfter != window*time.Millisecond || len(denied.Refusals) != 1+int(cost/51) {
					t.Errorf("%d: %v, want a denial for a window", cost, err)
				}
			}
			e.holding(t, "user-1 0 0", "project-1 0 0")
			for _, what := range []string{"reshape applied", "transact applied", "adjust applied"} {
				if n := h.count(what); n > 0 {
					t.Errorf("%d times %s", n, what)
				}
			}
			_, err := h.at[0].Acquire(t.Context(), alicesHome, tokens{1001})
			if !isA[*store.CostTooLargeError](err) {
				t.Errorf("%v, want more than all regions have to be refused for good", err)
			}
			s.gives(1, "project-1", 20)
			e.clock.set(window)
			h.acquire(t, alicesHome, 7)
			e.holding(t, "user-1 43 7", "project-1 13 7")
		})
	}
}

// TestWaitForQuota: who waits for a closed limit asks again after a window, and is served once there is a
// quota.
func TestWaitForQuota(t *testing.T) {
	def := global(t)
	e := newEngine(t)
	s := e.sync(t, def)
	s.alive(1)
	s.gives(1, "user-1", 0)
	d := e.desk(t, e.client, def)
	waits := 0
	slow := &waitingClock{handClock: &e.clock, after: func(pause time.Duration) {
		if waits++; pause != window*time.Millisecond {
			t.Errorf("it waits for %v, want a window", pause)
		}
		e.clock.Since.Add(pause.Milliseconds())
		if s.alive(1); waits == 2 {
			s.gives(1, "user-1", 300)
		}
	}}
	seen := &events{}
	b := runtime.NewBuilder(New(e.client, e.table), append(e.options(seen), runtime.WithClock(slow))...)
	d.Resource = runtime.Bind[user](b, def,
		func(c tokens, dst []int64) []int64 { return append(dst, c...) }, func(v []int64) tokens { return v })
	if _, err := b.Limiter(); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Wait(t.Context(), "1", tokens{200}); err != nil || waits != 2 {
		t.Errorf("%v after %d pauses, want it served after 2", err, waits)
	}
}

// waitingClock tells of pauses.
type waitingClock struct {
	*handClock
	after func(time.Duration)
}

func (c *waitingClock) After(d time.Duration) <-chan time.Time {
	c.after(d)
	return c.handClock.After(d)
}

// TestQuotasCost: beside its write unit, an entity's acquires cost one read unit a window, for its override.
// Those of its kind and the heartbeat are read once a window for all. Without a heartbeat that is alive, each
// reads it.
func TestQuotasCost(t *testing.T) {
	def := global(t)
	e := newEngine(t)
	s := e.sync(t, def)
	s.alive(1)
	m := newMeter(t, e.client)
	d := e.desk(t, m, def)
	costs := func(what string, want usage) {
		t.Helper()
		if got := m.take(); got != want {
			t.Errorf("%s cost %+v, want %+v", what, got, want)
		}
	}
	acquire := func(ids ...string) {
		t.Helper()
		for _, id := range ids {
			if _, err := d.Acquire(t.Context(), user(id), tokens{1}); err != nil {
				t.Fatal(err)
			}
		}
	}
	acquire("1", "2")
	costs(
		"the first acquires",
		usage{Calls: 4, Reads: 2, Writes: 2, Units: (1 + 3 + 1) + (1 + 1 + 1), Indexes: 2},
	)
	for n := range int64(9) {
		e.clock.set(1000 * n)
		acquire("1", "2")
	}
	costs("the steady state", usage{Calls: 18, Writes: 18, Units: 18})
	e.clock.set(window)
	acquire("1", "2")
	costs("an acquire a window later", usage{Calls: 4, Reads: 2, Writes: 2, Units: (3 + 1) + (1 + 1)})
	e.clock.set(3 * window)
	acquire("1", "2")
	costs("an acquire without heartbeat", usage{Calls: 4, Reads: 2, Writes: 2, Units: (3 + 1) + (2 + 1)})

	other := e.desk(t, m, withNumbers(def.Resource, 1, daily))
	m.take()
	e.clock.set(4 * window)
	if _, err := other.Acquire(t.Context(), "1", tokens{1}); err != nil {
		t.Fatal(err)
	}
	costs("one of a resource without regions", usage{Calls: 2, Reads: 1, Writes: 1, Units: 3 + 1})
}

// TestHeartbeatMalformed names the item and the cure, and nothing is charged.
func TestHeartbeatMalformed(t *testing.T) {
	def := global(t)
	for name, test := range map[string]struct {
		attr, value string
		want        string
	}{
		"the end":       {"exp", "50000000000000", "attribute exp 50000000000000"},
		"the beginning": {"since", "0", "attribute since 0"},
		"the epoch":     {"epoch", "0", "attribute epoch 0"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			e.sync(t, def).alive(1)
			item := e.get(t, item.HeartbeatKey())
			var value int64
			if _, err := fmt.Sscan(test.value, &value); err != nil {
				t.Fatal(err)
			}
			item[test.attr] = codec.N(value)
			e.put(t, item)
			_, err := e.desk(t, e.client, def).Acquire(t.Context(), "1", tokens{1})
			wantErr(t, err, "setup: the heartbeat of regional sync is malformed | "+test.want+
				" | stop the region's sync and delete the item SYSTEM# / #HEARTBEAT: "+
				"quotas count as the floor until it is back")
		})
	}
}

// stalled is an API that throttles the next update, after a while.
type stalled struct {
	wire.API
	next func()
}

func (s *stalled) UpdateItem(
	ctx context.Context,
	in *dynamodb.UpdateItemInput,
	opts ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	if s.next != nil {
		s.next()
		s.next = nil
		return nil, &types.ProvisionedThroughputExceededException{}
	}
	return s.API.UpdateItem(ctx, in, opts...)
}

// TestQuotaWithinACall: a call that lasts for longer than a window, or beyond the heartbeat, asks again what
// is in force, though it has read that.
func TestQuotaWithinACall(t *testing.T) {
	for name, test := range map[string]struct{ at, want int64 }{
		"a window":            {15_000, 200},
		"the heartbeat's end": {25_000, 50}, // within a window
	} {
		t.Run(name, func(t *testing.T) {
			def := global(t)
			e := newEngine(t)
			s := e.sync(t, def)
			s.alive(1)
			s.gives(1, "user-1", 300)
			api := &stalled{API: e.client}
			d := e.desk(t, api, def)
			if _, err := d.Acquire(t.Context(), "1", tokens{1}); err != nil {
				t.Fatal(err)
			}
			d.calls(t, "read missing", "create applied")
			e.clock.set(test.at)
			api.next = func() {
				s.gives(1, "user-1", 200)
				e.clock.set(min(test.at+window, 3*window))
			}
			if _, err := d.Acquire(t.Context(), "1", tokens{1}); err != nil {
				t.Fatal(err)
			}
			if cp := number(e.get(t, item.BucketKey("user-1", "embeddings"))["b_rps_cp"]) / bucket.Milli; cp !=
				test.want {
				t.Errorf("the bucket has %d, want %d", cp, test.want)
			}
		})
	}
}

// TestOneLimitClosed: who takes nothing of a closed limit is served beside those who do, and the bucket,
// which then holds a closed limit, opens again.
func TestOneLimitClosed(t *testing.T) {
	gpt4, _ := generated(t)
	other := bucket.Per(100, 24*time.Hour)
	def := inRegions(withNumbers(gpt4, 1, daily, other))
	e := newEngine(t)
	s := e.sync(t, def)
	give := func(rpm, tpm int64) {
		t.Helper()
		s.alive(1)
		a, b := daily.Quota(rpm), other.Quota(tpm)
		if _, err := s.PutQuota(t.Context(), s.spec, store.Stored{At: "user-1", Epoch: 1,
			Limits: []*bucket.Limit{&a, &b}}); err != nil {
			t.Fatal(err)
		}
	}
	give(300, 30)
	d := e.desk(t, e.client, def)
	if _, err := d.Acquire(t.Context(), "1", tokens{1, 1}); err != nil {
		t.Fatal(err)
	}
	e.clock.set(window)
	give(200, 0)
	e.clock.set(2 * window)
	var wg sync.WaitGroup
	var admitted, denied atomic.Int64
	for i := range int64(20) {
		wg.Go(func() {
			_, err := d.Acquire(t.Context(), "1", tokens{1, i % 2})
			refused, ok := errors.AsType[*store.DeniedError](err)
			switch {
			case err == nil && i%2 == 0:
				admitted.Add(1)
			case ok && i%2 == 1 && refused.Limit == "tpm" && refused.RetryAfter == window*time.Millisecond:
				denied.Add(1)
			default:
				t.Errorf("%d of tpm: %v", i%2, err)
			}
		})
	}
	wg.Wait()
	if admitted.Load() != 10 || denied.Load() != 10 {
		t.Errorf("%d admitted and %d denied, want 10 of each", admitted.Load(), denied.Load())
	}
	item := e.get(t, item.BucketKey("user-1", "gpt-4"))
	if rpm, tpm := number(item["b_rpm_cp"]), number(item["b_tpm_cp"]); rpm != 200*bucket.Milli || tpm != 0 {
		t.Errorf("the bucket has %d and %d, want 200,000 and a closed limit", rpm, tpm)
	}
	if got := number(item["b_rpm_tc"]); got != 11*bucket.Milli {
		t.Errorf("%d charged, want what was admitted", got)
	}
	give(200, 30)
	e.clock.set(3 * window)
	if _, err := d.Acquire(t.Context(), "1", tokens{1, 1}); err != nil {
		t.Error(err)
	}
}
