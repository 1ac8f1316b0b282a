package redisstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/runtime/internal/lookups"
	"github.com/sluice-go/sluice/runtime/store"
)

// override is what is stored for an entity or a kind of a resource, as it was read.
type override struct {
	store.Stored

	read    int64 // when, ms
	changes int64 // the resource's changed counter at that time
}

// resolver resolves the limits in force, from overrides in the session's cache or in Redis.
type resolver struct{ *session }

// graceRead returns the read time to record when a refresh is due but failed, so that the old value serves
// for one more second.
func (s resolver) graceRead(now int64) int64 { return lookups.TTL(s.env.CacheTTL).GraceRead(now) }

// current reports whether o may still be used.
func (s resolver) current(r *resource, o *override, now int64) bool {
	return o != nil && lookups.TTL(s.env.CacheTTL).Fresh(o.read, now) && o.changes == r.changed.Load()
}

// resolve sets the limits in force for r's buckets. It reads the overrides whose cached values have
// expired, all in one pipeline.
func (s resolver) resolve(r *request) error {
	now, expired := s.now(), false
	for i := range r.portions {
		p := &r.portions[i]
		p.mu.Lock()
		ofKind := p.kinds[p.kind].Load()
		if s.current(p.resource, p.own, now) && s.current(p.resource, ofKind, now) {
			p.cachedBucket.setOverrides(p.own, ofKind)
			p.inForce = p.cachedBucket.inForce
		}
		p.mu.Unlock()
		expired = expired || p.inForce == nil
	}
	if !expired {
		return nil
	}
	return s.readOverrides(r, now)
}

// overrideRead is the read of one override.
type overrideRead struct {
	*resource
	at      string
	changes int64 // the resource's changed counter before the read
	command *redis.MapStringStringCmd
}

// overrideReads is the reads of one pipeline, each of them once.
type overrideReads struct {
	all         []*overrideRead
	own, ofKind []*overrideRead // by portion; nil where nothing is to be read
}

// newOverrideReads returns the reads that r's portions without limits need.
func (s resolver) newOverrideReads(r *request, now int64) *overrideReads {
	reads := &overrideReads{
		own: make([]*overrideRead, len(r.portions)), ofKind: make([]*overrideRead, len(r.portions)),
	}
	for i := range r.portions {
		p := &r.portions[i]
		if p.inForce != nil {
			continue
		}
		reads.own[i] = reads.add(p.resource, p.entity)
		if !s.current(p.resource, p.kinds[p.kind].Load(), now) {
			reads.ofKind[i] = reads.add(p.resource, p.spec.Kinds[p.kind].Name)
		}
	}
	return reads
}

// add returns the read of the override at an entity or a kind.
func (o *overrideReads) add(of *resource, at string) *overrideRead {
	for _, read := range o.all {
		if read.resource == of && read.at == at {
			return read
		}
	}
	read := &overrideRead{resource: of, at: at, changes: of.changed.Load()}
	o.all = append(o.all, read)
	return read
}

// exec reads all from Redis. It reports whether any override was found.
func (o *overrideReads) exec(ctx context.Context, s resolver) (found bool, err error) {
	pipe := s.client.Pipeline()
	for _, read := range o.all {
		read.command = pipe.HGetAll(ctx, s.keys.config(read.spec.Resource, read.at))
	}
	err = exec(ctx, pipe)
	for _, read := range o.all {
		found = found || len(read.command.Val()) > 0
	}
	return found, err
}

// readOverrides reads the overrides of those of r's buckets whose limits are not resolved yet. If Redis
// does not answer, expired overrides serve for another second: a failed read is no reason to deny.
func (s resolver) readOverrides(r *request, now int64) error {
	ctx := r.ctx
	if !r.deadline.IsZero() { // half of the remaining time is for the charge
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, max(minAttempt, until(r.deadline)/2))
		defer cancel()
	}
	reads := s.newOverrideReads(r, now)
	event := store.StoreEvent{Call: callPipeline, Path: "levels", Resource: r.portions[0].spec.Resource}
	err := s.read(ctx, event, func(ctx context.Context) (bool, error) { return reads.exec(ctx, s) })
	switch _, down := errors.AsType[*store.UnavailableError](err); {
	case down:
		return s.useExpired(r, now, err)
	case err != nil:
		return err
	}
	for i := range r.portions {
		p := &r.portions[i]
		if reads.own[i] == nil {
			continue
		}
		ofKind := p.kinds[p.kind].Load()
		if reads.ofKind[i] != nil {
			if ofKind, err = s.decodeRead(reads.ofKind[i], now); err != nil {
				return err
			}
		}
		own, err := s.decodeRead(reads.own[i], now)
		if err != nil {
			return err
		}
		p.useOverrides(own, ofKind)
	}
	return nil
}

// useOverrides resolves the portion's limits from the overrides of its entity and of its kind.
func (p *portion) useOverrides(own, ofKind *override) {
	p.kinds[p.kind].Store(ofKind)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cachedBucket.setOverrides(own, ofKind)
	p.inForce = p.cachedBucket.inForce
}

// decodeRead returns the override that was read.
func (s resolver) decodeRead(read *overrideRead, now int64) (*override, error) {
	stored, err := s.keys.decodeOverride(read.spec, read.at, read.command.Val())
	if err != nil {
		return nil, err
	}
	return &override{Stored: stored, read: now, changes: read.changes}, nil
}

// useExpired resolves r's limits from expired overrides, which serve for another second. It returns err if a
// bucket has none.
func (s resolver) useExpired(r *request, now int64, err error) error {
	for i := range r.portions {
		p := &r.portions[i]
		if p.inForce != nil {
			continue
		}
		p.mu.Lock()
		own, ofKind := p.own, p.kinds[p.kind].Load() // another bucket may have read the kind's since
		p.mu.Unlock()
		if own == nil {
			return err
		}
		extend := func(o *override) *override {
			if s.current(p.resource, o, now) {
				return o
			}
			return &override{o.Stored, s.graceRead(now), p.changed.Load()}
		}
		p.useOverrides(extend(own), extend(ofKind))
	}
	return nil
}

// callPipeline is the StoreEvent.Call of reads that are sent together.
const callPipeline = "PIPELINE"

// read calls do to read from Redis, and reports event, which it completes. It returns when ctx ends, which
// the client does not watch while it waits for a reply. do reports whether it has found anything.
//
// It returns nil, the end of a cancelled context, a *store.SetupError, or a *store.UnavailableError.
func (s *session) read(
	ctx context.Context, event store.StoreEvent, do func(context.Context) (bool, error),
) error {
	event.Began = s.env.Clock.Now()
	type reply struct {
		found bool
		err   error
	}
	replied := make(chan reply, 1)
	s.background.Start(func() {
		found, err := do(context.WithoutCancel(ctx))
		replied <- reply{found, err}
	})
	var r reply
	select {
	case r = <-replied:
	case <-ctx.Done():
		r.err = ctx.Err()
	}
	switch {
	case r.err != nil:
		event.Outcome = "failed"
	case r.found:
		event.Outcome = "found"
	default:
		event.Outcome = "missing"
	}
	s.report(ctx, event)
	switch {
	case r.err == nil:
		return nil
	case errors.Is(r.err, context.Canceled):
		return fmt.Errorf("sluice: %s: %w", event.Path, r.err)
	case errors.Is(r.err, context.DeadlineExceeded):
		return &store.UnavailableError{Resource: event.Resource, Attempts: 1, Err: r.err}
	}
	err := s.operationError(ctx, r.err)
	if down, ok := errors.AsType[*store.UnavailableError](err); ok {
		down.Resource, down.Attempts = event.Resource, 1
	}
	return err
}
