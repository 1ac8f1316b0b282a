package cli

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/redisstore"
)

// inspect implements store.
func (s *redisStore) inspect(ctx context.Context, entity, resource, root string) ([]found, error) {
	l, err := s.schema.level(entity, resource)
	if err != nil {
		return nil, err
	}
	stored, err := s.stored(ctx, l, root)
	if err != nil {
		return nil, s.explain(err)
	}
	next, err := s.read(ctx, l.spec, redisstore.BucketPage{Buckets: stored})
	return next.buckets, s.explain(err)
}

// list implements store.
func (s *redisStore) list(ctx context.Context, resource, kind string) iter.Seq2[page, error] {
	return func(yield func(page, error) bool) {
		for next, err := range s.pages(ctx, resource, kind) {
			if err != nil {
				yield(page{}, s.explain(err))
				return
			}
			if !yield(next, nil) {
				return
			}
		}
	}
}

// pages is list, whose errors are the store's.
func (s *redisStore) pages(ctx context.Context, resource, kind string) iter.Seq2[page, error] {
	return func(yield func(page, error) bool) {
		spec, err := s.schema.resource(resource)
		if err == nil && kind != "" {
			_, err = s.schema.level(kind, resource)
		}
		if err != nil {
			yield(page{}, err)
			return
		}
		for stored, err := range s.buckets.Buckets(ctx, resource, kind) {
			var next page
			if err == nil {
				next, err = s.read(ctx, spec, stored)
			}
			if !yield(next, err) || err != nil {
				return
			}
		}
	}
}

// read works out what stored buckets have now, by Redis's clock and by the numbers in force for them.
func (s *redisStore) read(ctx context.Context, spec *runtime.Spec, stored redisstore.BucketPage) (next page, err error) {
	next.malformed = stored.Malformed
	if len(stored.Buckets) == 0 {
		return next, nil
	}
	var at []string
	for _, b := range stored.Buckets {
		kind, _, _ := strings.Cut(b.Entity, "-")
		at = append(at, b.Entity, kind)
	}
	slices.Sort(at)
	at = slices.Compact(at)
	said, err := s.overrides().Get(ctx, spec, at...)
	if err != nil {
		return next, err
	}
	now, err := s.buckets.Time(ctx)
	if err != nil {
		return next, err
	}
	level := func(name string) runtime.Stored {
		i, _ := slices.BinarySearch(at, name)
		return said[i]
	}
	for _, b := range stored.Buckets {
		kind, _, _ := strings.Cut(b.Entity, "-")
		own := slices.IndexFunc(spec.Kinds, func(k runtime.Kind) bool { return k.Name == kind && k.Limits != nil })
		if own < 0 {
			next.strange = append(next.strange, "kind "+kind)
			continue
		}
		levels := []runtime.Stored{level(b.Entity), level(kind)}
		next.buckets = append(next.buckets, found{
			entity: b.Entity, resource: spec.Resource, root: b.Root, revision: spec.Revision, overrides: versions(levels),
			limits: limitsOf(spec, b, runtime.Resolve(spec.Kinds[own].Limits, levels...), now.UnixMilli()),
		})
		for _, l := range b.Limits {
			if !slices.Contains(spec.Limits, l.Name) {
				next.strange = append(next.strange, "limit "+l.Name)
			}
		}
	}
	return next, nil
}

// limitsOf returns what b has at now (ms) of the limits in force for it. One that is not stored is full.
func limitsOf(spec *runtime.Spec, b redisstore.StoredBucket, inForce []bucket.Limit, now int64) []limitNow {
	all := make([]limitNow, len(inForce))
	for i, limit := range inForce {
		stored := redisstore.StoredLimit{Tokens: limit.Burst, Refilled: now}
		if at := slices.IndexFunc(b.Limits, func(l redisstore.StoredLimit) bool { return l.Name == spec.Limits[i] }); at >= 0 {
			stored = b.Limits[at]
		}
		all[i] = nowOf(spec.Limits[i], bucket.Balance{Limit: limit, Tokens: stored.Tokens}, stored.Refilled, now)
	}
	return all
}

// fill implements store.
func (s *redisStore) fill(ctx context.Context, b found, limits []string) (*found, []string, error) {
	all := make([]string, len(b.limits))
	for i, l := range b.limits {
		all[i] = l.name
	}
	for _, name := range limits {
		if !slices.Contains(all, name) {
			return nil, nil, notIn(b, name, all)
		}
	}
	if len(limits) == 0 {
		limits = all
	}
	if err := s.buckets.Fill(ctx, b.resource, b.root, b.entity, limits...); err != nil {
		return nil, nil, s.explain(err)
	}
	after, err := s.inspect(ctx, b.entity, b.resource, b.root)
	if err != nil {
		return nil, nil, err
	}
	if len(after) > 0 {
		return &after[0], limits, nil
	}
	full := b // all of it
	full.limits = slices.Clone(b.limits)
	for i, l := range full.limits {
		full.limits[i].available, full.limits[i].fullIn = l.Burst, 0
	}
	return &full, limits, nil
}

// notIn is the error for a limit that b has not.
func notIn(b found, name string, has []string) error {
	return &runtime.InvalidError{
		Resource: b.resource, Field: "limit", Value: name,
		Reason: fmt.Sprintf("is not in the bucket of %s, which has %s", b.entity, strings.Join(has, ", ")),
	}
}
