package conformance

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sluice-go/sluice/internal/test/conformance/planned"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/store"
)

// planSettled: a lease from before a move gives back to what was charged, up to the present burst.
func planSettled(w *planWorld) {
	for i, move := range [][2]plan{{pro, free}, {free, pro}, {0, pro}, {pro, 0}} {
		who := userOf(fmt.Sprint(i), "a")
		w.put(w.here, "a", move[0])
		lease := w.call(w.here, who, 1, 10)
		if lease == nil {
			w.Fatalf("denied on %q", planOf(move[0]))
		}
		w.put(w.here, "a", move[1])
		if err := lease.Settle(w.Context(), planned.GPT4Cost{RPM: 1, TPM: 4}); err != nil {
			w.Fatalf("settle: %v", err)
		}
		w.take(who, []int64{0, -6000})
		w.call(w.here, who, 1, 1)
	}
}

// planMore: More takes by the plan of the lease's buckets, and leaves them on it.
func planMore(w *planWorld) {
	who := userOf("1", "a")
	w.put(w.here, "a", pro)
	lease := w.call(w.here, who, 1, 10)
	for range 2 {
		if err := lease.More(w.Context(), planned.GPT4Cost{RPM: 40, TPM: 150}); err != nil {
			w.Fatalf("more: %v", err)
		}
		w.take(who, []int64{40_000, 150_000})
		w.look(w.here, who, who)
	}
	w.call(w.here, who, 10, 100)
}

// planReset: a reset fills a bucket by the numbers of its plan.
func planReset(w *planWorld) {
	who := userOf("1", "a")
	w.put(w.here, "a", pro)
	w.call(w.here, who, 90, 400)
	w.store.Advance(2 * time.Second) // another process may deny by what it saw before
	for _, entity := range []planned.GPT4Entity{who, who.Project} {
		if err := w.here.config.Reset(w.Context(), entity); err != nil {
			w.Fatalf("reset: %v", err)
		}
	}
	now := w.store.Decided()
	for _, entity := range planChain(who) {
		b := w.found(entity, "project-a")[0]
		full := newIdeal(b.limits, b.windows)
		full.at, full.ends[1] = now, b.ends[1]+1
		w.buckets[w.key(entity, "project-a")] = []*ideal{full}
	}
	w.call(w.here, who, 100, 500)
	w.call(w.here, who, 1, 1)
}

// planConflicts: who has seen another plan moves nothing, and of two who edit plans of a resource one does.
func planConflicts(w *planWorld) {
	ctx, members := w.Context(), w.here.session.Members()
	name := func(p plan) *string { return new(planOf(p)) }
	if err := members.SetPlan(ctx, "project-a", "pro", name(0)); err != nil {
		w.Fatalf("from no plan: %v", err)
	}
	w.plans["project-a"] = pro
	for _, from := range []plan{0, free} {
		err := members.SetPlan(ctx, "project-a", "trial", name(from))
		conflict, ok := errors.AsType[*store.ConflictError](err)
		if !ok || conflict.At != "plan of project-a" {
			w.Errorf("from %q: %v, want a ConflictError", planOf(from), err)
		}
	}
	w.call(w.here, userOf("1", "a"), 1, 1)
	if err := members.SetPlan(ctx, "project-a", "free", name(pro)); err != nil {
		w.Errorf("from pro: %v", err)
	}
	w.plans["project-a"] = free
	w.call(w.here, userOf("1", "a"), 1, 1)

	edit := func(on string, kind planned.GPT4Entity) *runtime.Override[planned.GPT4Limits] {
		return runtime.PlanOverride(w.here.config, on, kind)
	}
	rev, err := edit("pro", planned.User{}).Set(ctx, numbers{60, 0}.override(), "")
	if err != nil {
		w.Fatalf("%v", err)
	}
	if _, err = edit("free", planned.User{}).Set(ctx, numbers{6, 0}.override(), rev); err != nil {
		w.Errorf("by the revision of all plans: %v", err)
	}
	_, err = edit("pro", planned.User{}).Set(ctx, numbers{70, 0}.override(), rev)
	conflict, ok := errors.AsType[*store.ConflictError](err)
	if !ok || conflict.At != "pro.user" {
		w.Errorf("after an edit of another plan: %v, want a ConflictError", err)
	}
	_, now, err := edit("free", planned.Project{}).Get(ctx)
	if err != nil || now <= rev {
		w.Errorf("revision %q after %q, %v", now, rev, err)
	}
	w.changed["pro.user"], w.changed["free.user"] = numbers{60, 0}, numbers{6, 0}
	w.call(w.here, userOf("1", "a"), 1, 1)
}

// planKept: what else is stored of a project leaves its plan, and the plan leaves that.
func planKept(w *planWorld) {
	ctx, project := w.Context(), planned.Project{ID: "a"}
	since := time.Date(2027, 1, 5, 9, 0, 0, 0, time.UTC)
	w.put(w.here, "a", pro)
	for i, change := range []func() error{
		func() error { return w.here.Entities().Put(ctx, project) },
		func() error { return w.here.Entities().SetCalendar(ctx, project, since) },
		func() error { return w.here.Entities().Delete(ctx, project) },
	} {
		if err := change(); err != nil {
			w.Fatalf("change %d: %v", i, err)
		}
		got, err := w.here.plans.Of(ctx, project)
		if err != nil || got != pro {
			w.Errorf("change %d leaves plan %q, %v", i, planOf(got), err)
		}
		w.call(w.here, userOf("1", "a"), 1, 1)
	}
	w.put(w.here, "a", free)
	m, _, err := w.here.session.Members().Get(ctx, "project-a")
	if err != nil || !m.Since.Equal(since) || m.Plan != "free" || m.PlanVersion == 0 {
		w.Errorf("%+v, %v, want the calendar beside plan free", m, err)
	}
}

// planErased: an erased project is on no plan, and may be put on one again.
func planErased(w *planWorld) {
	who := userOf("1", "a")
	w.put(w.here, "a", pro)
	w.call(w.here, who, 1, 1)
	if _, err := w.here.Entities().Erase(w.Context(), who.Project); err != nil {
		w.Fatalf("erase: %v", err)
	}
	w.plans["project-a"] = 0
	w.later() // its bucket may be in a process's memory
	delete(w.buckets, w.key("project-a", "project-a"))
	w.call(w.here, who, 1, 1)
	w.call(w.elsewhere, who, 1, 1)
	w.store.Advance(time.Second)
	w.put(w.here, "a", free)
	w.call(w.here, who, 1, 1)
	w.later()
	w.call(w.elsewhere, who, 1, 1)
}

// planUnknown: a program that does not know the plan that a project is on takes nothing from buckets, which
// keep their numbers if the store has any there. Otherwise, and for a new bucket, each limit is the most that
// any plan gives. The newer program's numbers are those of the plan all the while.
func planUnknown(w *planWorld) {
	newer, older := w.program(gold), w.here
	who, fresh := userOf("1", "a"), userOf("2", "a")
	w.put(newer, "a", pro)
	w.call(newer, who, 1, 1)
	w.put(newer, "a", gold)
	w.call(newer, who, 1, 1)
	for range 3 {
		for _, one := range []planned.User{who, fresh} {
			if _, err := older.gpt4.Acquire(w.Context(), one, planned.GPT4Cost{RPM: 1, TPM: 2}); err != nil {
				w.Fatalf("by the older program: %v", err)
			}
			w.assumed(older, one, one == fresh)
			if key := w.key("user-"+one.ID, "project-a"); w.buckets[key] == nil { // the older one makes its bucket
				made := newIdeal(numbers{100, 2000}.limits(), calendars(planMonth))
				made.at = w.store.Decided()
				w.buckets[key] = []*ideal{made}
			}
			w.take(one, []int64{1000, 2000})
		}
		w.later()
		w.call(newer, who, 1, 1)
	}
	if _, err := older.plans.Of(w.Context(), who.Project); err == nil {
		w.Errorf("the older program says that it knows the plan")
	}
	w.call(newer, fresh, 1, 1)
	w.put(newer, "a", pro)
	w.later()
	w.call(older, who, 1, 1)
}

// assumed holds the bursts by which a program goes that does not know the plan of a user's project. If isNew,
// that program has made the user's bucket.
func (w *planWorld) assumed(p *program, who planned.User, isNew bool) {
	w.Helper()
	seen, err := p.gpt4.Peek(w.Context(), who)
	if err != nil {
		w.Fatalf("peek: %v", err)
	}
	for i, b := range seen.Buckets {
		want := []numbers{{100, 2000}, {1000, 500}}[i]
		if w.store.KeepsNumbers && !(i == 0 && isNew) {
			want = planNumbers["gold"][[]string{"user", "project"}[i]]
		}
		if got := (numbers{b.Burst.RPM, b.Burst.TPM}); got != want {
			w.Fatalf("%s has the bursts %d by the older program, want %d", b.Entity, got, want)
		}
	}
}

// planUnread: calls within the time of a cache read nothing, whichever plan they have.
func planUnread(w *planWorld) {
	w.put(w.here, "a", pro)
	w.change(w.here, "pro.user", numbers{90, 0})
	for _, user := range []string{"1", "2"} {
		w.call(w.here, userOf(user, "a"), 1, 1)
	}
	w.here.events.Store(0)
	w.here.reads.Store(0)
	const calls = 30
	for i := range calls {
		who := userOf([]string{"1", "2"}[i%2], "a")
		if _, err := w.here.gpt4.Acquire(w.Context(), who, planned.GPT4Cost{RPM: 1, TPM: 1}); err != nil {
			w.Fatalf("%v", err)
		}
	}
	if events, reads := w.here.events.Load(), w.here.reads.Load(); events != calls || reads != 0 {
		w.Errorf("%d requests for %d calls, of which %d read", events, calls, reads)
	}
}

// planRandom: after random changes by one process, both have the model's numbers. Entities are new ones after
// some changes, since tokens come back too slowly.
func planRandom(w *planWorld) {
	random := rand.New(rand.NewPCG(27, 27))
	for i := range w.changes {
		by, other := w.here, w.elsewhere
		if random.IntN(2) == 0 {
			by, other = other, by
		}
		era := fmt.Sprint(i / 20)
		project := func() string { return []string{"a", "b", "c"}[random.IntN(3)] + era }
		user := func() string { return fmt.Sprint(random.IntN(4)) + "." + era }
		places := []string{"user", "project", "user-" + user(), "project-" + project(),
			"free.user", "free.project", "pro.user", "pro.project", "trial.user", "trial.project"}
		switch at := places[random.IntN(len(places))]; random.IntN(4) {
		case 0, 1:
			w.put(by, project(), plan(random.IntN(int(gold))))
		case 2:
			w.change(by, at, numbers{random.Int64N(200), random.Int64N(2000)})
		default:
			w.change(by, at, numbers{})
		}
		who := userOf(user(), project())
		w.call(by, who, 1+random.Int64N(3), random.Int64N(30))
		w.later()
		w.call(other, who, 1+random.Int64N(3), random.Int64N(30))
	}
}
