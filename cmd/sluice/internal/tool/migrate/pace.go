package migrate

import (
	"context"
	"time"

	"golang.org/x/time/rate"
)

// pace keeps the write units of all segments together within a rate. A nil pace does not limit.
type pace struct {
	limiter *rate.Limiter
	now     func() time.Time
	sleep   func(context.Context, time.Duration) error
}

// newPace returns a pace of units a second, or nil for 0. It starts empty, so that the first second does not
// exceed the rate either. It saves up to one second's worth of unused units.
func newPace(units int, now func() time.Time, sleep func(context.Context, time.Duration) error) *pace {
	if units == 0 {
		return nil
	}
	p := &pace{rate.NewLimiter(rate.Limit(units), units), now, sleep}
	p.limiter.AllowN(now(), units)
	return p
}

// pay waits until n units may be written. A run that is killed between paying and writing has written less.
func (p *pace) pay(ctx context.Context, n int) error {
	if p == nil {
		return ctx.Err()
	}
	now := p.now()
	var wait time.Duration
	for n > 0 {
		part := min(n, p.limiter.Burst())
		wait = p.limiter.ReserveN(now, part).DelayFrom(now)
		n -= part
	}
	return p.sleep(ctx, wait)
}

// sleep waits for d, or until ctx is over.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}
