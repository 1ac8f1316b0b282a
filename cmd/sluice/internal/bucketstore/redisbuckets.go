package bucketstore

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/redisstore"
	"github.com/sluice-go/sluice/runtime/store"
)

// Inspect implements Store.
func (s *Redis) Inspect(ctx context.Context, entity, resource, root string) ([]Bucket, error) {
	l, err := s.scope(ctx, entity, resource)
	if err != nil {
		return nil, err
	}
	stored, err := s.stored(ctx, l, root)
	if err != nil {
		return nil, s.Explain(err)
	}
	next, err := s.read(ctx, l.Spec, resource, redisstore.BucketPage{Buckets: stored})
	return next.Buckets, s.Explain(err)
}

// List implements Store.
func (s *Redis) List(ctx context.Context, resource, kind string) iter.Seq2[Page, error] {
	return func(yield func(Page, error) bool) {
		for next, err := range s.pages(ctx, resource, kind) {
			if err != nil {
				yield(Page{}, s.Explain(err))
				return
			}
			if !yield(next, nil) {
				return
			}
		}
	}
}

// pages lists buckets as List does. Its errors are those of the Redis client.
func (s *Redis) pages(ctx context.Context, resource, kind string) iter.Seq2[Page, error] {
	return func(yield func(Page, error) bool) {
		spec, err := s.schema.Buckets(resource)
		if err == nil && kind != "" {
			_, err = s.schema.Bucket(kind, resource)
		}
		if err == nil {
			spec, err = Named(ctx, s.Buckets.Catalog(), spec)
		}
		if err != nil {
			yield(Page{}, err)
			return
		}
		for stored, err := range s.Buckets.Buckets(ctx, under(spec), kind) {
			var next Page
			if err == nil {
				next, err = s.read(ctx, spec, resource, stored)
			}
			if !yield(next, err) || err != nil {
				return
			}
		}
	}
}

// scope returns the scope of an entity's bucket, as the catalog has its name.
func (s *Redis) scope(ctx context.Context, entity, resource string) (l schemafile.Scope, err error) {
	if l, err = s.schema.Bucket(entity, resource); err != nil {
		return l, err
	}
	l.Spec, err = Named(ctx, s.Buckets.Catalog(), l.Spec)
	return l, s.Explain(err)
}

// read computes the balances of stored buckets, by Redis's clock and the limits in force. resource is that of
// which the caller knows them.
func (s *Redis) read(
	ctx context.Context, spec *store.Spec, resource string, stored redisstore.BucketPage,
) (next Page, err error) {
	next.Malformed = stored.Malformed
	if len(stored.Buckets) == 0 {
		return next, nil
	}
	said, err := s.said(ctx, spec, stored.Buckets)
	if err != nil {
		return next, err
	}
	now, err := s.Buckets.Time(ctx)
	if err != nil {
		return next, err
	}
	for _, b := range stored.Buckets {
		kind, _, _ := strings.Cut(b.Entity, "-")
		own := schemafile.BucketKind(spec, kind)
		if own == store.NoKind {
			next.Strange = append(next.Strange, "kind "+term.Quote(kind))
			continue
		}
		overrides, version := said.of(b, own)
		next.Buckets = append(next.Buckets, Bucket{
			Entity: b.Entity, Resource: resource, Root: b.Root, Revision: spec.Revision,
			Overrides: version,
			Limits:    limitsOf(spec, b, store.Resolve(spec.Kinds[own].Limits, overrides...), now.UnixMilli()),
		})
		for _, l := range b.Limits {
			if !slices.Contains(spec.Limits, l.Name) {
				next.Strange = append(next.Strange, "limit "+term.Quote(l.Name))
			}
		}
	}
	return next, nil
}

// limitsOf returns the limits of b in force and their balances at now, in ms. A limit that is not stored is
// full.
func limitsOf(spec *store.Spec, b redisstore.StoredBucket, inForce []bucket.Limit, now int64) []Limit {
	var all []Limit
	for i, limit := range inForce {
		if limit.Absent() {
			continue
		}
		stored := redisstore.StoredLimit{Tokens: limit.Burst, Refilled: now}
		if at := slices.IndexFunc(b.Limits,
			func(l redisstore.StoredLimit) bool { return l.Name == spec.Limits[i] }); at >= 0 {
			stored = b.Limits[at]
		}
		one := nowOf(spec.Limits[i], stored.Balance(limit), stored.Refilled, now)
		one.Unit = spec.Unit(i)
		all = append(all, one)
	}
	return all
}

// Fill implements Store.
func (s *Redis) Fill(ctx context.Context, b Bucket, limits []string) (*Bucket, []string, error) {
	all := make([]string, len(b.Limits))
	for i, l := range b.Limits {
		all[i] = l.Name
	}
	for _, name := range limits {
		if !slices.Contains(all, name) {
			return nil, nil, notIn(b, name, all)
		}
	}
	if len(limits) == 0 {
		limits = all
	}
	l, err := s.scope(ctx, b.Entity, b.Resource)
	if err != nil {
		return nil, nil, err
	}
	if err := s.Buckets.Overrides().FillLimits(ctx, l.Spec, l.Kind, b.Entity, b.Root, limits...); err != nil {
		return nil, nil, s.Explain(err)
	}
	after, err := s.Inspect(ctx, b.Entity, b.Resource, b.Root)
	if err != nil {
		return nil, nil, err
	}
	if len(after) == 0 { // another operator has deleted it since
		return nil, nil, nil
	}
	return &after[0], limits, nil
}

// notIn returns the error for a limit that b does not have.
func notIn(b Bucket, name string, has []string) error {
	return &store.InvalidError{
		Resource: b.Resource, Field: "limit", Value: name,
		Reason: fmt.Sprintf("is not in the bucket of %s, which has %s", term.Quote(b.Entity),
			strings.Join(has, ", ")),
	}
}
