package conformance

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/internal/test/conformance/planned"
	"github.com/sluice-go/sluice/internal/test/definitions"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/store"
)

// plan is a plan as generated code has it. Programs of different versions know the first ones, or all.
type plan uint8

const (
	free plan = iota + 1
	pro
	trial // restates nothing
	gold  // of the newer program
)

// planNames are the names of plans, from free on.
var planNames = []string{"free", "pro", "trial", "gold"}

// numbers are the rpm and tpm of a kind in whole tokens; 0 inherits. Rpm refills, by next to nothing while a
// test runs. Tpm is that of a month.
type numbers [2]int64

// planNumbers are the numbers of plans by kind, and under "" those of the schema.
var planNumbers = map[string]map[string]numbers{
	"":      {"user": {10, 1000}, "project": {1000, 100}},
	"free":  {"user": {5, 0}, "project": {0, 50}},
	"pro":   {"user": {100, 2000}, "project": {0, 500}},
	"trial": {},
	"gold":  {"user": {300, 4000}, "project": {3000, 5000}},
}

// limit returns n as the i-th limit.
func (n numbers) limit(i int) bucket.Limit {
	switch {
	case n[i] == 0:
		return bucket.Limit{}
	case i == 0:
		return per(n[0], 1, 24*time.Hour)
	}
	return bucket.InWindows(n[1], 30*24*time.Hour)
}

// limits returns n as limits in schema order, Absent for what it inherits.
func (n numbers) limits() []bucket.Limit { return []bucket.Limit{n.limit(0), n.limit(1)} }

// override returns n as the typed override.
func (n numbers) override() (l planned.GPT4Limits) {
	if n[0] > 0 {
		l.RPM = rate(n.limit(0))
	}
	if n[1] > 0 {
		l.TPM = &n[1]
	}
	return l
}

// planning returns the generated gpt-4, as a program has it that knows the first of the plans.
func planning(t T, plans int) *variant {
	t.Helper()
	defs, err := definitions.Of(planned.New)
	if err != nil {
		t.Fatalf("%v", err)
	}
	v := &variant{Resource: defs[0].(codec.Resource), spec: defs[0].Spec()}
	known := *v.spec.Plans
	known.Names, known.Limits = known.Names[:plans], known.Limits[:plans]
	v.spec.Plans = &known
	return v
}

var planMonth = calendar(bucket.Month, time.UTC, 1, 0)

// program is a process with the resource of plans.
type program struct {
	*runtime.Limiter

	gpt4   *runtime.Resource[planned.GPT4Entity, planned.GPT4Cost]
	config *runtime.Config[planned.GPT4Entity, planned.GPT4Cost, planned.GPT4Limits]
	plans  *runtime.Plans[planned.Project, plan]

	session store.Session
	events  atomic.Int64 // requests to the store
	reads   atomic.Int64 // those that read
}

// Open implements store.Store.
func (o opener) Open(env *store.Env, defs ...store.Definition) (store.Session, error) {
	s, err := o.Store.Open(env, defs...)
	o.program.session = s
	return s, err
}

// opener is a store that shows the session of its Limiter.
type opener struct {
	store.Store
	*program
}

// planCacheTTL is the time after which a change is in force everywhere.
const planCacheTTL = time.Minute

// program opens w's store as a process of its own, whose limits.yaml has the plans up to the last one.
func (w *planWorld) program(last plan) *program {
	w.Helper()
	p, def := &program{}, planning(w, int(last))
	b := runtime.NewBuilder(opener{w.store.Store, p}, runtime.WithClock(w.store.Clock),
		runtime.WithLogger(slog.New(slog.DiscardHandler)), runtime.WithCacheTTL(planCacheTTL),
		runtime.WithObserver(&store.Observer{Store: func(_ context.Context, e store.StoreEvent) {
			p.events.Add(1)
			if slices.Contains([]string{"member", "levels", "read"}, e.Path) {
				p.reads.Add(1)
			}
		}}),
		runtime.WithCallDefaults(runtime.Budget(time.Minute), runtime.OnUnavailable(store.Deny)))
	costs := func(c planned.GPT4Cost, dst []int64) []int64 { return append(dst, c.RPM, c.TPM) }
	p.gpt4 = runtime.Bind[planned.GPT4Entity](b, def, costs,
		func(v []int64) planned.GPT4Cost { return planned.GPT4Cost{RPM: v[0], TPM: v[1]} })
	p.config = runtime.BindConfig[planned.GPT4Entity](b, def, costs,
		func(l planned.GPT4Limits, dst []*runtime.Rate) []*runtime.Rate {
			return append(dst, l.RPM, runtime.InWindow(l.TPM))
		}, func(v []*runtime.Rate) planned.GPT4Limits {
			return planned.GPT4Limits{RPM: v[0], TPM: v[1].InWindow()}
		})
	p.plans = runtime.BindPlans[planned.Project, plan](b, planNames[:last]...)
	var err error
	if p.Limiter, err = b.Limiter(); err != nil {
		w.Fatalf("%v", err)
	}
	return p
}

// planWorld is one store, two processes that use it, and the model by which their calls are judged.
type planWorld struct {
	T

	store           Store
	changes         int // that are random
	here, elsewhere *program

	buckets map[string]*ideal
	plans   map[string]plan    // of projects; 0 for none
	changed map[string]numbers // by place: user-1, user, pro.user
}

func newPlanWorld(t T, store Store) *planWorld {
	t.Helper()
	w := &planWorld{T: t, store: store, buckets: map[string]*ideal{}, plans: map[string]plan{},
		changed: map[string]numbers{}}
	w.here, w.elsewhere = w.program(trial), w.program(trial)
	return w
}

// planOf returns the name of a plan, "" for none.
func planOf(p plan) string {
	if p == 0 {
		return ""
	}
	return planNames[p-1]
}

// numbers returns the limits in force for an entity, as stored, of a project: the first source that names a
// limit decides.
func (w *planWorld) numbers(entity, project string) []bucket.Limit {
	kind, _, _ := strings.Cut(entity, "-")
	on := planOf(w.plans[project])
	sources := []numbers{w.changed[entity], w.changed[kind], planNumbers[""][kind]}
	if on != "" {
		sources = slices.Insert(sources, 1, w.changed[on+"."+kind], planNumbers[on][kind])
	}
	all := make([]bucket.Limit, 2)
	for i := range all {
		for _, s := range slices.Backward(sources) {
			if s[i] > 0 {
				all[i] = s.limit(i)
			}
		}
	}
	return all
}

// key is that of the model of an entity's bucket in a project.
func (w *planWorld) key(entity, project string) string {
	if w.store.Rooted {
		return entity + " of " + project
	}
	return entity
}

// bucket returns the model of an entity's bucket in a project, as a call finds it: with the limits in force.
// A call that takes nothing leaves the bucket as it was.
func (w *planWorld) bucket(entity, project string) *ideal {
	now, b := w.numbers(entity, project), w.buckets[w.key(entity, project)]
	if b == nil {
		return newIdeal(now, calendars(planMonth))
	}
	found := *b
	found.tokens, found.ends = slices.Clone(b.tokens), slices.Clone(b.ends)
	found.reshape(now)
	return &found
}

// take has the model take cost, in millitokens, for a user.
func (w *planWorld) take(who planned.User, cost []int64) {
	chain := planChain(who)
	for _, entity := range chain {
		b := w.bucket(entity, chain[1])
		b.take(cost, w.store.Decided())
		w.buckets[w.key(entity, chain[1])] = b
	}
}

// userOf returns a user of a project, which the call gives.
func userOf(id, project string) planned.User {
	return planned.User{ID: id, Project: planned.Project{ID: project}}
}

// planChain returns the stored ids that a call of a user charges.
func planChain(who planned.User) [2]string {
	return [2]string{"user-" + who.ID, "project-" + who.Project.ID}
}

// call has a process take rpm and tpm for a user. It holds the outcome, and what is left, against the model.
func (w *planWorld) call(p *program, who planned.User, rpm, tpm int64) *planned.GPT4Lease {
	w.Helper()
	return w.callAs(p, who, who, rpm, tpm)
}

// callAs is call of an entity that becomes who by look-ups.
func (w *planWorld) callAs(
	p *program, as planned.GPT4Entity, who planned.User, rpm, tpm int64,
) *planned.GPT4Lease {
	w.Helper()
	chain := planChain(who)
	what := fmt.Sprintf("%d rpm and %d tpm of %v of %v", rpm, tpm, chain[0], chain[1])
	lease, err := p.gpt4.Acquire(w.Context(), as, planned.GPT4Cost{RPM: rpm, TPM: tpm})
	want, cost := "admitted", []int64{rpm * bucket.Milli, tpm * bucket.Milli}
	now := w.store.Decided()
	for _, entity := range chain {
		b := w.bucket(entity, chain[1])
		for i, c := range cost {
			switch {
			case c > b.limits[i].Burst:
				want = "too large"
			case c > 0 && c > b.available(i, now) && want == "admitted":
				want = "denied"
			}
		}
	}
	if got := outcome(err); got != want {
		w.Fatalf("%s: %s (%v), want %s", what, got, err, want)
	}
	if want == "admitted" {
		w.take(who, cost)
	}
	w.look(p, as, who)
	return lease
}

// outcome says what became of a call.
func outcome(err error) string {
	_, denied := errors.AsType[*store.DeniedError](err)
	_, large := errors.AsType[*store.CostTooLargeError](err)
	switch {
	case err == nil:
		return "admitted"
	case denied:
		return "denied"
	case large:
		return "too large"
	}
	return "failed"
}

// look holds what a process sees of the buckets of a user against the model.
func (w *planWorld) look(p *program, as planned.GPT4Entity, who planned.User) {
	w.Helper()
	seen, err := p.gpt4.Peek(w.Context(), as)
	if err != nil {
		w.Fatalf("peek: %v", err)
	}
	now, chain := w.store.Decided(), planChain(who)
	for i, entity := range chain {
		model, b := w.bucket(entity, chain[1]), seen.Buckets[i]
		if b.Entity != entity {
			w.Fatalf("bucket %d is of %s, want %s", i, b.Entity, entity)
		}
		for j, got := range [2][2]int64{{b.Burst.RPM, b.Available.RPM}, {b.Burst.TPM, b.Available.TPM}} {
			burst := model.limits[j].Burst / bucket.Milli
			left := max(0, model.available(j, now)) / bucket.Milli
			if got != [2]int64{burst, left} {
				w.Fatalf("%s has %d of %d %s, want %d of %d", entity, got[1], got[0], names[j], left, burst)
			}
		}
	}
}

// later lets pass what a change takes until it is in force everywhere.
func (w *planWorld) later() { w.store.Advance(planCacheTTL) }

// put puts a project on a plan, as a process does.
func (w *planWorld) put(p *program, project string, on plan) {
	w.Helper()
	if err := p.plans.Set(w.Context(), planned.Project{ID: project}, on); err != nil {
		w.Fatalf("set plan: %v", err)
	}
	w.plans["project-"+project] = on
}

// change has a process change what is stored at a place; no numbers end that.
func (w *planWorld) change(p *program, at string, to numbers) {
	w.Helper()
	ctx := w.Context()
	var o *runtime.Override[planned.GPT4Limits]
	on, kind, ofPlan := store.SplitPlanAt(at)
	kinds := map[string]planned.GPT4Entity{"user": planned.User{}, "project": planned.Project{}}
	switch {
	case ofPlan:
		o = runtime.PlanOverride(p.config, on, kinds[kind])
	case kinds[at] != nil:
		o = p.config.Kind(kinds[at])
	default:
		entity, err := planned.ParseEntity(at)
		if err != nil {
			w.Fatalf("%v", err)
		}
		o = p.config.Entity(entity.(planned.GPT4Entity))
	}
	_, rev, err := o.Get(ctx)
	if err == nil {
		_, err = o.Set(ctx, to.override(), rev)
	}
	if err != nil {
		w.Fatalf("change %s: %v", at, err)
	}
	w.changed[at] = to
}
