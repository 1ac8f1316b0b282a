package operator

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/layout"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/fills"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// BucketPage is what Buckets has read since the previous page.
type BucketPage struct {
	Buckets   []StoredBucket // sorted by entity
	Malformed []error        // a *store.SetupError for each item that cannot be a bucket
	Others    int            // other entries of the index, such as per-limit items, which are not read
	ReadUnits float64
}

// StoredBucket is a bucket as Inspect reads it: its limits are Extra, by name.
type StoredBucket struct {
	Entity string // as stored: user-123
	*bucket.Image
}

// Buckets lists the buckets of resource, through the index GSI2 and without a schema. It lists those of
// entities of kind, or all if kind is empty. Pages have up to 100 buckets and come in the order of entities.
// It ends with the first error:
//   - a *store.SetupError, also if the table has no such index,
//   - a *store.UnavailableError if DynamoDB does not answer.
//
// Buckets changes nothing. A bucket costs half a read unit for each 4 KB, and most are below 4 KB. Its entry
// in the index costs a fiftieth of a unit or less. So a list of 100,000 buckets costs some 51,000 units, one
// call after the other.
//
// No read is consistent. A bucket may be as it was a moment ago, a new one may be missing, and a deleted one
// is left out.
func Buckets(
	ctx context.Context, client wire.API, table, resource, kind string,
) iter.Seq2[BucketPage, error] {
	return BucketsWith(ctx, client, wire.NewRetrier(table), resource, kind)
}

// BucketsWith is Buckets with a retrier of its own.
func BucketsWith(
	ctx context.Context, client wire.API, retrier wire.Retrier, resource, kind string,
) iter.Seq2[BucketPage, error] {
	l := lister{client, retrier, resource}
	return l.list(ctx, kind)
}

// lister reads the buckets of one resource.
type lister struct {
	api      wire.API
	retrier  wire.Retrier
	resource string
}

// list is Buckets.
func (l *lister) list(ctx context.Context, kind string) iter.Seq2[BucketPage, error] {
	prefix := item.ListedPrefix
	if kind != "" {
		prefix += kind + "-"
	}
	return func(yield func(BucketPage, error) bool) {
		index, list := item.Indexes()[1], item.BucketList(l.resource)
		for found, err := range wire.QueryPages(ctx, l.api, &l.retrier, index, list, prefix) {
			if err != nil {
				yield(BucketPage{}, l.explain(ctx, err))
				return
			}
			if !l.read(ctx, found, yield) {
				return
			}
		}
	}
}

// read yields the buckets that a page of the index names, in at least one page. It reports whether to go on.
func (l *lister) read(ctx context.Context, found wire.QueryPage, yield func(BucketPage, error) bool) bool {
	next := BucketPage{ReadUnits: found.Units}
	var entities []string
	for _, entry := range found.Items {
		key := item.KeyOf(entry)
		if entity, ok := strings.CutPrefix(key.PK, item.EntityPrefix); ok &&
			key == item.KeyOf(item.BucketKey(entity, l.resource)) {
			entities = append(entities, entity)
		}
	}
	next.Others = len(found.Items) - len(entities)
	for chunk := range slices.Chunk(entities, wire.MaxBatchGet) {
		if err := l.batch(ctx, chunk, &next); err != nil {
			yield(BucketPage{}, err)
			return false
		}
		if !yield(next, nil) {
			return false
		}
		next = BucketPage{}
	}
	return len(entities) > 0 || yield(next, nil)
}

// batch reads the buckets of up to wire.MaxBatchGet entities into p.
func (l *lister) batch(ctx context.Context, entities []string, p *BucketPage) error {
	keys := make([]item.Item, len(entities))
	for i, entity := range entities {
		keys[i] = item.BucketKey(entity, l.resource)
	}
	got, err := wire.BatchRead(ctx, l.api, &l.retrier, keys, false)
	if err != nil {
		return err
	}
	p.ReadUnits += got.Units
	for i, entity := range entities {
		item := got.Items[item.KeyOf(keys[i])]
		if item == nil { // deleted meanwhile
			continue
		}
		if img, err := wire.DecodeBucket(entity, l.resource, item); err != nil {
			p.Malformed = append(p.Malformed, err)
		} else {
			p.Buckets = append(p.Buckets, StoredBucket{entity, img})
		}
	}
	return nil
}

// explain returns err, or what CheckTable says about the index if DynamoDB has refused the query because of
// it.
func (l *lister) explain(ctx context.Context, err error) error {
	if refused, ok := errors.AsType[smithy.APIError](err); !ok || refused.ErrorCode() != "ValidationException" {
		return err
	}
	t, failed := layout.Describe(ctx, l.api, l.retrier.Table)
	if failed != nil {
		return err
	}
	wrong := append(layout.CheckKeys(t), checkIndexes(l.retrier.Table, t)...)
	if len(wrong) > 0 {
		return errors.Join(wrong...)
	}
	return err
}

// checkIndexes returns a *store.SetupError for each of sluice's indexes that is not complete. Acquires do not
// use the indexes.
func checkIndexes(table string, t *types.TableDescription) []error {
	var errs []error
	for _, got := range t.GlobalSecondaryIndexes {
		name := aws.ToString(got.IndexName)
		switch {
		case !isOwnIndex(name):
		case got.IndexStatus == types.IndexStatusCreating:
			errs = append(errs, layout.Wrong(table,
				"wait until it is ACTIVE: lists leave out what it has not got to yet",
				"index %s is %s%s", name, got.IndexStatus, backfilling(got)))
		case got.IndexStatus == types.IndexStatusDeleting:
			errs = append(errs, layout.Wrong(table, "wait until it is gone, and add it again, projecting KEYS_ONLY",
				"index %s is %s", name, got.IndexStatus))
		}
	}
	return errs
}

func backfilling(i types.GlobalSecondaryIndexDescription) string {
	if aws.ToBool(i.Backfilling) {
		return ", backfilling"
	}
	return ""
}

// isOwnIndex reports whether sluice's definition of the table has the index.
func isOwnIndex(name string) bool {
	return slices.ContainsFunc(item.Indexes(), func(i item.Index) bool { return i.Name == name })
}

// Getter is the part of *dynamodb.Client that Inspect calls.
type Getter = wire.Getter

// Inspect reads the bucket of entity, as stored (user-123), on resource, consistently and without a schema:
// its limits are Extra, by name. It returns nil if there is no bucket; a missing bucket counts as full. It
// fails with a *store.SetupError, or with a *store.UnavailableError if DynamoDB does not answer.
func Inspect(ctx context.Context, client Getter, table, entity, resource string) (*bucket.Image, error) {
	img, err := wire.ReadBucket(ctx, client, table, entity, resource)
	if err != nil {
		return nil, wire.CallError(table, err)
	}
	return img, nil
}

// SplitVersion splits an image's Version into the schema's revision and a sum of versions. These are of the
// overrides of the entity and of its kind (store.Revision), of the plans, and of the entity's plan. A bucket
// takes other numbers only if one of the two rises and neither falls, or if it gets another entity's plan.
func SplitVersion(version int64) (revision, overrides int64) {
	return version / bucket.RevisionUnit, version % bucket.RevisionUnit
}

// Reset fills the bucket of entity, as stored, on resource up to its burst: the named limits, or all. It
// returns the limits that it filled, by name, or none if there is no bucket. It leaves prepaid limits as they
// are. It may run beside acquires. It fails as Inspect does, and with
//   - a *store.InvalidError that names the bucket's limits, if a named limit is not among them,
//   - a *store.InvalidError, if a named limit is prepaid,
//   - a *store.ContendedError if the bucket's limits change at each attempt.
func Reset(
	ctx context.Context, client wire.API, table, entity, resource string, limits ...string,
) ([]string, error) {
	retrier := wire.NewRetrier(table)
	for attempt := 1; ; attempt++ {
		img, err := Inspect(ctx, client, table, entity, resource)
		if img == nil || err != nil {
			return nil, err
		}
		filled, err := limitsToFill(img, entity, resource, limits)
		if err != nil {
			return nil, err
		}
		if len(filled) == 0 {
			return nil, nil
		}
		b := fills.Bucket{Table: table, Entity: entity, Resource: resource, Image: img}
		u, err := b.Reset(filled, wire.NewOp())
		if err != nil {
			return nil, err
		}
		err = retrier.Do(ctx, func() error {
			_, err := client.UpdateItem(ctx, u.Input(), wire.NoRetry)
			return err
		})
		if err == nil {
			return filled, nil
		} else if _, refused := errors.AsType[*types.ConditionalCheckFailedException](err); !refused {
			return nil, err
		}
		// A limit was removed meanwhile, a window was opened, or the bucket deleted.
		if attempt == retrier.Attempts {
			return nil, &store.ContendedError{Resource: resource, Entity: entity, Attempts: attempt}
		}
	}
}

// limitsToFill returns the bucket's limits that Reset fills: the named ones, or all but prepaid ones. A
// customer's credits stay.
func limitsToFill(img *bucket.Image, entity, resource string, named []string) ([]string, error) {
	has := make([]string, len(img.Extra))
	for i, extra := range img.Extra {
		has[i] = extra.Name
	}
	for _, name := range named {
		if b, _ := img.Find(name); b.Prepaid() {
			return nil, &store.InvalidError{
				Resource: resource, Field: "limit", Value: name,
				Reason: "is prepaid, so that no reset fills it: grant it what it lacks (sluice grant)",
			}
		}
		if !slices.Contains(has, name) {
			return nil, &store.InvalidError{
				Resource: resource, Field: "limit", Value: name,
				Reason: fmt.Sprintf("is not in the bucket of %s, which has %s", store.Quote(entity),
					strings.Join(has, ", ")),
			}
		}
	}
	return slices.DeleteFunc(has, func(name string) bool {
		b, _ := img.Find(name)
		return b.Prepaid() || len(named) > 0 && !slices.Contains(named, name)
	}), nil
}

// CallError explains the error of a call on table that other code made. It returns a *store.SetupError that
// says what to do, or a *store.UnavailableError if DynamoDB does not answer.
func CallError(table string, err error) error { return wire.CallError(table, err) }
