package prefetch

import (
	"context"
	"sync"
	"time"

	"github.com/sluice-go/sluice/runtime/internal/prefetch/blocks"
	"github.com/sluice-go/sluice/runtime/store"
)

// tick is the time between two looks at the pools that are due: a quarter of the shortest prefetch.
const tick = 25 * time.Millisecond

// wheel has each pool in the tick in which it is to be looked at next. So a look at the pools that are due
// takes no lock that calls on other pools need, however many pools there are.
type wheel struct {
	mu       sync.Mutex
	ticks    map[int64][]*pool
	sweeping bool // the goroutine of sweepPools runs
}

// watch has p looked at soon after at. It starts the goroutine that does so, unless it runs.
func (s *session) watch(p *pool, at time.Duration) {
	w := &s.wheel
	w.mu.Lock()
	defer w.mu.Unlock()
	number := int64(at/tick) + 1
	w.ticks[number] = append(w.ticks[number], p)
	if !w.sweeping && !s.closed.Load() {
		w.sweeping = true
		s.background.Start(s.sweepPools)
	}
}

// due returns the pools that are to be looked at by now, and takes them off w. last reports that w has no
// pool at all: the goroutine that looks at them then ends.
func (w *wheel) due(now time.Duration) (pools []*pool, last bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for number, all := range w.ticks {
		if number <= int64(now/tick) {
			pools = append(pools, all...)
			delete(w.ticks, number)
		}
	}
	w.sweeping = len(pools) > 0 || len(w.ticks) > 0
	return pools, !w.sweeping
}

// sweepPools looks at the pools that are due again and again, until there are none.
func (s *session) sweepPools() {
	for {
		select {
		case <-store.SystemClock().After(tick): // a test's clock may stand still
		case <-s.closing:
			return
		}
		now := s.now()
		pools, last := s.wheel.due(now)
		for _, p := range pools {
			if next := p.sweep(now); next > 0 {
				s.watch(p, next)
			}
		}
		if last {
			return
		}
	}
}

// sweep ends blocks whose time is over, and has rests given back that have waited for a prefetch. It returns
// when p is to be looked at again. If nobody uses p it ends p, and returns 0.
func (p *pool) sweep(now time.Duration) (next time.Duration) {
	r := p.resource
	p.mu.Lock()
	defer p.mu.Unlock()
	p.blocks.Expire(now)
	keeps := p.prefetch
	if r.endsSoon(p, now) {
		keeps = 0
	}
	switch {
	case p.blocks.Overdue(keeps, now):
		rests := p.blocks.Rests()
		r.background.Start(func() { r.giveBackBeside(p, rests) })
	case p.idle(now):
		p.ended = true
		r.mu.Lock()
		delete(r.pools, p.key)
		r.mu.Unlock()
		return 0
	}
	if p.blocks.Empty() && !p.fetching {
		return now + blocks.Span
	}
	return now + p.prefetch/sweepsPerPrefetch
}

// sweepsPerPrefetch is how often a pool that holds something is looked at within its prefetch.
const sweepsPerPrefetch = 4

// unheld returns for how long before the end of a window no blocks are held of it, by calls with a prefetch.
// So the tokens that are left come back, and do not count as used, in the window that they were taken from.
// That is time for two looks at a pool, and a write.
func unheld(prefetch time.Duration) time.Duration { return max(prefetch/2, 4*tick) }

// endsSoon reports whether a window of p's bucket has so little time left.
func (r *resource) endsSoon(p *pool, now time.Duration) bool {
	if p.image == nil {
		return false
	}
	left := unheld(p.prefetch).Milliseconds()
	for _, b := range p.image.Balances {
		if b.Windowed() && b.Ends != 0 && b.Ends-left <= r.Session.Now(r.began.Add(now)) {
			return true
		}
	}
	return false
}

// giveBackBeside gives rests of p back, for no caller that waits.
func (r *resource) giveBackBeside(p *pool, rests []blocks.Rest) {
	ctx, cancel := context.WithTimeout(context.Background(), r.env.SettleTimeout)
	defer cancel()
	_ = r.giveBackNow(ctx, p, rests) // the log has the error
}

// Close implements store.Session. It waits for blocks that are under way, and then gives back what pools
// hold. From then on the session has no pools: calls ask the store. Calls that are under way give back by
// themselves (flush).
func (s *session) Close(ctx context.Context) error {
	s.wheel.mu.Lock()
	if !s.closed.Swap(true) {
		close(s.closing)
	}
	s.wheel.mu.Unlock()
	if err := s.background.Wait(ctx); err != nil {
		return err
	}
	for _, r := range s.resources {
		for _, p := range r.end() {
			p.mu.Lock()
			p.blocks.End(r.now())
			rests := p.blocks.Rests()
			p.mu.Unlock()
			r.deferRests(p, rests, r.env.Clock.Now())
		}
	}
	err := s.Session.Close(ctx) // writes the rests
	if err == nil {
		err = s.background.Wait(ctx)
	}
	return err
}

// flush gives back what p, whose lock is not held, got after the session was closed: a call or a block was
// under way.
func (r *resource) flush(p *pool) {
	if !r.closed.Load() {
		return
	}
	p.mu.Lock()
	p.blocks.End(r.now())
	rests := p.blocks.Rests()
	p.mu.Unlock()
	r.giveBackBeside(p, rests)
}

// end returns the pools of r, which has none then.
func (r *resource) end() (all []*pool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.pools {
		all = append(all, p)
	}
	clear(r.pools)
	return all
}
