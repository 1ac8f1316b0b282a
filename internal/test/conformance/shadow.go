package conformance

import (
	"errors"
	"sync"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/store"
)

// inShadow has run's calls be in shadow: they are charged as ever, and would be refused for the same reasons.
func inShadow(run func(*world)) func(*world) {
	return func(w *world) {
		w.shadow = true
		w.Limiter = w.process(runtime.WithCallDefaults(runtime.Shadow(true)))
		run(w)
	}
}

// shadowLeases: leases of calls that shadow mode let through took nothing, and write nothing.
func shadowLeases(w *world) {
	w.shadow = true
	w.settle(w.admitted(alice, 3, 100), 1, 120)
	lease, err := w.acquire(alice, cost(1, 31))
	denied := as[*store.DeniedError](w, "more than there is", err)
	w.left(lease, 9, 30)
	if lease.Degraded() || lease.Cost() != cost(1, 31) || denied.Entity != "user-alice" ||
		len(lease.Balances()) == 0 {
		w.Errorf("degraded %t, for %+v, balances %+v: %v", lease.Degraded(), lease.Cost(), lease.Balances(), denied)
	}
	w.settle(lease, 5, 400)
	w.peek(alice)
	if err := lease.Settle(w.Context(), cost(1, 1)); !errors.Is(err, runtime.ErrSettled) {
		w.Errorf("a second settle: %v", err)
	}
	asked := w.spy.calls()
	for range 2 {
		lease, err = w.acquire(alice, cost(1, 31))
		failed[*store.DeniedError](w, "once more", err)
		w.left(lease, 9, 30)
		w.release(lease)
	}
	if w.store.Remembers && w.spy.calls() != asked {
		w.Errorf("the store was asked for what it remembers")
	}
	lease, err = w.acquire(bob, cost(11, 1))
	failed[*store.CostTooLargeError](w, "above the burst", err)
	w.release(lease)
	w.nothing(limits.User{ID: bob.ID, Project: limits.Project{ID: "other"}})
	asked = w.spy.calls()
	waited, err := w.GPT4.Wait(w.Context(), alice, cost(1, 31), runtime.Shadow(true))
	if err != nil {
		w.Fatalf("wait: %v", err)
	}
	failed[*store.DeniedError](w, "wait", waited.Shadowed())
	if n := w.spy.calls() - asked; n > 1 {
		w.Errorf("a wait in shadow has asked the store %d times", n)
	}
	w.shadow = false
	w.peek(alice)
	w.denied(alice, 1, 31)
	w.admitted(alice, 9, 30)
}

// shadowClaims: beside claims that can be refused, those in shadow are taken each by itself.
func shadowClaims(w *world) {
	// full buckets would not show when they were charged, and on a server time goes on between the claims
	w.admitted(alice, 1, 1)
	w.admitted(bob, 1, 1)
	enforced, shadowed := w.GPT4.Claim(alice, cost(4, 100)), w.GPT4.With(runtime.Shadow(true)).Claim(alice,
		cost(1, 51))
	admitted := w.GPT4.With(runtime.Shadow(true)).Claim(bob, cost(2, 20))
	if err := w.AcquireAll(w.Context(), shadowed, enforced, admitted); err != nil {
		w.Fatalf("%v", err)
	}
	for who, c := range map[limits.User]limits.GPT4Cost{alice: cost(4, 100), bob: cost(2, 20)} {
		for _, s := range w.portions(who, c) {
			s.take(s.cost, w.store.Decided())
		}
	}
	failed[*store.DeniedError](w, "shadowed", shadowed.Lease().Shadowed())
	if err := errors.Join(enforced.Lease().Shadowed(), admitted.Lease().Shadowed()); err != nil {
		w.Errorf("%v", err)
	}
	w.peek(alice)
	w.peek(bob)
	claims := []runtime.AnyClaim{w.GPT4.Claim(alice, cost(1, 51)), w.GPT4.With(runtime.Shadow(true)).Claim(bob,
		cost(2, 20))}
	failed[*store.DeniedError](w, "one that can be refused", w.AcquireAll(w.Context(), claims...))
	w.peek(alice)
	w.peek(bob)
}

// shadowTogether: calls in shadow and others that meet in one bucket, maybe in one write, do not disturb each
// other. As many as there are tokens for are charged. The others are denied, or let through in shadow.
func shadowTogether(w *world) {
	const rpm, each = 9, 20
	w.admitted(alice, 1, 1) // as in shadowClaims
	var mu sync.Mutex
	admitted, denied, shadowed := int64(0), 0, 0
	var wg sync.WaitGroup
	for i := range 2 * each {
		wg.Go(func() {
			var opts []runtime.CallOption
			if i%2 == 0 {
				opts = append(opts, runtime.Shadow(true))
			}
			lease, err := w.GPT4.Acquire(w.Context(), alice, cost(1, 1), opts...)
			mu.Lock()
			defer mu.Unlock()
			_, refused := errors.AsType[*store.DeniedError](err)
			switch {
			case err == nil && lease.Shadowed() == nil:
				admitted++
			case err == nil && i%2 == 0:
				shadowed++
			case refused && i%2 == 1:
				denied++
			default:
				w.Errorf("call %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	if admitted != rpm || shadowed == 0 && denied == 0 {
		w.Errorf("%d admitted, %d denied, %d shadowed", admitted, denied, shadowed)
	}
	for _, s := range w.portions(alice, cost(admitted, admitted)) {
		s.take(s.cost, w.store.Decided())
	}
	w.Limiter = w.process()
	w.spy.seen()
	w.peek(alice)
}

// shadowOutage: whatever the policy, the call goes through.
func shadowOutage(w *world) {
	w.admitted(alice, 9, 100)
	w.store.Break()
	for _, policy := range []store.Policy{store.Deny, store.Local, store.Allow} {
		if policy == store.Allow {
			w.Limiter = w.process() // which has had no answer in the last two seconds
		}
		lease, err := w.GPT4.Acquire(w.Context(), alice, cost(2, 10), runtime.Shadow(true),
			runtime.OnUnavailable(policy))
		if err != nil || !lease.Degraded() {
			w.Fatalf("%v: %v", policy, err)
		}
		switch shadowed := lease.Shadowed(); policy {
		case store.Deny:
			failed[*store.UnavailableError](w, "deny", shadowed)
		case store.Local:
			failed[*store.DeniedError](w, "local", shadowed)
		default:
			if shadowed != nil {
				w.Errorf("allow: %v", shadowed)
			}
		}
		if err := lease.Settle(w.Context(), cost(1, 30)); err != nil {
			w.Errorf("settle: %v", err)
		}
	}
	w.store.Repair()
	w.Limiter = w.process() // whose breaker is closed
	w.peek(alice)
}
