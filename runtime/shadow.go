package runtime

import (
	"context"
	"errors"

	"github.com/sluice-go/sluice/runtime/store"
)

// Shadow has limits tried out on real calls: what would be refused goes through, and its lease and the observer say what would
// have refused it (Lease.Shadowed, Observer.Shadowed). It is the same as shadow: true in limits.yaml.
//
// A call in shadow is the same write as without: it is charged if it is admitted, and not if it would be refused, as it would not be
// then. So the rate of would-be refusals is what enforced limits would have, of the same calls.
//
// It lets through a *DeniedError, a *CostExceedsBurstError, a *ContendedError and, as a lease that is Degraded whatever the policy, an
// *UnavailableError. Bad input, a *SetupError and a context that has ended fail as ever: they are no limits. A Wait does not sleep: its one
// try says what it would have waited for.
func Shadow() CallOption {
	return func(o *callOptions) { o.shadow = true }
}

// inShadow reports that calls under o are not refused.
func (r *resource) inShadow(o *callOptions) bool { return o.shadow || r.spec.Shadow }

// ending is how an acquire has ended.
type ending struct {
	by       settler // of its lease
	shadowed error   // what would have refused it: nothing was taken
	err      error   // what has: there is no lease
}

// endOf returns how call has ended that admit has returned by and err for.
func endOf(call *request, shadow bool, by settler, err error) ending {
	if !shadow || !spared(err) {
		return ending{by: by, err: err}
	}
	if _, down := outage(err); down {
		call.outage = err
	}
	if call.outage != nil {
		by = unrecorded{}
	}
	return ending{by: by, shadowed: err}
}

// spared reports that err is what shadow mode lets through: a refusal, by a limit or for want of a store that answers.
func spared(err error) bool {
	if _, down := outage(err); down {
		return true
	}
	if _, denied := errors.AsType[*DeniedError](err); denied {
		return true
	}
	if _, exceeds := errors.AsType[*CostExceedsBurstError](err); exceeds {
		return true
	}
	_, contended := errors.AsType[*ContendedError](err)
	return contended
}

// glance is a wait in shadow: a try, and of a denial whether the wait for it would have had an end.
func (r *resource) glance(ctx context.Context, call *request, o *callOptions) (settler, error) {
	waiting, cancel := o.waiting(ctx)
	defer cancel()
	by, err := r.try(ctx, call, o.until(ctx, waiting))
	if denied, ok := errors.AsType[*DeniedError](err); ok && pastDeadline(waiting, denied.RetryAfter) {
		err = store.PastDeadline(denied)
	}
	return by, err
}

// seen returns those of buckets that somebody has seen.
func seen(buckets []store.Bucket) (left []store.Bucket) {
	for _, b := range buckets {
		if b.After != nil {
			left = append(left, b)
		}
	}
	return left
}
