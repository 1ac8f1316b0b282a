package conformance

import (
	"slices"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// cascade: a call takes from the user and the project, or from none.
func cascade(w *world) {
	w.admitted(alice, 4, 50)
	w.admitted(project, 2, 100)
	w.left(w.admitted(bob, 8, 20), 1, 130) // of the project
	denied := w.denied(alice, 2, 50)       // the parent refuses
	if denied.Entity != "project-p" || len(denied.Refusals) != 1 {
		w.Errorf("%v", &denied)
	}
	w.peek(alice)
	denied = w.denied(bob, 1, 131) // the child refuses
	if denied.Entity != "user-bob" || len(denied.Refusals) != 1 {
		w.Errorf("%v", &denied)
	}
	w.peek(bob)
	w.admitted(project, 1, 100)
	w.denied(project, 1, 1)
	w.denied(alice, 1, 0)
}

// noCascade: a call takes from the entity alone.
func noCascade(w *world) {
	w.left(w.admitted(alice, 10, 150), 0, 0)
	w.nothing(project)
	w.admitted(bob, 10, 150)
	w.denied(alice, 1, 1)
	w.release(w.admitted(project, 15, 400))
}

// twoProjects: whatever the project, the user is the same, and so is the bucket, unless the store says
// otherwise.
func twoProjects(w *world) {
	w.admitted(alice, 10, 150)
	_, err := w.GPT4.Acquire(w.Context(), limits.User{ID: alice.ID, Project: limits.Project{ID: "other"}},
		cost(10, 150))
	if w.store.Rooted {
		if err != nil {
			w.Errorf("under another project: %v", err)
		}
		return
	}
	if denied := as[*store.DeniedError](w, "under another project", err); denied.Entity != "user-alice" {
		w.Errorf("%v", denied)
	}
}

// lookups: who a user belongs to comes from the store, where the caller leaves it to that.
func lookups(w *world) {
	ctx, byID := w.Context(), limits.UserByID("alice")
	_, err := w.GPT4.Acquire(ctx, byID, cost(1, 1))
	failed[*store.InvalidError](w, "an unknown user", err)
	entities := w.Entities()
	if _, found, err := entities.Get(ctx, byID); found || err != nil {
		w.Errorf("an unknown user: found %t, %v", found, err)
	}
	if err := entities.Put(ctx, alice); err != nil {
		w.Fatalf("%v", err)
	}
	if err := entities.Put(ctx, limits.User{ID: "bob", Project: limits.Project{ID: "p"}},
		runtime.NoCascade()); err != nil {
		w.Fatalf("%v", err)
	}
	for id, want := range map[string]store.Member{
		"alice": {Entity: "user-alice", Parent: "project-p", Cascade: true},
		"bob":   {Entity: "user-bob", Parent: "project-p"},
	} {
		if got, found, err := entities.Get(ctx, limits.UserByID(id)); got != want || !found || err != nil {
			w.Errorf("got %+v, %t, %v\nwant %+v", got, found, err, want)
		}
	}
	w.Limiter = w.process() // which has not asked yet
	w.parents["alice"], w.parents["bob"] = "p", ""
	w.left(w.admitted(byID, 4, 100), 6, 50)
	w.admitted(alice, 1, 1) // the same bucket
	w.denied(limits.UserByID("alice"), 6, 1)
	w.admitted(project, 9, 1)
	w.denied(byID, 2, 1) // by the project
	if got := children(w); !slices.Equal(got, []string{"user-alice", "user-bob"}) {
		w.Errorf("children: %q", got)
	}
	if err := entities.Delete(ctx, byID); err != nil {
		w.Fatalf("%v", err)
	}
	if got := children(w); !slices.Equal(got, []string{"user-bob"}) {
		w.Errorf("children: %q", got)
	}
	_, err = w.process().GPT4.Acquire(ctx, byID, cost(1, 1))
	failed[*store.InvalidError](w, "a deleted user", err)
}

// children returns who belongs to the project.
func children(w *world) (all []string) {
	w.Helper()
	for child, err := range w.Entities().Children(w.Context(), project) {
		if err != nil {
			w.Fatalf("children: %v", err)
		}
		all = append(all, child)
	}
	return all
}

// all acquires claims of gpt-4 for each of who at c, and one of embeddings for the project, all or none, and
// has that judged.
func (w *world) all(c limits.GPT4Cost, rps int64, who ...limits.GPT4Entity) error {
	w.Helper()
	var claims []runtime.AnyClaim
	var portions []portion
	gpt4, embeddings := w.GPT4, w.Embeddings
	if w.shadow {
		gpt4, embeddings = gpt4.With(runtime.Shadow(true)), embeddings.With(runtime.Shadow(true))
	}
	var own []*runtime.Claim[limits.GPT4Cost]
	for _, one := range who {
		claim := gpt4.Claim(one, c)
		own = append(own, claim)
		claims = append(claims, claim)
		for _, s := range w.portions(one, c) {
			if i := slices.IndexFunc(portions, func(has portion) bool { return has.ideal == s.ideal }); i >= 0 {
				for j := range s.cost {
					portions[i].cost[j] += s.cost[j]
				}
				continue
			}
			portions = append(portions, s)
		}
	}
	if rps > 0 {
		key := [2]string{limits.Embeddings, "project-p"}
		if w.buckets[key] == nil {
			w.buckets[key] = newIdeal([]bucket.Limit{{Capacity: 20_000, Burst: 20_000, Refill: 20_000, Period: 1000}},
				nil)
		}
		claims = append(claims, embeddings.Claim(project, limits.EmbeddingsCost{RPS: rps}))
		portions = append(portions, portion{w.buckets[key], limits.Embeddings, "project-p", []string{"rps"},
			[]int64{rps * bucket.Milli}, nil})
	}
	w.spy.seen()
	err := w.AcquireAll(w.Context(), claims...)
	switch {
	case err == nil:
		err = own[0].Lease().Shadowed()
	case w.shadow:
		w.Fatalf("refused in shadow: %v", err)
	}
	w.judged("acquire all", portions, err, len(claims) == 1 && w.schema.cascade == store.CascadeCompensated)
	if err == nil && w.schema.holds != nothingHeld {
		h := w.newHeld(w.Limiter, own[0].Lease(), portions)
		for _, claim := range own[1:] {
			h.others = append(h.others, claim.Lease())
		}
	}
	return err
}

// several: claims of several resources are admitted together or not at all.
func several(w *world) {
	if err := w.all(cost(4, 100), 15, alice); err != nil {
		w.Fatalf("%v", err)
	}
	failed[*store.DeniedError](w, "too much for the user", w.all(cost(1, 51), 1, alice))
	failed[*store.CostTooLargeError](w, "too much for rps", w.all(cost(1, 1), 21, alice))
	w.peek(alice)
	if err := w.all(cost(6, 50), 5, alice); err != nil {
		w.Fatalf("%v", err)
	}
	denied := as[*store.DeniedError](w, "nothing is left", w.all(cost(6, 150), 20, alice))
	resources := map[string]bool{}
	for _, r := range denied.Refusals {
		resources[r.Resource] = true
	}
	if len(resources) != 2 {
		w.Errorf("refused by %v", denied.Refusals)
	}
}

// meeting: claims that meet in a bucket are added up.
func meeting(w *world) {
	if err := w.all(cost(3, 100), 0, alice, bob, project); err != nil {
		w.Fatalf("%v", err)
	}
	denied := as[*store.DeniedError](w, "the project", w.all(cost(3, 10), 0, alice, bob, project))
	if denied.Entity != "project-p" || denied.Requested != 9 || denied.Available != 6 {
		w.Errorf("%v", denied)
	}
	w.peek(bob)
	failed[*store.CostTooLargeError](w, "never", w.all(cost(6, 10), 0, alice, bob, project))
	if err := w.all(cost(3, 10), 0, alice, bob); err != nil {
		w.Fatalf("%v", err)
	}
}
