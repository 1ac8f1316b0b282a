package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/runtime/internal/lookups"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/database"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/inforce"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/text"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/underway"
	"github.com/sluice-go/sluice/runtime/store"
)

// override is what is stored for an entity or a kind of a resource, or for all its plans, as it was read.
type override struct {
	store.Stored
	plans   []store.Stored // of all plans, by At
	read    int64          // when the read began, ms
	changes int64          // the resource's changed counter at that time
	number  int64          // of the read: higher than those of earlier ones
}

// resolver resolves the limits in force, from overrides in the session's cache or in Redis.
type resolver struct{ *session }

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
		from := p.known(p.plan)
		if s.current(p.resource, from.own, now) && s.current(p.resource, from.ofKind, now) &&
			(!p.onPlans || s.current(p.resource, from.plans, now)) &&
			(from.entry == nil || s.current(p.resource, from.ofAll, now)) {
			p.set(from)
			p.inForce = p.cachedBucket.inForce
		}
		p.mu.Unlock()
		expired = expired || p.inForce == nil
	}
	if expired {
		if err := s.readOverrides(r, now); err != nil {
			return err
		}
	}
	s.noteUnknown(r)
	return nil
}

// noteUnknown logs, once, that a bucket is on a plan of a newer program.
func (s resolver) noteUnknown(r *request) {
	for i := range r.portions {
		if p := &r.portions[i]; p.inForce.Version == inforce.Unknown {
			s.unknownPlan.Do(func() {
				s.env.Logger.LogAttrs(r.ctx, slog.LevelWarn, "sluice: calls have the most of all plans, instead of "+
					"one that limits.yaml of this program does not have: update the program",
					slog.String("resource", p.spec.Resource), slog.String("entity", store.Quote(p.plan.Of)),
					slog.String("plan", store.Quote(p.plan.Name)))
			})
		}
	}
}

// overrideKey says which override a read is of. A read from before this session wrote overrides of the
// resource has another key than those after it.
type overrideKey struct {
	*resource
	at      string // an entity or a kind; allPlans
	changes int64  // the resource's changed counter
}

// allPlans is a place in the hash of all plans, at which no plan has limits.
var allPlans = store.PlanAt("", "")

type overrideRead = underway.Read[overrideKey, *override]

// unresolved is a bucket whose limits are not resolved yet, and which of the reads it needs: unread if what
// is cached serves.
type unresolved struct {
	*portion
	own, ofAll, ofKind, plans int
}

const unread = -1

// unresolved returns the buckets of r's portions without limits, and what to read for them.
func (s resolver) unresolved(r *request, now int64) (all []unresolved, keys []overrideKey) {
	for i := range r.portions {
		p := &r.portions[i]
		if p.inForce != nil {
			continue
		}
		changes := p.changed.Load()
		read := func(of *resource, at string) int {
			keys = append(keys, overrideKey{of, at, changes})
			return len(keys) - 1
		}
		next := unresolved{portion: p, ofAll: unread, ofKind: unread, plans: unread}
		next.own = read(p.resource, p.entity)
		if p.resource != p.opened {
			next.ofAll = read(p.opened, p.entity)
		}
		if !s.current(p.resource, p.kinds[p.kind].Load(), now) {
			next.ofKind = read(p.opened, p.spec.Kinds[p.kind].Name)
		}
		if p.onPlans && !s.current(p.resource, p.plans.Load(), now) {
			next.plans = read(p.opened, allPlans)
		}
		all = append(all, next)
	}
	return all, keys
}

// resolve returns the limits in force by what was read, or nil unless all reads that u needs have succeeded.
// ended says that the call may have ended.
func (u *unresolved) resolve(reads []*overrideRead, ended bool) *limitSet {
	u.mu.Lock()
	from := u.known(u.plan)
	u.mu.Unlock()
	ok := true
	for _, of := range []struct {
		read int
		into **override
	}{{u.own, &from.own}, {u.ofAll, &from.ofAll}, {u.ofKind, &from.ofKind}, {u.plans, &from.plans}} {
		if of.read != unread && ok {
			*of.into, ok = reads[of.read].Value()
		}
	}
	if !ok {
		return nil
	}
	return u.use(from, ended)
}

// readOverrides reads the overrides of those of r's buckets whose limits are not resolved yet. It joins the
// reads that are under way for other callers. If Redis does not answer, expired overrides serve for another
// second: a failed read is no reason to deny.
func (s resolver) readOverrides(r *request, now int64) error {
	ctx := r.ctx
	if !r.deadline.IsZero() { // half of the remaining time is for the charge
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, max(minAttempt, until(r.deadline)/2))
		defer cancel()
	}
	event := store.StoreEvent{Call: callPipeline, Path: "levels", Resource: r.portions[0].spec.Resource,
		Template: r.portions[0].spec.Template}
	all, keys := s.unresolved(r, now)
	reads := s.reads.Join(keys, func(begun []*overrideRead) {
		s.sendReads(context.WithoutCancel(ctx), event, begun)
	}, func(reads []*overrideRead) {
		for i := range all {
			all[i].resolve(reads, true)
		}
	})
	for _, read := range reads {
		if _, err := read.Wait(ctx); err != nil {
			err = s.readError(ctx, &event, err)
			if _, down := errors.AsType[*store.UnavailableError](err); down {
				return s.useExpired(r, now, err)
			}
			return err
		}
	}
	for i := range all {
		all[i].inForce = all[i].resolve(reads, false)
	}
	return nil
}

// sendReads sends reads in one pipeline. One that fails, as where the key holds something else, leaves the
// others as they are.
func (s resolver) sendReads(ctx context.Context, event store.StoreEvent, reads []*overrideRead) {
	event.Began = s.env.Clock.Now()
	pipe := s.db.Client.Pipeline()
	replies := make([]*redis.MapStringStringCmd, len(reads))
	for i, read := range reads {
		replies[i] = pipe.HGetAll(ctx, s.db.Keys.Config(read.Key.spec.Resource, read.Key.at))
	}
	_, err := pipe.Exec(ctx)
	found, ofOne := false, false
	for _, reply := range replies {
		found, ofOne = found || len(reply.Val()) > 0, ofOne || reply.Err() != nil
	}
	for i, read := range reads {
		if failure := replies[i].Err(); failure != nil || err != nil && !ofOne {
			read.Set(nil, database.OnKey(s.db.Keys.Config(read.Key.spec.Resource, read.Key.at), cmp.Or(failure, err)))
			continue
		}
		read.Set(s.decodeRead(read, replies[i].Val()))
	}
	event.Outcome = readOutcome(found, err)
	s.report(ctx, event)
}

// decodeRead returns what was read.
func (s resolver) decodeRead(read *overrideRead, hash map[string]string) (*override, error) {
	spec := read.Key.spec
	stored, err := s.decodeOverride(spec, read.Key.at, hash)
	o := &override{Stored: stored, read: read.Began, changes: read.Key.changes, number: read.Number}
	if read.Key.at == allPlans {
		for _, at := range text.Plans(hash) {
			if err != nil {
				break
			}
			stored, err = s.decodeOverride(spec, at, hash)
			o.plans = append(o.plans, stored)
		}
	}
	if err != nil {
		return nil, err
	}
	return o, nil
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
		from := p.known(p.plan) // another bucket may have read the kind's and the plans' since
		p.mu.Unlock()
		if from.own == nil {
			return err
		}
		for _, o := range []**override{&from.own, &from.ofAll, &from.ofKind, &from.plans} {
			if *o != nil && !s.current(p.resource, *o, now) {
				extended := **o
				extended.read, extended.changes = lookups.TTL(s.env.CacheTTL).GraceRead(now), p.changed.Load()
				*o = &extended
			}
		}
		p.inForce = p.use(from, false)
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
	event.Outcome = readOutcome(r.found, r.err)
	s.report(ctx, event)
	return s.readError(ctx, &event, r.err)
}

// readOutcome returns the StoreEvent.Outcome of a read.
func readOutcome(found bool, err error) string {
	switch {
	case err != nil:
		return "failed"
	case found:
		return "found"
	}
	return "missing"
}

// readError returns the error for a caller, whose context is ctx, of a read that ended with err.
func (s *Store) readError(ctx context.Context, event *store.StoreEvent, err error) error {
	switch {
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("sluice: %s: %w", event.Path, err)
	case errors.Is(err, context.DeadlineExceeded):
		return &store.UnavailableError{Resource: event.Resource, Attempts: 1, Err: err}
	}
	if malformed, ok := errors.AsType[*store.SetupError](err); ok {
		return malformed
	}
	err = s.db.OperationError(ctx, err)
	if down, ok := errors.AsType[*store.UnavailableError](err); ok {
		down.Resource, down.Attempts = event.Resource, 1
	}
	return err
}
