package conformance

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-go/sluice/internal/test/conformance/planned"
	"github.com/sluice-go/sluice/internal/test/longform"
)

// planBehaviour is a behaviour of resources with plans.
type planBehaviour struct {
	name string
	run  func(*planWorld)
}

// planBehaviours are all of them.
var planBehaviours = []planBehaviour{
	{"numbers of a plan", planFollowed},
	{"a plan raised", planRaised},
	{"a plan noticed", planNoticed},
	{"a plan lowered", planLowered},
	{"numbers changed", planChanged},
	{"an edited plan and one that is not", planEdited},
	{"precedence", planPrecedence},
	{"another project", planMoved},
	{"another project, stored", planMovedStored},
	{"up and down", planUpAndDown},
	{"callers at once", planCrowd},
	{"a settle after a move", planSettled},
	{"more on a plan", planMore},
	{"reset", planReset},
	{"conflicts", planConflicts},
	{"beside other data", planKept},
	{"erased", planErased},
	{"an unknown plan", planUnknown},
	{"no reads", planUnread},
	{"random changes", planRandom},
}

// runPlans holds a store to the behaviours of resources with plans.
func runPlans(t *testing.T, open Open) {
	t.Helper()
	for _, b := range planBehaviours {
		t.Run(b.name, func(t *testing.T) {
			store := open(t)
			w := newPlanWorld(t, store)
			w.changes = longform.Count(t, "changes of plans", store.most(2_000, 100), 100)
			b.run(w)
		})
	}
}

// planFollowed: users have the numbers of the plan that their project is on, and those of the schema for what
// it does not name, and without a plan.
func planFollowed(w *planWorld) {
	for _, on := range []plan{0, free, pro, trial, pro, 0, free} {
		w.put(w.here, "a", on)
		w.call(w.here, userOf("1", "a"), 1, 1)
		w.call(w.here, userOf("2", "b"), 1, 1)
		w.later()
		w.call(w.elsewhere, userOf("1", "a"), 1, 1)
	}
	w.call(w.here, userOf("1", "a"), 6, 1)
	w.call(w.here, userOf("new", "a"), 5, 1)
	w.call(w.here, userOf("new", "a"), 1, 1)
	if got, err := w.here.plans.Of(w.Context(), planned.Project{ID: "a"}); got != free || err != nil {
		w.Errorf("on %q, %v", planOf(got), err)
	}
}

// planRaised: what a larger plan has more is there at once, in this process, and in others once their caches
// have expired. Usage stays.
func planRaised(w *planWorld) {
	who := userOf("1", "a")
	w.put(w.here, "a", free)
	w.call(w.here, who, 1, 50)
	w.call(w.here, who, 1, 1)
	w.later()
	w.call(w.elsewhere, who, 1, 1)
	w.call(w.here, who, 1, 1)
	w.put(w.here, "a", pro)
	w.call(w.here, who, 1, 400)
	w.later()
	w.call(w.elsewhere, who, 1, 40)
	w.call(w.elsewhere, who, 1, 11)
	w.call(w.here, who, 1, 10)
	w.call(w.here, who, 1, 1)
}

// planNoticed: a process that has cached a plan goes by the next one in time, though no other process has
// charged the buckets meanwhile.
func planNoticed(w *planWorld) {
	who := userOf("1", "a")
	w.put(w.here, "a", free)
	w.call(w.elsewhere, who, 1, 50)
	w.put(w.here, "a", pro)
	w.later()
	w.call(w.elsewhere, who, 1, 40)
	w.put(w.here, "a", free)
	w.later()
	w.call(w.elsewhere, who, 1, 1)
	w.put(w.here, "a", 0)
	w.later()
	w.call(w.elsewhere, who, 1, 10)
}

// planLowered: usage of a larger plan stays, and so what is beyond the smaller one is denied until the window
// ends. Back on the larger plan, the rest is there.
func planLowered(w *planWorld) {
	who := userOf("1", "a")
	w.put(w.here, "a", pro)
	w.call(w.here, who, 60, 300)
	for _, on := range []plan{free, 0} {
		w.put(w.here, "a", on)
		w.call(w.here, who, 1, 1)
		w.later()
		w.call(w.elsewhere, who, 1, 1)
	}
	w.put(w.elsewhere, "a", pro)
	w.call(w.elsewhere, who, 1, 201)
	w.call(w.elsewhere, who, 1, 200)
	w.later()
	w.call(w.here, who, 1, 1)
	w.put(w.here, "a", free)
	w.store.Advance(31 * 24 * time.Hour)
	w.call(w.here, who, 1, 50)
	w.call(w.elsewhere, who, 1, 1)
}

// planChanged: numbers of a plan that change at run time are those of all projects on it, of this process at
// once.
func planChanged(w *planWorld) {
	w.put(w.here, "a", pro)
	w.put(w.here, "b", free)
	calls := func() {
		w.Helper()
		for _, p := range []*program{w.here, w.elsewhere} {
			w.call(p, userOf("1", "a"), 1, 10)
			w.call(p, userOf("2", "a"), 1, 10)
			w.call(p, userOf("3", "b"), 1, 1)
			w.call(p, userOf("4", "c"), 1, 1)
			w.later()
		}
	}
	calls()
	for _, change := range []struct {
		at string
		to numbers
	}{
		{"pro.user", numbers{150, 0}}, {"pro.project", numbers{0, 30}}, {"pro.project", numbers{2000, 800}},
		{"free.project", numbers{0, 70}}, {"pro.user", numbers{}}, {"pro.project", numbers{0, 600}},
		{"free.user", numbers{7, 9}}, {"pro.project", numbers{}}, {"free.project", numbers{}},
	} {
		w.change(w.here, change.at, change.to)
		calls()
	}
	var listed []string
	for o, err := range w.here.config.All(w.Context()) {
		if err != nil {
			w.Fatalf("list: %v", err)
		}
		listed = append(listed, fmt.Sprint(o.At, o.Limits.RPM.Capacity, *o.Limits.TPM))
	}
	if !slices.Equal(listed, []string{"free.user7 9"}) {
		w.Errorf("listed %q", listed)
	}
}

// planEdited: a project moves from a plan that was edited a moment ago to one that never was.
func planEdited(w *planWorld) {
	who := userOf("1", "a")
	w.put(w.here, "a", pro)
	w.call(w.here, who, 1, 1)
	w.store.Advance(time.Hour)
	w.change(w.here, "pro.user", numbers{150, 1500})
	w.change(w.here, "pro.project", numbers{0, 700})
	w.call(w.here, who, 1, 1)
	for _, on := range []plan{free, pro, trial, pro, 0} {
		w.put(w.here, "a", on)
		w.call(w.here, who, 1, 1)
		w.later()
		w.call(w.elsewhere, who, 1, 1)
	}
}

// planPrecedence: an entity's override decides before its plan, and the plan before the kind's override.
func planPrecedence(w *planWorld) {
	who := userOf("1", "a")
	for _, step := range []func(){
		func() { w.put(w.here, "a", pro) },
		func() { w.change(w.here, "user", numbers{20, 1200}) },
		func() { w.change(w.here, "project", numbers{900, 90}) },
		func() { w.put(w.here, "a", free) },
		func() { w.put(w.here, "a", trial) },
		func() { w.change(w.here, "user-1", numbers{40, 0}) },
		func() { w.put(w.here, "a", pro) },
		func() { w.change(w.here, "pro.user", numbers{120, 900}) },
		func() { w.change(w.here, "project-a", numbers{0, 450}) },
		func() { w.change(w.here, "user-1", numbers{}) },
		func() { w.put(w.here, "a", 0) },
	} {
		step()
		w.call(w.here, who, 1, 1)
		w.later()
		w.call(w.elsewhere, who, 1, 1)
	}
}

// planMoved: a user has the numbers of the plan of the project that its call gives, whichever plan is newer.
// Usage stays.
func planMoved(w *planWorld) {
	w.put(w.here, "b", free)
	w.store.Advance(time.Hour)
	w.put(w.here, "a", pro)
	for _, p := range []*program{w.here, w.elsewhere} {
		for _, project := range []string{"a", "b", "c", "a", "c", "b", "a"} {
			w.call(p, userOf("1", project), 1, 1)
		}
	}
	w.call(w.here, userOf("1", "b"), 6, 1)
}

// planMovedStored: so it does by its stored parent.
func planMovedStored(w *planWorld) {
	w.put(w.here, "b", free)
	w.store.Advance(time.Hour)
	w.put(w.here, "a", pro)
	for _, project := range []string{"a", "b", "c", "a", "c", "b", "a"} {
		who := userOf("1", project)
		if err := w.here.Entities().Put(w.Context(), who); err != nil {
			w.Fatalf("put: %v", err)
		}
		w.callAs(w.here, planned.UserByID("1"), who, 1, 1)
		w.later()
		w.callAs(w.elsewhere, planned.UserByID("1"), who, 1, 1)
	}
}

// planUpAndDown: a project that moves up and down has what the larger plan gives, and no more.
func planUpAndDown(w *planWorld) {
	who := userOf("1", "a")
	var rpm, tpm int64
	for i := range 200 {
		w.put(w.here, "a", free+plan(i%2))
		for _, cost := range [][2]int64{{1, 7}, {3, 1}} {
			if w.call(w.here, who, cost[0], cost[1]) != nil {
				rpm, tpm = rpm+cost[0], tpm+cost[1]
			}
		}
	}
	// free's burst cuts off what pro's had more, and nothing of that comes back
	if rpm > 100 || tpm > 500 {
		w.Errorf("%d rpm and %d tpm are admitted, want at most 100 and 500", rpm, tpm)
	}
}

// planCrowd: callers of two processes have no more than the larger plan's allowance, while others move their
// project up and down.
func planCrowd(w *planWorld) {
	w.put(w.here, "a", pro)
	var done sync.WaitGroup
	var tpm atomic.Int64
	failure := make(chan error, 1000)
	for i := range 8 {
		p := []*program{w.here, w.elsewhere}[i%2]
		done.Go(func() {
			for range 20 {
				_, err := p.gpt4.Acquire(w.Context(), userOf(fmt.Sprint(i), "a"), planned.GPT4Cost{RPM: 1, TPM: 7})
				switch outcome(err) {
				case "admitted":
					tpm.Add(7)
				case "failed":
					failure <- err
				}
			}
		})
	}
	done.Go(func() {
		for i := range 20 {
			if err := w.here.plans.Set(w.Context(), planned.Project{ID: "a"}, free+plan(i%2)); err != nil {
				failure <- err
			}
		}
	})
	done.Wait()
	close(failure)
	for err := range failure {
		w.Errorf("%v", err)
	}
	if n := tpm.Load(); n > 500 {
		w.Errorf("%d tpm are admitted, want at most 500", n)
	}
}
