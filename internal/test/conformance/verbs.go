package conformance

import (
	"errors"
	"fmt"
	"slices"
	"time"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// held is a lease and its portions in the model. A call that shadow mode let pass without a charge has none.
type held struct {
	*limits.GPT4Lease
	portions []portion
	shadow   bool
	in       *limits.Limiter
	others   []*limits.GPT4Lease // of other claims of the same call
	ended    bool
	lost     bool // one of its holds could not be extended
}

// acquire has a call judged. The error is the store's.
func (w *world) acquire(who limits.GPT4Entity, c limits.GPT4Cost) (*held, error) {
	w.Helper()
	return w.acquireIn(w.Limiter, who, c)
}

// acquireIn is acquire in another process. A denial that shadow mode lets pass is an error with a lease.
func (w *world) acquireIn(l *limits.Limiter, who limits.GPT4Entity, c limits.GPT4Cost,
	opts ...runtime.CallOption) (*held, error) {
	w.Helper()
	w.spy.seen()
	w.shared = w.shared || w.store.Remembers && l != w.Limiter
	portions := w.portions(who, c)
	if w.shadow {
		opts = append(opts, runtime.Shadow(true))
	}
	lease, err := l.GPT4.Acquire(w.Context(), who, c, opts...)
	shadowed := err == nil && lease.Shadowed() != nil
	if shadowed {
		err = lease.Shadowed()
	}
	w.judged(fmt.Sprintf("acquire of %v for %v", c, w.chain(who)), portions, err,
		w.schema.cascade == store.CascadeCompensated)
	switch {
	case shadowed && !w.shadow:
		w.Fatalf("%v has let through what it is to refuse: %v", w.chain(who), err)
	case shadowed:
		return &held{GPT4Lease: lease, shadow: true}, err
	case err != nil && w.shadow:
		w.Fatalf("refused in shadow: %v", err)
	case err != nil:
		return nil, err
	}
	return w.newHeld(l, lease, portions), nil
}

// more has h take more, and the call judged. The error is the store's.
func (w *world) more(h *held, c limits.GPT4Cost) error {
	w.Helper()
	w.spy.seen()
	before := h.Cost()
	var portions []portion
	for _, s := range h.portions {
		s.cost = []int64{c.RPM * bucket.Milli, c.TPM * bucket.Milli} // without per_call
		portions = append(portions, s)
	}
	err := h.More(w.Context(), c)
	w.judged(fmt.Sprintf("%v more for %s", c, h.portions[0].entity), portions, err,
		w.schema.cascade == store.CascadeCompensated)
	after := before
	if err == nil {
		after = cost(before.RPM+c.RPM, before.TPM+c.TPM)
		for i := range h.portions {
			h.portions[i].cost, h.portions[i].charges = milli(after), portions[i].charges
		}
	}
	if h.Cost() != after {
		w.Errorf("the lease stands for %+v, want %+v", h.Cost(), after)
	}
	return err
}

// judged holds the outcome of a call for portions against the model, which follows it.
func (w *world) judged(what string, portions []portion, err error, oneByOne bool) {
	w.Helper()
	now := w.store.Decided()
	if wrong := w.judge.acquire(portions, now, err, oneByOne); wrong != "" {
		w.Fatalf("%s: %s", what, wrong)
	}
	if err == nil {
		for i := range portions {
			portions[i].pay(now)
		}
		w.noteHolds(what, portions, now)
	}
	w.balances(what, now, err)
}

// balances holds the images that the store has left in its last call, which ended with err, against the
// model. Of a call that was refused it is those that refused it: others need not have been looked at.
func (w *world) balances(what string, now int64, err error) {
	w.Helper()
	denied, _ := errors.AsType[*store.DeniedError](err)
	if what != "peek" && w.shared {
		return
	}
	for _, part := range w.spy.seen() {
		for _, b := range part.Buckets {
			key := [2]string{part.Def.Spec().Resource, b.Entity}
			refuses := func(r store.Refusal) bool { return [2]string{r.Resource, r.Entity} == key }
			if b.After == nil || w.buckets[key] == nil || err != nil &&
				(denied == nil || !slices.ContainsFunc(denied.Refusals, refuses)) {
				continue
			}
			for i := range b.After.Balances {
				if !b.After.Missing[i] {
					w.balance(what, part.Def.Spec(), &b, i, now)
				}
			}
		}
	}
}

// balance holds the i-th limit of b, as it was at now, against the model.
func (w *world) balance(what string, spec *store.Spec, b *store.Bucket, i int, now int64) {
	w.Helper()
	model, balance := w.buckets[[2]string{spec.Resource, b.Entity}], b.After.Balances[i]
	got, want := w.store.Available(balance, b.After.Refilled), model.available(i, now)
	if slack := w.judge.of(model.limits[i]); got < want-slack || got > want+slack {
		w.Fatalf("%s: %s has %s mt of %s, want %s, give or take %d",
			what, b.Entity, thousands(got), spec.Limits[i], thousands(want), slack)
	}
	if wrong := w.wrongHolds(model, i, spec.Held, balance, now); wrong != "" {
		w.Fatalf("%s: %s of %s: %s", what, spec.Limits[i], b.Entity, wrong)
	}
	if got := store.Resets(balance, now); model.limits[i].Windowed() && !w.judge.resets(got, model, i, now) &&
		!w.refunded(got, model, i, now) {
		w.Fatalf("%s: the window of %s of %s ends at %v, want %v", what, spec.Limits[i], b.Entity,
			got.UTC(), model.resets(i, now))
	}
}

// refunded reports whether a window that ends at got is one that the model need not have. A call that asks
// its buckets one by one may have opened it before another one refused, and given back what it took.
func (w *world) refunded(got time.Time, b *ideal, i int, now int64) bool {
	return w.schema.cascade == store.CascadeCompensated && now >= b.ends[i] && !got.IsZero() &&
		got.Equal(time.UnixMilli(b.windows[i].End(now, b.ends[i])))
}

// admitted is acquire that has to succeed.
func (w *world) admitted(who limits.GPT4Entity, rpm, tpm int64) *held {
	w.Helper()
	lease, err := w.acquire(who, cost(rpm, tpm))
	if err != nil {
		w.Fatalf("%v: %v", w.chain(who), err)
	}
	return lease
}

// denied is acquire that has to be denied. It returns the denial as what it says, not as an error.
func (w *world) denied(who limits.GPT4Entity, rpm, tpm int64) store.DeniedError {
	w.Helper()
	_, err := w.acquire(who, cost(rpm, tpm))
	return *as[*store.DeniedError](w, fmt.Sprint(w.chain(who)), err)
}

// keep keeps, and follows.
func (w *world) keep(h *held) {
	w.Helper()
	w.spy.seen()
	h.Keep(w.Context())
	w.closed("keep", h, h.portions[0].cost)
}

// settle settles, and follows.
func (w *world) settle(h *held, rpm, tpm int64) {
	w.Helper()
	w.spy.seen()
	if err := h.Settle(w.Context(), cost(rpm, tpm)); err != nil {
		w.Fatalf("settle: %v", err)
	}
	w.closed("settle", h, milli(cost(rpm, tpm)))
}

// release releases, and follows.
func (w *world) release(h *held) {
	w.Helper()
	w.spy.seen()
	h.Release(w.Context())
	w.closed("release", h, make([]int64, len(names)))
}

// closed has the model turn what h took into actual, and holds what the store left against it.
func (w *world) closed(what string, h *held, actual []int64) {
	w.Helper()
	now := w.store.Decided()
	if h.follow(actual, now) { // else nothing need have been written, and images are as old as the lease
		w.balances(what, now, nil)
	}
}

// follow has the model turn what h took into actual, and reports whether that is a change.
func (h *held) follow(actual []int64, now int64) (changed bool) {
	h.ended = true
	for i := range h.portions {
		changed = changed || !slices.Equal(actual, h.portions[i].cost) || h.portions[i].holding()
		h.portions[i].settle(actual, now)
	}
	return changed
}

// peek holds what Peek says against the model, and returns it.
func (w *world) peek(who limits.GPT4Entity) *runtime.Snapshot[limits.GPT4Cost] {
	w.Helper()
	w.spy.seen()
	snap, err := w.GPT4.Peek(w.Context(), who)
	if err != nil {
		w.Fatalf("peek: %v", err)
	}
	now := w.store.Decided()
	w.balances("peek", now, nil)
	chain := w.chain(who)
	if len(snap.Buckets) != len(chain) {
		w.Fatalf("peek of %v: got %d buckets", chain, len(snap.Buckets))
	}
	least := []int64{1 << 62, 1 << 62}
	for i, entity := range chain {
		got, model := snap.Buckets[i], w.bucket(entity)
		have := vector(got.Available, nil)
		for j, burst := range vector(got.Burst, nil) {
			l := model.limits[j]
			if !l.Absent() {
				least[j] = min(least[j], have[j])
			}
			want, slack := model.available(j, now), w.judge.of(l)
			lo, hi := max(0, want-slack)/bucket.Milli, max(0, want+slack)/bucket.Milli
			if got.Entity != entity || have[j] < lo || have[j] > hi || burst != l.Burst/bucket.Milli {
				w.Fatalf("peek: %+v\nwant %s mt of %s of %s, burst %d", got, thousands(want), names[j], entity,
					l.Burst/bucket.Milli)
			}
		}
	}
	for j := range least {
		least[j] %= 1 << 62 // 0 for a limit that no bucket has
	}
	if got := vector(snap.Available, nil); !slices.Equal(got, least) {
		w.Fatalf("peek: %v are available, want the least of the chain, %v", got, least)
	}
	return snap
}

// nothing holds that nothing of who's chain is stored.
func (w *world) nothing(who limits.GPT4Entity) {
	w.Helper()
	for _, b := range w.peek(who).Buckets {
		if b.Exists {
			w.Errorf("%s has a bucket: %+v", b.Entity, b)
		}
	}
}

// left holds what a lease says is left of its chain.
func (w *world) left(h *held, rpm, tpm int64) {
	w.Helper()
	if got := h.Remaining(); got.RPM != rpm || got.TPM != tpm {
		w.Errorf("%+v remain, want %+v", got, cost(rpm, tpm))
	}
}
