package bucketstore

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/cmd/sluice/internal/connect"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/store"
)

// tableStore is the store in a table of DynamoDB. It needs no schema: the items have the numbers.
type Table struct {
	Client  *dynamodb.Client
	Table   string
	clock   func() time.Time
	orRedis bool // it may be a Redis that is meant
}

// newTableStore returns the store in table. orRedis says that a Redis may be meant.
func NewTable(client *dynamodb.Client, table string, now func() time.Time, orRedis bool) *Table {
	return &Table{client, table, now, orRedis}
}

// connectTable connects to the table of c.
func ConnectTable(ctx context.Context, c connect.Connection, now func() time.Time, orRedis bool) (*Table, error) {
	client, err := c.Client(ctx)
	s := NewTable(client, c.Table, now, orRedis)
	return s, s.redisToo(err)
}

// inspect implements store, consistently. What no bucket was made of yet counts: to say that an entity in per-limit items is
// unused, and so full, would mislead.
func (s *Table) Inspect(ctx context.Context, entity, resource, _ string) ([]Bucket, error) {
	b, err := s.stored(ctx, entity, resource)
	if err != nil {
		return nil, err
	}
	if b == nil {
		items, err := dynamo.NewCarrier(s.Client, s.Table, s.clock).Items(ctx, entity, resource)
		if err != nil {
			return nil, s.Explain(err)
		}
		b = ofItems(entity, resource, items, s.now())
	}
	if b == nil {
		return nil, nil
	}
	return []Bucket{*b}, nil
}

// stored returns the bucket, nil where there is none.
func (s *Table) stored(ctx context.Context, entity, resource string) (*Bucket, error) {
	img, err := operator.Inspect(ctx, s.Client, s.Table, entity, resource)
	if err != nil || img == nil {
		return nil, s.Explain(err)
	}
	b := ofImage(entity, resource, img, s.now())
	return &b, nil
}

// ofImage returns the bucket that img is at now (ms).
func ofImage(entity, resource string, img *bucket.Image, now int64) Bucket {
	b := Bucket{Entity: entity, resource: resource}
	b.Revision, b.Overrides = operator.SplitVersion(img.Version)
	for _, l := range img.Extra {
		b.Limits = append(b.Limits, nowOf(l.Name, l.Balance, img.Refilled, now))
	}
	return b
}

// now is the time in ms, by which buckets refill.
func (s *Table) now() int64 { return s.clock().UnixMilli() }

// list implements store.
func (s *Table) List(ctx context.Context, resource, kind string) iter.Seq2[Page, error] {
	return func(yield func(Page, error) bool) {
		for read, err := range operator.Buckets(ctx, s.Client, s.Table, resource, kind) {
			if err != nil {
				yield(Page{}, s.Explain(err))
				return
			}
			next := Page{Malformed: read.Malformed, Others: read.Others, Units: read.ReadUnits}
			now := s.now()
			for _, b := range read.Buckets {
				next.Buckets = append(next.Buckets, ofImage(b.Entity, resource, b.Image, now))
			}
			if !yield(next, nil) {
				return
			}
		}
	}
}

// fill implements store.
func (s *Table) Fill(ctx context.Context, b Bucket, limits []string) (*Bucket, []string, error) {
	filled, err := operator.Reset(ctx, s.Client, s.Table, b.Entity, b.resource, limits...)
	if err != nil {
		return nil, nil, s.Explain(err)
	}
	after, err := s.stored(ctx, b.Entity, b.resource)
	return after, filled, err
}

func (s *Table) Overrides() store.OverrideStore {
	return operator.NewOverrides(s.Client, s.Table, s.clock)
}

func (s *Table) Members() store.MemberStore { return operator.NewMembers(s.Client, s.Table) }

func (s *Table) Explain(err error) error { return s.redisToo(connect.Explain(s.Client, err)) }

// redisToo adds to the error for a place that is not there how to say that a Redis is meant.
func (s *Table) redisToo(err error) error {
	if s.orRedis && connect.Nowhere(err) {
		return fmt.Errorf("%w; if buckets in a Redis are meant, pass --redis", err)
	}
	return err
}

func (s *Table) Place() (at, alternatives string) {
	return "table " + s.Table + " (" + connect.Place(s.Client) + ")", "table or region"
}

func (s *Table) Source() source { return source{Table: s.Table} }

func (*Table) Close() {}
