package runtime

import "time"

// Observers returns an Observer that tells each of all, in that order. Those that are nil are left out.
func Observers(all ...*Observer) *Observer {
	joined := &Observer{}
	for _, o := range all {
		if o == nil {
			continue
		}
		joined.Acquired = both(joined.Acquired, o.Acquired)
		joined.Denied = both(joined.Denied, o.Denied)
		joined.Degraded = both(joined.Degraded, o.Degraded)
		joined.Shadowed = both(joined.Shadowed, o.Shadowed)
		joined.Failed = both(joined.Failed, o.Failed)
		joined.Settled = both(joined.Settled, o.Settled)
		joined.Released = both(joined.Released, o.Released)
		joined.Store = both(joined.Store, o.Store)
		joined.Breaker = both(joined.Breaker, o.Breaker)
		if before, then := joined.Skew, o.Skew; before == nil {
			joined.Skew = then
		} else if then != nil {
			joined.Skew = func(ahead time.Duration) {
				before(ahead)
				then(ahead)
			}
		}
	}
	return joined
}

// both returns what calls first and then second, of which one may be nil, or nil if both are: what nobody is told of is not
// made up.
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
