package conformance

import (
	"errors"
	"fmt"
	"slices"
	"strings"
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

// planWorld is one store, two processes that use it, and the model by which their calls are judged.
type planWorld struct {
	T

	store           Store
	changes         int // that are random
	here, elsewhere *program

	buckets possible
	plans   map[string]plan    // of projects; 0 for none
	changed map[string]numbers // by place: user-1, user, pro.user
}

func newPlanWorld(t T, store Store) *planWorld {
	t.Helper()
	w := &planWorld{T: t, store: store, buckets: possible{}, plans: map[string]plan{},
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

// found returns what an entity's bucket may be in a project, as a call finds it: with the limits in force.
func (w *planWorld) found(entity, project string) (all []*ideal) {
	return w.buckets.found(w.key(entity, project), w.numbers(entity, project), calendars(planMonth))
}

// take has the model take cost, in millitokens, for a user, from those buckets that have it.
func (w *planWorld) take(who planned.User, cost []int64) {
	chain, now := planChain(who), w.store.Decided()
	for _, entity := range chain {
		w.buckets.take(w.key(entity, chain[1]), w.found(entity, chain[1]), cost, now)
	}
}

// leave has the model take nothing for a user, of whom a call was refused. Each bucket has the limits in
// force now, or those from before.
func (w *planWorld) leave(who planned.User) {
	chain := planChain(who)
	for _, entity := range chain {
		w.buckets.leave(w.key(entity, chain[1]), w.found(entity, chain[1]))
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
	cost := []int64{rpm * bucket.Milli, tpm * bucket.Milli}
	got, want := outcome(err), w.outcomes(who, cost)
	if !slices.Contains(want, got) {
		w.Fatalf("%s: %s (%v), want %s", what, got, err, strings.Join(want, " or "))
	}
	if got == "admitted" {
		w.take(who, cost)
	} else {
		w.leave(who)
	}
	w.look(p, as, who)
	return lease
}

// outcomes returns what may become of a call of a user.
func (w *planWorld) outcomes(who planned.User, cost []int64) (all []string) {
	chain, now := planChain(who), w.store.Decided()
	admits, denies := true, false
	for _, entity := range chain {
		found, fits := w.found(entity, chain[1]), false
		for _, b := range found {
			no := b.denies(cost, now)
			fits, denies = fits || !no, denies || no
		}
		for i, l := range found[0].limits {
			if cost[i] > l.Burst {
				return []string{"too large"}
			}
		}
		admits = admits && fits
	}
	if admits {
		all = append(all, "admitted")
	}
	if denies {
		all = append(all, "denied")
	}
	return all
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
	chain := planChain(who)
	for i, entity := range chain {
		if b := seen.Buckets[i]; b.Entity != entity {
			w.Fatalf("bucket %d is of %s, want %s", i, b.Entity, entity)
		}
		b := &seen.Buckets[i]
		w.see(entity, chain[1], [2]numbers{{b.Burst.RPM, b.Burst.TPM}, {b.Available.RPM, b.Available.TPM}})
	}
}

// see holds the bursts of an entity's bucket, and what there is, against the model. It leaves out of the
// model what the bucket cannot be any more.
func (w *planWorld) see(entity, project string, seen [2]numbers) {
	w.Helper()
	now := w.store.Decided()
	wrong := w.buckets.see(w.key(entity, project), w.found(entity, project), func(b *ideal) string {
		for j := range b.limits {
			got, want := [2]int64{seen[0][j], seen[1][j]}, [2]int64{b.limits[j].Burst, max(0, b.available(j, now))}
			if want[0], want[1] = want[0]/bucket.Milli, want[1]/bucket.Milli; got != want {
				return fmt.Sprintf("%s has %d of %d %s, want %d of %d",
					entity, got[1], got[0], names[j], want[1], want[0])
			}
		}
		return ""
	})
	if wrong != "" {
		w.Fatalf("%s", wrong)
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
