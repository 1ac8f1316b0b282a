package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/override"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// Regional is a region's table as regional sync sees it: the region.Table of one region. It is safe for
// concurrent use.
type Regional struct {
	overrides     *Overrides
	heartbeat     atomic.Pointer[override.Heartbeat] // as last read or written by this Regional; nil before
	newestVersion atomic.Int64                       // the highest version of a quota that this Regional wrote
}

// NewRegional returns the region whose table it is. now dates versions and the heartbeat. It does no I/O.
func NewRegional(client wire.API, table string, now func() time.Time) *Regional {
	return RegionalWith(client, wire.NewRetrier(table), now)
}

// RegionalWith is NewRegional with a retrier of its own.
func RegionalWith(client wire.API, retrier wire.Retrier, now func() time.Time) *Regional {
	return &Regional{overrides: OverridesWith(client, retrier, now)}
}

// Each calls f for every bucket of resource, of all kinds, as Buckets lists them. It leaves out malformed
// buckets: an acquire of one fails by itself, and it must not keep the others from their quotas.
func (r *Regional) Each(
	ctx context.Context, resource string, f func(entity string, img *bucket.Image),
) error {
	for page, err := range Buckets(ctx, r.overrides.api, r.overrides.retrier.Table, resource, "") {
		if err != nil {
			return err
		}
		for _, b := range page.Buckets {
			f(b.Entity, b.Image)
		}
	}
	return nil
}

// Get returns what each target stores for spec's resource, as Overrides does.
func (r *Regional) Get(ctx context.Context, spec *store.Spec, at ...string) ([]store.Stored, error) {
	return r.overrides.Get(ctx, spec, at...)
}

// PutQuota stores s, an entity's regional quota of s.Epoch, and returns its version. Without limits it leaves
// a tombstone. The version is above s.Revision, above the version that it replaces and above the heartbeat's
// last change that r knows.
//
// It fails with
//   - a *store.ConflictError if an operator's override is stored there,
//   - a *store.InvalidError if s cannot be a quota.
//
// It costs one write unit, and one more if the index changes: for a first quota, and for its tombstone. A
// write of unknown outcome is sent again. Its op shows whether the first one was applied.
func (r *Regional) PutQuota(ctx context.Context, spec *store.Spec, s store.Stored) (store.Revision, error) {
	if err := checkQuota(spec, s); err != nil {
		return "", err
	}
	conflict := &store.ConflictError{Resource: spec.Resource, At: s.At}
	after, ok := override.ParseRevision(s.Revision)
	if !ok {
		return "", conflict
	}
	if b := r.heartbeat.Load(); b != nil {
		after = max(after, b.Changed(r.overrides.now().UnixMilli()))
	}
	for {
		w, err := r.overrides.write(spec, s, &s.Epoch, after,
			"(attribute_not_exists(GSI2PK) OR attribute_exists(managed))"+
				" AND (attribute_not_exists(ver) OR ver < :ver)", codec.Item{})
		if err != nil {
			return "", err
		}
		err = r.overrides.retrier.Do(ctx, func() error { return w.send(ctx, r.overrides.api) })
		failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err)
		if err == nil || ok && isLastOp(failed.Item, w.op) { // an earlier attempt was applied
			last := r.newestVersion.Load()
			for last < w.ver && !r.newestVersion.CompareAndSwap(last, w.ver) {
				last = r.newestVersion.Load()
			}
			return override.FormatRevision(w.ver), nil
		} else if !ok {
			return "", err
		}
		there, ver, err := override.Decode(spec, s.At, failed.Item)
		switch {
		case err != nil:
			return "", err
		case failed.Item[override.Managed] == nil && there.Overrides(), ver < w.ver:
			return "", conflict
		}
		after = ver
	}
}

// checkQuota returns a *store.InvalidError if s cannot be a quota of spec's limits.
func checkQuota(spec *store.Spec, s store.Stored) error {
	wrong := func(field, value, reason string) error {
		return &store.InvalidError{Resource: spec.Resource, Field: field, Value: value, Reason: reason}
	}
	switch {
	case spec.Regions == nil:
		return wrong("quota of", s.At, "is of a resource without regions: add `regions` to it in limits.yaml")
	case !item.IsEntity(s.At):
		return wrong("quota of", s.At, "is of a kind: only entities have quotas")
	case s.Epoch < 1:
		return wrong("epoch of the quota of "+s.At, fmt.Sprint(s.Epoch),
			"is below 1: an operator's override is set by Overrides")
	}
	for i, l := range s.Limits {
		if l == nil {
			continue
		}
		if reason := override.CheckLimit(spec, i, *l, true); reason != "" {
			return wrong("limit "+spec.Limits[i]+" of the quota of "+s.At, "", "is not possible: "+reason)
		}
	}
	return nil
}

// Grant adds tokens, in millitokens by limit, to the bucket of entity, as stored, on spec's resource, if the
// bucket has these limits in force. It adds them once at the most, and not at all if it reports false. It
// fails with
//   - a *store.ContendedError if the bucket changes at each attempt, or if a write that was sent again is not
//     its last,
//   - a *store.SetupError, or a *store.UnavailableError if DynamoDB does not answer.
//
// It costs a consistent read and a write unit.
func (r *Regional) Grant(
	ctx context.Context, spec *store.Spec, entity string, limits []bucket.Limit, tokens []int64,
) (bool, error) {
	api, retrier := r.overrides.api, &r.overrides.retrier
	for attempt := 1; ; attempt++ {
		var img *bucket.Image
		err := retrier.Do(ctx, func() (err error) {
			img, err = wire.ReadBucket(ctx, api, retrier.Table, entity, spec.Resource, wire.NoRetry)
			return err
		})
		if err != nil || img == nil || !hasLimits(img, spec.Limits, limits) {
			return false, err
		}
		in, op, err := grantInput(retrier.Table, entity, spec, img.Op, tokens)
		if err != nil {
			return false, err
		}
		sent := 0
		err = retrier.Do(ctx, func() error {
			sent++
			_, err := api.UpdateItem(ctx, in, wire.NoRetry)
			return err
		})
		unsure := sent > 1 // an earlier attempt may have been applied
		failed, refused := errors.AsType[*types.ConditionalCheckFailedException](err)
		switch {
		case err == nil, refused && isLastOp(failed.Item, op): // an earlier attempt was applied
			return true, nil
		case !refused:
			return true, err
		case unsure, attempt == retrier.Attempts:
			return unsure, &store.ContendedError{Resource: spec.Resource, Entity: entity, Attempts: attempt}
		}
	}
}

// hasLimits reports whether img's limits of these names are limits.
func hasLimits(img *bucket.Image, names []string, limits []bucket.Limit) bool {
	for i, name := range names {
		if !limits[i].Absent() && !slices.ContainsFunc(img.Extra, func(n bucket.Named) bool {
			return n.Name == name && n.Balance.Limit == limits[i]
		}) {
			return false
		}
	}
	return true
}

// grantInput returns the write that adds tokens to a bucket whose last op is the one seen, and its own op. It
// applies once, however often it arrives. rf stays, as in an Adjust. ttl stays, as in a reset.
func grantInput(
	table, entity string, spec *store.Spec, seen string, tokens []int64,
) (in *dynamodb.UpdateItemInput, op string, err error) {
	op = wire.NewOp()
	update := expression.Set(expression.Name("op"), expression.Value(op))
	for i, n := range tokens {
		if n > 0 {
			tk := expression.Name(item.LimitAttribute(spec.Limits[i], "tk"))
			update = update.Set(tk, tk.Plus(expression.Value(n)))
		}
	}
	built, err := expression.NewBuilder().WithUpdate(update).
		WithCondition(expression.Name("op").Equal(expression.Value(seen))).Build()
	if err != nil {
		return nil, "", fmt.Errorf("expression for the grant of %s: %w", spec.Resource, err)
	}
	return &dynamodb.UpdateItemInput{
		TableName: &table, Key: item.BucketKey(entity, spec.Resource),
		UpdateExpression: built.Update(), ConditionExpression: built.Condition(),
		ExpressionAttributeNames: built.Names(), ExpressionAttributeValues: built.Values(),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}, op, nil
}

// Heartbeat returns the stored heartbeat, read consistently. It is empty if there is none.
func (r *Regional) Heartbeat(ctx context.Context) (store.Heartbeat, error) {
	b, err := r.read(ctx)
	if err != nil {
		return store.Heartbeat{}, err
	}
	return b.Heartbeat, nil
}

// read reads the heartbeat and remembers it.
func (r *Regional) read(ctx context.Context) (*override.Heartbeat, error) {
	b, err := override.ReadHeartbeat(ctx, r.overrides.api, &r.overrides.retrier, r.overrides.now().UnixMilli())
	if err == nil {
		r.heartbeat.Store(b)
	}
	return b, err
}

// lateHeartbeat is how long before a heartbeat expires, in ms, the next one counts as late. A process may
// have seen it expire by then: Check tolerates a clock that is ahead by nearly as much.
const lateHeartbeat = 1000

// PutHeartbeat stores h with a Since of its own. The stored Since stays while the epoch does and the stored
// heartbeat is alive. Otherwise it becomes now, or later, above every version so far: what is in force from
// now on has higher versions.
//
// It fails with
//   - a *store.ConflictError if a heartbeat of a higher epoch is stored, or one of h's epoch that expires
//     later or is another region's,
//   - a *store.SetupError if another region's heartbeat is alive,
//   - a *store.InvalidError if h is not possible.
//
// It costs one write unit. The write replaces what r last read or wrote, and is sent again if that has
// changed.
func (r *Regional) PutHeartbeat(ctx context.Context, h store.Heartbeat) error {
	if h.Epoch < 1 || h.Expires < 1 || h.Expires > override.MaxVersion {
		return &store.InvalidError{
			Field: "heartbeat", Value: fmt.Sprintf("%+v", h),
			Reason: "is not possible: want an epoch of at least 1, and a time in ms",
		}
	}
	old := r.heartbeat.Load()
	for {
		if old == nil {
			var err error
			if old, err = r.read(ctx); err != nil {
				return err
			}
		}
		now := r.overrides.now().UnixMilli()
		next := h
		if err := old.Another(h.Region, now); err != nil {
			return err
		}
		switch {
		case old.Epoch > h.Epoch, old.Epoch == h.Epoch && (old.Expires > h.Expires || old.OfAnother(h.Region)):
			return &store.ConflictError{At: "heartbeat of regional sync"}
		case now >= old.Expires-lateHeartbeat:
			next.Since = max(now, old.Since+1, old.Expires+1, r.newestVersion.Load()+1)
		case old.Epoch < h.Epoch:
			next.Since = max(now, old.Since+1, r.newestVersion.Load()+1)
		default:
			next.Since = old.Since
		}
		err := r.overrides.retrier.Do(ctx, func() error { return r.put(ctx, old.Heartbeat, next) })
		failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err)
		if err != nil && !ok {
			return err
		}
		if ok {
			if old, err = override.DecodeHeartbeat(failed.Item, now); err != nil {
				return err
			}
			r.heartbeat.Store(old)
			if old.Heartbeat != next { // else an earlier attempt was applied
				continue
			}
		}
		r.heartbeat.Store(&override.Heartbeat{Heartbeat: next, ReadAt: now})
		return nil
	}
}

// put replaces old by next, if old is stored. An empty old stands for none.
func (r *Regional) put(ctx context.Context, old, next store.Heartbeat) error {
	item := item.HeartbeatKey()
	item["epoch"], item["since"], item["exp"] = codec.N(next.Epoch), codec.N(next.Since), codec.N(next.Expires)
	if next.Region != "" {
		item[override.RegionAttribute] = codec.S(next.Region)
	}
	in := &dynamodb.PutItemInput{
		TableName: &r.overrides.retrier.Table, Item: item,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	condition := "attribute_not_exists(PK)"
	if old != (store.Heartbeat{}) {
		condition = "epoch = :epoch AND since = :since AND exp = :exp"
		in.ExpressionAttributeValues = codec.Item{
			":epoch": codec.N(old.Epoch), ":since": codec.N(old.Since), ":exp": codec.N(old.Expires),
		}
	}
	in.ConditionExpression = &condition
	_, err := r.overrides.api.PutItem(ctx, in, wire.NoRetry)
	return err
}
