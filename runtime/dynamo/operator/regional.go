package operator

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/override"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// Regional is a region's table as regional sync sees it: the region.Table of one region. It is safe for concurrent use.
type Regional struct {
	overrides     *Overrides
	heartbeat     atomic.Pointer[override.Heartbeat] // as last read or written here
	newestVersion atomic.Int64                       // version of the shares written here
}

// NewRegional returns the region whose table it is. now dates versions and the heartbeat. It does no I/O.
func NewRegional(client wire.API, table string, now func() time.Time) *Regional {
	return RegionalWith(client, wire.NewRetrier(table), now)
}

// RegionalWith is NewRegional with a retrier of its own.
func RegionalWith(client wire.API, retrier wire.Retrier, now func() time.Time) *Regional {
	return &Regional{overrides: OverridesWith(client, retrier, now)}
}

// Each calls f for every bucket of resource, of all kinds, as Buckets lists them. Malformed ones are left out: who acquires of them is
// told, and they are not to keep the others from their shares.
func (r *Regional) Each(ctx context.Context, resource string, f func(entity string, img *bucket.Image)) error {
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

// Get returns what each level stores for spec's resource, as Overrides does.
func (r *Regional) Get(ctx context.Context, spec *store.Spec, at ...string) ([]store.Stored, error) {
	return r.overrides.Get(ctx, spec, at...)
}

// PutQuota stores s, an entity's regional quota under s.Epoch, and returns its version, which is above s.Revision's, that of what it replaces and
// the last change of the heartbeat that r knows. Without limits it leaves a tombstone. It fails with a *store.ConflictError where an
// operator's override is, and with a *store.InvalidError for what cannot be a share.
//
// It takes one write unit, and one more where the index changes: for a first share, and for its tombstone. A write of unknown outcome
// goes again, and is recognised by its op.
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
			"(attribute_not_exists(GSI2PK) OR attribute_exists(managed)) AND (attribute_not_exists(ver) OR ver < :ver)", codec.Item{})
		if err != nil {
			return "", err
		}
		err = r.overrides.retrier.Do(ctx, func() error { return w.send(ctx, r.overrides.api) })
		failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err)
		if err == nil || ok && w.wrote(failed.Item) { // an earlier try was applied
			for last := r.newestVersion.Load(); last < w.ver && !r.newestVersion.CompareAndSwap(last, w.ver); last = r.newestVersion.Load() {
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

// checkQuota says what keeps s from being a share of spec's limits.
func checkQuota(spec *store.Spec, s store.Stored) error {
	wrong := func(field, value, reason string) error {
		return &store.InvalidError{Resource: spec.Resource, Field: field, Value: value, Reason: reason}
	}
	switch {
	case spec.Regions == nil:
		return wrong("share of", s.At, "is of a resource that no regions share: add `regions` to it in limits.yaml")
	case !item.IsEntity(s.At):
		return wrong("share of", s.At, "is of a kind: regions share what entities have")
	case s.Epoch < 1:
		return wrong("epoch of the share of "+s.At, fmt.Sprint(s.Epoch), "is below 1: an operator's override is set by Overrides")
	}
	for i, l := range s.Limits {
		if l == nil {
			continue
		}
		if reason := override.CheckLimit(*l, true); reason != "" {
			return wrong("limit "+spec.Limits[i]+" of the share of "+s.At, "", "is not possible: "+reason)
		}
	}
	return nil
}

// Heartbeat returns what is stored, read consistently.
func (r *Regional) Heartbeat(ctx context.Context) (store.Heartbeat, error) {
	b, err := r.read(ctx)
	if err != nil {
		return store.Heartbeat{}, err
	}
	return b.Heartbeat, nil
}

func (r *Regional) read(ctx context.Context) (*override.Heartbeat, error) {
	b, err := override.ReadHeartbeat(ctx, r.overrides.api, &r.overrides.retrier, r.overrides.now().UnixMilli())
	if err == nil {
		r.heartbeat.Store(b)
	}
	return b, err
}

// lateHeartbeat is how shortly before a heartbeat expires, in milliseconds, the next one counts as late: a process whose clock is ahead by
// less than Check reports may have seen it expire.
const lateHeartbeat = 1000

// PutHeartbeat stores h, but for its Since: that which is stored goes on while its epoch does and it is alive, else it is now, or later than
// all that bears on versions so far, so that what is in force from now on has higher ones. It fails with a *store.ConflictError where
// one of a higher epoch is stored, or one of the same that expires later or is another region's, and with a *store.SetupError where
// that of another region is alive. It takes one write unit: the write is for what r last read or wrote, and goes again if that has changed.
func (r *Regional) PutHeartbeat(ctx context.Context, h store.Heartbeat) error {
	if h.Epoch < 1 || h.Expires < 1 || h.Expires > override.MaxVersion {
		return &store.InvalidError{Field: "heartbeat", Value: fmt.Sprintf("%+v", h), Reason: "is not possible: want an epoch of at least 1, and a time in ms"}
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
			return &store.ConflictError{At: "heartbeat"}
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
			if old.Heartbeat != next { // else an earlier try was applied
				continue
			}
		}
		r.heartbeat.Store(&override.Heartbeat{Heartbeat: next, ReadAt: now})
		return nil
	}
}

// put replaces old, which may be none, by next.
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
		in.ExpressionAttributeValues = codec.Item{":epoch": codec.N(old.Epoch), ":since": codec.N(old.Since), ":exp": codec.N(old.Expires)}
	}
	in.ConditionExpression = &condition
	_, err := r.overrides.api.PutItem(ctx, in, wire.NoRetry)
	return err
}
