package dynamo

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/internal/test/errtext"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/override"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// sharedRates is rates, shared by two regions.
func sharedRates() *store.Spec {
	spec := rates()
	spec.Kinds = []store.Kind{
		{
			Name:    "user",
			Prefix:  "user-",
			Limits:  []bucket.Limit{bucket.Per(100, time.Minute), bucket.Per(1000, time.Minute)},
			PerCall: []int64{0, 0},
		},
	}
	spec.Regions = &store.Regions{
		Names:  []string{"eu-west-1", "us-east-1"},
		Floor:  5,
		Window: window * time.Millisecond,
	}
	return spec
}

// regional is a region's table for its sync, whose clock is so many ms ahead of the engine's. Pauses take no
// time.
func (e *engine) regional(api wire.API, ahead int64) *operator.Regional {
	return operator.RegionalWith(
		api,
		e.retrier(),
		func() time.Time { return time.UnixMilli(e.clock.Now().UnixMilli() + ahead) },
	)
}

// quotaOf is stored, under an epoch.
func quotaOf(at string, epoch int64, rev store.Revision, perMinute ...int64) store.Stored {
	s := stored(at, rev, perMinute...)
	s.Epoch = epoch
	return s
}

// TestQuotaItems holds an entry attribute by attribute, as it goes from sync to an operator and back.
func TestQuotaItems(t *testing.T) {
	e := newEngine(t)
	spec := sharedRates()
	sync, operator := e.regional(e.client, 0), e.operator(e.client, 0)
	ms, last := int64(0), store.Revision("")
	step := func(what string, write func() (store.Revision, error), want ...string) {
		t.Helper()
		ms += 1000
		e.clock.set(ms)
		var err error
		if last, err = write(); err != nil || last != rev(ms) {
			t.Fatalf("%s: revision %s, %v; want %s", what, last, err, rev(ms))
		}
		raw := map[string]string{"PK": "S ENTITY#user-1", "SK": "S #CONFIG#gpt-4", "ver": fmt.Sprint("N ", t0+ms)}
		for i := 0; i < len(want); i += 2 {
			raw[want[i]] = want[i+1]
		}
		got := plain(e.get(t, item.OverrideKey("gpt-4", "user-1")))
		delete(got, "op")
		if diff := cmp.Diff(raw, got); diff != "" {
			t.Errorf("%s, - wanted, + stored:\n%s", what, diff)
		}
	}
	quotas := func(s store.Stored) func() (store.Revision, error) {
		return func() (store.Revision, error) { return sync.PutQuota(t.Context(), spec, s) }
	}
	sets := func(s store.Stored) func() (store.Revision, error) {
		return func() (store.Revision, error) {
			s.Revision = last
			return operator.Set(t.Context(), spec, s)
		}
	}
	listed := []string{"GSI2PK", "S CONFIG#gpt-4", "GSI2SK", "S user-1"}
	rpm := func(cp, bx int64) []string {
		return []string{
			"l_rpm_cp",
			fmt.Sprint("N ", cp),
			"l_rpm_bx",
			fmt.Sprint("N ", bx),
			"l_rpm_ra",
			fmt.Sprint("N ", bx),
			"l_rpm_rp",
			"N 60000",
		}
	}
	closed := quotaOf("user-1", 7, "")
	none := bucket.Per(100, time.Minute).Quota(0)
	closed.Limits[0] = &none

	step(
		"a quota",
		quotas(quotaOf("user-1", 7, "", 30)),
		slices.Concat(listed, rpm(30_000, 30_000), []string{"managed", "N 7"})...)
	step("a closed quota", quotas(closed), slices.Concat(listed, rpm(0, 1000), []string{"managed", "N 7"})...)
	if got, err := sync.Get(t.Context(), spec, "user-1"); err != nil || got[0].Epoch != 7 ||
		!got[0].Limits[0].Closed() ||
		got[0].Revision != last {
		t.Errorf("%+v, %v; want the closed quota", got, err)
	}
	step("its end", quotas(quotaOf("user-1", 8, "")), "managed", "N 8")
	step(
		"a quota again",
		quotas(quotaOf("user-1", 8, "", 30)),
		slices.Concat(listed, rpm(30_000, 30_000), []string{"managed", "N 8"})...)
	step("taken over", sets(stored("user-1", "", 5)), slices.Concat(listed, rpm(5000, 5000))...)
	if _, err := sync.PutQuota(t.Context(), spec, quotaOf("user-1", 8, rev(ms+5000),
		30)); !isA[*store.ConflictError](
		err,
	) {
		t.Errorf("%v, want an operator's override to stand", err)
	}
	step("given back", sets(stored("user-1", "")), "managed", "N 0")
	step(
		"a quota of what was given back",
		quotas(quotaOf("user-1", 9, "", 30)),
		slices.Concat(listed, rpm(30_000, 30_000), []string{"managed", "N 9"})...)

	// The override of a kind is never sync's, and a tombstone of before there were regions keeps nobody out.
	ms = 100_000
	e.clock.set(ms)
	last = ""
	if _, err := operator.Set(t.Context(), spec, stored("user", "")); err != nil {
		t.Fatal(err)
	}
	if item := e.get(t, item.OverrideKey("gpt-4", "user")); item["managed"] != nil {
		t.Errorf("the kind's tombstone is %v", plain(item))
	}
	set(t, operator, stored("user-2", ""))
	if got, err := sync.PutQuota(t.Context(), spec, quotaOf("user-2", 9, "", 30)); err != nil ||
		got != rev(ms+1) {
		t.Errorf("%s, %v; want the quota to be above the tombstone's %s", got, err, rev(ms))
	}
}

// TestQuotaWithoutRegions: what sync has left of a resource that is shared no longer says nothing, and the
// next override replaces it.
func TestQuotaWithoutRegions(t *testing.T) {
	e := newEngine(t)
	o := e.operator(e.client, 0)
	if _, err := e.regional(e.client, 0).PutQuota(t.Context(), sharedRates(),
		quotaOf("user-1", 7, "", 30)); err != nil {
		t.Fatal(err)
	}
	if all, err := list(t.Context(), o); err != nil || len(all) != 0 {
		t.Errorf("%+v, %v; want nothing listed", all, err)
	}
	want := stored("user-1", "", 5)
	want.Revision = set(t, o, want)
	says(t, o, want)
}

// TestClosedOverride: no operator's override is closed.
func TestClosedOverride(t *testing.T) {
	e := newEngine(t)
	raw := item.OverrideKey("gpt-4", "user-1")
	none := bucket.Per(100, time.Minute).Quota(0)
	attrs := item.OverrideAttributes("user-1", "rpm")
	raw["ver"] = codec.N(1)
	raw[attrs[0]], raw[attrs[1]], raw[attrs[2]], raw[attrs[3]] = codec.N(
		0,
	), codec.N(
		none.Burst,
	), codec.N(
		none.Refill,
	), codec.N(
		none.Period,
	)
	e.put(t, raw)
	_, err := e.operator(e.client, 0).Get(t.Context(), sharedRates(), "user-1")
	wantSetup(t, err, "gpt-4 at user-1 ", "limit rpm", none.Check(0),
		"ENTITY#user-1 / #CONFIG#gpt-4")
}

// TestQuotaRefused: what cannot be a quota is met before anything is written.
func TestQuotaRefused(t *testing.T) {
	e := newEngine(t)
	sync := e.regional(e.client, 0)
	bad := quotaOf("user-1", 7, "", 30)
	bad.Limits[0].Refill = 0
	for want, test := range map[string]struct {
		spec  *store.Spec
		quota store.Stored
	}{
		"invalid gpt-4 quota \"user-1\" is of a resource without regions: add `regions` to it in limits.yaml": {
			rates(), quotaOf("user-1", 7, "", 30),
		},
		"invalid gpt-4 quota \"user\" is of a kind: only entities have quotas": {
			sharedRates(), quotaOf("user", 7, "", 30),
		},
		"invalid gpt-4 epoch quota user-1 \"0\" is below 1: an operator's override is set by Overrides": {
			sharedRates(), quotaOf("user-1", 0, "", 30),
		},
		"invalid gpt-4 limit rpm quota user-1 is not possible: " +
			override.CheckLimit(sharedRates(), 0, *bad.Limits[0], true): {sharedRates(), bad},
	} {
		_, err := sync.PutQuota(t.Context(), test.spec, test.quota)
		if got := errtext.Reason(err); got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
	if _, err := sync.PutQuota(t.Context(), sharedRates(), quotaOf("user-1", 7, "of another store",
		30)); !isA[*store.ConflictError](
		err,
	) {
		t.Errorf("%v, want a conflict", err)
	}
	if item := e.get(t, item.OverrideKey("gpt-4", "user-1")); item != nil {
		t.Errorf("stored %v", plain(item))
	}
}

// TestQuotaVersions: a quota's version is above that which it is for, that which it finds, and the last
// change of the heartbeat, whatever the clock says.
func TestQuotaVersions(t *testing.T) {
	e := newEngine(t)
	spec := sharedRates()
	e.clock.set(50_000)
	behind := e.regional(e.client, -50_000)
	gets := func(s store.Stored, want int64) {
		t.Helper()
		got, err := behind.PutQuota(t.Context(), spec, s)
		if err != nil || got != rev(want) {
			t.Errorf("revision %s, %v; want %s", got, err, rev(want))
		}
	}
	gets(quotaOf("user-1", 1, rev(20_000), 30), 20_001)
	gets(quotaOf("user-1", 1, "", 31), 20_002) // as it finds it
	if _, err := e.regional(e.client, 0).PutQuota(t.Context(), spec, quotaOf("user-1", 1, "", 32)); err != nil {
		t.Fatal(err)
	}
	gets(quotaOf("user-1", 1, rev(20_002), 33), 50_001)
	if err := e.regional(e.client, 0).PutHeartbeat(t.Context(),
		store.Heartbeat{Epoch: 1, Expires: t0 + 80_000}); err != nil {
		t.Fatal(err)
	}
	if _, err := behind.Heartbeat(t.Context()); err != nil {
		t.Fatal(err)
	}
	gets(quotaOf("user-2", 1, "", 30), 50_001)

	// An operator takes over under a version that is above the quota's as it counts.
	operator := e.operator(e.client, -50_000)
	if got, err := operator.Set(t.Context(), spec, stored("user-3", "", 5)); err != nil || got != rev(50_001) {
		t.Errorf("revision %s, %v; want %s", got, err, rev(50_001))
	}
}

// TestQuotaOnce lets mishaps befall a quota and a heartbeat: each is stored once, and its caller told so.
func TestQuotaOnce(t *testing.T) {
	throttle := reject("ProvisionedThroughputExceededException", "slow down")
	for name, mishaps := range map[string][]mishap{
		"lost reply": {loseReply}, "lost request": {loseRequest}, "500": {fail500},
		"throttled": {throttle, throttle},
		"all of it": {throttle, loseRequest, loseReply, fail500},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			client, w := e.withNetwork(mishaps...)
			got, err := e.regional(client, 0).PutQuota(t.Context(), sharedRates(), quotaOf("user-1", 7, "", 30))
			if err != nil || got != rev(0) {
				t.Errorf("revision %s, %v; want %s", got, err, rev(0))
			}
			want := quotaOf("user-1", 7, got, 30)
			if is, err := e.operator(e.client, 0).Get(t.Context(), sharedRates(), "user-1"); err != nil ||
				!cmp.Equal(is[0], want) {
				t.Errorf("%+v, %v; want %+v", is, err, want)
			}
			if len(w.mishaps) > 0 {
				t.Errorf("%d mishaps left", len(w.mishaps))
			}

			client, w = e.withNetwork(mishaps...)
			beat := store.Heartbeat{Epoch: 7, Since: t0, Expires: t0 + 30_000}
			if err := e.regional(client, 0).PutHeartbeat(t.Context(),
				store.Heartbeat{Epoch: 7, Expires: beat.Expires}); err != nil {
				t.Error(err)
			}
			if is, err := e.operator(e.client, 0).Heartbeat(t.Context()); err != nil || is != beat {
				t.Errorf("%+v, %v; want %+v", is, err, beat)
			}
			if len(w.mishaps) > 0 {
				t.Errorf("%d mishaps left", len(w.mishaps))
			}
		})
	}
}

// TestLateQuota: a copy of a quota that arrives after a newer one changes nothing.
func TestLateQuota(t *testing.T) {
	e := newEngine(t)
	client, w := e.withNetwork(delay)
	sync := e.regional(client, 0)
	if _, err := sync.PutQuota(t.Context(), sharedRates(), quotaOf("user-1", 7, "", 30)); err != nil {
		t.Fatal(err)
	}
	last, err := sync.PutQuota(t.Context(), sharedRates(), quotaOf("user-1", 7, "", 40))
	if err != nil {
		t.Fatal(err)
	}
	if codes := w.arrive(t); !slices.Equal(codes, []int{http.StatusBadRequest}) {
		t.Errorf("the late copy was answered %v, want it refused", codes)
	}
	is, err := sync.Get(t.Context(), sharedRates(), "user-1")
	if want := quotaOf("user-1", 7, last, 40); err != nil || !cmp.Equal(is[0], want) {
		t.Errorf("%+v, %v; want %+v", is, err, want)
	}
}

// TestBeat holds what each heartbeat leaves, of the one before it.
func TestBeat(t *testing.T) {
	beat := func(epoch, since, expires int64) store.Heartbeat {
		return store.Heartbeat{Epoch: epoch, Since: t0 + since, Expires: t0 + expires}
	}
	for name, test := range map[string]struct {
		before   store.Heartbeat
		now      int64
		epoch    int64
		expires  int64
		want     store.Heartbeat
		conflict bool
	}{
		"the first": {now: 5000, epoch: 1, expires: 35_000, want: beat(1, 5000, 35_000)},
		"the next": {beat(1, 5000, 35_000), 15_000, 1, 45_000, beat(1, 5000, 45_000),
			false},
		"one that is late": {beat(1, 5000, 35_000), 34_000, 1, 64_000, beat(1, 35_001, 64_000),
			false},
		"just in time": {beat(1, 5000, 35_000), 33_999, 1, 64_000, beat(1, 5000, 64_000),
			false},
		"one that is too late": {beat(1, 5000, 35_000), 40_000, 1, 70_000, beat(1, 40_000, 70_000),
			false},
		"a new epoch": {beat(1, 5000, 35_000), 15_000, 2, 45_000, beat(2, 15_000, 45_000),
			false},
		"a new epoch too late": {beat(1, 5000, 35_000), 40_000, 2, 70_000, beat(2, 40_000, 70_000),
			false},
		"a new epoch at once": {beat(1, 5000, 35_000), 5000, 2, 35_000, beat(2, 5001, 35_000), false},
		"a new epoch that is not alive yet": {beat(1, 5000, 35_000), 15_000, 2, 15_000, beat(2, 15_000, 15_000),
			false},
		"its first": {beat(2, 15_000, 15_000), 15_000, 2, 45_000, beat(2, 15_001, 45_000),
			false},
		"the same again": {beat(1, 5000, 35_000), 5000, 1, 35_000, beat(1, 5000, 35_000), false},
		"an epoch that is over": {beat(2, 5000, 35_000), 40_000, 1, 70_000, beat(2, 5000, 35_000),
			true},
		"one that would expire sooner": {beat(1, 5000, 35_000), 4000, 1, 34_000, beat(1, 5000, 35_000), true},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			e.clock.set(test.now)
			mistaken := e.regional(e.client, 0)
			e.putHeartbeat(t, beat0)
			if _, err := mistaken.Heartbeat(t.Context()); err != nil {
				t.Fatal(err)
			}
			e.remove(t, item.HeartbeatKey())
			if test.before.Epoch > 0 {
				e.putHeartbeat(t, test.before)
			}
			knowing := e.regional(e.client, 0)
			if _, err := knowing.Heartbeat(t.Context()); err != nil {
				t.Fatal(err)
			}
			for who, r := range map[string]*operator.Regional{"who has read": knowing,
				"who has not": e.regional(e.client, 0), "who is mistaken": mistaken} {
				if test.before.Epoch > 0 {
					e.putHeartbeat(t, test.before)
				}
				err := r.PutHeartbeat(t.Context(), store.Heartbeat{Epoch: test.epoch, Expires: t0 + test.expires})
				if isA[*store.ConflictError](err) != test.conflict || err != nil && !test.conflict {
					t.Errorf("%s: %v", who, err)
				}
				if got := e.heartbeat(t); got != test.want {
					t.Errorf("%s: stored %+v, want %+v", who, got, test.want)
				}
				if test.before.Epoch == 0 {
					break // there is one now
				}
			}
		})
	}
	e := newEngine(t)
	err := e.regional(e.client, 0).PutHeartbeat(t.Context(), store.Heartbeat{Expires: t0})
	if !isA[*store.InvalidError](err) {
		t.Errorf("%v, want an epoch of 0 refused", err)
	}
}

// beat0 is a heartbeat that is gone when it matters.
var beat0 = store.Heartbeat{Epoch: 1, Since: 1, Expires: 2}

// putHeartbeat stores h, whatever is there.
func (e *engine) putHeartbeat(t testing.TB, h store.Heartbeat) {
	t.Helper()
	stored := item.HeartbeatKey()
	stored["epoch"], stored["since"], stored["exp"] = codec.N(h.Epoch), codec.N(h.Since), codec.N(h.Expires)
	e.put(t, stored)
}

// heartbeat returns what is stored.
func (e *engine) heartbeat(t testing.TB) store.Heartbeat {
	t.Helper()
	h, err := e.operator(e.client, 0).Heartbeat(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestRegionalCosts holds each call to the engine's bill: a quota and a heartbeat are one write unit, and a
// first quota is one more in the index.
func TestRegionalCosts(t *testing.T) {
	e := newEngine(t)
	m := newMeter(t, e.client)
	r := e.regional(m, 0)
	spec := sharedRates()
	do := func(what string, err error, want usage) {
		t.Helper()
		if got := m.take(); err != nil || got != want {
			t.Errorf("%s: %v, cost %+v, want %+v", what, err, got, want)
		}
	}
	shared := func(perMinute ...int64) error {
		_, err := r.PutQuota(t.Context(), spec, quotaOf("user-1", 1, "", perMinute...))
		e.clock.Since.Add(1000)
		return err
	}
	beats := func() error {
		return r.PutHeartbeat(t.Context(), store.Heartbeat{Epoch: 1, Expires: e.clock.Now().UnixMilli() + 3*window})
	}
	do("the first heartbeat", beats(), usage{Calls: 2, Reads: 1, Writes: 1, Units: 1 + 1})
	do("the next", beats(), usage{Calls: 1, Writes: 1, Units: 1})
	do("a first quota", shared(30, 300), usage{Calls: 1, Writes: 1, Units: 1, Indexes: 1})
	do("another", shared(40, 400), usage{Calls: 1, Writes: 1, Units: 1})
	_, err := r.Heartbeat(t.Context())
	do("reading the heartbeat", err, usage{Calls: 1, Reads: 1, Units: 1})
}

// TestEach sees every bucket of a resource, of all kinds, but for one that is malformed.
func TestEach(t *testing.T) {
	e := newEngine(t)
	var want []string
	for i := range 7 {
		for _, kind := range []string{"user", "project"} {
			id := fmt.Sprintf("%s-%d", kind, i)
			want = append(want, id)
			e.put(t, row{Entity: id, RF: 0, CV: 1, TTL: 60, Op: "x", Limits: holds(int64(i), 0, 0, 0)}.Item(t))
		}
	}
	e.put(t, row{Entity: "user-9", Resource: "embeddings", Op: "x"}.Item(t))
	bad := row{Entity: "user-8", RF: 0, CV: 1, TTL: 60, Op: "x", Limits: holds(1, 0, 0, 0)}.Item(t)
	bad["b_rpm_tk"] = codec.S("many")
	e.put(t, bad)
	var got []string
	err := e.regional(e.client, 0).Each(t.Context(), "gpt-4", func(entity string, img *bucket.Image) {
		got = append(got, entity)
		if i := slices.IndexFunc(img.Extra, func(n bucket.Named) bool { return n.Name == "rpm" }); i < 0 ||
			img.Extra[i].Limit != userRPM {
			t.Errorf("%s: %+v", entity, img)
		}
	})
	if err != nil {
		t.Error(err)
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("saw %q, want %q", got, want)
	}
}

func (e *engine) remove(t testing.TB, key codec.Item) {
	t.Helper()
	if _, err := e.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &e.table,
		Key: key}); err != nil {
		t.Error(err)
	}
}
