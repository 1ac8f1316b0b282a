package runtime

import (
	"context"
	"errors"

	"github.com/sluice-go/sluice/runtime/internal/deadlines"
	"github.com/sluice-go/sluice/runtime/internal/outage"
	"github.com/sluice-go/sluice/runtime/internal/waitlist"
	"github.com/sluice-go/sluice/runtime/store"
)

// Shadow tries limits out on real calls: a call that would be refused goes through. Its lease and the
// observer say what would have refused it (Lease.Shadowed, Observer.Shadowed). It is in place of shadow in
// limits.yaml: Shadow(false) refuses calls of a resource that is in shadow there.
//
// A call in shadow is the same write as without: it is charged if it is admitted, and not charged if it would
// be refused. So the rate of would-be refusals is what enforced limits would have on the same calls.
//
// It lets through a *DeniedError, a *CostTooLargeError, a *ContendedError and, as a Degraded lease
// whatever the policy, an *UnavailableError. Bad input, a *SetupError and a context that has ended are no
// limits: they still fail. A Wait does not sleep: its one attempt says what it would have waited for.
func Shadow(on bool) CallOption {
	return func(o *callOptions) { o.shadow = chosen(on) }
}

// inShadow reports that calls under o are not refused.
func (r *resource) inShadow(o *callOptions) bool { return o.shadow.or(r.spec.Shadow) }

// ending is how an acquire has ended.
type ending struct {
	by       outage.Settler // of its lease
	shadowed error          // what would have refused it; then nothing was taken
	err      error          // what has refused it; then there is no lease
}

// endOf returns how call has ended, given what admit returned.
func endOf(call *request, shadow bool, by outage.Settler, err error) ending {
	if !shadow || !outage.LetsThrough(err) {
		return ending{by: by, err: err}
	}
	if _, down := outage.Of(err); down {
		call.Outage = err
	}
	if call.Outage != nil {
		by = outage.Unrecorded{}
	}
	return ending{by: by, shadowed: err}
}

// glance is a wait in shadow: one attempt. If that is denied, it also checks whether a wait would end in
// time.
func (r *resource) glance(ctx context.Context, call *request, o *callOptions) (outage.Settler, error) {
	waiting, cancel := o.waiting(ctx)
	defer cancel()
	by, err := r.attempt(ctx, call, o.until(ctx, waiting))
	denied, ok := errors.AsType[*DeniedError](err)
	if ok && deadlines.Past(waiting, waitlist.AtLeast(r.spec, denied)) {
		err = store.PastDeadline(denied)
	}
	return by, err
}
