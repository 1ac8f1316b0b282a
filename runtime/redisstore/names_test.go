package redisstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/database"
	"github.com/sluice-go/sluice/runtime/store"
)

// model is a template. Users have 60 rpm by name, and 600 tpm for all names together. Projects have 6000 tpm
// for all names, and are put on plans.
func model() *definition {
	of := func(rpm, tpm int64) []bucket.Limit {
		all := make([]bucket.Limit, 2)
		for i, n := range []int64{rpm, tpm} {
			if n > 0 {
				all[i] = bucket.Per(n, 366*24*time.Hour)
			}
		}
		return all
	}
	def := gpt4()
	def.spec.Resource = "model"
	user, project := def.spec.Kinds[0], def.spec.Kinds[1]
	allOfUser, allOfProject := user, project
	user.Limits, project.Limits = of(60, 0), nil
	allOfUser.Limits, allOfProject.Limits = of(0, 600), of(0, 6000)
	allOfUser.AllNames, allOfProject.AllNames = true, true
	def.spec.Kinds = []store.Kind{user, project, allOfUser, allOfProject}
	def.spec.Plans = &store.Plans{Kind: 1, Names: []string{"free", "pro"}, Limits: [][][]bucket.Limit{
		{of(6, 0), nil, nil, of(0, 1000)}, {of(100, 0), nil, of(0, 700), nil},
	}}
	return def
}

// named returns a name of def.
func named(def *definition, name string) *store.Named {
	return store.NewNamed(def, &store.Entry{Name: name})
}

// onName is a resource of a name.
type onName struct {
	*runtime.Resource[caller, tokens2]
}

// gateway is a process with one template.
type gateway struct {
	*process
	names *runtime.Names[onName]
}

func (s *server) gateway(t testing.TB, def *definition, opts ...runtime.Option) *gateway {
	t.Helper()
	d := &gateway{process: &process{events: &events{}, store: New(s.client(t), Prefix(s.prefix))}}
	b := runtime.NewBuilder(opened{d.store, d.process}, append([]runtime.Option{
		runtime.WithObserver(d.observer()), runtime.WithLogger(slog.New(slog.DiscardHandler)),
		runtime.WithCallDefaults(runtime.Budget(10*time.Second), runtime.OnUnavailable(store.Deny)),
	}, opts...)...)
	d.names = runtime.BindNames[caller](b, def,
		func(c tokens2, dst []int64) []int64 { return append(dst, c[:]...) },
		func(v []int64) (c tokens2) { copy(c[:], v); return c },
		func(r *runtime.Resource[caller, tokens2], _ []int64) onName { return onName{r} })
	var err error
	if d.Limiter, err = b.Limiter(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return d
}

// named returns the resource of a name.
func (d *gateway) named(t testing.TB, name string) *onName {
	t.Helper()
	r, err := d.names.Named(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// catalog stores names without numbers of their own, as an operator does.
func (s *server) catalog(t testing.TB, def *definition, names ...string) {
	t.Helper()
	all := New(s.client(t), Prefix(s.prefix)).Catalog()
	for _, name := range names {
		if _, err := all.Set(t.Context(), def.spec, store.Entry{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
}

// buckets compares what Peek finds for a caller: by bucket, the burst of the limit that it has, and what is
// left of it.
func (r *onName) buckets(t testing.TB, of caller, want string) {
	t.Helper()
	snap, err := r.Peek(t.Context(), of)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, b := range snap.Buckets {
		for i, burst := range b.Burst {
			if burst > 0 {
				got = append(got, fmt.Sprintf("%s %d of %d", b.Entity, b.Available[i], burst))
			}
		}
	}
	if s := fmt.Sprint(got); s != want {
		t.Errorf("buckets %s, want %s", s, want)
	}
}

// TestNames: each name has its own bucket of rpm, and all names share those of tpm. A denial has the name,
// also if a bucket of all names denies.
func TestNames(t *testing.T) {
	s, def := newServer(t), model()
	odd := "a:{b}*/[c]" // a name is data
	s.catalog(t, def, "gpt-5", odd)
	d := s.gateway(t, def)
	gpt5, other := d.named(t, "gpt-5"), d.named(t, odd)
	take := func(r *onName, rpm, tpm int64) *runtime.Lease[tokens2] {
		t.Helper()
		lease, err := r.Acquire(t.Context(), below, tokens2{rpm, tpm})
		if err != nil {
			t.Fatal(err)
		}
		return lease
	}
	take(gpt5, 10, 100)
	lease := take(other, 20, 200)
	gpt5.buckets(t, below, "[user-1 50 of 60 user-1 300 of 600 project-1 5700 of 6000]")
	other.buckets(t, below, "[user-1 40 of 60 user-1 300 of 600 project-1 5700 of 6000]")
	if err := lease.Settle(t.Context(), tokens2{5, 150}); err != nil {
		t.Fatal(err)
	}
	gpt5.buckets(t, below, "[user-1 50 of 60 user-1 350 of 600 project-1 5750 of 6000]")
	other.buckets(t, below, "[user-1 55 of 60 user-1 350 of 600 project-1 5750 of 6000]")

	_, err := gpt5.Acquire(t.Context(), below, tokens2{51, 400})
	denied := denial(t, err)
	for i, limit := range []string{"rpm", "tpm"} {
		r := denied.Refusals[i]
		if r.Resource != "model/gpt-5" || r.Template != "model" || r.Entity != "user-1" || r.Limit != limit {
			t.Errorf("%+v refuses, want %s of model/gpt-5", r, limit)
		}
	}
	_, err = gpt5.Acquire(t.Context(), below, tokens2{1, 601})
	if tooLarge, ok := errors.AsType[*store.CostTooLargeError](err); !ok || tooLarge.Resource != "model/gpt-5" {
		t.Errorf("more than all names have: %v", err)
	}
	k := database.Keys{Prefix: s.prefix}
	for _, key := range []string{
		k.Bucket("model/gpt-5", "rpm", "", "user-1"), k.Bucket("model/"+odd, "rpm", "", "user-1"),
		k.Bucket("model", "tpm", "", "user-1"), k.Bucket("model", "tpm", "", "project-1"),
	} {
		if n := s.client(t).Exists(t.Context(), key).Val(); n != 1 {
			t.Errorf("there is no %s", key)
		}
	}
	if erased, err := d.session.Members().Erase(t.Context(), "user-1", store.Erasing{}); err != nil ||
		erased != (store.Erased{Buckets: 3}) {
		t.Errorf("erased %+v, %v, want 3 buckets", erased, err)
	}
}

// TestKeptBuckets: a name whose entry says so has the buckets of the resource from before the template, and
// the overrides of its entities.
func TestKeptBuckets(t *testing.T) {
	s, old, def := newServer(t), slow(), model()
	before := s.process(t, s.client(t), old)
	if _, err := before.Acquire(t.Context(), caller{user: "1"}, tokens2{10, 0}); err != nil {
		t.Fatal(err)
	}
	if _, err := before.session.Overrides().Set(t.Context(), old.spec,
		store.Stored{At: "user-1", Limits: rpm(70)}); err != nil {
		t.Fatal(err)
	}
	if _, err := before.store.Catalog().Set(t.Context(), def.spec,
		store.Entry{Name: "gpt-4-turbo", Buckets: "gpt-4"}); err != nil {
		t.Fatal(err)
	}
	s.gateway(t, def).named(t, "gpt-4-turbo").buckets(t, below,
		"[user-1 50 of 70 user-1 600 of 600 project-1 6000 of 6000]")
}

// TestPrecedenceOfNames: the first that has a limit by name decides it: entity and name, entity for all
// names, the entry at the plan, the entry. Then it is as for any limit. A limit of all names has no
// entry, and no override of one name. A process goes by its own changes at once, another one once its cache
// has expired.
func TestPrecedenceOfNames(t *testing.T) {
	s, clock, def := newServer(t), &handClock{}, model()
	s.catalog(t, def, "gpt-5", "gpt-4")
	d, other := s.gateway(t, def), s.gateway(t, def, runtime.WithClock(clock))
	ctx, overrides, catalog := t.Context(), d.session.Overrides(), d.session.Catalog()
	mine, gpt4, of := d.named(t, "gpt-5"), d.named(t, "gpt-4"), named(def, "gpt-5").Spec()
	entry, _, err := catalog.Get(ctx, def.spec, "gpt-5")
	if err != nil {
		t.Fatal(err)
	}
	revisions := map[string]store.Revision{}
	set := func(spec *store.Spec, at string, limits ...*bucket.Limit) func() {
		return func() {
			t.Helper()
			place := spec.Resource + at
			if _, _, ofPlan := store.SplitPlanAt(at); ofPlan {
				place = "plans"
			}
			var err error
			revisions[place], err = overrides.Set(ctx, spec,
				store.Stored{At: at, Limits: limits, Revision: revisions[place]})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	numbers := func(all ...store.Stored) func() {
		return func() {
			t.Helper()
			entry.Numbers = all
			if entry.Revision, err = catalog.Set(ctx, def.spec, entry); err != nil {
				t.Fatal(err)
			}
		}
	}
	step := func(change func(), user, all, project int64) {
		t.Helper()
		change()
		const form = "[user-1 %d of %[1]d user-1 %[2]d of %[2]d project-1 %[3]d of %[3]d]"
		want := fmt.Sprintf(form, user, all, project)
		mine.buckets(t, below, want)
		clock.pass(time.Minute)
		other.named(t, "gpt-5").buckets(t, below, want)
	}
	plan := func(name string) func() {
		return func() {
			t.Helper()
			if err := d.session.Members().SetPlan(ctx, "project-1", name, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	both := func(tokens int64) []*bucket.Limit { return []*bucket.Limit{rpm(tokens)[0], rpm(tokens + 1)[0]} }
	none := []*bucket.Limit{nil, nil}
	step(func() {}, 60, 600, 6000)
	step(set(def.spec, "user", both(10)...), 10, 11, 6000)
	step(plan("free"), 6, 11, 1000)
	step(plan("pro"), 100, 700, 6000)
	step(set(def.spec, "pro.user", both(20)...), 20, 21, 6000)
	step(numbers(store.Stored{At: "user", Limits: rpm(30)}), 30, 21, 6000)
	step(plan("free"), 30, 11, 1000)
	step(plan("pro"), 30, 21, 6000)
	step(numbers(store.Stored{At: "user", Limits: rpm(30)}, store.Stored{At: "pro.user", Limits: rpm(40)}),
		40, 21, 6000)
	step(plan("free"), 30, 11, 1000)
	step(plan("pro"), 40, 21, 6000)
	step(set(def.spec, "user-1", both(50)...), 50, 51, 6000)
	step(set(of, "user-1", rpm(55)...), 55, 51, 6000)
	gpt4.buckets(t, below, "[user-1 50 of 50 user-1 51 of 51 project-1 6000 of 6000]")
	step(set(def.spec, "project-1", nil, rpm(9)[0]), 55, 51, 9)
	step(set(of, "user-1", none...), 50, 51, 9)
	step(set(def.spec, "user-1", none...), 40, 21, 9)
	step(numbers(), 20, 21, 9)
	step(set(def.spec, "pro.user", none...), 100, 700, 9)
	step(plan(""), 10, 11, 9)
}

// TestLatestEntry: of two handles of a name, that with the later entry decides, and the latest one that the
// session has written.
func TestLatestEntry(t *testing.T) {
	s, def := newServer(t), model()
	d := s.gateway(t, def)
	of := func(version, tokens int64) *store.Named {
		e := store.Entry{Name: "gpt-5", Version: version}
		if tokens > 0 {
			e.Numbers = []store.Stored{{At: "user", Limits: rpm(tokens)}}
		}
		return store.NewNamed(def, &e)
	}
	peek := func(by *store.Named, want int64) {
		t.Helper()
		part := store.Part{Def: by, Buckets: []store.Bucket{{Entity: "user-1"}, {Entity: "user-1", Kind: 2}}}
		if err := d.session.Peek(t.Context(), &store.Call{Parts: []store.Part{part}}); err != nil {
			t.Fatal(err)
		}
		if got := part.Buckets[0].Limits[0].Burst; got != want*bucket.Milli {
			t.Errorf("burst %d, want %d tokens", got, want)
		}
	}
	old, later := of(5, 0), of(7, 9)
	peek(old, 60)
	peek(later, 9)
	peek(old, 9)
	peek(of(6, 8), 9)
	e := store.Entry{Name: "gpt-5", Numbers: []store.Stored{{At: "user", Limits: rpm(11)}}}
	if _, err := d.session.Catalog().Set(t.Context(), def.spec, e); err != nil {
		t.Fatal(err)
	}
	peek(old, 11)
	peek(later, 11)
}

// TestNamesWithoutRedis: what was read last of a name serves while the overrides cannot be read.
func TestNamesWithoutRedis(t *testing.T) {
	s, clock, def := simulated(t), &handClock{}, model()
	s.catalog(t, def, "gpt-5")
	d := s.gateway(t, def, runtime.WithClock(clock))
	gpt5, of := d.named(t, "gpt-5"), named(def, "gpt-5").Spec()
	for spec, limits := range map[*store.Spec][]*bucket.Limit{of: {rpm(7)[0], nil}, def.spec: {nil, rpm(8)[0]}} {
		s := store.Stored{At: "user-1", Limits: limits}
		if _, err := d.store.Overrides().Set(t.Context(), spec, s); err != nil {
			t.Fatal(err)
		}
	}
	const want = "[user-1 7 of 7 user-1 8 of 8 project-1 6000 of 6000]"
	gpt5.buckets(t, below, want)
	clock.pass(2 * time.Minute)
	d.taken()
	s.mini.SetError("LOADING it is back in a moment")
	_, err := gpt5.Acquire(t.Context(), below, tokens2{1, 1})
	if _, down := errors.AsType[*store.UnavailableError](err); !down {
		t.Errorf("%v, want the charge to fail", err)
	}
	if got := d.taken(); !slices.Contains(got, "levels failed") {
		t.Errorf("calls %q, want a failed read of overrides", got)
	}
	s.mini.SetError("")
	part := store.Part{Def: named(def, "gpt-5"), Buckets: []store.Bucket{{Entity: "user-1"}}}
	d.session.Lookup(&store.Call{Parts: []store.Part{part}})
	if got := part.Buckets[0].Limits; got == nil || got[0].Burst != 7*bucket.Milli {
		t.Errorf("limits %v are remembered", got)
	}
	gpt5.buckets(t, below, want)
}

// TestFillOfNames: a fill goes by all that decides the limit, and fills the bucket of one name, or of all.
func TestFillOfNames(t *testing.T) {
	s, def := newServer(t), model()
	s.catalog(t, def, "gpt-5", "gpt-4")
	d := s.gateway(t, def)
	ctx, gpt5 := t.Context(), d.named(t, "gpt-5")
	if _, err := gpt5.Acquire(ctx, below, tokens2{40, 500}); err != nil {
		t.Fatal(err)
	}
	entry, _, err := d.store.Catalog().Get(ctx, def.spec, "gpt-5")
	if err != nil {
		t.Fatal(err)
	}
	entry.Numbers = []store.Stored{{At: "user", Limits: rpm(80)}}
	if _, err := d.store.Catalog().Set(ctx, def.spec, entry); err != nil { // as another process does
		t.Fatal(err)
	}
	fill := func(name string, kind int) {
		t.Helper()
		spec := named(def, name).Spec()
		if err := d.session.Overrides().Fill(ctx, spec, kind, "user-1", "project-1"); err != nil {
			t.Fatal(err)
		}
	}
	fill("gpt-4", 0)
	gpt5.buckets(t, below, "[user-1 20 of 60 user-1 100 of 600 project-1 5500 of 6000]")
	fill("gpt-5", 0)
	gpt5.buckets(t, below, "[user-1 60 of 60 user-1 100 of 600 project-1 5500 of 6000]")
	b, err := d.store.Inspect(ctx, "model/gpt-5", "project-1", "user-1", "rpm")
	if err != nil || b == nil || b.Limits[0].Tokens != 80*bucket.Milli {
		t.Errorf("%+v, %v, want the 80 tokens of the entry", b, err)
	}
	fill("gpt-5", 2)
	gpt5.buckets(t, below, "[user-1 60 of 60 user-1 600 of 600 project-1 5500 of 6000]")
}
