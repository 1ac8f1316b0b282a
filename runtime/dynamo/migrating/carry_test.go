package migrating

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/internal/test/storetest"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/layout"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/dynamo/migrating/perlimit"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
	streams "github.com/sluice-go/sluice/runtime/usage"
)

// oldItem is a per-limit item of gpt-4: its balance, and when it was refilled, ms since T0.
func oldItem(entity, limit string, b bucket.Balance, refilled int64) codec.Item {
	return codec.Item{
		"PK": codec.S("ENTITY#" + entity), "SK": codec.S("#BUCKET#gpt-4#" + limit),
		perlimit.Tokens: codec.N(
			b.Tokens,
		), perlimit.Consumed: codec.N(b.Consumed), perlimit.Refilled: codec.N(storetest.T0 + refilled),
		perlimit.Capacity: codec.N(b.Capacity), perlimit.Burst: codec.N(b.Burst),
		perlimit.Refill: codec.N(b.Refill), perlimit.Period: codec.N(b.Period),
	}
}

// putOld stores user-1's per-limit items on gpt-4: rpm had 40 tokens 3 s ago, which refill by 5, and tpm is
// full.
func (e *engine) putOld(t testing.TB) {
	t.Helper()
	e.Put(
		t,
		oldItem("user-1", "rpm", bucket.Balance{Limit: userRPM, Tokens: 40_000, Consumed: 7_000_000}, -3000),
	)
	e.Put(
		t,
		oldItem("user-1", "tpm", bucket.Balance{Limit: userTPM, Tokens: 15_000_000, Consumed: 9_000_000}, -3000),
	)
}

// marked holds the per-limit items of user-1 that are marked, and when, ms since T0: "rpm 0".
func (e *engine) marked(t testing.TB, want ...string) {
	t.Helper()
	items, err := readItems(
		t.Context(),
		e.Client,
		e.Name,
		"user-1",
		"gpt-4",
		func(*dynamodb.QueryOutput, error) {},
	)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, i := range items {
		if !i.Counts() {
			got = append(got, fmt.Sprint(i.Name, " ", i.Migrated-storetest.T0))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("marked (-want +got):\n%s", diff)
	}
}

// carriedRow is the bucket of putOld's items at T0 less a cost that was charged.
func carriedRow(rpm, tpm int64) row {
	return row{
		CV: 1, TTL: storetest.KeepIdle,
		Limits: holds(45_000-rpm, 7_000_000+rpm, 15_000_000-tpm, 9_000_000+tpm),
	}
}

// unchargedRow is the bucket of putOld's items at T0. It is kept until it is full, and longer once it is in
// use.
func unchargedRow() row {
	r := carriedRow(0, 0)
	r.TTL = 180
	return r
}

// storedCarried is stored for a bucket that was carried over from putOld's items.
func (e *engine) storedCarried(t testing.TB, want row) {
	t.Helper()
	stored := want.Item(t)
	stored["m_rpm"], stored["m_tpm"] = codec.N(7_000_000), codec.N(9_000_000)
	got := e.Get(t, item.BucketKey("user-1", "gpt-4"))
	stored["op"] = got["op"]
	storetest.Equal(t, stored, got)
}

// carrying is a table that a test's case prepares.
type carrying struct {
	*testing.T
	*engine
}

func (s carrying) has(stored codec.Item) {
	s.Helper()
	s.Put(s.T, stored)
}

// carried has the items of putOld carried over by an acquire of so many.
func (s carrying) carried(rpm int64) {
	s.Helper()
	if _, err := startRates(s.T, s.engine, s.Client).Acquire(s.Context(), "1", tokens{rpm, 0}); err != nil {
		s.Error(err)
	}
}

func (s carrying) expired() {
	s.Helper()
	s.remove(s.T, item.BucketKey("user-1", "gpt-4"))
}

// TestCarryOver: the first acquire makes the bucket of the per-limit items, refilled until now, and charges
// it.
func TestCarryOver(t *testing.T) {
	e := newEngine(t)
	e.putOld(t)
	d := startRates(t, e, e.Client)
	lease, err := d.Acquire(t.Context(), "1", tokens{5, 100})
	if err != nil {
		t.Fatal(err)
	}
	d.Calls(
		t,
		"read missing",
		"perlimit found",
		"levels missing",
		"carry applied",
		"read found",
		"retry applied",
	)
	e.storedCarried(t, carriedRow(5_000, 100_000))
	e.marked(t, "rpm 0", "tpm 0")
	lease.Release(t.Context())
	e.storedCarried(t, carriedRow(0, 0))
	if err := d.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := number(e.Get(t, item.VersionKey())["layout"]); got != layout.Carrying {
		t.Errorf("layout %d", got)
	}

	// One that forgot, or another process, finds the bucket: nothing is read of the old items.
	other := startRates(t, e, e.Client)
	if _, err := other.Acquire(t.Context(), "1", tokens{45, 0}); err != nil {
		t.Fatal(err)
	}
	other.Calls(t, "read found", "retry applied")
	_, err = other.Acquire(t.Context(), "1", tokens{1, 0})
	if denied, ok := errors.AsType[*store.DeniedError](err); !ok || denied.RetryAfter != 600*time.Millisecond {
		t.Errorf("got %v, want a denial for 600 ms", err)
	}
}

// TestCarryOverOnce: a bucket that was carried over and has expired is created full: its marked items do not
// bring it back.
func TestCarryOverOnce(t *testing.T) {
	e := newEngine(t)
	e.putOld(t)
	d := startRates(t, e, e.Client)
	if _, err := d.Acquire(t.Context(), "1", tokens{1, 0}); err != nil {
		t.Fatal(err)
	}
	e.remove(t, item.BucketKey("user-1", "gpt-4"))
	e.clock.Set(300_000)
	d.Paths = nil
	if _, err := d.Acquire(t.Context(), "1", tokens{100, 0}); err != nil {
		t.Fatal(err)
	}
	d.Calls(t, "normal refused", "create applied")
	e.Stored(t, row{RF: 300_000, CV: 1, TTL: storetest.KeepIdle + 300, Limits: holds(0, 100_000, 15_000_000, 0)})
	e.marked(t, "rpm 0", "tpm 0")
}

// TestCarryOverNothing: where there are no such items, a bucket is created as ever; and without the option
// they are not looked for.
func TestCarryOverNothing(t *testing.T) {
	e := newEngine(t)
	d := startRates(t, e, e.Client)
	if _, err := d.Acquire(t.Context(), "1", tokens{1, 0}); err != nil {
		t.Fatal(err)
	}
	d.Calls(t, "read missing", "perlimit missing", "read missing", "create applied")

	without := start[user](t, e, dynamo.New(e.Client, e.Name), rates(t))
	if _, err := without.Acquire(t.Context(), "2", tokens{1, 0}); err != nil {
		t.Fatal(err)
	}
	without.Calls(t, "read missing", "create applied")
}

// TestCarryOverDenied: who asks for more than was carried over is denied by it, and the bucket stands.
func TestCarryOverDenied(t *testing.T) {
	e := newEngine(t)
	e.putOld(t)
	d := startRates(t, e, e.Client)
	_, err := d.Acquire(t.Context(), "1", tokens{46, 0})
	if denied, ok := errors.AsType[*store.DeniedError](err); !ok || denied.RetryAfter != 600*time.Millisecond ||
		denied.Limit != "rpm" {
		t.Errorf("got %v, want a denial by rpm for 600 ms", err)
	}
	d.Calls(t, "read missing", "perlimit found", "levels missing", "carry applied", "read found")
	e.storedCarried(t, unchargedRow())
}

// TestCarryOverTogether: many who come at once, in several processes, carry it over once.
func TestCarryOverTogether(t *testing.T) {
	e := newEngine(t)
	e.putOld(t)
	processes := make([]*process[user], 3)
	for i := range processes {
		processes[i] = startRates(t, e, e.Client)
	}
	storetest.Together(t, 12, func(i int) error {
		_, err := processes[i%3].Acquire(t.Context(), "1", tokens{2, 1})
		return err
	})
	e.storedCarried(t, carriedRow(24_000, 12_000))
	carried := 0
	for _, d := range processes {
		carried += d.Count("carry applied")
	}
	if carried != 1 {
		t.Errorf("carried over %d times", carried)
	}
}

// meddler does something right before a transaction is sent, and may lose its reply.
type meddler struct {
	wire.API
	before func()
	after  func(error) error
	times  atomic.Int64
}

func (m *meddler) TransactWriteItems(
	ctx context.Context,
	in *dynamodb.TransactWriteItemsInput,
	opts ...func(*dynamodb.Options),
) (*dynamodb.TransactWriteItemsOutput, error) {
	if m.times.Add(1) > 1 {
		return m.API.TransactWriteItems(ctx, in, opts...)
	}
	if m.before != nil {
		m.before()
	}
	out, err := m.API.TransactWriteItems(ctx, in, opts...)
	if m.after != nil {
		return nil, m.after(err)
	}
	return out, err
}

// TestCarryOverRaces: another write between the read of the items and the transaction neither doubles nor
// loses anything.
func TestCarryOverRaces(t *testing.T) {
	for _, test := range []struct {
		name     string
		meddle   func(carrying, *meddler)
		rpm      int64 // that are left after an acquire of 5
		consumed int64
		calls    []string
	}{
		{"an old writer takes 10", func(s carrying, m *meddler) {
			m.before = func() {
				s.has(oldItem("user-1", "rpm", bucket.Balance{Limit: userRPM, Tokens: 30_000, Consumed: 7_010_000},
					-3000))
			}
		}, 30_000, 7_015_000, []string{
			"read missing", "perlimit found", "levels missing", "carry refused", "read missing", "perlimit found",
			"levels missing", "carry applied", "read found", "retry applied",
		}},
		{"another process carries it over", func(s carrying, m *meddler) {
			m.before = func() { s.carried(10) }
		}, 30_000, 7_015_000, []string{"read missing", "perlimit found", "levels missing",
			"carry refused", "read found", "retry applied"}},
		{"another process carries it over, and it expires", func(s carrying, m *meddler) {
			m.before = func() {
				s.carried(10)
				s.expired()
			}
		}, 95_000, 5_000, []string{
			"read missing", "perlimit found", "levels missing", "carry refused",
			"read missing", "perlimit found", "read missing",
			"create applied",
		}},
		{"the reply is lost", func(_ carrying, m *meddler) {
			m.after = func(error) error { return errReset }
		}, 40_000, 7_005_000, []string{"read missing", "perlimit found", "levels missing",
			"carry unknown", "read found", "retry applied"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := newEngine(t)
			e.putOld(t)
			m := &meddler{API: e.Client}
			test.meddle(carrying{t, e}, m)
			d := startRates(t, e, m)
			_, err := d.Acquire(t.Context(), "1", tokens{5, 0})
			if err != nil {
				t.Fatal(err)
			}
			d.Calls(t, test.calls...)
			if tk, tc := e.Balance(t, "gpt-4", "rpm"); tk != test.rpm || tc != test.consumed {
				t.Errorf("left %d, consumed %d; want %d and %d", tk, tc, test.rpm, test.consumed)
			}
		})
	}
}

func (e *engine) remove(t testing.TB, key codec.Item) {
	t.Helper()
	if _, err := e.Client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &e.Name,
		Key: key}); err != nil {
		t.Error(err)
	}
}

// TestCarryOverChain: each bucket of a chain is carried over by itself, before the transaction charges them
// all.
func TestCarryOverChain(t *testing.T) {
	for _, cascade := range []store.Cascade{store.CascadeAtomic, store.CascadeCompensated} {
		e := newEngine(t)
		for _, who := range []string{"user-1", "project-1"} {
			stored := oldItem(
				who,
				"rps",
				bucket.Balance{Limit: bucket.Per(100, time.Minute), Tokens: 40_000, Consumed: 60_000},
				0,
			)
			stored["SK"] = codec.S("#BUCKET#embeddings#rps")
			e.Put(t, stored)
		}
		h := startChain(t, e, e.Client, cascade)
		if _, err := h.Acquire(t.Context(), alice{}, tokens{30}); err != nil {
			t.Fatal(err)
		}
		e.Holding(t, "user-1 10 90", "project-1 10 90")
		if n := h.Count("carry applied"); n != 2 {
			t.Errorf("%v: carried over %d", cascade, n)
		}
	}
}

// TestCarryOverChainDenied: a denial by one bucket tells when the others will have enough, those too that are
// per-limit items yet.
func TestCarryOverChainDenied(t *testing.T) {
	for _, cascade := range []store.Cascade{store.CascadeAtomic, store.CascadeCompensated} {
		e := newEngine(t)
		for who, tokens := range map[string]int64{"user-1": 20_000, "project-1": -200_000} {
			stored := oldItem(who, "rps", bucket.Balance{Limit: bucket.Per(100, time.Minute), Tokens: tokens}, 0)
			stored["SK"] = codec.S("#BUCKET#embeddings#rps")
			e.Put(t, stored)
		}
		_, err := startChain(t, e, e.Client, cascade).Acquire(t.Context(), alice{}, tokens{30})
		denied, ok := errors.AsType[*store.DeniedError](err)
		if !ok || len(denied.Refusals) != 2 || denied.RetryAfter != 13_800*time.Millisecond {
			t.Errorf(
				"%v: got %v, want a denial by both, for the 13.8 s that the project, at 1000 a minute, misses 230 tokens",
				cascade,
				err,
			)
		}
	}
}

// TestCarryOverDeltas: history that was carried over is not what was consumed today: the table's stream tells
// of what acquires and settles took since, and of nothing else.
func TestCarryOverDeltas(t *testing.T) {
	e, memory := newFaulty(t)
	e.putOld(t)
	d := startRates(t, e, e.Client)
	lease, err := d.Acquire(t.Context(), "1", tokens{5, 100})
	if err == nil {
		err = lease.Settle(t.Context(), tokens{5, 40})
	}
	if err != nil {
		t.Fatal(err)
	}
	table, err := e.Client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &e.Name})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for r := range storetest.Records(t, memory.Streams(), *table.Table.LatestStreamArn) {
		rec, err := streams.FromStreams(r)
		if err != nil {
			t.Fatal(err)
		}
		deltas, err := limits.ExtractDeltas(rec)
		if err != nil {
			t.Fatal(err)
		}
		for _, delta := range deltas {
			got[delta.Entity+" "+delta.Limit] += delta.Millitokens
		}
	}
	if diff := cmp.Diff(map[string]int64{"user-1 rpm": 5_000, "user-1 tpm": 40_000}, got); diff != "" {
		t.Errorf("consumed (-want +got):\n%s", diff)
	}
}

// TestCarryOverShape: the bucket has the numbers in force now, overrides included. Items of removed limits
// are marked and dropped, those of unknown limits are left alone, and new limits are full.
func TestCarryOverShape(t *testing.T) {
	e := newEngine(t)
	e.Put(
		t,
		oldItem(
			"user-1",
			"rpm",
			bucket.Balance{Limit: bucket.Per(500, time.Minute), Tokens: 300_000, Consumed: 1_000},
			0,
		),
	)
	e.Put(t, oldItem("user-1", "rpd", bucket.Balance{Limit: userRPM, Tokens: 1_000, Consumed: 2_000}, 0))
	e.Put(t, oldItem("user-1", "rph", bucket.Balance{Limit: userRPM, Tokens: 1_000, Consumed: 2_000}, 0))
	def := rates(t)
	lower := bucket.Per(200, time.Minute)
	overrides := operator.NewOverrides(e.Client, e.Name, e.clock.Now)
	if _, err := overrides.Set(t.Context(), def.Spec(),
		store.Stored{At: "user-1", Limits: []*bucket.Limit{&lower, nil}}); err != nil {
		t.Fatal(err)
	}
	def.Spec().Removed = []string{"rpd"}
	d := start[user](t, e, New(e.Client, e.Name), def)
	if _, err := d.Acquire(t.Context(), "1", tokens{5, 100}); err != nil {
		t.Fatal(err)
	}
	want := row{TTL: storetest.KeepIdle, Limits: map[string]bucket.Balance{
		"rpm": {Limit: bucket.Per(200, time.Minute), Tokens: 195_000, Consumed: 6_000},
		"tpm": {Limit: userTPM, Tokens: 14_900_000, Consumed: 100_000},
	}}.Item(t)
	want["cv"], want["m_rpm"] = codec.N(bucket.RevisionUnit+storetest.T0), codec.N(1_000)
	got := e.Get(t, item.BucketKey("user-1", "gpt-4"))
	want["op"] = got["op"]
	storetest.Equal(t, want, got)
	e.marked(t, "rpd 0", "rpm 0")
}

// TestCarryOverPeek shows what a carry would make, and changes nothing.
func TestCarryOverPeek(t *testing.T) {
	e := newEngine(t)
	e.putOld(t)
	d := startRates(t, e, e.Client)
	snapshot, err := d.Peek(t.Context(), "1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tokens{45, 15_000}, snapshot.Available); diff != "" {
		t.Errorf("available (-want +got):\n%s", diff)
	}
	d.Calls(t, "read missing", "perlimit found", "levels missing")
	e.marked(t)
	if e.Get(t, item.BucketKey("user-1", "gpt-4")) != nil {
		t.Error("a bucket was made")
	}
}

// TestCarryOverMalformed: an item that cannot be read is named, and nothing is written.
func TestCarryOverMalformed(t *testing.T) {
	for _, test := range []struct {
		name, want string
		change     func(carrying)
	}{
		{"a text", "sluice: the per-limit item ENTITY#user-1 / #BUCKET#gpt-4#rpm is malformed; " +
			"fix or delete it: attribute tokens_milli: of type S, want an integer of 64 bits", func(s carrying) {
			stored := oldItem("user-1", "rpm", bucket.Balance{Limit: userRPM}, 0)
			stored[perlimit.Tokens] = codec.S("1")
			s.has(stored)
		}},
		{"a period of nothing", "sluice: the per-limit item ENTITY#user-1 / #BUCKET#gpt-4#rpm is malformed; " +
			"fix or delete it: attribute refill_period_ms: 0, want a positive number", func(s carrying) {
			s.has(oldItem("user-1", "rpm", bucket.Balance{Limit: bucket.Per(1, 0)}, 0))
		}},
		{"more than a transaction takes",
			"sluice: user-1 has 100 per-limit items on gpt-4, and one transaction takes 99; " +
				"delete those of limits that limits.yaml does not have", func(s carrying) {
				for i := range 100 {
					s.has(oldItem("user-1", fmt.Sprint("l", i), bucket.Balance{Limit: userRPM}, 0))
				}
			}},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := newEngine(t)
			test.change(carrying{t, e})
			def := rates(t)
			for i := range 100 {
				def.Spec().Removed = append(def.Spec().Removed, fmt.Sprint("l", i))
			}
			d := start[user](t, e, New(e.Client, e.Name), def)
			if _, err := d.Acquire(t.Context(), "1", tokens{1, 1}); err == nil || err.Error() != test.want {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
			if e.Get(t, item.BucketKey("user-1", "gpt-4")) != nil {
				t.Error("a bucket was made")
			}
			if _, err := d.Peek(t.Context(), "1"); err == nil || err.Error() != test.want {
				t.Errorf("a peek got  %v\nwant %s", err, test.want)
			}
			if _, err := NewCarrier(e.Client, e.Name, e.clock.Now).Carry(t.Context(), def.Spec(),
				"user-1"); err == nil ||
				err.Error() != test.want {
				t.Errorf("a Carrier got  %v\nwant %s", err, test.want)
			}
		})
	}
}

// lateQuery does something right before the first query for per-limit items.
type lateQuery struct {
	wire.API
	before func()
}

func (q *lateQuery) Query(
	ctx context.Context,
	in *dynamodb.QueryInput,
	opts ...func(*dynamodb.Options),
) (*dynamodb.QueryOutput, error) {
	if before := q.before; before != nil {
		q.before = nil
		before()
	}
	return q.API.Query(ctx, in, opts...)
}

// TestCarryOverBetweenReads: a bucket that is carried over after it was read as missing, and before its items
// are, is neither full to a peek nor expired to a Carrier.
func TestCarryOverBetweenReads(t *testing.T) {
	def := rates(t)
	prepared := func(t *testing.T) (*engine, *lateQuery) {
		t.Helper()
		e := newEngine(t)
		e.putOld(t)
		return e, &lateQuery{e.Client, func() { carrying{t, e}.carried(10) }}
	}
	t.Run("peek", func(t *testing.T) {
		e, q := prepared(t)
		d := startRates(t, e, q)
		snapshot, err := d.Peek(t.Context(), "1")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tokens{35, 15_000}, snapshot.Available); diff != "" {
			t.Errorf("available (-want +got):\n%s", diff)
		}
		d.Calls(t, "read missing", "perlimit found", "read found")
	})
	t.Run("look", func(t *testing.T) {
		e, q := prepared(t)
		if saw, err := NewCarrier(q, e.Name, e.clock.Now).Look(t.Context(), def.Spec(), "user-1"); err != nil ||
			saw.State != CarriedOver ||
			saw.Image == nil {
			t.Errorf("saw %+v, %v", saw, err)
		}
	})
}

// TestCarrier: what a migration sees of a bucket in each state, and does to it.
func TestCarrier(t *testing.T) {
	spec := rates(t).Spec()
	spec.Removed = []string{"rpd"}
	for _, test := range []struct {
		name    string
		before  func(carrying)
		looks   CarryState
		does    CarryState
		unknown string
	}{
		{"nothing at all", func(carrying) {}, CarryNone, CarryNone, ""},
		{"items", func(s carrying) { s.putOld(s.T) }, Carryable, Carried, ""},
		{"an unknown limit among them", func(s carrying) {
			s.putOld(s.T)
			s.has(oldItem("user-1", "rph", bucket.Balance{Limit: userRPM}, 0))
		}, Carryable, Carried, "rph"},
		{"unknown limits alone", func(s carrying) {
			s.has(oldItem("user-1", "rph", bucket.Balance{Limit: userRPM}, 0))
		}, CarryNone, CarryNone, "rph"},
		{"carried over before", func(s carrying) {
			s.putOld(s.T)
			s.carried(1)
		}, CarriedOver, CarriedOver, ""},
		{"a bucket alone", func(s carrying) {
			s.has(row{CV: 1, Op: "before", Limits: holds(1, 1, 1, 1)}.Item(s.T))
		}, CarriedOver, CarriedOver, ""},
		{"expired since", func(s carrying) {
			s.putOld(s.T)
			s.carried(1)
			s.expired()
		}, CarryExpired, CarryExpired, ""},
		{"a bucket beside", func(s carrying) {
			s.putOld(s.T)
			s.has(row{CV: 1, Op: "before", Limits: holds(1, 1, 1, 1)}.Item(s.T))
		}, CarryBeside, CarryBeside, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := newEngine(t)
			test.before(carrying{t, e})
			c := NewCarrier(e.Client, e.Name, e.clock.Now)
			saw, err := c.Look(t.Context(), spec, "user-1")
			if err != nil || saw.State != test.looks || strings.Join(saw.UnknownLimits, " ") != test.unknown {
				t.Errorf("saw %+v, %v", saw, err)
			}
			did, err := c.Carry(t.Context(), spec, "user-1")
			if err != nil || did.State != test.does {
				t.Errorf("did %+v, %v", did, err)
			}
			if did.State == Carried {
				if did.Write != 8 &&
					!dynamotest.OnLocal(t) { // three items and an index entry, twice each; Local doubles twice
					t.Errorf("%v write units, want 8", did.Write)
				}
				e.storedCarried(t, unchargedRow())
				e.marked(t, "rpm 0", "tpm 0")
			}
		})
	}
	e := newEngine(t)
	_, err := NewCarrier(e.Client, e.Name, e.clock.Now).Carry(t.Context(), spec, "team-1")
	if _, ok := errors.AsType[*store.InvalidError](err); !ok || !strings.HasPrefix(err.Error(), "sluice: ") {
		t.Errorf("got %v", err)
	}
}

// TestCarrierRaces: a Carrier that loses its race looks again.
func TestCarrierRaces(t *testing.T) {
	e := newEngine(t)
	e.putOld(t)
	m := &meddler{API: e.Client, before: func() {
		e.Put(
			t,
			oldItem("user-1", "rpm", bucket.Balance{Limit: userRPM, Tokens: 30_000, Consumed: 7_010_000}, -3000),
		)
	}}
	did, err := NewCarrier(
		m,
		e.Name,
		e.clock.Now,
	).Carry(t.Context(), rates(t).Spec(), "user-1")
	if err != nil || did.State != Carried || did.Image.Balances[0].Tokens != 35_000 {
		t.Errorf("got %+v, %v", did, err)
	}
}

// TestLayoutWhileCarrying: from Begin to End programs that use dynamo.New do not pass Check.
func TestLayoutWhileCarrying(t *testing.T) {
	e := newEngine(t)
	client := dynamotest.Client(t) // Check goes by the system's clock
	if _, err := client.UpdateTimeToLive(t.Context(),
		operator.Definition{Table: e.Name}.TimeToLive()); err != nil {
		t.Fatal(err)
	}
	c := NewCarrier(client, e.Name, e.clock.Now)
	check := func(s store.Store) error {
		l, err := limits.New(s, runtime.WithLogger(slog.New(slog.DiscardHandler)))
		if err == nil {
			err = l.Check(t.Context())
		}
		return err
	}
	passes := func() bool { return check(dynamo.New(client, e.Name)) == nil }
	noted := func() bool {
		notes, err := operator.CheckTable(t.Context(), client, e.Name)
		if err != nil {
			t.Error(err)
		}
		return slices.Contains(notes, operator.Note{
			What: "it may hold per-limit items",
			Do:   "use migrating.New in all programs, until `sluice migrate --cleanup` has removed the last of them",
		})
	}
	for range 2 {
		if err := c.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		if passes() || !noted() {
			t.Error("nobody hears of the items while they are carried over")
		}
		if err := check(New(client, e.Name)); err != nil {
			t.Errorf("a store that knows the items: %v", err)
		}
	}
	for range 2 {
		if err := c.End(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !passes() || noted() {
			t.Error("Check fails though no items are left")
		}
	}
	stored := item.VersionKey()
	stored["layout"], stored["revision"] = codec.N(9), codec.N(0)
	e.Put(t, stored)
	if err := c.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := number(e.Get(t, item.VersionKey())["layout"]); got != 9 {
		t.Errorf("Begin made of layout 9 layout %d", got)
	}
}

// account is what calls of one operation cost.
type account struct {
	Calls       int
	Read, Write float64
}

// TestCarryOverReported compares the calls that an observer sees with what the engine bills.
func TestCarryOverReported(t *testing.T) {
	e, db := newFaulty(t)
	e.putOld(t)
	db.ResetConsumed()
	d := startRates(t, e, e.Client)
	if _, err := d.Peek(t.Context(), "1"); err != nil {
		t.Fatal(err)
	}
	for _, who := range []user{"1", "2"} {
		if _, err := d.Acquire(t.Context(), who, tokens{1, 1}); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	reported, paths := map[string]account{}, []string{}
	for _, event := range d.All {
		sum := reported[event.Call]
		reported[event.Call] = account{sum.Calls + 1, sum.Read + event.Read, sum.Write + event.Write}
		paths = append(paths, event.Path+" "+event.Outcome)
	}
	billed, consumed := map[string]account{}, db.Consumed()
	for operation, n := range consumed.Requests {
		units := consumed.Tables[e.Name][operation].Total()
		billed[operation] = account{n, units.Read, units.Write}
	}
	if diff := cmp.Diff(billed, reported); diff != "" {
		t.Errorf("calls, - billed, + reported:\n%s", diff)
	}
	for _, want := range []string{"perlimit found", "perlimit missing", "carry applied", "system applied"} {
		if !slices.Contains(paths, want) {
			t.Errorf("no call was %q: %q", want, paths)
		}
	}
}

// TestCarryOverAnswers: each reply is an answer to the breaker, also those about per-limit items.
func TestCarryOverAnswers(t *testing.T) {
	e := newEngine(t)
	e.putOld(t)
	var events storetest.Events
	var answers atomic.Int64 // one call is in the background
	def := rates(t)
	session, err := New(e.Client, e.Name).Open(&store.Env{
		Clock: &e.clock, Observer: events.Observer(), Logger: slog.New(slog.DiscardHandler),
		SettleTimeout: time.Minute, CacheTTL: e.ttl, Answered: func() { answers.Add(1) },
	}, def)
	if err != nil {
		t.Fatal(err)
	}
	call := &store.Call{Called: e.clock.Now(), Parts: []store.Part{{
		Def: def, Cost: []int64{1000, 1000}, Buckets: []store.Bucket{{Entity: "user-1"}},
	}}}
	if err := session.Acquire(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	if err := session.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, calls := answers.Load(), len(events.All); got != 7 || calls != 7 {
		t.Errorf("%d answers of %d calls, want 7 of 7", got, calls)
	}
}

// TestCarryOverHostAhead: a host whose clock is an hour ahead carries over by DynamoDB's date. The bucket's
// refill would stop for an hour otherwise.
func TestCarryOverHostAhead(t *testing.T) {
	e := newEngine(t)
	e.putOld(t)
	ahead := &engine{Table: e.Table, ttl: e.ttl}
	ahead.clock.Set(time.Hour.Milliseconds())
	if _, err := startRates(t, ahead, e.Client).Acquire(t.Context(), "1", tokens{5, 100}); err != nil {
		t.Fatal(err)
	}
	rf := number(e.Get(t, item.BucketKey("user-1", "gpt-4"))["rf"]) - storetest.T0
	if rf < 0 || rf > 1000 { // a date is rounded down to a second
		t.Errorf("rf is %d ms after the date, want 0 to 1000", rf)
	}
}

// TestFirstUseOnce: callers that use a bucket for the first time together read it, and its items, once.
func TestFirstUseOnce(t *testing.T) {
	e := newEngine(t)
	e.putOld(t)
	d := startRates(t, e, e.Client)
	storetest.Together(t, 12, func(int) error {
		_, err := d.Acquire(t.Context(), "1", tokens{2, 1})
		return err
	})
	for _, what := range []string{"read missing", "perlimit found", "carry applied"} {
		if n := d.Count(what); n != 1 {
			t.Errorf("%d times %q", n, what)
		}
	}
}

// heldQuery holds the first query for per-limit items up, until it is told to go on or its context ends.
type heldQuery struct {
	wire.API
	times   atomic.Int64
	reached chan struct{}
	proceed chan struct{}
}

func (q *heldQuery) Query(
	ctx context.Context, in *dynamodb.QueryInput, opts ...func(*dynamodb.Options),
) (*dynamodb.QueryOutput, error) {
	if q.times.Add(1) == 1 {
		close(q.reached)
		select {
		case <-q.proceed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return q.API.Query(ctx, in, opts...)
}

// TestFirstUseCancelled: a caller that waits for another's look does not fail because that one was cancelled,
// and can be cancelled itself.
func TestFirstUseCancelled(t *testing.T) {
	e := newEngine(t)
	e.putOld(t)
	q := &heldQuery{API: e.Client, reached: make(chan struct{}), proceed: make(chan struct{})}
	d := startRates(t, e, q)
	acquire := func(ctx context.Context, failed chan<- error) {
		_, err := d.Acquire(ctx, "1", tokens{1, 0})
		failed <- err
	}
	first, cancelFirst := context.WithCancel(t.Context())
	second, cancelSecond := context.WithCancel(t.Context())
	failed := [3]chan error{make(chan error, 1), make(chan error, 1), make(chan error, 1)}
	go acquire(first, failed[0])
	<-q.reached
	go acquire(second, failed[1])
	go acquire(t.Context(), failed[2])
	cancelSecond()
	if err := <-failed[1]; !errors.Is(err, context.Canceled) {
		t.Errorf("the second caller got %v", err)
	}
	cancelFirst()
	if err := <-failed[0]; !errors.Is(err, context.Canceled) {
		t.Errorf("the first caller got %v", err)
	}
	if err := <-failed[2]; err != nil {
		t.Errorf("the third caller got %v", err)
	}
	if tk, tc := e.Balance(t, "gpt-4", "rpm"); tk != 44_000 || tc != 7_001_000 {
		t.Errorf("left %d, consumed %d", tk, tc)
	}
}
