package prefetch

import (
	"context"
	"log/slog"
	"time"

	"github.com/sluice-go/sluice/runtime/internal/observers"
	"github.com/sluice-go/sluice/runtime/internal/prefetch/blocks"
	"github.com/sluice-go/sluice/runtime/store"
)

// start takes a block of size in the background, for calls with a prefetch.
func (p *pool) start(size []int64, prefetch time.Duration) {
	p.resource.background.Start(func() { p.fetch(size, prefetch) })
}

// fetch takes a block. Rests of the pool go out with the same write. A block of unknown outcome is not used:
// the store gives it back.
func (p *pool) fetch(size []int64, prefetch time.Duration) {
	r := p.resource
	called := r.env.Clock.Now()
	p.mu.Lock()
	rests, part := p.blocks.Rests(), p.part(size)
	p.mu.Unlock()
	r.deferRests(p, rests, called)
	call := &store.Call{Parts: []store.Part{part}, Called: called, Deadline: after(prefetch)}
	err := r.Session.Acquire(context.Background(), call)
	b, now := &part.Buckets[0], r.now()
	p.mu.Lock()
	p.seen(b, now)
	p.fetching, p.took = false, now-called.Sub(r.began)
	if err == nil {
		p.add(b, size, prefetch, called, now)
	}
	switch {
	case p.took >= prefetch: // the block had ended before it came, and the next one would too
		p.notBefore = now + slowPause
	case err != nil:
		p.notBefore = now + prefetch/pausePortion
	}
	p.mu.Unlock()
	if err == nil {
		r.observe(store.OperationTake, &part, size)
	}
	r.flush(p)
}

// observe tells the observer what has become of tokens of part's bucket.
func (r *resource) observe(operation string, part *store.Part, tokens []int64) {
	observers.Prefetched(context.Background(), r.env.Observer, operation, part.Def, &part.Buckets[0], tokens)
}

// slowPause is for how long no block is taken after one that took longer than it lives.
const slowPause = time.Second

// pausePortion is the portion of the prefetch, as a divisor, for which no block is taken after one that
// failed.
const pausePortion = 4

// add adds what a write took of p's bucket as a block. The block ends a prefetch after called, when the write
// was asked for, since the write is guarded for that instant or a later one. It also ends some time
// before its window.
func (p *pool) add(
	b *store.Bucket, size []int64, prefetch time.Duration, called time.Time, now time.Duration,
) {
	r := p.resource
	from := called.Sub(r.began)
	until := from + prefetch
	ms := r.Session.Now(r.began.Add(now))
	for _, end := range b.Ends {
		if end != 0 {
			until = min(until, now+time.Duration(end-ms)*time.Millisecond-unheld(prefetch))
		}
	}
	for i, dropped := range b.Dropped { // of an older shape: these were not charged
		if dropped {
			size[i], until = 0, now
		}
	}
	version := int64(0)
	if b.After != nil {
		version = b.After.Version
	}
	p.blocks.Expire(now)
	p.blocks.Add(blocks.New(size, from, until, version, b.Ends), prefetch, now)
	if p.image != nil {
		p.blocks.Seen(p.image.Version, p.image.Ends(), now)
	}
}

// after returns the deadline that is d from now. Deadlines go by the system's clock.
func after(d time.Duration) time.Time {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	deadline, _ := ctx.Deadline()
	return deadline
}

// deferRests leaves rests of p for the bucket's next write. The caller has not locked p.
func (r *resource) deferRests(p *pool, rests []blocks.Rest, called time.Time) {
	for _, rest := range rests {
		call := p.giveBack(rest, called)
		ctx, cancel := context.WithTimeout(context.Background(), r.env.SettleTimeout)
		done := func(err error) {
			cancel()
			r.gaveBack(call, err)
			r.background.End()
		}
		r.background.Begin()
		call.Later = done
		if err := r.Session.Settle(ctx, call); call.Later != nil { // the store has written it, or failed
			done(err)
		}
	}
}

// giveBackNow gives rests of p back. It returns the first error.
func (r *resource) giveBackNow(ctx context.Context, p *pool, rests []blocks.Rest) (first error) {
	for _, rest := range rests {
		call := p.giveBack(rest, r.env.Clock.Now())
		err := r.Session.Settle(ctx, call)
		r.gaveBack(call, err)
		if first == nil {
			first = err
		}
		p.mu.Lock()
		p.seen(&call.Parts[0].Buckets[0], r.now())
		p.mu.Unlock()
	}
	return first
}

// gaveBack tells the observer that call has given tokens back, or logs that it has not. The limit holds all
// the same.
func (r *resource) gaveBack(call *store.Call, err error) {
	if part := &call.Parts[0]; err == nil {
		r.observe(store.OperationReturn, part, part.Cost)
	} else {
		r.env.Logger.LogAttrs(context.Background(), slog.LevelWarn,
			"sluice: prefetched tokens were not given back; they come back by refill",
			slog.String("resource", part.Def.Spec().Resource),
			slog.String("entity", store.Quote(part.Buckets[0].Entity)), slog.Any("error", err))
	}
}
