package dynamo

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// Overrides reads and writes the config items of one table. It implements runtime.OverrideStore.
type Overrides struct {
	api      API
	table    string
	now      func() time.Time
	patience patience
}

// NewOverrides returns the overrides in table. now dates their versions. It does no I/O.
func NewOverrides(client API, table string, now func() time.Time) *Overrides {
	return &Overrides{api: client, table: table, now: now, patience: newPatience(table)}
}

// Overrides implements runtime.Session.
func (s *session) Overrides() runtime.OverrideStore {
	return &Overrides{api: s.api, table: s.table, now: s.env.Clock.Now, patience: s.patience(operatorTries)}
}

// Get implements runtime.OverrideStore.
func (o *Overrides) Get(ctx context.Context, spec *runtime.Spec, at ...string) ([]runtime.Stored, error) {
	keys := make([]codec.Item, len(at))
	for i, level := range at {
		keys[i] = levelKey(spec.Resource, level)
	}
	items, err := o.read(ctx, keys)
	if err != nil {
		return nil, err
	}
	all := make([]runtime.Stored, len(at))
	for i, level := range at {
		if all[i], _, err = decodeLevel(spec, level, items[primaryKeyOf(keys[i])]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// read returns the items that are there, consistently.
func (o *Overrides) read(ctx context.Context, keys []codec.Item) (map[primaryKey]codec.Item, error) {
	items := make(map[primaryKey]codec.Item, len(keys))
	for chunk := range slices.Chunk(keys, batchMost) {
		b, err := batchRead(ctx, o.api, &o.patience, chunk, true)
		if err != nil {
			return nil, err
		}
		maps.Copy(items, b.items)
	}
	return items, nil
}

// Set implements runtime.OverrideStore. Limits of the item that spec does not know, another binary's, are left as they
// are; a tombstone ends them too. A write of unknown outcome goes again: its condition holds only if it had not been
// applied, and its op in the item tells that it had. Version and numbers would not tell: two operators who raise the same
// limit alike write the same.
func (o *Overrides) Set(ctx context.Context, spec *runtime.Spec, s runtime.Stored) (runtime.Revision, error) {
	conflict := &runtime.ConflictError{Resource: spec.Resource, At: s.At}
	old, ok := versionOf(s.Revision)
	if !ok {
		return "", conflict
	}
	after, err := o.changed(ctx, spec, s.At)
	if err != nil {
		return "", err
	}
	for {
		w, err := o.build(spec, s, max(old, after), old)
		if err != nil {
			return "", err
		}
		doubtful := false // some try may have been applied
		err = o.patience.call(ctx, func() error {
			err := w.send(ctx, o.api)
			outcome, _ := classify(err)
			doubtful = doubtful || outcome == unknown
			return err
		})
		failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err)
		if err == nil {
			return revision(w.ver), nil
		} else if !ok {
			return "", err
		}
		if w.wrote(failed.Item) { // an earlier try was applied
			return revision(w.ver), nil
		}
		there, ver, err := decodeLevel(spec, s.At, failed.Item)
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

// changed returns what the version that takes a share's place has to be above, beside the share's own.
func (o *Overrides) changed(ctx context.Context, spec *runtime.Spec, at string) (int64, error) {
	if spec.Regions == nil || !isEntity(at) {
		return 0, nil
	}
	now := o.now().UnixMilli()
	b, err := readBeat(ctx, o.api, &o.patience, now)
	if err != nil {
		return 0, err
	}
	return b.Changed(now), nil
}

// Heartbeat implements runtime.OverrideStore, consistently.
func (o *Overrides) Heartbeat(ctx context.Context) (runtime.Heartbeat, error) {
	b, err := readBeat(ctx, o.api, &o.patience, o.now().UnixMilli())
	if err != nil {
		return runtime.Heartbeat{}, err
	}
	return b.Heartbeat, nil
}

// List implements runtime.OverrideStore. The index may be behind: what it lists is read, and skipped if it is gone.
func (o *Overrides) List(ctx context.Context, spec *runtime.Spec) iter.Seq2[runtime.Stored, error] {
	return func(yield func(runtime.Stored, error) bool) {
		for page, err := range query(ctx, o.api, &o.patience, indexes()[1], listKey(spec.Resource)) {
			if err != nil {
				yield(runtime.Stored{}, err)
				return
			}
			for chunk := range slices.Chunk(page, batchMost) {
				all, err := o.Get(ctx, spec, chunk...)
				if err != nil {
					yield(runtime.Stored{}, err)
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

// levelWrite replaces what a level says: by an update, or by a put that leaves a tombstone.
type levelWrite struct {
	ver    int64
	op     string
	update *dynamodb.UpdateItemInput
	put    *dynamodb.PutItemInput
}

// build makes an operator's write that puts s in place of what has version old, 0 for nothing, under a version above after. What
// regions share is theirs no longer, and is again where s is a tombstone.
func (o *Overrides) build(spec *runtime.Spec, s runtime.Stored, after, old int64) (*levelWrite, error) {
	condition, values := "attribute_not_exists(PK)", codec.Item{}
	if old != 0 {
		condition, values[":old"] = "ver = :old", codec.N(old)
	}
	var managed *int64
	if spec.Regions != nil && isEntity(s.At) && !s.Overrides() {
		managed = new(int64)
	}
	return o.write(spec, s, managed, after, condition, values)
}

// write makes the write that puts s at its level if condition holds, of which values are; managed is the attribute, nil for none.
// Versions rise though the clocks of those who write differ: design section 6.
func (o *Overrides) write(
	spec *runtime.Spec, s runtime.Stored, managed *int64, after int64, condition string, values codec.Item,
) (*levelWrite, error) {
	w := &levelWrite{ver: max(o.now().UnixMilli(), after+1), op: newOp()}
	if w.ver > lastVersion {
		return nil, &runtime.SetupError{
			What: fmt.Sprintf("the version of the override of %s at %s would be %d, beyond the year 3554", spec.Resource, s.At, w.ver),
			Do:   "set this host's clock by NTP",
		}
	}
	key := levelKey(spec.Resource, s.At)
	if s.Overrides() || strings.Contains(condition, ":ver") {
		values[":ver"] = codec.N(w.ver)
	}
	if !s.Overrides() {
		key["ver"], key["op"] = codec.N(w.ver), codec.S(w.op)
		if managed != nil {
			key[managedAttribute] = codec.N(*managed)
		}
		w.put = &dynamodb.PutItemInput{
			TableName: &o.table, Item: key, ConditionExpression: &condition,
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}
		if len(values) > 0 {
			w.put.ExpressionAttributeValues = values
		}
		return w, nil
	}
	values[":op"], values[":list"], values[":at"] = codec.S(w.op), codec.S(listKey(spec.Resource)), codec.S(s.At)
	set, remove := "SET ver = :ver, op = :op, GSI2PK = :list, GSI2SK = :at", ""
	if managed != nil {
		set += ", " + managedAttribute + " = :managed"
		values[":managed"] = codec.N(*managed)
	} else {
		remove = ", " + managedAttribute
	}
	for i, l := range s.Limits {
		attrs := limitAttrs(spec.Limits[i])
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
		TableName: &o.table, Key: key, UpdateExpression: &set, ConditionExpression: &condition, ExpressionAttributeValues: values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	return w, nil
}

func (w *levelWrite) send(ctx context.Context, api API) (err error) {
	if w.put != nil {
		_, err = api.PutItem(ctx, w.put, once)
	} else {
		_, err = api.UpdateItem(ctx, w.update, once)
	}
	return err
}

// wrote reports that item is as w has left it.
func (w *levelWrite) wrote(item codec.Item) bool {
	op, ok := item["op"].(*types.AttributeValueMemberS)
	return ok && op.Value == w.op
}

// listKey is the key in GSI2 under which the overrides of resource are listed.
func listKey(resource string) string { return "CONFIG#" + resource }

// levelKey is the key of the config item of resource at a level.
func levelKey(resource, at string) codec.Item {
	holder := "KIND#"
	if isEntity(at) {
		holder = entityPrefix
	}
	return codec.Item{hashKey: codec.S(holder + at), rangeKey: codec.S("#CONFIG#" + resource)}
}

// isEntity reports that a level is an entity's: no kind has a '-', and an entity's ends its kind.
func isEntity(at string) bool { return strings.Contains(at, "-") }

// managedAttribute is there where regional sync may write: the epoch of the share, 0 where an operator has given the entry back.
const managedAttribute = "managed"

// lastVersion bounds the version of a level, so that those of two levels add up to less than a revision in cv: design
// section 6. It is in the year 3554.
const lastVersion = revisionUnit/2 - 1

// decodeLevel reads a config item, which may be empty. ver is its version in ms, 0 for none. Limits that spec does not
// know are another binary's, and skipped; so is the share of a resource that has regions no longer. It fails with a
// *runtime.SetupError.
func decodeLevel(spec *runtime.Spec, at string, item codec.Item) (stored runtime.Stored, ver int64, err error) {
	stored = runtime.Stored{At: at, Limits: make([]*bucket.Limit, len(spec.Limits))}
	if len(item) == 0 {
		return stored, 0, nil
	}
	d := codec.Decoder{Item: item}
	ver = d.Int("ver")
	err = d.Err()
	if err == nil && (ver < 1 || ver > lastVersion) {
		err = &codec.AttributeError{Attr: "ver", Got: strconv.FormatInt(ver, 10), Want: "a time in ms"}
	}
	managed := item[managedAttribute] != nil
	if managed {
		stored.Epoch = d.Int(managedAttribute)
		if err == nil {
			err = d.Err()
		}
	}
	for i, name := range spec.Limits {
		if err == nil && (!managed || spec.Regions != nil) {
			stored.Limits[i], err = decodeLimit(&d, name, managed)
		}
	}
	if err != nil {
		return runtime.Stored{}, 0, &runtime.SetupError{
			What: fmt.Sprintf("the override of %s at %s is malformed", spec.Resource, at),
			Do:   "mend the item " + itemText(levelKey(spec.Resource, at)) + " and raise its ver",
			Err:  err,
		}
	}
	stored.Revision = revision(ver)
	return stored, ver, nil
}

// decodeLimit reads one limit of a config item, nil where the item has nothing of it. A share may be closed.
func decodeLimit(d *codec.Decoder, name string, managed bool) (*bucket.Limit, error) {
	attrs := limitAttrs(name)
	if !slices.ContainsFunc(attrs[:], func(attr string) bool { _, ok := d.Item[attr]; return ok }) {
		return nil, nil
	}
	l := &bucket.Limit{Capacity: d.Int(attrs[0]), Burst: d.Int(attrs[1]), Refill: d.Int(attrs[2]), Period: d.Int(attrs[3])}
	if err := d.Err(); err != nil {
		return nil, err
	}
	if wrong := checkLimit(*l, managed); wrong != "" {
		return nil, fmt.Errorf("limit %s: %s", name, wrong)
	}
	return l, nil
}

// checkLimit says what is wrong with l, or "". A share that is closed is otherwise what one token is.
func checkLimit(l bucket.Limit, managed bool) string {
	if managed && l.Closed() {
		l.Capacity = bucket.Milli
	}
	return l.Check(0)
}

// limitAttrs are the attributes of one limit: capacity, burst, refill and period.
func limitAttrs(name string) [4]string {
	p := "l_" + name + "_"
	return [4]string{p + "cp", p + "bx", p + "ra", p + "rp"}
}

func revision(ver int64) runtime.Revision { return runtime.Revision(strconv.FormatInt(ver, 10)) }

// versionOf undoes revision; none is 0. ok is false for what is no revision of this store, and so of nothing that is stored.
func versionOf(r runtime.Revision) (ver int64, ok bool) {
	if r == "" {
		return 0, true
	}
	ver, err := strconv.ParseInt(string(r), 10, 64)
	return ver, err == nil && ver > 0
}

// itemText names an item by its key, as errors do.
func itemText(key codec.Item) string {
	k := primaryKeyOf(key)
	return k.hash + " / " + k.sort
}
