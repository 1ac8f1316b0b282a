package conformance

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// fault is a way for a session to be wrong.
type fault struct {
	name string
	want string // a pattern of what the suite says of it
	// only is the behaviour that has to see it; "" if behaviours, histories and crowds have to
	only    string
	usage   bool                                              // it shows in usage alone
	acquire func(context.Context, *faulty, *store.Call) error // nil: as it should be
	settle  func(context.Context, *faulty, *store.Call) error
	extend  func(context.Context, *faulty, *store.Call) error
	fill    func(_ context.Context, _ store.OverrideStore, _ *store.Spec, kind int, entity, root string) error
	define  func(*store.Spec)
	members func(store.MemberStore) store.MemberStore
}

// faults are what the suite has to see.
var faults = []fault{
	{name: "admits with a token too few", acquire: overAdmit,
		want: `refuses, and was not named next: <nil>|^peek: \S+ has \S+ mt of [rt]pm, want`},
	{name: "gives back twice", want: `^(settle|release|peek): \S+ has \S+ mt of [rt]pm, want`,
		settle: giveBackTwice},
	{name: "loses refill", want: ` has -.*, want|was left with -|Available:0 .* which has the tokens`,
		acquire: loseRefill},
	{name: "charges the parent of a child that refuses", acquire: chargeParent,
		want: `project-\S+ has \S+ mt of [rt]pm, want|want \S+ of \S+ mt of [rt]pm project-`},
	{name: "fills nothing", only: "refill", fill: fillNothing,
		want: `user-alice has 0'100 mt of rpm, want 39'000|Requested:9 .* which has the tokens`},
	{name: "fills the parent too", want: `^peek: project-p has 1000'000 mt of rpm, want 990'000`, only: "reset",
		fill: fillParent},
	{name: "charges an ancestor only for limits of the entity's kind", only: "kinds that differ",
		want: `project-p has 400'000 mt of tpm, want 300'000`, acquire: chargeOwn},
}

// faulty is a store, and a session, with a fault.
type faulty struct {
	store.Store
	store.Session
	fault *fault

	mu      *sync.Mutex
	seen    map[string]*bucket.Image // by loseRefill and dropUsage
	denials map[string]error         // by neverReset and grantTwice
}

// Open implements runtime.Store.
func (f *faulty) Open(env *store.Env, defs ...store.Definition) (store.Session, error) {
	if f.fault.define != nil {
		for _, def := range defs {
			f.fault.define(def.Spec())
		}
	}
	session, err := f.Store.Open(env, defs...)
	return &faulty{Session: session, fault: f.fault, mu: f.mu, seen: f.seen, denials: f.denials}, err
}

// Acquire implements store.Session.
func (f *faulty) Acquire(ctx context.Context, call *store.Call) error {
	if f.fault.acquire == nil {
		return f.Session.Acquire(ctx, call)
	}
	return f.fault.acquire(ctx, f, call)
}

// Refused implements store.Session: nothing is refused beside Acquire, whatever is wrong with that.
func (*faulty) Refused(store.Definition, []store.Link, []int64, int64) *store.DeniedError {
	return nil
}

// Settle implements store.Session.
func (f *faulty) Settle(ctx context.Context, call *store.Call) error {
	if f.fault.settle == nil {
		return f.Session.Settle(ctx, call)
	}
	return f.fault.settle(ctx, f, call)
}

// Extend implements store.Session.
func (f *faulty) Extend(ctx context.Context, call *store.Call) error {
	if f.fault.extend == nil {
		return f.Session.Extend(ctx, call)
	}
	return f.fault.extend(ctx, f, call)
}

// Overrides implements store.Session.
func (f *faulty) Overrides() store.OverrideStore {
	return &faultyOverrides{f.Session.Overrides(), f.fault}
}

// Members implements store.Session.
func (f *faulty) Members() store.MemberStore {
	if f.fault.members == nil {
		return f.Session.Members()
	}
	return f.fault.members(f.Session.Members())
}

// faultyOverrides is an override store with a fault.
type faultyOverrides struct {
	store.OverrideStore
	fault *fault
}

// Fill implements store.OverrideStore.
func (f *faultyOverrides) Fill(ctx context.Context, spec *store.Spec, kind int, entity, root string) error {
	if f.fault.fill == nil {
		return f.OverrideStore.Fill(ctx, spec, kind, entity, root)
	}
	return f.fault.fill(ctx, f.OverrideStore, spec, kind, entity, root)
}

// fillNothing leaves the bucket as it is.
func fillNothing(context.Context, store.OverrideStore, *store.Spec, int, string, string) error {
	return nil
}

// fillParent fills the bucket, and that of the parent.
func fillParent(
	ctx context.Context, o store.OverrideStore, spec *store.Spec, kind int, entity, root string,
) error {
	parent := spec.Kinds[kind].Parent
	return errors.Join(o.Fill(ctx, spec, kind, entity, root), o.Fill(ctx, spec, parent, root, root))
}

// overAdmit takes a token less where that admits.
func overAdmit(ctx context.Context, f *faulty, call *store.Call) error {
	err := f.Session.Acquire(ctx, call)
	if _, denied := errors.AsType[*store.DeniedError](err); !denied {
		return err
	}
	cheaper := *call
	cheaper.Parts = slices.Clone(call.Parts)
	for i := range cheaper.Parts {
		part := &cheaper.Parts[i]
		part.Buckets, part.Cost = slices.Clone(part.Buckets), slices.Clone(part.Cost)
		for j := range part.Cost {
			part.Cost[j] = max(0, part.Cost[j]-bucket.Milli)
		}
	}
	if f.Session.Acquire(ctx, &cheaper) != nil {
		return err
	}
	for i := range call.Parts {
		call.Parts[i].Buckets = cheaper.Parts[i].Buckets
	}
	return nil
}

// giveBackTwice repeats what gives back.
func giveBackTwice(ctx context.Context, f *faulty, call *store.Call) error {
	if err := f.Session.Settle(ctx, call); err != nil || call.Parts[0].Actual[1] >= call.Parts[0].Cost[1] {
		return err
	}
	return f.Session.Settle(ctx, call)
}

// loseRefill takes, beside the cost, what has come since it last saw a bucket.
func loseRefill(ctx context.Context, f *faulty, call *store.Call) error {
	if err := f.Session.Acquire(ctx, call); err != nil || len(call.Parts) > 1 {
		return err
	}
	part := call.Parts[0]
	nearest := part.Buckets[0]
	f.mu.Lock()
	last := f.seen[nearest.Entity]
	f.seen[nearest.Entity] = nearest.After
	f.mu.Unlock()
	if last == nil {
		return nil
	}
	lost := slices.Clone(part.Cost)
	for i, b := range last.Balances {
		lost[i] += bucket.Refill(b.Limit, last.Refilled, nearest.After.Refilled)
	}
	again := store.Call{Called: call.Called, Parts: []store.Part{part}}
	again.Parts[0].Actual, again.Parts[0].Buckets = lost, slices.Clone(part.Buckets)
	return f.Session.Settle(ctx, &again)
}

// chargeParent charges the ancestors where the entity's own bucket refuses.
func chargeParent(ctx context.Context, f *faulty, call *store.Call) error {
	err := f.Session.Acquire(ctx, call)
	denied, ok := errors.AsType[*store.DeniedError](err)
	if buckets := call.Parts[0].Buckets; ok && len(buckets) > 1 && denied.Entity == buckets[0].Entity {
		above := *call
		above.Parts = slices.Clone(call.Parts)
		above.Parts[0].Buckets = slices.Clone(buckets[1:])
		_ = f.Session.Acquire(ctx, &above) // if it can
	}
	return err
}

// chargeOwn leaves out the cost of limits that the nearest bucket does not have.
func chargeOwn(ctx context.Context, f *faulty, call *store.Call) error {
	part := &call.Parts[0]
	part.Cost = part.Def.Spec().CostOf(part.Buckets[0].Kind, part.Cost)
	return f.Session.Acquire(ctx, call)
}

// witness is a T that takes note of the first thing that a test says.
type witness struct {
	ctx  context.Context
	mu   sync.Mutex
	said string
}

// Helper implements T.
func (*witness) Helper() {}

// Context implements T.
func (w *witness) Context() context.Context { return w.ctx }

// Errorf implements T.
func (w *witness) Errorf(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.said == "" {
		w.said = fmt.Sprintf(format, args...)
	}
}

// Fatalf implements T.
func (w *witness) Fatalf(format string, args ...any) {
	w.Errorf(format, args...)
	runtime.Goexit()
}

// watch returns what test says of a failure, "" if it passes.
func watch(ctx context.Context, test func(T)) string {
	w := &witness{ctx: ctx}
	done := make(chan struct{})
	go func() {
		defer close(done)
		test(w)
	}()
	<-done
	return w.said
}

// runControls holds that every fault is seen: by behaviours, by histories of either kind, and by crowds where
// it shows there, or by the one behaviour that is about it.
func runControls(t *testing.T, open Open) {
	t.Helper()
	all := slices.Concat(faults, windowFaults, holdFaults)
	for i := range all {
		f := &all[i]
		t.Run(f.name, func(t *testing.T) {
			if f.usage && !open(t).Usage {
				t.Skip("its images have no usage")
			}
			opened := func() Store {
				store := open(t)
				store.Store = &faulty{Store: store.Store, fault: f, mu: &sync.Mutex{}, seen: map[string]*bucket.Image{},
					denials: map[string]error{}}
				return store
			}
			behaviours := slices.DeleteFunc(slices.Concat(behaviours, alike(), boundaries,
				heldBehaviours()), func(b behaviour) bool {
				return f.only != "" && b.name != f.only
			})
			caught(t, f, "behaviours", len(behaviours), func(w T, i int) {
				behaviours[i].run(newWorld(w, opened(), behaviours[i].schema))
			})
			if f.only != "" {
				return
			}
			for _, kind := range histories {
				histories, store := rapid.Custom(kind.draw), opened()
				caught(t, f, fmt.Sprintf("histories (%s)", kind.name), 300, func(w T, i int) {
					h := histories.Example(i)
					h.play(newWorld(w, store, h.schema), i, tally{})
				})
			}
			caught(t, f, "crowds", len(crowds), func(w T, i int) {
				crowds[i].run(newWorld(w, opened(), crowds[i].schema))
			})
		})
	}
}

// caught runs up to n tests until one fails, which has to say what f is.
func caught(t *testing.T, f *fault, what string, n int, test func(w T, i int)) {
	t.Helper()
	for i := range n {
		if said := watch(t.Context(), func(w T) { test(w, i) }); said != "" {
			if !regexp.MustCompile(f.want).MatchString(said) {
				t.Errorf("%s, %d of %d: %s\nwant that it says %s", what, i+1, n, said, f.want)
			}
			return
		}
	}
	t.Errorf("%s have not seen it", what)
}
