// Package observers tells observers how calls have ended, and makes one observer of several.
package observers

import (
	"time"

	"github.com/sluice-go/sluice/runtime/store"
)

// Chain returns an Observer that calls each of all, in that order. Nil ones are left out.
func Chain(all []*store.Observer) *store.Observer {
	chained := &store.Observer{}
	for _, o := range all {
		if o == nil {
			continue
		}
		chained.Acquired = both(chained.Acquired, o.Acquired)
		chained.Denied = both(chained.Denied, o.Denied)
		chained.Degraded = both(chained.Degraded, o.Degraded)
		chained.Shadowed = both(chained.Shadowed, o.Shadowed)
		chained.Failed = both(chained.Failed, o.Failed)
		chained.Settled = both(chained.Settled, o.Settled)
		chained.Released = both(chained.Released, o.Released)
		chained.LeaseLost = both(chained.LeaseLost, o.LeaseLost)
		chained.Prefetched = both(chained.Prefetched, o.Prefetched)
		chained.Store = both(chained.Store, o.Store)
		chained.Breaker = both(chained.Breaker, o.Breaker)
		if before, then := chained.Skew, o.Skew; before == nil {
			chained.Skew = then
		} else if then != nil {
			chained.Skew = func(ahead time.Duration) {
				before(ahead)
				then(ahead)
			}
		}
	}
	return chained
}

// both chains two callbacks. It returns nil if both are nil, so that no event is built for nobody.
func both[A, B any](first, second func(A, B)) func(A, B) {
	switch {
	case first == nil:
		return second
	case second == nil:
		return first
	}
	return func(a A, b B) {
		first(a, b)
		second(a, b)
	}
}
