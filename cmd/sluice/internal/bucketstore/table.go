package bucketstore

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/sluice-go/sluice/runtime/dynamo/operator"

	"github.com/sluice-go/sluice/cmd/sluice/internal/connect"
	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/migrating"
	"github.com/sluice-go/sluice/runtime/store"
)

// Table is the Store in a DynamoDB table. It needs no schema: the items contain the limits, though not which
// of them are of money.
type Table struct {
	Client    *dynamodb.Client
	Table     string
	namespace string     // empty for the default one
	items     dynamo.API // Client in the namespace
	clock     func() time.Time
	schema    *schemafile.Schema // nil without one
	orRedis   bool               // an error about a missing table mentions --redis
}

// NewTable returns the Store in table, in its default namespace. With orRedis, an error about a missing table
// mentions --redis.
func NewTable(client *dynamodb.Client, table string, now func() time.Time, orRedis bool) *Table {
	return &Table{Client: client, Table: table, items: client, clock: now, orRedis: orRedis}
}

// ConnectTable returns the Store in the namespace of the table of c. With orRedis, an error about a missing
// table mentions --redis.
func ConnectTable(
	ctx context.Context, c connect.Connection, in connect.Namespaced, now func() time.Time, orRedis bool,
) (*Table, error) {
	client, err := c.Client(ctx)
	s := NewTable(client, c.Table, now, orRedis)
	if err != nil {
		return s, s.redisToo(err)
	}
	s.namespace = in.Name()
	s.items, err = in.In(client)
	return s, err
}

// Inspect implements Store by consistent reads. It also reads the state of an entity that is still in
// per-limit items, since no bucket would read as a full one.
func (s *Table) Inspect(ctx context.Context, entity, resource, _ string) ([]Bucket, error) {
	b, err := s.stored(ctx, entity, resource)
	if err != nil {
		return nil, err
	}
	if b == nil && s.schema.Template(resource) == "" {
		items, err := migrating.NewCarrier(s.items, s.Table, s.clock).Items(ctx, entity, resource)
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

// stored returns the bucket, or nil.
func (s *Table) stored(ctx context.Context, entity, resource string) (*Bucket, error) {
	at, err := s.under(ctx, resource)
	if err != nil {
		return nil, s.Explain(err)
	}
	img, err := operator.Inspect(ctx, s.items, s.Table, entity, at)
	if err != nil || img == nil {
		return nil, s.Explain(err)
	}
	b := s.ofImage(entity, resource, img, s.now())
	return &b, nil
}

// under returns the resource that buckets are stored under: resource, or what the catalog has for a name of a
// template.
func (s *Table) under(ctx context.Context, resource string) (string, error) {
	if s.schema.Template(resource) == "" {
		return resource, nil
	}
	spec, err := s.schema.Buckets(resource)
	if err == nil {
		spec, err = Named(ctx, operator.NewCatalog(s.items, s.Table, s.clock), spec)
	}
	if err != nil {
		return "", err
	}
	return under(spec), nil
}

// ofImage returns the bucket of an item at now, in ms.
func (s *Table) ofImage(entity, resource string, img *bucket.Image, now int64) Bucket {
	b := Bucket{Entity: entity, Resource: resource}
	b.Revision, b.Overrides = operator.SplitVersion(img.Version)
	for _, l := range img.Extra {
		one := nowOf(l.Name, l.Balance, img.Refilled, now)
		one.Unit = s.schema.Unit(resource, l.Name)
		b.Limits = append(b.Limits, one)
	}
	return b
}

// now returns the time in ms.
func (s *Table) now() int64 { return s.clock().UnixMilli() }

// List implements Store.
func (s *Table) List(ctx context.Context, resource, kind string) iter.Seq2[Page, error] {
	return func(yield func(Page, error) bool) {
		at, err := s.under(ctx, resource)
		if err != nil {
			yield(Page{}, s.Explain(err))
			return
		}
		for read, err := range operator.Buckets(ctx, s.items, s.Table, at, kind) {
			if err != nil {
				yield(Page{}, s.Explain(err))
				return
			}
			next := Page{Malformed: read.Malformed, Others: read.Others, Units: read.ReadUnits}
			now := s.now()
			for _, b := range read.Buckets {
				next.Buckets = append(next.Buckets, s.ofImage(b.Entity, resource, b.Image, now))
			}
			if !yield(next, nil) {
				return
			}
		}
	}
}

// Fill implements Store.
func (s *Table) Fill(ctx context.Context, b Bucket, limits []string) (*Bucket, []string, error) {
	at, err := s.under(ctx, b.Resource)
	if err != nil {
		return nil, nil, s.Explain(err)
	}
	filled, err := operator.Reset(ctx, s.items, s.Table, b.Entity, at, limits...)
	if err != nil {
		return nil, nil, s.Explain(err)
	}
	after, err := s.stored(ctx, b.Entity, b.Resource)
	return after, filled, err
}

// CheckOwner implements Store.
func (s *Table) CheckOwner(ctx context.Context, owner string) error {
	return s.Explain(operator.CheckOwner(ctx, s.items, s.Table, owner))
}

// Root implements Store: a table keeps buckets by entity.
func (s *Table) Root(_ context.Context, l schemafile.Scope, _ string) (string, error) {
	return l.At, nil
}

// Overrides implements Store.
func (s *Table) Overrides() store.OverrideStore {
	return operator.NewOverrides(s.items, s.Table, s.clock)
}

// Members implements Store.
func (s *Table) Members() store.MemberStore { return operator.NewMembers(s.items, s.Table, s.clock) }

// Catalog implements Store.
func (s *Table) Catalog() store.Catalog { return operator.NewCatalog(s.items, s.Table, s.clock) }

// Changes implements Store.
func (s *Table) Changes(
	ctx context.Context, of store.Audited, since time.Time,
) iter.Seq2[store.Change, error] {
	return operator.Changes(ctx, s.items, s.Table, of, since)
}

// OnPlan implements Store.
func (s *Table) OnPlan(ctx context.Context, kind *store.Kind, plan string) iter.Seq2[PlanPage, error] {
	return func(yield func(PlanPage, error) bool) {
		for page, err := range operator.OnPlan(ctx, s.Client, s.Table, s.namespace, kind.Prefix, plan) {
			if !yield(PlanPage(page), err) {
				return
			}
		}
	}
}

// Explain says what to do about a table that cannot be reached or refuses access.
func (s *Table) Explain(err error) error { return s.redisToo(connect.Explain(s.Client, err)) }

// redisToo adds to the error about a missing table how to name a Redis.
func (s *Table) redisToo(err error) error {
	if s.orRedis && connect.Nowhere(err) {
		return fmt.Errorf("%w; for buckets in a Redis, pass --redis", err)
	}
	return err
}

// Place implements Store.
func (s *Table) Place() (at, alternatives string) {
	at, alternatives = "table "+s.Table, "table or region"
	if s.namespace != "" {
		at, alternatives = "namespace "+s.namespace+" of "+at, "namespace, "+alternatives
	}
	return at + " (" + connect.Place(s.Client) + ")", alternatives
}

// Source implements Store.
func (s *Table) Source() Source { return Source{Table: s.Table, Namespace: s.namespace} }

// Close does nothing: the client has no resources of its own.
func (*Table) Close() {}
