package redisstore

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluice-go/sluice/internal/test/errtext"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/database"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/members"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/text"
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
	if err := client.HSet(ctx, key, members.PlanField, "free", members.VersionField, ahead).Err(); err != nil {
		t.Fatal(err)
	}
	if err := backend.SetPlan(ctx, "org-7", "pro", nil); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{members.PlanField: "pro", members.VersionField: "100000000000000"}
	if got := client.HGetAll(ctx, key).Val(); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	client.HSet(ctx, key, members.VersionField, "soon")
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
	version := client.HGet(ctx, key, members.VersionField).Val()
	fatal(backend.Put(ctx, store.Member{Entity: "key-1", Parent: "org-7", Cascade: true}))
	fatal(backend.SetCalendar(ctx, "key-1", time.UnixMilli(t0).UTC()))
	want := map[string]string{
		members.PlanField: "pro", members.VersionField: version, members.ParentField: "org-7",
		members.CascadeField: "1", members.AnchorField: "1800000000000", members.ZoneField: "UTC",
	}
	if got := client.HGetAll(ctx, key).Val(); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	fatal(backend.Delete(ctx, "key-1"))
	delete(want, members.ParentField)
	delete(want, members.CascadeField)
	if got := client.HGetAll(ctx, key).Val(); !maps.Equal(got, want) {
		t.Errorf("%v after Delete, want %v", got, want)
	}
	fatal(backend.SetPlan(ctx, "key-1", "", nil))
	if m, _, err := backend.Get(ctx, "key-1"); err != nil || m.Plan != "" || m.PlanVersion == 0 ||
		m.Since.UnixMilli() != t0 {
		t.Errorf("%+v, %v, want the calendar, and that it was on a plan", m, err)
	}
	erased, err := backend.Erase(ctx, "key-1", store.Erasing{})
	if left := client.Exists(ctx, key).Val(); err != nil || left != 0 || erased != (store.Erased{Other: 3}) {
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

// planned is slow's, with projects on plans. Plan free has 6 rpm for users, pro 600 and 1,000 for projects.
func planned() *definition {
	def := slow()
	none := make([][]bucket.Limit, 2)
	of := func(tokens int64) []bucket.Limit { return []bucket.Limit{*rpm(tokens)[0], {}} }
	def.spec.Plans = &store.Plans{Kind: 1, Names: []string{"free", "pro", "bare"},
		Limits: [][][]bucket.Limit{{of(6), nil}, {of(600), of(1000)}, none}}
	return def
}

// moved puts project-1 on a plan, as another process does.
func (d *process) moved(t testing.TB, plan string) {
	t.Helper()
	if err := d.store.Members().SetPlan(t.Context(), "project-1", plan, nil); err != nil {
		t.Fatal(err)
	}
}

// below is a user of the project that is put on plans.
var below = caller{"1", "1"}

// bursts compares the bursts of rpm in force for the user and its project.
func (d *process) bursts(t testing.TB, user, project int64) {
	t.Helper()
	snap, err := d.Peek(t.Context(), below)
	if err != nil {
		t.Fatal(err)
	}
	var got []int64
	for _, b := range snap.Buckets {
		got = append(got, b.Burst[0])
	}
	if !slices.Equal(got, []int64{user, project}) {
		t.Errorf("bursts %d, want %d and %d", got, user, project)
	}
}

// TestPlanInForce: a bucket has the numbers of the plan of the project above it. The first of these decides:
// entity, plan as changed at run time, plan of limits.yaml, kind, schema. A process goes by its own changes
// at once, another one once its cache has expired.
func TestPlanInForce(t *testing.T) {
	s, clock := newServer(t), &handClock{}
	def := planned()
	d, other := s.process(t, s.client(t), def), s.process(t, s.client(t), def, runtime.WithClock(clock))
	ctx, overrides := t.Context(), d.session.Overrides()
	revisions := map[string]store.Revision{}
	set := func(at string, limits []*bucket.Limit) {
		t.Helper()
		plans := at
		if _, _, ofPlan := store.SplitPlanAt(at); ofPlan {
			plans = "plans"
		}
		var err error
		revisions[plans], err = overrides.Set(ctx, def.spec,
			store.Stored{At: at, Limits: limits, Revision: revisions[plans]})
		if err != nil {
			t.Fatal(err)
		}
	}
	step := func(change func(), user, project int64) {
		t.Helper()
		change()
		d.bursts(t, user, project)
		clock.pass(time.Minute)
		other.bursts(t, user, project)
	}
	plan := func(name string) func() {
		return func() {
			t.Helper()
			if err := d.session.Members().SetPlan(ctx, "project-1", name, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	other.bursts(t, 60, 60)
	step(func() {}, 60, 60)
	step(plan("free"), 6, 60)
	step(func() { set("user", rpm(70)) }, 6, 60)
	step(plan("pro"), 600, 1000)
	step(func() { set("pro.user", rpm(700)) }, 700, 1000)
	step(func() { set("pro.project", rpm(2000)) }, 700, 2000)
	step(plan("bare"), 70, 60)
	step(plan("free"), 6, 60)
	step(plan("pro"), 700, 2000)
	step(func() { set("user-1", rpm(9)) }, 9, 2000)
	step(func() { set("user-1", []*bucket.Limit{nil, nil}) }, 700, 2000)
	step(func() { set("pro.user", []*bucket.Limit{nil, nil}) }, 600, 2000)
	step(plan(""), 70, 60)
}

// TestPlansCached: all buckets of a session share one read of the plans, and of the project's plan, for as
// long as the cache serves. So calls read nothing.
func TestPlansCached(t *testing.T) {
	s, clock := newServer(t), &handClock{}
	d := s.process(t, s.client(t), planned(), runtime.WithClock(clock))
	d.moved(t, "pro")
	reads := func(want int) {
		t.Helper()
		got := 0
		for _, event := range d.events.taken() {
			if path, _, _ := strings.Cut(event, " "); path == "member" || path == "levels" {
				got++
			}
		}
		if got != want {
			t.Errorf("%d reads, want %d", got, want)
		}
	}
	for range 2 {
		for _, user := range []string{"1", "2", "3"} {
			for range 10 {
				if _, err := d.Acquire(t.Context(), caller{user, "1"}, tokens2{1, 0}); err != nil {
					t.Fatal(err)
				}
			}
		}
		reads(4) // the project's plan; overrides of each user
		clock.pass(time.Minute)
	}
}

// TestPlanUnread: if the plans cannot be read, those that were read last serve, and a bucket that has none
// fails.
func TestPlanUnread(t *testing.T) {
	s, clock, n := newServer(t), &handClock{}, &noReads{}
	def, client := planned(), s.client(t)
	client.AddHook(n)
	d := s.process(t, client, def, runtime.WithClock(clock))
	d.moved(t, "pro")
	backend := d.store.Overrides()
	rev, err := backend.Set(t.Context(), def.spec, store.Stored{At: "pro.user", Limits: rpm(700)})
	if err != nil {
		t.Fatal(err)
	}
	d.bursts(t, 700, 1000)
	_, err = backend.Set(t.Context(), def.spec, store.Stored{At: "pro.user", Limits: rpm(7), Revision: rev})
	if err != nil {
		t.Fatal(err)
	}
	n.failure = redisError("LOADING")
	clock.pass(time.Minute)
	d.bursts(t, 700, 1000)
	if _, err := d.Peek(t.Context(), caller{"2", "1"}); !isA[*store.UnavailableError](err) {
		t.Errorf("%v, want that nothing is known of user-2", err)
	}
	clock.pass(time.Second)
	n.failure = nil
	d.bursts(t, 7, 1000)
}

// TestOlderPlan: a call that found its plan before another one did goes by the later one, and so does a
// settle, also of a bucket that has moved. A plan of another project counts whatever its version.
func TestOlderPlan(t *testing.T) {
	s := newServer(t)
	d := s.process(t, s.client(t), planned())
	burst := func(path string, plan store.OnPlan) int64 {
		t.Helper()
		call := &store.Call{Parts: []store.Part{{Def: d.session.(*session).resources[0].def,
			Buckets: []store.Bucket{{Entity: "user-1", Plan: plan}},
			Cost:    []int64{1, 0}, Actual: []int64{0, 0}}}}
		do := d.session.Acquire
		if path == pathSettle {
			do = d.session.Settle
		}
		if err := do(t.Context(), call); err != nil {
			t.Fatal(err)
		}
		return call.Parts[0].Buckets[0].Limits[0].Burst / bucket.Milli
	}
	on := func(of, name string, version int64) store.OnPlan {
		return store.OnPlan{Of: of, Name: name, Version: version}
	}
	for i, step := range []struct {
		path string
		plan store.OnPlan
		want int64
	}{
		{pathAcquire, on("project-1", "", 0), 60},
		{pathAcquire, on("project-1", "free", 5), 6},
		{pathAcquire, on("project-1", "pro", 7), 600},
		{pathAcquire, on("project-1", "free", 5), 600},
		{pathSettle, on("project-1", "free", 5), 600},
		{pathAcquire, on("project-2", "free", 2), 6},
		{pathSettle, on("project-1", "pro", 7), 6},
		{pathAcquire, on("project-1", "pro", 7), 600},
		{pathAcquire, on("project-1", "", 8), 60},
		{pathAcquire, on("project-1", "pro", 7), 60},
		{pathAcquire, on("project-1", "", 0), 60}, // erased
		{pathAcquire, on("project-1", "pro", 7), 600},
	} {
		if got := burst(step.path, step.plan); got != step.want {
			t.Errorf("step %d, %s on %+v: %d, want %d", i, step.path, step.plan, got, step.want)
		}
	}
}

// TestLatePlan: a read is cached after its call has gone on. The plan of that call does not take the place of
// the one that a later call has found, also where the former has no version to compare.
func TestLatePlan(t *testing.T) {
	s := newServer(t)
	d := s.process(t, s.client(t), planned())
	opened := d.session.(*session)
	acquire := func(plan store.OnPlan) {
		t.Helper()
		if err := opened.Acquire(t.Context(), &store.Call{Parts: []store.Part{{
			Def: opened.resources[0].def, Cost: []int64{1, 0},
			Buckets: []store.Bucket{{Entity: "user-1", Plan: plan}},
		}}}); err != nil {
			t.Fatal(err)
		}
	}
	acquire(store.OnPlan{Of: "project-1"})
	if err := opened.Close(t.Context()); err != nil { // nothing of that call is left
		t.Fatal(err)
	}
	b := opened.resources[0].lookup(opened, 0, "user-1", "user-1")
	b.mu.Lock()
	first := b.from
	b.mu.Unlock()
	acquire(store.OnPlan{Of: "project-1", Name: "pro", Version: 7})
	for _, ended := range []bool{true, false} { // false: control
		want := int64(60)
		if ended {
			want = 600
		}
		if got := b.use(first, ended).Limits[0].Burst / bucket.Milli; got != want {
			t.Errorf("the call has ended: %t: %d, want %d", ended, got, want)
		}
	}
}

// TestUnknownPlan: a program that does not know a plan gives, for each limit, the most that any plan gives,
// and takes nothing from a bucket that has more. It says so once.
func TestUnknownPlan(t *testing.T) {
	s := newServer(t)
	older, newer := planned(), planned()
	newer.spec.Plans.Names = append(newer.spec.Plans.Names, "gold")
	newer.spec.Plans.Limits = append(newer.spec.Plans.Limits,
		[][]bucket.Limit{{*rpm(5000)[0], {}}, {*rpm(9000)[0], {}}})
	var log strings.Builder
	d := s.process(t, s.client(t), newer)
	old := s.process(t, s.client(t), older, runtime.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	d.moved(t, "gold")
	old.bursts(t, 600, 1000)
	take := func(by *process, cost, user, project int64) {
		t.Helper()
		if _, err := by.Acquire(t.Context(), below, tokens2{cost, 0}); err != nil {
			t.Fatal(err)
		}
		snap, err := d.Peek(t.Context(), below)
		if err != nil {
			t.Fatal(err)
		}
		own, above := snap.Buckets[0].Available[0], snap.Buckets[1].Available[0]
		if own != user || above != project {
			t.Errorf("%d and %d are left, want %d and %d", own, above, user, project)
		}
	}
	take(d, 1000, 4000, 8000)
	take(old, 500, 3500, 7500)
	take(d, 1000, 2500, 6500)
	said := log.String()
	if strings.Count(said, "\n") != 1 || !strings.Contains(said, "the most of all plans") ||
		!strings.Contains(said, "resource=gpt-4 entity=project-1 plan=gold") {
		t.Errorf("said %s", said)
	}
}

// TestFillOfPlan: a fill goes by the plan that the bucket has: that of its root, of its last call, or of the
// stored parents. If none of these tells whose that is, it deletes the limit: what is missing is full.
func TestFillOfPlan(t *testing.T) {
	s := newServer(t)
	def, client := planned(), s.client(t)
	d := s.process(t, client, def)
	d.moved(t, "pro")
	ctx, backend, k := t.Context(), d.session.Overrides(), database.Keys{Prefix: s.prefix}
	key := k.Bucket("gpt-4", "rpm", "", "user-1")
	filled := func(how string, kind int, entity, root string, want int64) {
		t.Helper()
		if err := backend.Fill(ctx, def.spec, kind, entity, root); err != nil {
			t.Fatal(err)
		}
		b, err := d.store.Inspect(ctx, "gpt-4", root, entity, "rpm", "tpm")
		var tokens int64
		if err == nil && b != nil {
			tokens = b.Limits[0].Tokens / bucket.Milli
			for _, l := range b.Limits {
				if l.Of != "project-1" {
					t.Errorf("%s: %s has the plan of %q", how, l.Name, l.Of)
				}
			}
		}
		if tokens != want || err != nil {
			t.Errorf("%s: %d tokens, %v, want %d", how, tokens, err, want)
		}
	}
	filled("unknown", 0, "user-1", "user-1", 0)
	filled("by its root", 0, "user-1", "project-1", 600)
	filled("its own", 1, "project-1", "project-1", 1000)
	client.Del(ctx, key, k.Bucket("gpt-4", "tpm", "", "user-1"))
	if _, err := d.Acquire(ctx, below, tokens2{100, 1}); err != nil {
		t.Fatal(err)
	}
	filled("by its last call", 0, "user-1", "user-1", 600)
	client.Del(ctx, key, k.Bucket("gpt-4", "tpm", "", "user-1"))
	member := store.Member{Entity: "user-1", Parent: "project-1", Cascade: true}
	if err := d.session.Members().Put(ctx, member); err != nil {
		t.Fatal(err)
	}
	filled("by its stored parent", 0, "user-1", "user-1", 600)
}

// TestFilledToOfPlan: a process goes by a fill of newer numbers, but not by one of another project's plan,
// whichever version is higher.
func TestFilledToOfPlan(t *testing.T) {
	s, clock := newServer(t), &handClock{}
	def, client := planned(), s.client(t)
	d, old := s.process(t, client, def), s.process(t, client, def, runtime.WithClock(clock))
	ctx, members := t.Context(), d.session.Members()
	plan := func(of, name string) {
		t.Helper()
		if err := members.SetPlan(ctx, of, name, nil); err != nil {
			t.Fatal(err)
		}
	}
	key := database.Keys{Prefix: s.prefix}.Bucket("gpt-4", "rpm", "", "user-1")
	acquire := func(by *process, project string, want string) {
		t.Helper()
		if _, err := by.Acquire(ctx, caller{"1", project}, tokens2{1, 0}); err != nil {
			t.Fatal(err)
		}
		got := client.HMGet(ctx, key, text.TokensField, text.OfField).Val()
		if tokens, _, _ := strings.Cut(got[0].(string), "."); tokens+" "+got[1].(string) != want {
			t.Errorf("%v, want %s", got, want)
		}
	}
	plan("project-2", "free")
	plan("project-1", "free")
	acquire(old, "1", "5 project-1")
	plan("project-1", "pro")
	if err := d.session.Overrides().Fill(ctx, def.spec, 0, "user-1", "project-1"); err != nil {
		t.Fatal(err)
	}
	acquire(old, "1", "599 project-1") // it has cached free
	acquire(d, "1", "598 project-1")
	acquire(d, "2", "5 project-2")
	acquire(d, "1", "4 project-1") // what was cut off stays off
}
