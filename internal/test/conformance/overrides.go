package conformance

import (
	"fmt"
	"slices"
	"strings"
	"time"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// level is what overrides gpt-4 for an entity, or for a kind.
type level = runtime.Override[limits.GPT4Limits]

// set has l override at, in place of what did. From then on new processes go by it.
func (w *world) set(at *level, l limits.GPT4Limits, opts ...runtime.SetOption) store.Revision {
	w.Helper()
	_, rev, err := at.Get(w.Context())
	if err != nil {
		w.Fatalf("get: %v", err)
	}
	next, err := at.Set(w.Context(), l, rev, opts...)
	if err != nil {
		w.Fatalf("set: %v", err)
	}
	if next == rev {
		w.Errorf("the revision stays %q", rev)
	}
	stored, now, err := at.Get(w.Context())
	if err != nil || describe(stored) != describe(l) || l != (limits.GPT4Limits{}) && now != next {
		w.Errorf("stored %s of %q, %v\nwant %s of %q", describe(stored), now, err, describe(l), next)
	}
	w.Limiter = w.process()
	return next
}

// describe writes what l overrides.
func describe(l limits.GPT4Limits) string {
	var said []string
	for i, one := range limitsVector(l, nil) {
		if one != nil {
			said = append(said, fmt.Sprintf("%s %+v", names[i], *one))
		}
	}
	return strings.Join(said, ", ")
}

// inForce has the model go by limits for entity, from the last take on: next to no time has passed since.
func (w *world) inForce(entity string, limits ...bucket.Limit) {
	w.bucket(entity).reshape(limits)
}

// filled has the model take entity's bucket for full, by these limits. An open window is another one then,
// which ends a millisecond later. Leases from before hold nothing any more, and usage stays.
func (w *world) filled(entity string, numbers ...bucket.Limit) {
	b := w.bucket(entity)
	full := newIdeal(numbers, b.windows)
	now := w.store.Clock.Now().UnixMilli()
	for i, ends := range b.ends {
		if full.ends[i] = ends; now < ends {
			full.ends[i] = ends + 1
		}
		b.endAll(i)
		full.ahead[i] = max(b.ahead[i], bucket.Epoch(now)) + 1 + bucket.NewRing
	}
	full.used = b.used
	w.buckets[[2]string{w.schema.resource(), entity}] = full
}

// overridden returns all overrides as List has them: their levels.
func (w *world) overridden() (at []string) {
	w.Helper()
	for o, err := range w.Config.GPT4.All(w.Context()) {
		if err != nil {
			w.Fatalf("list: %v", err)
		}
		at = append(at, o.At+": "+describe(o.Limits))
	}
	slices.Sort(at)
	return at
}

// listed holds what is overridden.
func (w *world) listed(want ...string) {
	w.Helper()
	if got := w.overridden(); !slices.Equal(got, want) {
		w.Errorf("overridden: %q\nwant %q", got, want)
	}
}

// overrideEntity: one entity's limits, lowered, raised, and back.
func overrideEntity(w *world) {
	own, users := w.Config.GPT4.Entity(alice), w.schema.user
	w.listed()
	w.admitted(alice, 2, 10) // 8 rpm are left
	low := per(5, 1, time.Second)
	w.set(own, limits.GPT4Limits{RPM: rate(low)})
	w.listed("user-alice: " + describe(limits.GPT4Limits{RPM: rate(low)}))
	w.inForce("user-alice", low, users[1])
	w.left(w.admitted(alice, 1, 1), 4, 139) // clamped to the burst
	_, err := w.acquire(alice, cost(6, 1))
	failed[*store.CostTooLargeError](w, "above the lowered burst", err)
	w.admitted(alice, 4, 1)
	w.denied(alice, 1, 1)
	w.admitted(bob, 7, 1) // as before

	high := per(40, 4, time.Second)
	w.set(w.Config.GPT4.Entity(alice), limits.GPT4Limits{RPM: rate(high)})
	w.inForce("user-alice", high, users[1])
	w.denied(alice, 8, 1) // what there was is not more
	w.store.Advance(2 * time.Second)
	w.denied(alice, 12, 1) // it comes faster
	w.store.Advance(20 * time.Second)
	w.admitted(alice, 15, 1) // and up to more

	w.set(w.Config.GPT4.Entity(alice), limits.GPT4Limits{})
	w.listed()
	w.inForce("user-alice", users...)
	w.admitted(alice, 1, 1)
	_, err = w.acquire(alice, cost(11, 1))
	failed[*store.CostTooLargeError](w, "above the schema's burst", err)
}

// overrideKind: the limits of all of a kind.
func overrideKind(w *world) {
	low := per(20, 1, time.Second)
	w.admitted(alice, 1, 10)
	w.set(w.Config.GPT4.Kind(limits.User{}), limits.GPT4Limits{TPM: rate(low)})
	w.listed("user: " + describe(limits.GPT4Limits{TPM: rate(low)}))
	for _, who := range []string{"user-alice", "user-bob"} {
		w.inForce(who, w.schema.user[0], low)
	}
	w.left(w.admitted(alice, 1, 15), 8, 5)
	w.left(w.admitted(bob, 1, 20), 9, 0)
	w.admitted(project, 1, 100) // another kind
	w.set(w.Config.GPT4.Kind(limits.User{}), limits.GPT4Limits{})
	w.listed()
	w.inForce("user-alice", w.schema.user...)
	w.denied(alice, 1, 21) // it may be more, but has not come yet
}

// overridePrecedence: the entity's level is ahead of its kind's, and that of the schema, limit by limit.
func overridePrecedence(w *world) {
	rpm, tpm, own := per(20, 1, time.Second), per(200, 2, time.Second), per(7, 1, time.Second)
	w.set(w.Config.GPT4.Kind(limits.User{}), limits.GPT4Limits{RPM: rate(rpm), TPM: rate(tpm)})
	w.set(w.Config.GPT4.Entity(alice), limits.GPT4Limits{RPM: rate(own)})
	w.inForce("user-alice", own, tpm)
	w.filled("user-alice", own, tpm)
	w.filled("user-bob", rpm, tpm)
	w.left(w.admitted(alice, 1, 160), 6, 40)
	w.left(w.admitted(bob, 13, 1), 7, 199)
	explained, err := w.Config.GPT4.Explain(w.Context(), alice)
	if err != nil {
		w.Fatalf("explain: %v", err)
	}
	var wins []string
	for _, e := range explained {
		wins = append(wins, e.At+": "+strings.Join(e.Wins, " "))
	}
	if got := strings.Join(wins, ", "); got != "user-alice: rpm, user: tpm, schema: " {
		w.Errorf("explained: %s", got)
	}
}

// overrideConflicts: who has not read the newest writes nothing, and what cannot be is refused.
func overrideConflicts(w *world) {
	ctx, own := w.Context(), w.Config.GPT4.Entity(alice)
	low, high := per(5, 1, time.Second), per(50, 1, time.Second)
	first := w.set(own, limits.GPT4Limits{RPM: rate(low)})
	second := w.set(own, limits.GPT4Limits{RPM: rate(high)})
	_, err := own.Set(ctx, limits.GPT4Limits{RPM: rate(low)}, first)
	failed[*store.ConflictError](w, "an old revision", err)
	_, err = own.Set(ctx, limits.GPT4Limits{RPM: rate(low)}, "")
	failed[*store.ConflictError](w, "no revision", err)
	failed[*store.ConflictError](w, "deleting an old revision", own.Delete(ctx, first))
	if err := own.Delete(ctx, second); err != nil {
		w.Fatalf("delete: %v", err)
	}
	_, err = own.Set(ctx, limits.GPT4Limits{RPM: rate(low)}, second)
	failed[*store.ConflictError](w, "a deleted revision", err)
	if _, err = own.Set(ctx, limits.GPT4Limits{RPM: rate(low)}, ""); err != nil {
		w.Errorf("none is there, and none was said to be: %v", err)
	}
	_, err = w.Config.GPT4.Kind(limits.User{}).Set(ctx, limits.GPT4Limits{RPM: &runtime.Rate{}}, "")
	failed[*store.InvalidError](w, "a limit of nothing", err)
	_, _, err = w.Config.GPT4.Entity(limits.User{}).Get(ctx)
	failed[*store.InvalidError](w, "an empty id", err)
	w.listed("user-alice: " + describe(limits.GPT4Limits{RPM: rate(low)}))
}

// overrideRefill: a raised limit with Refill admits at once. A process that has cached the limit before takes
// from the bucket, and gives back, without cutting it off.
func overrideRefill(w *world) {
	old := w.process(runtime.WithCacheTTL(time.Minute))
	w.admitted(alice, 9, 10)
	if _, err := w.acquireIn(old, alice, cost(1, 1)); err != nil {
		w.Fatalf("%v", err)
	}
	high := per(40, 1, time.Second) // it refills as before: a process may go by the old rate
	w.set(w.Config.GPT4.Entity(alice), limits.GPT4Limits{RPM: rate(high)}, runtime.Refill())
	w.store.Advance(1100 * time.Millisecond) // a process may deny by what it saw before
	w.filled("user-alice", high, w.schema.user[1])
	if _, err := w.acquireIn(old, alice, cost(1, 1)); err != nil {
		w.Errorf("with the limit before: %v", err)
	}
	lease, err := w.acquireIn(old, alice, cost(9, 0))
	if err != nil {
		w.Fatalf("with the limit before: %v", err)
	}
	w.release(lease)
	w.left(w.admitted(alice, 39, 1), 0, 148)
	w.denied(alice, 1, 1)
}

// resetEntity: a bucket in debt is full after Reset, and its parent's is as before. A missing bucket is full.
func resetEntity(w *world) {
	w.settle(w.admitted(alice, 10, 50), 10, 300)
	for _, who := range []limits.User{alice, bob} {
		if err := w.Config.GPT4.Reset(w.Context(), who); err != nil {
			w.Fatalf("reset: %v", err)
		}
		w.filled("user-"+who.ID, w.schema.user...)
	}
	w.peek(project)
	w.left(w.admitted(alice, 10, 150), 0, 0)
	w.denied(alice, 1, 1)
	w.left(w.admitted(bob, 10, 150), 0, 0)
}

// overrideNoticed: a process that remembers other limits goes by them until its memory is too old.
func overrideNoticed(w *world) {
	const ttl = time.Minute
	old := w.process(runtime.WithCacheTTL(ttl))
	low := per(5, 1, time.Second)
	if _, err := w.acquireIn(old, alice, cost(1, 1)); err != nil {
		w.Fatalf("%v", err)
	}
	w.set(w.Config.GPT4.Entity(alice), limits.GPT4Limits{RPM: rate(low)})
	w.store.Advance(ttl + time.Second)
	w.inForce("user-alice", low, w.schema.user[1])
	_, err := w.acquireIn(old, alice, cost(6, 1))
	failed[*store.CostTooLargeError](w, "after its time", err)
}
