package leases

import (
	"context"
	"sync"
	"time"
)

// mostKeeps bounds the leases that Run ends at the same time: each may take a write.
const mostKeeps = 64

// Run ends the leases whose clients are gone, until ctx ends. It looks once a second.
func (h *Holder) Run(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	last := time.Now().Unix()
	var under sync.WaitGroup
	defer under.Wait()
	turns := make(chan struct{}, mostKeeps)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now()
		last = min(last, now.Unix()) // the clock may have been set back
		for last = max(last, now.Unix()-ticks); last < now.Unix(); {
			last++
			for i := range h.shards {
				for _, e := range h.shards[i].expire(int(last%ticks), now.UnixMilli()) {
					if e.lease == nil { // a parked one holds nothing, so there is nothing to write
						h.ended(e.of, Expired)
						continue
					}
					turns <- struct{}{}
					under.Go(func() {
						defer func() { <-turns }()
						e.lease.Keep(context.WithoutCancel(ctx))
						h.ended(e.of, Expired)
					})
				}
			}
		}
	}
}

// Drain waits until no lease is open, or until ctx ends.
func (h *Holder) Drain(ctx context.Context) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for h.open.Load() > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}
