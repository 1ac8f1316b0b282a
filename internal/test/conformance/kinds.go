package conformance

import (
	"time"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// kindsApart: each bucket is charged for the limits of its kind, and refuses for them alone.
func kindsApart(w *world) {
	lease := w.admitted(alice, 3, 100)
	w.left(lease, 7, 300)
	if got := lease.Balances(); len(got) != 2 || got[0].Limit != names[0] || got[1].Limit != names[1] {
		w.Errorf("balances of %+v", got)
	}
	w.denied(alice, 8, 1)
	w.denied(alice, 1, 301)
	w.denied(alice, 8, 301)
	_, err := w.acquire(alice, cost(1, 401))
	failed[*store.CostTooLargeError](w, "above the project's burst", err)
	w.settle(lease, 1, 250)
	w.left(lease, 9, 150)
	other := w.admitted(bob, 0, 100)
	if err := w.more(other, cost(2, 10)); err != nil {
		w.Errorf("more: %v", err)
	}
	w.left(other, 7, 40)
	w.release(other)
	w.admitted(project, 0, 150)
	w.denied(bob, 1, 1)
	own, above := w.peek(alice).Buckets[0], w.peek(project).Buckets[0]
	if own.Capacity != cost(10, 0) || own.Full > 2*time.Second || above.Capacity != cost(0, 400) {
		w.Errorf("peek: %+v, %+v", own, above)
	}
	_, err = w.GPT4.Acquire(w.Context(), project, cost(1, 1))
	if bad := as[*store.InvalidError](w, "rpm of a project", err); bad.Field != "cost of rpm" {
		w.Errorf("rpm of a project: %v", bad)
	}
	_, err = w.Config.GPT4.Kind(alice).Set(w.Context(), limits.GPT4Limits{TPM: &runtime.Rate{Capacity: 5}}, "")
	if bad := as[*store.InvalidError](w, "tpm for users", err); bad.Field != "limit tpm of user" {
		w.Errorf("tpm for users: %v", bad)
	}
	w.set(w.Config.GPT4.Kind(project), limits.GPT4Limits{TPM: rate(plain.user[1])})
	w.inForce("project-p", apart.project[0], plain.user[1])
	w.denied(alice, 1, 1)
	if err := w.Config.GPT4.Reset(w.Context(), project); err != nil {
		w.Fatalf("reset: %v", err)
	}
	w.filled("project-p", apart.project[0], plain.user[1])
	w.left(w.admitted(alice, 1, 1), 8, plain.user[1].Burst/bucket.Milli-1)
}

// kindsLocal: a process decides by the limits of each kind while the store is down.
func kindsLocal(w *world) {
	w.admitted(alice, 3, 100)
	w.store.Break()
	defer w.store.Repair()
	local := w.GPT4.With(runtime.OnUnavailable(store.Local))
	lease, err := local.Acquire(w.Context(), alice, cost(7, 300))
	if err != nil || !lease.Degraded() || lease.Settle(w.Context(), cost(7, 100)) != nil {
		w.Fatalf("in an outage: %v", err)
	}
	if got := lease.Remaining(); got.RPM != 0 || got.TPM != 200 {
		w.Errorf("%+v remain in an outage", got)
	}
	_, err = local.Acquire(w.Context(), alice, cost(1, 201))
	if denied := as[*store.DeniedError](w, "in an outage", err); len(denied.Refusals) != 2 {
		w.Errorf("in an outage: %+v", denied)
	}
}
