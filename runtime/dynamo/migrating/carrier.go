package migrating

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/layout"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/override"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/dynamo/migrating/perlimit"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// Carrier carries buckets over from per-limit items (package perlimit), beside the acquires of processes that
// do the same to the buckets that they use. It is safe for concurrent use.
type Carrier struct {
	api     wire.API
	table   string
	now     func() time.Time
	retrier wire.Retrier
}

// NewCarrier returns a Carrier for table. It does no I/O.
func NewCarrier(client wire.API, table string, now func() time.Time) *Carrier {
	return &Carrier{api: client, table: table, now: now, retrier: wire.NewRetrier(table)}
}

// CarryState is what there is of a bucket, or what became of it.
type CarryState uint8

// The states.
const (
	CarryNone    CarryState = iota // nothing to carry over: no item of a limit that the schema has or had, and no bucket
	Carryable                      // items, and no bucket yet
	Carried                        // this call has carried it over
	CarriedOver                    // the bucket is there, and has taken over all items, or there are none
	CarryExpired                   // all items were taken over by a bucket, which has expired since: it was full
	CarryBeside                    // the bucket is there beside items that it has not taken over: somebody made it without looking
)

// Carry is what there is of one bucket.
type Carry struct {
	State         CarryState
	Image         *bucket.Image   // the bucket: as it is, as it was put, or, while it is Carryable, as it would be put; nil for none
	Items         []perlimit.Item // all there are, by limit
	UnknownLimits []string        // limits among them that the schema neither has nor had: they stay as they are
	Write         float64         // capacity units, of what DynamoDB applied
}

// Look reads what there is of the bucket of entity, as stored, on spec's resource. It changes nothing. It
// fails with a *store.InvalidError where spec gives entity's kind no bucket, with a *store.SetupError where
// an item is malformed or there are more than one transaction takes, and with a *store.UnavailableError when
// DynamoDB does not answer.
func (c *Carrier) Look(ctx context.Context, spec *store.Spec, entity string) (Carry, error) {
	found, _, err := c.look(ctx, spec, entity)
	return found, err
}

// Carry carries the bucket over where it is Carryable: all or nothing, and once, whoever else does the same.
// It fails as Look does, and with a *store.ContendedError where somebody writes to the items all the time.
func (c *Carrier) Carry(ctx context.Context, spec *store.Spec, entity string) (Carry, error) {
	for try := 1; ; try++ {
		found, b, err := c.look(ctx, spec, entity)
		if err != nil || found.State != Carryable {
			return found, err
		}
		in := b.Transaction(c.table, found.Image)
		err = c.retrier.Do(ctx, func() error {
			out, err := c.api.TransactWriteItems(ctx, in, wire.NoRetry)
			if err != nil {
				return asSingle(err, len(in.TransactItems))
			}
			for _, used := range out.ConsumedCapacity {
				found.Write += aws.ToFloat64(used.CapacityUnits)
			}
			return nil
		})
		if err == nil {
			found.State = Carried
			return found, nil
		} else if _, lost := errors.AsType[*types.ConditionalCheckFailedException](err); !lost {
			return found, err
		}
		if try == c.retrier.Attempts {
			return found, &store.ContendedError{Resource: spec.Resource, Entity: entity, Attempts: try}
		}
	}
}

// Items returns the per-limit items of entity, as stored, on resource, by limit: those that count and those
// that are marked. It fails as Look does.
func (c *Carrier) Items(ctx context.Context, entity, resource string) (items []perlimit.Item, err error) {
	err = c.retrier.Do(ctx, func() error {
		items, err = readItems(ctx, c.api, c.table, entity, resource, func(*dynamodb.QueryOutput, error) {})
		return err
	})
	return items, err
}

// asSingle returns an error of a transaction of n items as one that classify sorts as classifyTransaction
// does.
func asSingle(err error, n int) error {
	o, err := wire.ClassifyTransaction(err, n)
	switch o {
	case wire.Refused:
		return &types.ConditionalCheckFailedException{}
	case wire.Conflict:
		return &types.TransactionConflictException{Message: aws.String(err.Error())}
	case wire.Throttled:
		return &types.ProvisionedThroughputExceededException{Message: aws.String(err.Error())}
	}
	return err
}

// look reads bucket, overrides and items, and makes of them what a Carry would put.
func (c *Carrier) look(
	ctx context.Context,
	spec *store.Spec,
	entity string,
) (found Carry, b *perlimit.Bucket, err error) {
	kind := slices.IndexFunc(
		spec.Kinds,
		func(k store.Kind) bool { return k.Limits != nil && strings.HasPrefix(entity, k.Prefix) },
	)
	if kind < 0 {
		return found, nil, &store.InvalidError{
			Resource: spec.Resource, Field: "entity", Value: entity, Reason: "is of no kind that has a bucket of it: check limits.yaml",
		}
	}
	if found.Image, err = c.bucket(ctx, entity, spec.Resource); err != nil {
		return found, nil, err
	}
	if found.Items, err = c.Items(ctx, entity, spec.Resource); err != nil {
		return found, nil, err
	}
	unmarked, unknown := ofSchema(spec, found.Items)
	found.UnknownLimits = unknown
	if found.Image == nil && len(unmarked) == 0 &&
		len(found.Items) > len(unknown) { // carried over since, it may be
		if found.Image, err = c.bucket(ctx, entity, spec.Resource); err != nil {
			return found, nil, err
		}
	}
	switch {
	case found.Image != nil && len(unmarked) > 0:
		found.State = CarryBeside
	case found.Image != nil:
		found.State = CarriedOver
	case len(unmarked) > 0:
		found.State = Carryable
	case len(found.Items) > len(unknown):
		found.State = CarryExpired
	}
	if found.State != Carryable {
		return found, nil, nil
	}
	shape, err := c.shape(ctx, spec, kind, entity)
	if err != nil {
		return found, nil, err
	}
	if b, err = newBucket(spec, shape, entity, unmarked, c.now().UnixMilli()); err != nil {
		return found, nil, err
	}
	found.Image = b.Image()
	return found, b, nil
}

// bucket is Inspect, for longer where DynamoDB does not answer.
func (c *Carrier) bucket(ctx context.Context, entity, resource string) (img *bucket.Image, err error) {
	err = c.retrier.Do(ctx, func() error {
		img, err = wire.ReadBucket(ctx, c.api, c.table, entity, resource, wire.NoRetry)
		return err
	})
	return img, err
}

// shape reads the overrides of entity and its kind, together and consistently.
func (c *Carrier) shape(
	ctx context.Context,
	spec *store.Spec,
	kind int,
	entity string,
) (*override.Resolved, error) {
	return readShape(spec, kind, entity, c.now().UnixMilli(), func(keys []item.Item) (wire.Batch, error) {
		return wire.BatchRead(ctx, c.api, &c.retrier, keys, true)
	})
}

// Begin notes in the table that per-limit items are being carried over: from now on Check fails in programs
// that use dynamo.New, and in those that are too old to know of such tables.
func (c *Carrier) Begin(ctx context.Context) error {
	return c.retrier.Do(
		ctx,
		func() error { return layout.Record(ctx, c.api, c.table, layout.Buckets, layout.Carrying) },
	)
}

// End notes that the table holds no per-limit items any more: programs may use dynamo.New then. The caller
// has checked that.
func (c *Carrier) End(ctx context.Context) error {
	return c.retrier.Do(
		ctx,
		func() error { return layout.Record(ctx, c.api, c.table, layout.Carrying, layout.Buckets) },
	)
}
