package redisstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/internal/lookups"
)

// level is what one level says of a resource, as it was read.
type level struct {
	runtime.Stored

	read    int64 // when, ms
	changes int64 // that this session had made to the resource's overrides then
}

// fresh reports that what was read at an instant may still be used.
func (s *session) fresh(read, now int64) bool { return lookups.TTL(s.env.CacheTTL).Fresh(read, now) }

// spared is when what is due, but cannot be read now, is said to have been read.
func (s *session) spared(now int64) int64 { return lookups.TTL(s.env.CacheTTL).Spared(now) }

// current reports that what was read of a level may still be used.
func (s *session) current(r *resource, l *level, now int64) bool {
	return l != nil && s.fresh(l.read, now) && l.changes == r.changed.Load()
}

// resolve finds out by what r's buckets are charged: it reads the overrides that are due, all in one pipeline.
func (s *session) resolve(r *request) error {
	now, due := s.now(), false
	for i := range r.shares {
		sh := &r.shares[i]
		sh.mu.Lock()
		ofKind := sh.kinds[sh.kind].Load()
		if s.current(sh.resource, sh.own, now) && s.current(sh.resource, ofKind, now) {
			sh.memory.resolve(sh.own, ofKind)
			sh.shape = sh.memory.shape
		}
		sh.mu.Unlock()
		due = due || sh.shape == nil
	}
	if !due {
		return nil
	}
	return s.readLevels(r, now)
}

// reading is the read of a level.
type reading struct {
	*resource
	at      string
	changes int64
	command *redis.MapStringStringCmd
}

// readLevels reads the overrides of those of r's buckets that have no shape yet. Where Redis does not answer, what is remembered
// of them serves for another second: that they could not be read is no reason to refuse what could be charged.
func (s *session) readLevels(r *request, now int64) error {
	ctx := r.ctx
	if !r.deadline.IsZero() { // what is left is for the charge
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, max(shortestTry, left(r.deadline)/2))
		defer cancel()
	}
	var all []*reading
	read := func(of *resource, at string) *reading {
		for _, l := range all {
			if l.resource == of && l.at == at {
				return l
			}
		}
		l := &reading{resource: of, at: at, changes: of.changed.Load()}
		all = append(all, l)
		return l
	}
	own, ofKind := make([]*reading, len(r.shares)), make([]*reading, len(r.shares))
	for i := range r.shares {
		sh := &r.shares[i]
		if sh.shape != nil {
			continue
		}
		own[i] = read(sh.resource, sh.entity)
		if !s.current(sh.resource, sh.kinds[sh.kind].Load(), now) {
			ofKind[i] = read(sh.resource, sh.spec.Kinds[sh.kind].Name)
		}
	}
	event := runtime.StoreEvent{Call: pipeline, Path: "levels", Resource: r.shares[0].spec.Resource}
	err := s.read(ctx, event, func(ctx context.Context) (bool, error) {
		found, pipe := false, s.client.Pipeline()
		for _, l := range all {
			l.command = pipe.HGetAll(ctx, s.keys.config(l.spec.Resource, l.at))
		}
		err := exec(ctx, pipe)
		for _, l := range all {
			found = found || len(l.command.Val()) > 0
		}
		return found, err
	})
	switch _, down := errors.AsType[*runtime.UnavailableError](err); {
	case down:
		return s.withOld(r, now, err)
	case err != nil:
		return err
	}
	for i := range r.shares {
		sh := &r.shares[i]
		if own[i] == nil {
			continue
		}
		known := sh.kinds[sh.kind].Load()
		if ofKind[i] != nil {
			if known, err = s.level(ofKind[i], now); err != nil {
				return err
			}
		}
		level, err := s.level(own[i], now)
		if err != nil {
			return err
		}
		sh.take(level, known)
	}
	return nil
}

// take has the share's bucket charged by what was read of its levels.
func (sh *share) take(own, ofKind *level) {
	sh.kinds[sh.kind].Store(ofKind)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.memory.resolve(own, ofKind)
	sh.shape = sh.memory.shape
}

// level decodes what was read of one.
func (s *session) level(l *reading, now int64) (*level, error) {
	stored, err := s.decodeLevel(l.spec, l.at, l.command.Val())
	if err != nil {
		return nil, err
	}
	return &level{Stored: stored, read: now, changes: l.changes}, nil
}

// withOld lets r go on for a second with overrides that are due to be read, if there are any; else it returns err.
func (s *session) withOld(r *request, now int64, err error) error {
	for i := range r.shares {
		sh := &r.shares[i]
		if sh.shape != nil {
			continue
		}
		sh.mu.Lock()
		own, ofKind := sh.own, sh.ofKind
		sh.mu.Unlock()
		if own == nil {
			return err
		}
		spared := func(l *level) *level { return &level{l.Stored, s.spared(now), sh.changed.Load()} }
		sh.take(spared(own), spared(ofKind))
	}
	return nil
}

// pipeline is the Call of reads that go together.
const pipeline = "PIPELINE"

// read has do read from Redis for as long as ctx lasts, which the client does not look at while it waits for a reply. It completes
// event; do says whether it has found anything.
func (s *session) read(ctx context.Context, event runtime.StoreEvent, do func(context.Context) (bool, error)) error {
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
	s.tell(ctx, event)
	switch {
	case r.err == nil:
		return nil
	case errors.Is(r.err, context.Canceled):
		return fmt.Errorf("sluice: %s: %w", event.Path, r.err)
	case errors.Is(r.err, context.DeadlineExceeded):
		return &runtime.UnavailableError{Resource: event.Resource, Attempts: 1, Err: r.err}
	}
	err := s.told(ctx, r.err)
	if down, ok := errors.AsType[*runtime.UnavailableError](err); ok {
		down.Resource, down.Attempts = event.Resource, 1
	}
	return err
}
