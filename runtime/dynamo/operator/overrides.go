package operator

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/override"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// Overrides reads and writes the config items of one table. It implements store.OverrideStore.
type Overrides struct {
	api     wire.API
	now     func() time.Time
	retrier wire.Retrier
}

// NewOverrides returns the overrides in table. now dates their versions. It does no I/O.
func NewOverrides(client wire.API, table string, now func() time.Time) *Overrides {
	return OverridesWith(client, wire.NewRetrier(table), now)
}

// OverridesWith is NewOverrides for a store, which has a retrier of its own.
func OverridesWith(client wire.API, retrier wire.Retrier, now func() time.Time) *Overrides {
	return &Overrides{api: client, now: now, retrier: retrier}
}

// Get implements store.OverrideStore.
func (o *Overrides) Get(ctx context.Context, spec *store.Spec, at ...string) ([]store.Stored, error) {
	keys := make([]codec.Item, len(at))
	for i, level := range at {
		keys[i] = item.OverrideKey(spec.Resource, level)
	}
	items, err := o.read(ctx, keys)
	if err != nil {
		return nil, err
	}
	all := make([]store.Stored, len(at))
	for i, level := range at {
		if all[i], _, err = override.Decode(spec, level, items[item.KeyOf(keys[i])]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// read returns the items that are there, consistently.
func (o *Overrides) read(ctx context.Context, keys []codec.Item) (map[item.Key]codec.Item, error) {
	items := make(map[item.Key]codec.Item, len(keys))
	for chunk := range slices.Chunk(keys, wire.MaxBatchGet) {
		b, err := wire.BatchRead(ctx, o.api, &o.retrier, chunk, true)
		if err != nil {
			return nil, err
		}
		maps.Copy(items, b.Items)
	}
	return items, nil
}

// Set implements store.OverrideStore. Limits of the item that spec does not know, another binary's, are left as they
// are; a tombstone ends them too. A write of unknown outcome goes again: its condition holds only if it had not been
// applied, and its op in the item tells that it had. Version and numbers would not tell: two operators who raise the same
// limit alike write the same.
func (o *Overrides) Set(ctx context.Context, spec *store.Spec, s store.Stored) (store.Revision, error) {
	conflict := &store.ConflictError{Resource: spec.Resource, At: s.At}
	old, ok := override.ParseRevision(s.Revision)
	if !ok {
		return "", conflict
	}
	after, err := o.quotaVersion(ctx, spec, s.At)
	if err != nil {
		return "", err
	}
	for {
		w, err := o.build(spec, s, max(old, after), old)
		if err != nil {
			return "", err
		}
		doubtful := false // some try may have been applied
		err = o.retrier.Do(ctx, func() error {
			err := w.send(ctx, o.api)
			outcome, _ := wire.Classify(err)
			doubtful = doubtful || outcome == wire.Unknown
			return err
		})
		failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err)
		if err == nil {
			return override.FormatRevision(w.ver), nil
		} else if !ok {
			return "", err
		}
		if w.wrote(failed.Item) { // an earlier try was applied
			return override.FormatRevision(w.ver), nil
		}
		there, ver, err := override.Decode(spec, s.At, failed.Item)
		switch {
		case err != nil:
			return "", err
		case old != 0, there.Overrides():
			return "", conflict
		case doubtful && ver >= w.ver: // it may have been applied, and deleted by somebody who saw it
			return "", conflict
		}
		old = ver // a tombstone: nothing is overridden there, as s says
	}
}

// quotaVersion returns what the version that takes a share's place has to be above, beside the share's own.
func (o *Overrides) quotaVersion(ctx context.Context, spec *store.Spec, at string) (int64, error) {
	if spec.Regions == nil || !item.IsEntity(at) {
		return 0, nil
	}
	now := o.now().UnixMilli()
	b, err := override.ReadHeartbeat(ctx, o.api, &o.retrier, now)
	if err != nil {
		return 0, err
	}
	return b.Changed(now), nil
}

// Heartbeat implements store.OverrideStore, consistently.
func (o *Overrides) Heartbeat(ctx context.Context) (store.Heartbeat, error) {
	b, err := override.ReadHeartbeat(ctx, o.api, &o.retrier, o.now().UnixMilli())
	if err != nil {
		return store.Heartbeat{}, err
	}
	return b.Heartbeat, nil
}

// List implements store.OverrideStore. The index may be behind: what it lists is read, and skipped if it is gone.
func (o *Overrides) List(ctx context.Context, spec *store.Spec) iter.Seq2[store.Stored, error] {
	return func(yield func(store.Stored, error) bool) {
		for page, err := range wire.Query(ctx, o.api, &o.retrier, item.Indexes()[1], item.OverrideList(spec.Resource)) {
			if err != nil {
				yield(store.Stored{}, err)
				return
			}
			for chunk := range slices.Chunk(page, wire.MaxBatchGet) {
				all, err := o.Get(ctx, spec, chunk...)
				if err != nil {
					yield(store.Stored{}, err)
					return
				}
				for _, stored := range all {
					if stored.Overrides() && !yield(stored, nil) {
						return
					}
				}
			}
		}
	}
}

// configWrite replaces what a level says: by an update, or by a put that leaves a tombstone.
type configWrite struct {
	ver    int64
	op     string
	update *dynamodb.UpdateItemInput
	put    *dynamodb.PutItemInput
}

// build makes an operator's write that puts s in place of what has version old, 0 for nothing, under a version above after. What
// regions share is theirs no longer, and is again where s is a tombstone.
func (o *Overrides) build(spec *store.Spec, s store.Stored, after, old int64) (*configWrite, error) {
	condition, values := "attribute_not_exists(PK)", codec.Item{}
	if old != 0 {
		condition, values[":old"] = "ver = :old", codec.N(old)
	}
	var managed *int64
	if spec.Regions != nil && item.IsEntity(s.At) && !s.Overrides() {
		managed = new(int64)
	}
	return o.write(spec, s, managed, after, condition, values)
}

// write makes the write that puts s at its level if condition holds, of which values are; managed is the attribute, nil for none.
// Versions rise though the clocks of those who write differ: design section 6.
func (o *Overrides) write(
	spec *store.Spec, s store.Stored, managed *int64, after int64, condition string, values codec.Item,
) (*configWrite, error) {
	w := &configWrite{ver: max(o.now().UnixMilli(), after+1), op: wire.NewOp()}
	if w.ver > override.MaxVersion {
		return nil, &store.SetupError{
			What: fmt.Sprintf("the version of the override of %s at %s would be %d, beyond the year 3554", spec.Resource, s.At, w.ver),
			Do:   "set this host's clock by NTP",
		}
	}
	key := item.OverrideKey(spec.Resource, s.At)
	if s.Overrides() || strings.Contains(condition, ":ver") {
		values[":ver"] = codec.N(w.ver)
	}
	if !s.Overrides() {
		key["ver"], key["op"] = codec.N(w.ver), codec.S(w.op)
		if managed != nil {
			key[override.Managed] = codec.N(*managed)
		}
		w.put = &dynamodb.PutItemInput{
			TableName: &o.retrier.Table, Item: key, ConditionExpression: &condition,
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}
		if len(values) > 0 {
			w.put.ExpressionAttributeValues = values
		}
		return w, nil
	}
	values[":op"], values[":list"], values[":at"] = codec.S(w.op), codec.S(item.OverrideList(spec.Resource)), codec.S(s.At)
	set, remove := "SET ver = :ver, op = :op, GSI2PK = :list, GSI2SK = :at", ""
	if managed != nil {
		set += ", " + override.Managed + " = :managed"
		values[":managed"] = codec.N(*managed)
	} else {
		remove = ", " + override.Managed
	}
	for i, l := range s.Limits {
		attrs := item.OverrideAttributes(spec.Limits[i])
		if l == nil {
			remove += ", " + strings.Join(attrs[:], ", ")
			continue
		}
		for j, n := range [...]int64{l.Capacity, l.Burst, l.Refill, l.Period} {
			set += fmt.Sprintf(", %[1]s = :%[1]s", attrs[j])
			values[":"+attrs[j]] = codec.N(n)
		}
	}
	if remove != "" {
		set += " REMOVE " + remove[len(", "):]
	}
	w.update = &dynamodb.UpdateItemInput{
		TableName: &o.retrier.Table, Key: key, UpdateExpression: &set, ConditionExpression: &condition, ExpressionAttributeValues: values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	return w, nil
}

func (w *configWrite) send(ctx context.Context, api wire.API) (err error) {
	if w.put != nil {
		_, err = api.PutItem(ctx, w.put, wire.NoRetry)
	} else {
		_, err = api.UpdateItem(ctx, w.update, wire.NoRetry)
	}
	return err
}

// wrote reports that item is as w has left it.
func (w *configWrite) wrote(item codec.Item) bool {
	op, ok := item["op"].(*types.AttributeValueMemberS)
	return ok && op.Value == w.op
}
