package cli

import (
	"context"
	"fmt"
	"iter"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo"
)

// tableStore is the store in a table of DynamoDB. It needs no schema: the items have the numbers.
type tableStore struct {
	client  *dynamodb.Client
	table   string
	p       Program
	orRedis bool // it may be a Redis that is meant
}

func newTableStore(ctx context.Context, c connection, p Program, orRedis bool) (*tableStore, error) {
	client, err := c.client(ctx)
	s := &tableStore{client, c.Table, p, orRedis}
	return s, s.redisToo(err)
}

// inspect implements store, consistently. What no bucket was made of yet counts: to say that an entity in per-limit items is
// unused, and so full, would mislead.
func (s *tableStore) inspect(ctx context.Context, entity, resource, _ string) ([]found, error) {
	b, err := s.stored(ctx, entity, resource)
	if err != nil {
		return nil, err
	}
	if b == nil {
		items, err := dynamo.NewCarrier(s.client, s.table, s.p.Now).Items(ctx, entity, resource)
		if err != nil {
			return nil, s.explain(err)
		}
		b = ofItems(entity, resource, items, s.now())
	}
	if b == nil {
		return nil, nil
	}
	return []found{*b}, nil
}

// stored returns the bucket, nil where there is none.
func (s *tableStore) stored(ctx context.Context, entity, resource string) (*found, error) {
	img, err := dynamo.Inspect(ctx, s.client, s.table, entity, resource)
	if err != nil || img == nil {
		return nil, s.explain(err)
	}
	b := ofImage(entity, resource, img, s.now())
	return &b, nil
}

// ofImage returns the bucket that img is at now (ms).
func ofImage(entity, resource string, img *bucket.Image, now int64) found {
	b := found{entity: entity, resource: resource}
	b.revision, b.overrides = dynamo.SplitVersion(img.Version)
	for _, l := range img.Extra {
		b.limits = append(b.limits, nowOf(l.Name, l.Balance, img.Refilled, now))
	}
	return b
}

// now is the time in ms, by which buckets refill.
func (s *tableStore) now() int64 { return s.p.Now().UnixMilli() }

// list implements store.
func (s *tableStore) list(ctx context.Context, resource, kind string) iter.Seq2[page, error] {
	return func(yield func(page, error) bool) {
		for read, err := range dynamo.Buckets(ctx, s.client, s.table, resource, kind) {
			if err != nil {
				yield(page{}, s.explain(err))
				return
			}
			next := page{malformed: read.Malformed, others: read.Others, units: read.ReadUnits}
			now := s.now()
			for _, b := range read.Buckets {
				next.buckets = append(next.buckets, ofImage(b.Entity, resource, b.Image, now))
			}
			if !yield(next, nil) {
				return
			}
		}
	}
}

// fill implements store.
func (s *tableStore) fill(ctx context.Context, b found, limits []string) (*found, []string, error) {
	filled, err := dynamo.Reset(ctx, s.client, s.table, b.entity, b.resource, limits...)
	if err != nil {
		return nil, nil, s.explain(err)
	}
	after, err := s.stored(ctx, b.entity, b.resource)
	return after, filled, err
}

func (s *tableStore) overrides() runtime.OverrideStore {
	return dynamo.NewOverrides(s.client, s.table, s.p.Now)
}

func (s *tableStore) members() runtime.MemberStore { return dynamo.NewMembers(s.client, s.table) }

func (s *tableStore) explain(err error) error { return s.redisToo(explain(s.client, err)) }

// redisToo adds to the error for a place that is not there how to say that a Redis is meant.
func (s *tableStore) redisToo(err error) error {
	if s.orRedis && nowhere(err) {
		return fmt.Errorf("%w; if buckets in a Redis are meant, pass --redis", err)
	}
	return err
}

func (s *tableStore) place() (at, alternatives string) {
	return "table " + s.table + " (" + place(s.client) + ")", "table or region"
}

func (s *tableStore) describe(b *board) { b.Table, b.ReadUnits = s.table, new(float64) }

func (*tableStore) close() {}
