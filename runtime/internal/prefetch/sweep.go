package prefetch

import (
	"context"
	"time"

	"github.com/sluice-go/sluice/runtime/internal/prefetch/blocks"
	"github.com/sluice-go/sluice/runtime/store"
)

// sweepOn starts the goroutine that ends blocks and pools, unless it runs.
func (s *session) sweepOn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.sweeping && !s.closed.Load() {
		s.sweeping = true
		s.background.Start(s.sweepPools)
	}
}

// sweepPools ends blocks and pools again and again, until there are no pools.
func (s *session) sweepPools() {
	every := time.Duration(0)
	for _, r := range s.resources {
		if every == 0 || r.prefetch < every {
			every = r.prefetch
		}
	}
	for {
		select {
		case <-store.SystemClock().After(every / sweeping): // a test's clock may stand still
		case <-s.closing:
			return
		}
		s.mu.Lock()
		left := 0
		for _, r := range s.resources {
			left += r.sweep()
		}
		s.sweeping = left > 0
		s.mu.Unlock()
		if left == 0 {
			return
		}
	}
}

// sweeping divides the shortest prefetch: so often blocks and pools are looked at.
const sweeping = 4

// sweep ends blocks whose time is over, has rests given back that have waited for a prefetch, and ends pools
// that nobody uses. It returns how many pools are left.
func (r *resource) sweep() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	for key, p := range r.pools {
		p.mu.Lock()
		p.blocks.Expire(now)
		if p.blocks.Overdue(r.prefetch, now) {
			rests := p.blocks.Rests()
			r.background.Start(func() { r.giveBackBeside(p, rests) })
		} else if p.idle(now) {
			p.ended = true
			delete(r.pools, key)
		}
		p.mu.Unlock()
	}
	return len(r.pools)
}

// giveBackBeside gives rests of p back, of which no caller waits for the end.
func (r *resource) giveBackBeside(p *pool, rests []blocks.Rest) {
	ctx, cancel := context.WithTimeout(context.Background(), r.env.SettleTimeout)
	defer cancel()
	r.gaveBack(p, r.giveBackNow(ctx, p, rests))
}

// Close implements store.Session. It gives back what pools hold, after the blocks that are under way have
// come. The session is as without pools then.
func (s *session) Close(ctx context.Context) error {
	s.mu.Lock()
	if !s.closed.Swap(true) {
		close(s.closing)
	}
	s.mu.Unlock()
	if err := s.background.Wait(ctx); err != nil {
		return err
	}
	for _, r := range s.resources {
		for _, p := range r.end() {
			p.mu.Lock()
			p.blocks.End(r.now())
			rests := p.blocks.Rests()
			p.mu.Unlock()
			r.ride(p, rests, r.env.Clock.Now())
		}
	}
	err := s.Session.Close(ctx) // writes what rides
	if err == nil {
		err = s.background.Wait(ctx)
	}
	return err
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
