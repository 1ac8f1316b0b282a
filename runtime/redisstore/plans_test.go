package redisstore

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sluice-go/sluice/internal/test/errtext"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/database"
	"github.com/sluice-go/sluice/runtime/store"
)

// TestSetPlan: an entity is on one plan or on none. Each change raises the version, to the present at least,
// and one that changes nothing leaves it.
func TestSetPlan(t *testing.T) {
	s := newServer(t)
	ctx, backend := t.Context(), New(s.client(t), Prefix(s.prefix)).Members()
	began := time.Now().UnixMilli() - 1000 // the clocks of this process and of Redis may be off
	none, free := "", "free"
	var last store.Member
	for i, step := range []struct {
		plan     string
		from     *string
		conflict bool
		stays    bool // what is stored
	}{
		{plan: "", stays: true},
		{plan: "free", from: &free, conflict: true},
		{plan: "free", from: &none},
		{plan: "free", stays: true},
		{plan: "pro", from: &none, conflict: true},
		{plan: "pro", from: &free},
		{plan: "pro", from: &free, stays: true}, // a repeated request
		{plan: "free", from: &free, conflict: true},
		{plan: ""},
		{plan: "", stays: true},
		{plan: "enterprise", from: &none},
	} {
		err := backend.SetPlan(ctx, "org-7", step.plan, step.from)
		if !step.conflict && err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		const want = "sluice: the plan of org-7 has been changed meanwhile: read it again"
		if step.conflict && (!isA[*store.ConflictError](err) || err.Error() != want) {
			t.Errorf("step %d: %v, want %s", i, err, want)
		}
		m, found, err := backend.Get(ctx, "org-7")
		if err != nil || found {
			t.Fatalf("step %d: found %t, %v: nothing is stored of its link", i, found, err)
		}
		switch {
		case step.conflict || step.stays:
			if m != last {
				t.Errorf("step %d: %+v, want %+v as before", i, m, last)
			}
		case m.Plan != step.plan || m.PlanVersion <= last.PlanVersion || m.PlanVersion < began:
			t.Errorf("step %d: %+v after %+v, want plan %q of a higher version", i, m, last, step.plan)
		}
		last = m
	}
}

// TestPlanVersionOfTheFuture: a version that is ahead of the clock, as after a clock was set back, rises too.
func TestPlanVersionOfTheFuture(t *testing.T) {
	s := newServer(t)
	ctx, client := t.Context(), s.client(t)
	key, backend := database.Keys{Prefix: s.prefix}.Entity("org-7"), New(client, Prefix(s.prefix)).Members()
	const ahead = "99999999999999"
	if err := client.HSet(ctx, key, planField, "free", versionField, ahead).Err(); err != nil {
		t.Fatal(err)
	}
	if err := backend.SetPlan(ctx, "org-7", "pro", nil); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{planField: "pro", versionField: "100000000000000"}
	if got := client.HGetAll(ctx, key).Val(); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	client.HSet(ctx, key, versionField, "soon")
	if _, _, err := backend.Get(ctx, "org-7"); errtext.Of(err) != "setup: the plan of org-7 is malformed | "+
		`strconv.ParseInt: parsing "soon": invalid syntax | `+
		"set it again, or delete the fields plan and pv of the entity's hash" {
		t.Errorf("%s", errtext.Of(err))
	}
}

// TestPlanBesideOthers: Put, Delete and SetCalendar leave the plan, and SetPlan leaves what they have stored.
// Erase removes all of it.
func TestPlanBesideOthers(t *testing.T) {
	s := newServer(t)
	ctx, client := t.Context(), s.client(t)
	key, backend := database.Keys{Prefix: s.prefix}.Entity("key-1"), New(client, Prefix(s.prefix)).Members()
	fatal := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	fatal(backend.SetPlan(ctx, "key-1", "pro", nil))
	version := client.HGet(ctx, key, versionField).Val()
	fatal(backend.Put(ctx, store.Member{Entity: "key-1", Parent: "org-7", Cascade: true}))
	fatal(backend.SetCalendar(ctx, "key-1", time.UnixMilli(t0).UTC()))
	want := map[string]string{planField: "pro", versionField: version, parentField: "org-7", cascadeField: "1",
		anchorField: "1800000000000", zoneField: "UTC"}
	if got := client.HGetAll(ctx, key).Val(); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	fatal(backend.Delete(ctx, "key-1"))
	delete(want, parentField)
	delete(want, cascadeField)
	if got := client.HGetAll(ctx, key).Val(); !maps.Equal(got, want) {
		t.Errorf("%v after Delete, want %v", got, want)
	}
	fatal(backend.SetPlan(ctx, "key-1", "", nil))
	if m, _, err := backend.Get(ctx, "key-1"); err != nil || m.Plan != "" || m.PlanVersion == 0 ||
		m.Since.UnixMilli() != t0 {
		t.Errorf("%+v, %v, want the calendar, and that it was on a plan", m, err)
	}
	erased, err := backend.Erase(ctx, "key-1", store.Erasing{})
	if left := client.Exists(ctx, key).Val(); err != nil || left != 0 || erased != (store.Erased{Other: 1}) {
		t.Errorf("%+v, %v, and %d keys are left", erased, err, left)
	}
}

// TestSetPlanTogether: of many that move an entity away from the same plan, one succeeds.
func TestSetPlanTogether(t *testing.T) {
	s := newServer(t)
	ctx, backend := t.Context(), New(s.client(t), Prefix(s.prefix)).Members()
	var all sync.WaitGroup
	errs, from := make([]error, 20), ""
	for i := range errs {
		all.Go(func() { errs[i] = backend.SetPlan(ctx, "org-7", fmt.Sprint("plan", i), &from) })
	}
	all.Wait()
	moved := 0
	for _, err := range errs {
		switch {
		case err == nil:
			moved++
		case !isA[*store.ConflictError](err):
			t.Error(err)
		}
	}
	if moved != 1 {
		t.Errorf("%d have moved it, want 1", moved)
	}
}

// TestSetPlanAtOnce: the look-up of this process's session reads again after a SetPlan of it, and that of
// another one once its cache has expired.
func TestSetPlanAtOnce(t *testing.T) {
	s, clock := newServer(t), &handClock{}
	d, other := s.process(t, s.client(t), slow()), s.process(t, s.client(t), slow(), runtime.WithClock(clock))
	ctx := t.Context()
	on := func(of *process, want string) {
		t.Helper()
		if m, _, err := of.session.Member(ctx, "org-7"); m.Plan != want || err != nil {
			t.Errorf("on %q, %v, want %q", m.Plan, err, want)
		}
	}
	on(d, "")
	on(other, "")
	if err := d.session.Members().SetPlan(ctx, "org-7", "pro", nil); err != nil {
		t.Fatal(err)
	}
	on(d, "pro")
	on(other, "")
	clock.pass(time.Minute)
	on(other, "pro")
}

// TestPlanNumbers: numbers of plans are stored by plan and kind in one hash, which has one version. Writes of
// one leave those of others, and limits of another binary, until none is left at the same place.
func TestPlanNumbers(t *testing.T) {
	s := newServer(t)
	ctx, client, def := t.Context(), s.client(t), slow()
	backend, hash := New(client, Prefix(s.prefix)).Overrides(), database.Keys{Prefix: s.prefix}.Plans("gpt-4")
	var last store.Revision
	set := func(at string, limits []*bucket.Limit, revision store.Revision) {
		t.Helper()
		next, err := backend.Set(ctx, def.spec, store.Stored{At: at, Limits: limits, Revision: revision})
		if err != nil || next <= last {
			t.Fatalf("revision %s after %s, %v", next, last, err)
		}
		last = next
	}
	conflict := func(at string, limits []*bucket.Limit, revision store.Revision) {
		t.Helper()
		_, err := backend.Set(ctx, def.spec, store.Stored{At: at, Limits: limits, Revision: revision})
		const want = "sluice: the override of gpt-4 at free.user has been changed meanwhile: read it again"
		if !isA[*store.ConflictError](err) || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	listed := func(want ...string) {
		t.Helper()
		var got []string
		for stored, err := range backend.List(ctx, def.spec) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprint(stored.At, " ", stored.Limits[0].Burst/bucket.Milli))
			if stored.Revision != last {
				t.Errorf("%s has revision %s, want that of all plans, %s", stored.At, stored.Revision, last)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("listed %q, want %q", got, want)
		}
	}
	none := []*bucket.Limit{nil, nil}
	set("pro.user", rpm(600), "")
	set("free.user", rpm(6), "") // nothing is there yet, whatever other plans have
	conflict("free.user", rpm(7), "")
	conflict("free.user", none, last[:len(last)-1])
	set("pro.project", rpm(6000), last)
	listed("free.user 6", "pro.project 6000", "pro.user 600")
	client.HSet(ctx, hash, "l_pro.user.rpd", "1 1 1 1", "l_gold.team.rpm", "1 1 1 1") // of another binary
	set("pro.user", rpm(700), last)
	if !client.HExists(ctx, hash, "l_pro.user.rpd").Val() {
		t.Error("a limit of another binary is gone")
	}
	listed("free.user 6", "pro.project 6000", "pro.user 700")
	set("pro.user", none, last)
	if got := client.HKeys(ctx, hash).Val(); len(got) != 5 || slices.Contains(got, "l_pro.user.rpd") {
		t.Errorf("%q are left, want two plans' limits, that of gold, ver and op", got)
	}
	listed("free.user 6", "pro.project 6000")
	if all, err := backend.Get(ctx, def.spec, "pro.user", "user", "gold.user"); err != nil ||
		all[0].Overrides() || all[0].Revision != last || all[1].Revision != "" || all[2].Revision != last {
		t.Errorf("%+v, %v", all, err)
	}
	set("free.user", none, last)
	set("pro.project", none, last)
	listed()
	_, err := backend.Set(ctx, def.spec, store.Stored{At: "pro.user", Limits: rpm(0)})
	if !isA[*store.InvalidError](err) {
		t.Errorf("%v, want an InvalidError", err)
	}
}

// TestMalformedPlan is named, with the cure.
func TestMalformedPlan(t *testing.T) {
	s := newServer(t)
	client, key := s.client(t), database.Keys{Prefix: s.prefix}.Plans("gpt-4")
	client.HSet(t.Context(), key, "ver", "1", "l_pro.user.rpm", "5 5 5")
	_, err := New(client, Prefix(s.prefix)).Overrides().Get(t.Context(), slow().spec, "pro.user")
	want := "setup: the override of gpt-4 at pro.user is malformed | " +
		`limit rpm: "5 5 5": want capacity, burst, refill and period | fix the hash ` + key + " and raise its ver"
	if errtext.Of(err) != want {
		t.Errorf("%v, want %s", errtext.Of(err), want)
	}
}
