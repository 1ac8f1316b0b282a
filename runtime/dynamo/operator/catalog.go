package operator

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/audit"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/override"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// Catalog reads and writes the names of templates in one table. It implements store.Catalog. A write of
// unknown outcome is sent again, and counts once.
type Catalog struct {
	api     wire.API
	retrier wire.Retrier
	now     func() time.Time
}

// NewCatalog returns the catalogs in table. now dates the versions of entries. It does no I/O.
func NewCatalog(client wire.API, table string, now func() time.Time) *Catalog {
	return CatalogWith(client, wire.NewRetrier(table), now)
}

// CatalogWith is NewCatalog for a store, which has a retrier of its own.
func CatalogWith(client wire.API, retrier wire.Retrier, now func() time.Time) *Catalog {
	return &Catalog{api: client, retrier: retrier, now: now}
}

// Get implements store.Catalog, in one read.
func (c *Catalog) Get(
	ctx context.Context, spec *store.Spec, name string,
) (e store.Entry, found bool, err error) {
	raw, err := c.read(ctx, spec, name)
	if err != nil {
		return store.Entry{}, false, err
	}
	return override.DecodeEntry(spec, raw)
}

// read returns the item of a name, which may be empty.
func (c *Catalog) read(ctx context.Context, spec *store.Spec, name string) (codec.Item, error) {
	var out *dynamodb.GetItemOutput
	err := c.retrier.Do(ctx, func() (err error) {
		out, err = c.api.GetItem(ctx, &dynamodb.GetItemInput{
			TableName: &c.retrier.Table, Key: item.CatalogKey(spec.Resource, name), ConsistentRead: aws.Bool(true),
		}, wire.NoRetry)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out.Item, nil
}

// Set implements store.Catalog, in one transaction: of the entry, and of the record of the change. It leaves
// what spec does not have, of another binary. If the entry has the buckets of another resource, its version
// rises above those of the resource's kinds and plans, which are not read any more. Else the sum of versions
// could fall, and buckets keep old numbers.
func (c *Catalog) Set(ctx context.Context, spec *store.Spec, e store.Entry) (store.Revision, error) {
	if err := e.Check(spec); err != nil {
		return "", err
	}
	after, err := c.before(ctx, spec, e.Buckets)
	if err != nil {
		return "", err
	}
	return c.write(ctx, spec, &e, after, override.EncodeEntry(spec, &e))
}

// before returns the most that the versions of the overrides of a kind and of the plans of a resource add up
// to; 0 for no resource.
func (c *Catalog) before(ctx context.Context, spec *store.Spec, resource string) (int64, error) {
	if resource == "" {
		return 0, nil
	}
	plans := item.PlansKey(resource)
	keys := []codec.Item{plans}
	for i := range spec.Kinds {
		if !spec.Kinds[i].AllNames {
			keys = append(keys, item.OverrideKey(resource, spec.Kinds[i].Name))
		}
	}
	got, err := wire.BatchRead(ctx, c.api, &c.retrier, keys, true)
	if err != nil {
		return 0, err
	}
	var most, ofPlans int64
	for key, raw := range got.Items {
		version, err := override.VersionOf(raw)
		switch {
		case err != nil:
			return 0, err
		case key == item.KeyOf(plans):
			ofPlans = version
		default:
			most = max(most, version)
		}
	}
	return most + ofPlans, nil
}

// Delete implements store.Catalog, as Set does.
func (c *Catalog) Delete(ctx context.Context, spec *store.Spec, name string, rev store.Revision) error {
	_, err := c.write(ctx, spec, &store.Entry{Name: name, Revision: rev}, 0, nil)
	return err
}

// write puts the attributes of e, nil for a tombstone, in place of what has the revision of e. The version is
// above after.
func (c *Catalog) write(
	ctx context.Context, spec *store.Spec, e *store.Entry, after int64, attributes codec.Item,
) (store.Revision, error) {
	conflict := &store.ConflictError{At: fmt.Sprintf("name %s of the catalog of %s", store.Quote(e.Name),
		spec.Resource)}
	if _, ok := override.ParseRevision(e.Revision); !ok {
		return "", conflict
	}
	raw, err := c.read(ctx, spec, e.Name)
	if err != nil {
		return "", err
	}
	for {
		there, found, err := override.DecodeEntry(spec, raw)
		switch {
		case err != nil:
			return "", err
		case found != (e.Revision != "") || there.Revision != e.Revision:
			return "", conflict
		}
		now := c.now()
		version := max(now.UnixMilli(), there.Version+1, after+1)
		if version > override.MaxVersion {
			return "", &store.SetupError{
				What: fmt.Sprintf("the version of name %s of %s would be %d, too far in the future",
					store.Quote(e.Name), spec.Resource, version),
				Do: "set this host's clock by NTP",
			}
		}
		if attributes != nil {
			override.KeepOthers(attributes, spec, e, raw)
		}
		change := store.Change{
			At: e.Name, Resource: spec.Resource, Before: override.EntryFields(raw),
			After: override.EntryFields(attributes),
		}
		w := audit.Write{Put: c.put(spec, e.Name, there.Version, version, attributes)}
		err = audit.Do(ctx, c.api, &c.retrier, w, version, now, change)
		failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err)
		if err == nil {
			return override.FormatRevision(version), nil
		} else if !ok {
			return "", err
		}
		raw = failed.Item
	}
}

// put returns the write of attributes, if the version is old, 0 for nothing stored.
func (c *Catalog) put(
	spec *store.Spec, name string, old, version int64, attributes codec.Item,
) *dynamodb.PutItemInput {
	in := &dynamodb.PutItemInput{
		TableName: &c.retrier.Table, Item: item.CatalogKey(spec.Resource, name),
		ConditionExpression:                 aws.String("attribute_not_exists(PK)"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	maps.Copy(in.Item, attributes)
	in.Item["ver"], in.Item["op"] = codec.N(version), codec.S(wire.NewOp())
	if old != 0 {
		in.ConditionExpression = aws.String("ver = :old")
		in.ExpressionAttributeValues = codec.Item{":old": codec.N(old)}
	}
	return in
}

// List implements store.Catalog. It reads the whole catalog, without consistency.
func (c *Catalog) List(ctx context.Context, spec *store.Spec) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		key := item.CatalogKey(spec.Resource, "")
		in := &dynamodb.QueryInput{
			TableName:                 &c.retrier.Table,
			KeyConditionExpression:    aws.String("PK = :pk AND begins_with(SK, :names)"),
			ExpressionAttributeValues: codec.Item{":pk": key[item.PK], ":names": key[item.SK]},
		}
		for page, err := range wire.Pages(ctx, c.api, &c.retrier, in) {
			if err != nil {
				yield(store.Entry{}, err)
				return
			}
			for _, raw := range page.Items {
				e, found, err := override.DecodeEntry(spec, raw)
				if (found || err != nil) && !yield(e, err) || err != nil {
					return
				}
			}
		}
	}
}
