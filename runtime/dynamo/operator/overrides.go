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
	"github.com/sluice-go/sluice/runtime/dynamo/internal/audit"
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
	keys := map[item.Key]codec.Item{} // all plans have one
	for _, target := range at {
		key := item.OverrideKey(spec.Resource, target)
		keys[item.KeyOf(key)] = key
	}
	items, err := o.read(ctx, slices.Collect(maps.Values(keys)))
	if err != nil {
		return nil, err
	}
	all := make([]store.Stored, len(at))
	for i, target := range at {
		raw := items[item.KeyOf(item.OverrideKey(spec.Resource, target))]
		if all[i], _, err = override.Decode(spec, target, raw); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// read returns those of the items that exist, read consistently.
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

// Set implements store.OverrideStore, in one read and one transaction: of the override, and of the record of
// the change. It leaves limits of the item that spec does not know as they are: another binary has written
// them. A tombstone removes them too.
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
	key := item.OverrideKey(spec.Resource, s.At)
	items, err := o.read(ctx, []codec.Item{key})
	if err != nil {
		return "", err
	}
	for raw := items[item.KeyOf(key)]; ; {
		there, ver, err := override.Decode(spec, s.At, raw)
		switch {
		case err != nil:
			return "", err
		case old != 0 && ver != old, old == 0 && there.Overrides():
			return "", conflict
		}
		w, err := o.build(spec, s, raw, max(ver, after), ver)
		if err != nil {
			return "", err
		}
		both := audit.Write{Update: w.update, Put: w.put}
		err = audit.Do(ctx, o.api, &o.retrier, both, w.ver, o.now(), changeOf(spec, there, raw, s))
		failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err)
		if err == nil {
			return override.FormatRevision(w.ver), nil
		} else if !ok {
			return "", err
		}
		raw = failed.Item
	}
}

// changeOf returns the record of a change of there, which raw has, to s. A quota, which sync has stored and
// not an operator, counts as nothing. A tombstone ends what another binary has written, too.
func changeOf(spec *store.Spec, there store.Stored, raw codec.Item, s store.Stored) store.Change {
	c := store.Change{At: s.At, Resource: spec.Resource, After: s.Fields(spec)}
	switch {
	case there.Epoch != 0:
	case s.Overrides():
		c.Before = there.Fields(spec)
	default:
		c.Before = override.FieldsOf(raw, item.LimitsPrefix(s.At))
	}
	return c
}

// quotaVersion returns the version that an override of at must exceed because regional quotas may be in force
// there.
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

// List implements store.OverrideStore. The index may be behind: List reads every item that it names, and
// skips those that are gone.
func (o *Overrides) List(ctx context.Context, spec *store.Spec) iter.Seq2[store.Stored, error] {
	return func(yield func(store.Stored, error) bool) {
		index, list := item.Indexes()[1], item.OverrideList(spec.Resource)
		for page, err := range wire.Query(ctx, o.api, &o.retrier, index, list) {
			if err != nil {
				yield(store.Stored{}, err)
				return
			}
			page = withPlans(spec, page)
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

// build returns an operator's write of s over raw, which has the version old, 0 for nothing. The new version
// is above after. An override takes the target from regional sync, and a tombstone gives it back.
func (o *Overrides) build(
	spec *store.Spec, s store.Stored, raw codec.Item, after, old int64,
) (*configWrite, error) {
	if _, _, ofPlan := store.SplitPlanAt(s.At); ofPlan {
		return o.buildPlan(spec, s, raw, old)
	}
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

// configWrite is a write to a config item: an update, or a put that leaves a tombstone.
type configWrite struct {
	ver    int64
	op     string
	update *dynamodb.UpdateItemInput
	put    *dynamodb.PutItemInput
}

// write returns the write of s to its target, if condition holds. values are those of condition; write adds
// its own. managed becomes the attribute of that name; nil removes it. The version is above after, even if
// the clocks of the writers differ: docs/design.md, "Overrides and cv".
func (o *Overrides) write(
	spec *store.Spec, s store.Stored, managed *int64, after int64, condition string, values codec.Item,
) (*configWrite, error) {
	ver, err := o.nextVersion(spec, s.At, after)
	if err != nil {
		return nil, err
	}
	w := &configWrite{ver: ver, op: wire.NewOp()}
	key := item.OverrideKey(spec.Resource, s.At)
	if s.Overrides() || strings.Contains(condition, ":ver") {
		values[":ver"] = codec.N(w.ver)
	}
	if s.Overrides() {
		set, remove := assignments(spec, s, managed, values)
		values[":op"], values[":list"] = codec.S(w.op), codec.S(item.OverrideList(spec.Resource))
		values[":at"] = codec.S(s.At)
		expression := "SET ver = :ver, op = :op, GSI2PK = :list, GSI2SK = :at" + set
		if remove != "" {
			expression += " REMOVE " + remove
		}
		w.update = &dynamodb.UpdateItemInput{
			TableName: &o.retrier.Table, Key: key,
			UpdateExpression: &expression, ConditionExpression: &condition, ExpressionAttributeValues: values,
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}
		return w, nil
	}
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

// nextVersion returns the version of a write to a target now, above after.
func (o *Overrides) nextVersion(spec *store.Spec, at string, after int64) (int64, error) {
	ver := max(o.now().UnixMilli(), after+1)
	if ver > override.MaxVersion {
		return 0, &store.SetupError{
			What: fmt.Sprintf("the version of the override of %s at %s would be %d, beyond the year 2498",
				spec.Resource, store.Quote(at), ver),
			Do: "set this host's clock by NTP",
		}
	}
	return ver, nil
}

// assignments returns the parts of an update expression that store the limits of s and managed. It adds their
// values to values. Limits that s does not override are removed.
func assignments(spec *store.Spec, s store.Stored, managed *int64, values codec.Item) (set, remove string) {
	var removed []string
	if managed != nil {
		set = ", " + override.Managed + " = :managed"
		values[":managed"] = codec.N(*managed)
	} else {
		removed = append(removed, override.Managed)
	}
	for i, l := range s.Limits {
		attrs := item.OverrideAttributes(s.At, spec.Limits[i])
		if l == nil {
			removed = append(removed, attrs[:]...)
			continue
		}
		for j, n := range [...]int64{l.Capacity, l.Burst, l.Refill, l.Period} {
			set += fmt.Sprintf(", %[1]s = :%[1]s", attrs[j])
			values[":"+attrs[j]] = codec.N(n)
		}
	}
	return set, strings.Join(removed, ", ")
}

// send sends w once. The error is DynamoDB's.
func (w *configWrite) send(ctx context.Context, api wire.API) (err error) {
	if w.put != nil {
		_, err = api.PutItem(ctx, w.put, wire.NoRetry)
	} else {
		_, err = api.UpdateItem(ctx, w.update, wire.NoRetry)
	}
	return err
}

// isLastOp reports whether op is that of the last write to an item.
func isLastOp(item codec.Item, op string) bool {
	last, ok := item["op"].(*types.AttributeValueMemberS)
	return ok && last.Value == op
}
