package dynamo

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/internal/item"

	"github.com/sluice-go/sluice/internal/test/storetest"

	minimal "github.com/sluice-go/sluice/gen/testdata/golden/minimal/out"

	removed "github.com/sluice-go/sluice/gen/testdata/golden/removed/out"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// TestReshape runs the reshapes of a bucket by its image: the bucket before, an acquire by a binary with
// other numbers, and the bucket after. tpm keeps its numbers: half full, and half a minute later.
func TestReshape(t *testing.T) {
	gpt4, _ := generated(t)
	perMinute := func(n int64) bucket.Limit { return bucket.Per(n, time.Minute) }
	rpm := func(l bucket.Limit, tk, tc int64) map[string]bucket.Balance {
		return map[string]bucket.Balance{"rpm": {Limit: l, Tokens: tk, Consumed: tc}}
	}
	tpm := func(balances map[string]bucket.Balance, tk, tc int64) map[string]bucket.Balance {
		return with(balances, "tpm", bucket.Balance{Limit: userTPM, Tokens: tk, Consumed: tc})
	}
	for name, test := range map[string]struct {
		before row
		rpm    bucket.Limit // under revision 2
		at     int64
		cost   tokens
		denied time.Duration // RetryAfter
		calls  []string
		after  row
	}{
		"raised": { // 20 and the 50 that came at the old rate
			before: row{CV: 1, Limits: tpm(rpm(perMinute(100), 20_000, 80_000), 5_000_000, 1_000_000)},
			rpm:    perMinute(200), at: 30_000, cost: tokens{10, 0},
			calls: []string{"read found", "reshape applied"},
			after: row{RF: 30_000, CV: 2, TTL: 210, Limits: tpm(rpm(perMinute(200), 60_000, 90_000), 10_000_000,
				1_000_000)},
		},
		"raised while full": { // what came before was clamped to the old burst
			before: row{CV: 1, Limits: tpm(rpm(perMinute(100), 80_000, 20_000), 5_000_000, 1_000_000)},
			rpm:    perMinute(200), at: 30_000, cost: tokens{10, 1000},
			calls: []string{"read found", "reshape applied"},
			after: row{RF: 30_000, CV: 2, TTL: 210, Limits: tpm(rpm(perMinute(200), 90_000, 30_000), 9_000_000,
				2_000_000)},
		},
		"raised, cost between what is there and the new burst": {
			before: row{CV: 1, Limits: tpm(rpm(perMinute(5), 0, 5000), 15_000_000, 0)},
			rpm:    perMinute(200), cost: tokens{10, 0}, denied: 3 * time.Second,
			calls: []string{"read found", "reshape applied"},
			after: row{CV: 2, TTL: 180, Limits: tpm(rpm(perMinute(200), 0, 5000), 15_000_000, 0)},
		},
		"lowered": {
			before: row{CV: 1, Limits: tpm(rpm(perMinute(100), 80_000, 20_000), 5_000_000, 1_000_000)},
			rpm:    perMinute(5), at: 6000, cost: tokens{2, 0},
			calls: []string{"read found", "reshape applied"},
			after: row{RF: 6000, CV: 2, TTL: 186, Limits: tpm(rpm(perMinute(5), 3000, 22_000), 6_000_000, 1_000_000)},
		},
		"lowered and denied": {
			before: row{CV: 1, Limits: tpm(rpm(perMinute(100), 1000, 99_000), 15_000_000, 0)},
			rpm:    perMinute(5), cost: tokens{3, 0}, denied: 24 * time.Second,
			calls: []string{"read found", "reshape applied"},
			after: row{CV: 2, TTL: 180, Limits: tpm(rpm(perMinute(5), 1000, 99_000), 15_000_000, 0)},
		},
		"lowered, in debt": { // 100 from full at 5 a minute: 1,260 s
			before: row{CV: 1, Limits: tpm(rpm(perMinute(100), -100_000, 200_000), 15_000_000, 0)},
			rpm:    perMinute(5), cost: tokens{1, 0}, denied: 1212 * time.Second,
			calls: []string{"read found", "reshape applied"},
			after: row{CV: 2, TTL: 2520, Limits: tpm(rpm(perMinute(5), -100_000, 200_000), 15_000_000, 0)},
		},
		"another period": {
			before: row{CV: 1, Limits: tpm(rpm(perMinute(60), 0, 60_000), 15_000_000, 0)},
			rpm:    bucket.Per(3600, time.Hour), at: 2000, cost: tokens{1, 0},
			calls: []string{"read found", "reshape applied"},
			after: row{RF: 2000, CV: 2, TTL: 7202, Limits: tpm(rpm(bucket.Per(3600, time.Hour), 1000, 61_000),
				15_000_000, 0)},
		},
		"a limit added": {
			before: row{CV: 1, Limits: rpm(perMinute(100), 50_000, 50_000)},
			rpm:    perMinute(100), cost: tokens{10, 1000},
			calls: []string{"read found", "reshape applied"},
			after: row{CV: 2, TTL: 180, Limits: tpm(rpm(perMinute(100), 40_000, 60_000), 14_000_000, 1_000_000)},
		},
		"a limit added under the same revision": { // somebody deleted its attributes
			before: row{CV: 2, Limits: rpm(perMinute(100), 50_000, 50_000)},
			rpm:    perMinute(100), cost: tokens{10, 1000},
			calls: []string{"read found", "reshape applied"},
			after: row{CV: 2, TTL: 180, Limits: tpm(rpm(perMinute(100), 40_000, 60_000), 14_000_000, 1_000_000)},
		},
		"a limit gone that nobody listed as removed": {
			before: row{CV: 1, Limits: with(tpm(rpm(perMinute(100), 50_000, 50_000), 15_000_000, 0), "ipm",
				bucket.Balance{Limit: perMinute(7), Tokens: 7000})},
			rpm: perMinute(200), cost: tokens{10, 1000},
			calls: []string{"read found", "generic reshape applied"},
			after: row{CV: 2, TTL: 180, Limits: tpm(rpm(perMinute(200), 40_000, 60_000), 14_000_000, 1_000_000)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			test.before.Op = "before"
			e.put(t, test.before.Item(t))
			d := e.desk(t, e.client, withNumbers(gpt4, 2, test.rpm, userTPM))
			e.clock.set(test.at)
			_, err := d.Acquire(t.Context(), "1", test.cost)
			denied, _ := errors.AsType[*store.DeniedError](err)
			switch {
			case test.denied == 0 && err != nil,
				test.denied > 0 && (denied == nil || denied.RetryAfter != test.denied):
				t.Errorf("got %v, want a denial for %v", err, test.denied)
			}
			d.calls(t, test.calls...)
			e.stored(t, test.after)
		})
	}
}

// TestReshapeRemoved drops what the schema lists as removed, by the generated text, and adds what is new: the
// golden package has rps and rpd, and once had rpm and a_b.
func TestReshapeRemoved(t *testing.T) {
	e := newEngine(t)
	perSecond, perDay := bucket.Per(10, time.Second), bucket.Per(1000, 24*time.Hour)
	e.put(t, row{Resource: "api", CV: 6, Op: "before", Limits: map[string]bucket.Balance{
		"rps": {Limit: perSecond, Tokens: 4000, Consumed: 6000},
		"rpm": {Limit: userRPM, Tokens: 50_000, Consumed: 50_000},
		"a_b": {Limit: userRPM, Tokens: 50_000, Consumed: 50_000},
	}}.Item(t))
	seen := &events{}
	l, err := removed.New(New(e.client, e.table), e.options(seen)...)
	if err != nil {
		t.Fatal(err)
	}
	e.clock.set(100)
	if _, err := l.API.Acquire(t.Context(), removed.User{ID: "1"},
		removed.APICost{RPS: 5, RPD: 20}); err != nil {
		t.Fatal(err)
	}
	seen.calls(t, "read found", "reshape applied")
	e.stored(t, row{Resource: "api", RF: 100, CV: 7, TTL: storetest.KeepIdle, Limits: map[string]bucket.Balance{
		"rps": {Limit: perSecond, Tokens: 0, Consumed: 11_000},
		"rpd": {Limit: perDay, Tokens: 980_000, Consumed: 20_000},
	}})
}

// TestRaised has a caller ask for more than the old limit ever had. Once the new binary runs, a denial says
// how long to wait, and the caller is served exactly then.
func TestRaised(t *testing.T) {
	_, embeddings := generated(t)
	e := newEngine(t)
	before := e.desk(t, e.client, withNumbers(embeddings, 1, bucket.Per(5, time.Minute)))
	if _, err := before.Acquire(t.Context(), "1", tokens{5}); err != nil {
		t.Fatal(err)
	}
	if _, err := before.Acquire(t.Context(), "1", tokens{10}); !isA[*store.CostTooLargeError](err) {
		t.Fatalf("got %v, want a cost above the burst", err)
	}
	after := e.desk(t, e.client, withNumbers(embeddings, 2, bucket.Per(200, time.Minute)))
	for _, step := range []struct {
		at   int64
		wait time.Duration // 0: admitted
	}{{0, 3 * time.Second}, {1000, 2 * time.Second}, {2999, time.Millisecond}, {3000, 0}} {
		e.clock.set(step.at)
		_, err := after.Acquire(t.Context(), "1", tokens{10})
		denied, _ := errors.AsType[*store.DeniedError](err)
		if step.wait == 0 && err != nil || step.wait > 0 && (denied == nil || denied.RetryAfter != step.wait) {
			t.Errorf("at %d ms: %v, want a wait of %v", step.at, err, step.wait)
		}
	}
	if n := after.count("reshape applied"); n != 1 {
		t.Errorf("%d reshapes, want 1", n)
	}
}

// TestLowered admits, from the change on, no more than the new limit has.
func TestLowered(t *testing.T) {
	_, embeddings := generated(t)
	e := newEngine(t)
	before := e.desk(t, e.client, withNumbers(embeddings, 1, bucket.Per(200, time.Minute)))
	if _, err := before.Acquire(t.Context(), "1", tokens{1}); err != nil {
		t.Fatal(err)
	}
	after := e.desk(t, e.client, withNumbers(embeddings, 2, bucket.Per(5, time.Minute)))
	admitted := 0
	for _, d := range []*desk{after, before, after, before, after, before, after, before, after, before} {
		switch _, err := d.Acquire(t.Context(), "1", tokens{1}); {
		case err == nil:
			admitted++
		case !isA[*store.DeniedError](err):
			t.Error(err)
		}
	}
	if admitted != 5 {
		t.Errorf("%d admitted, want 5", admitted)
	}
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// TestSideBySide has old and new binaries take turns: one reshape, and both work with the bucket's numbers.
func TestSideBySide(t *testing.T) {
	_, embeddings := generated(t)
	for _, change := range []struct {
		name     string
		old, new int64
		cost     tokens
	}{{"raised", 5, 200, tokens{6}}, {"lowered", 200, 5, tokens{1}}} {
		t.Run(change.name, func(t *testing.T) {
			e := newEngine(t)
			old := e.desk(t, e.client, withNumbers(embeddings, 1, bucket.Per(change.old, time.Minute)))
			next := e.desk(t, e.client, withNumbers(embeddings, 2, bucket.Per(change.new, time.Minute)))
			if _, err := old.Acquire(t.Context(), "1", tokens{1}); err != nil {
				t.Fatal(err)
			}
			for n := range int64(20) {
				e.clock.set(60_000 * (n + 1)) // full again
				for i, d := range []*desk{next, old} {
					if _, err := d.Acquire(t.Context(), "1", change.cost); err != nil {
						// The first time, a raised bucket has only what the old limit left.
						if first := n == 0 && i == 0 && change.new > change.old; !first || !isA[*store.DeniedError](err) {
							t.Errorf("round %d, binary %d: %v", n, i, err)
						}
						e.clock.set(60_000*(n+1) + 30_000)
					}
				}
			}
			if a, b := old.count("reshape applied"), next.count("reshape applied"); a != 0 || b != 1 {
				t.Errorf("the old binary reshaped %d times and the new one %d times, want 0 and 1", a, b)
			}
			if a, b := old.count("reshape refused"), next.count("reshape refused"); a+b > 0 {
				t.Errorf("%d reshapes were refused, want none", a+b)
			}
		})
	}
}

// TestUnknownLimits runs two golden packages side by side: the older one knows rps alone, the newer one rpd
// as well. The older one claims the refill of rpd too, by the generic path, or rpd would starve beside 10
// writes a second.
func TestUnknownLimits(t *testing.T) {
	for _, variant := range []struct {
		name string
		opt  storeChange
		rpd  int64 // millitokens after half a day
	}{
		{"the store", func(*Store) {}, 900_000},
		{"without the generic path", func(store *Store) {
			store.seams.Choose = func(w *plan.Demand, v plan.State, now int64) plan.Plan {
				p := plan.Choose(w, v, now)
				p.Generic = false
				return p
			}
		}, 400_000},
	} {
		t.Run(variant.name, func(t *testing.T) {
			e := newEngine(t)
			seen := &events{}
			older, err := minimal.New(newStore(e.client, e.table, variant.opt), e.options(seen)...)
			if err != nil {
				t.Fatal(err)
			}
			newer, err := removed.New(New(e.client, e.table), e.options(&events{})...)
			if err != nil {
				t.Fatal(err)
			}
			take := func(n int64) {
				t.Helper()
				if _, err := older.API.Acquire(t.Context(), minimal.User{ID: "1"}, minimal.APICost{RPS: n}); err != nil {
					t.Fatal(err)
				}
			}
			take(1)
			if _, err := newer.API.Acquire(t.Context(), removed.User{ID: "1"}, removed.APICost{RPD: 600}); err != nil {
				t.Fatal(err)
			}
			take(1)
			seen.calls(t, "read missing", "create applied", "retry refused", "retry applied")
			for n := range int64(24) { // half a day
				e.clock.set(1_800_000 * (n + 1))
				take(1)
			}
			if n := seen.count("generic normal applied"); (n == 24) != (variant.rpd == 900_000) {
				t.Errorf("%d generic writes", n)
			}
			if tk, tc := e.balance(t, "api", "rpd"); tk != variant.rpd || tc != 600_000 {
				t.Errorf("rpd holds %d, charged %d; want %d and 600000", tk, tc, variant.rpd)
			}
			if tk, tc := e.balance(t, "api", "rps"); tk != 9000 || tc != 26_000 {
				t.Errorf("rps holds %d, charged %d; want 9000 and 26000", tk, tc)
			}
		})
	}
}

// TestMissingLimit has a binary meet a bucket that a newer one has stripped of tpm: it charges what is there,
// and settles and releases no more than it charged.
func TestMissingLimit(t *testing.T) {
	gpt4, _ := generated(t)
	for _, test := range []struct {
		name  string
		close func(*desk, *runtime.Lease[tokens]) error
		calls []string
		rpm   int64
	}{
		{"kept", func(*desk, *runtime.Lease[tokens]) error { return nil }, nil, 40_000},
		{"settled up", func(_ *desk, l *runtime.Lease[tokens]) error {
			return l.Settle(t.Context(), tokens{12, 9000})
		}, []string{"generic settle applied"}, 38_000},
		{"settled up where it was not charged", func(_ *desk, l *runtime.Lease[tokens]) error {
			return l.Settle(t.Context(), tokens{10, 9000})
		}, nil, 40_000},
		{"settled down", func(_ *desk, l *runtime.Lease[tokens]) error {
			return l.Settle(t.Context(), tokens{7, 0})
		}, []string{"generic adjust applied"}, 43_000},
		{"released", func(_ *desk, l *runtime.Lease[tokens]) error {
			l.Release(t.Context())
			return nil
		}, []string{"generic adjust applied"}, 50_000},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := newEngine(t)
			left := map[string]bucket.Balance{"rpm": {Limit: userRPM, Tokens: 50_000}}
			e.put(t, row{CV: 3, Op: "before", Limits: left}.Item(t))
			d := e.desk(t, e.client, withNumbers(gpt4, 2, userRPM, userTPM))
			lease, err := d.Acquire(t.Context(), "1", tokens{10, 5000})
			if err != nil {
				t.Fatal(err)
			}
			if err := test.close(d, lease); err != nil {
				t.Fatal(err)
			}
			d.calls(t, append([]string{"read found", "generic retry applied"}, test.calls...)...)
			left["rpm"] = bucket.Balance{Limit: userRPM, Tokens: test.rpm, Consumed: 50_000 - test.rpm}
			e.stored(t, row{CV: 3, TTL: 120, Limits: left})
		})
	}
}

// TestStaleParameters shows that a process which missed a reshape does not put old parameters back, nor
// charge by them.
func TestStaleParameters(t *testing.T) {
	_, embeddings := generated(t)
	e := newEngine(t)
	old := e.desk(t, e.client, withNumbers(embeddings, 1, bucket.Per(200, time.Minute)))
	next := e.desk(t, e.client, withNumbers(embeddings, 2, bucket.Per(5, time.Minute)))
	for _, d := range []*desk{old, next} {
		if _, err := d.Acquire(t.Context(), "1", tokens{1}); err != nil {
			t.Fatal(err)
		}
	}
	e.clock.set(60_000)
	if _, err := old.Acquire(t.Context(), "1", tokens{6}); !isA[*store.CostTooLargeError](err) {
		t.Errorf("got %v, want a cost above the burst that the bucket has now", err)
	}
	item := plain(e.get(t, item.BucketKey("user-1", "embeddings")))
	got := map[string]string{"bx": item["b_rps_bx"], "cv": item["cv"], "tk": item["b_rps_tk"]}
	want := map[string]string{"bx": "N 5000", "cv": "N 200000000000000", "tk": "N 4000"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("- wanted, + stored:\n%s", diff)
	}
}
