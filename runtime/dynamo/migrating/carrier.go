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

// CarryState is the state of a bucket and its per-limit items.
type CarryState uint8

// The states. Items of limits that the schema neither has nor had do not count for any of them.
const (
	CarryNone    CarryState = iota // no items and no bucket
	Carryable                      // items, and no bucket yet
	Carried                        // this call has carried the bucket over
	CarriedOver                    // the bucket exists, and has taken over all items, if any
	CarryExpired                   // a bucket had taken over all items; it has expired, so it was full
	CarryBeside                    // the bucket exists beside items that it has not taken over
)

// Carry describes one bucket and its per-limit items.
type Carry struct {
	State CarryState
	// Image is the bucket as it is, as it was put or, for a Carryable one, as it would be put. It is nil if
	// there is none.
	Image         *bucket.Image
	Items         []perlimit.Item // all, sorted by limit
	UnknownLimits []string        // of Items; the schema neither has nor had them, and they stay as they are
	Write         float64         // capacity units of the writes that DynamoDB applied
}

// Look reads the bucket of entity, as stored, on spec's resource, and its per-limit items. It changes
// nothing. It fails with
//   - a *store.InvalidError if spec gives entity's kind no bucket,
//   - a *store.SetupError if an item is malformed, or there are more items than one transaction takes,
//   - a *store.UnavailableError if DynamoDB does not answer.
func (c *Carrier) Look(ctx context.Context, spec *store.Spec, entity string) (Carry, error) {
	found, _, err := c.look(ctx, spec, entity)
	return found, err
}

// Carry carries a Carryable bucket over: all or nothing, and only once, even if other processes try the same.
// It fails as Look does, and with a *store.ContendedError if another process writes to the items before each
// attempt.
func (c *Carrier) Carry(ctx context.Context, spec *store.Spec, entity string) (Carry, error) {
	for attempt := 1; ; attempt++ {
		found, b, err := c.look(ctx, spec, entity)
		if err != nil || found.State != Carryable {
			return found, err
		}
		in := b.Transaction(c.table, found.Image)
		err = c.retrier.Do(ctx, func() error {
			out, err := c.api.TransactWriteItems(ctx, in, wire.NoRetry)
			if err != nil {
				return wire.AsSingle(err, len(in.TransactItems))
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
		if attempt == c.retrier.Attempts {
			return found, &store.ContendedError{Resource: spec.Resource, Entity: entity, Attempts: attempt}
		}
	}
}

// Items returns the per-limit items of entity, as stored, on resource, sorted by limit, with those that are
// marked. It fails as Look does.
func (c *Carrier) Items(ctx context.Context, entity, resource string) (items []perlimit.Item, err error) {
	err = c.retrier.Do(ctx, func() error {
		items, err = readItems(ctx, c.api, c.table, entity, resource, func(*dynamodb.QueryOutput, error) {})
		return err
	})
	return items, err
}

// look reads the bucket, its items and its overrides. b is the bucket that Carry puts, for a Carryable one.
func (c *Carrier) look(
	ctx context.Context, spec *store.Spec, entity string,
) (found Carry, b *perlimit.Bucket, err error) {
	kind := slices.IndexFunc(spec.Kinds, func(k store.Kind) bool {
		return k.Limits != nil && strings.HasPrefix(entity, k.Prefix)
	})
	if kind < 0 {
		return found, nil, &store.InvalidError{
			Resource: spec.Resource, Field: "entity", Value: entity,
			Reason: "is of no kind that has a bucket of it: check limits.yaml",
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
	// A missing bucket may have been carried over since it was read.
	if found.Image == nil && len(unmarked) == 0 && len(found.Items) > len(unknown) {
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
	of := bucketKey{spec.Resource, entity}
	if b, err = newBucket(spec, shape, of, unmarked, c.now().UnixMilli()); err != nil {
		return found, nil, err
	}
	found.Image = b.Image()
	return found, b, nil
}

// bucket reads a bucket, nil for none.
func (c *Carrier) bucket(ctx context.Context, entity, resource string) (img *bucket.Image, err error) {
	err = c.retrier.Do(ctx, func() error {
		img, err = wire.ReadBucket(ctx, c.api, c.table, entity, resource, wire.NoRetry)
		return err
	})
	return img, err
}

// shape reads the overrides of entity and its kind, together and consistently.
func (c *Carrier) shape(
	ctx context.Context, spec *store.Spec, kind int, entity string,
) (*override.Resolved, error) {
	get := func(keys []item.Item) (wire.Batch, error) {
		return wire.BatchRead(ctx, c.api, &c.retrier, keys, true)
	}
	return readShape(spec, kind, entity, &store.OnPlan{}, c.now().UnixMilli(), get)
}

// Begin notes in the table that per-limit items are being carried over. From now on Check fails in programs
// that use dynamo.New, and in those that are too old to know such tables.
func (c *Carrier) Begin(ctx context.Context) error {
	return c.retrier.Do(ctx, func() error {
		return layout.Record(ctx, c.api, c.table, layout.Buckets, layout.Carrying)
	})
}

// End notes that the table holds no per-limit items any more: programs may use dynamo.New then. The caller
// has checked that.
func (c *Carrier) End(ctx context.Context) error {
	return c.retrier.Do(ctx, func() error {
		return layout.Record(ctx, c.api, c.table, layout.Carrying, layout.Buckets)
	})
}
