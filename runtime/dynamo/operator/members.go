package operator

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/audit"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/members"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// Members reads and writes the entity items of one table. It implements store.MemberStore. A write of unknown
// outcome is sent again: once or twice is the same.
type Members struct {
	api     wire.API
	retrier wire.Retrier
	now     func() time.Time
	changed func(entity string)
}

// NewMembers returns the entities in table. now dates changes of their plans. It does no I/O.
func NewMembers(client wire.API, table string, now func() time.Time) *Members {
	return MembersWith(client, wire.NewRetrier(table), now, func(string) {})
}

// MembersWith is NewMembers for a store, which has a retrier of its own. It calls changed after each write,
// whatever the write's outcome.
func MembersWith(
	client wire.API, retrier wire.Retrier, now func() time.Time, changed func(entity string),
) *Members {
	return &Members{api: client, retrier: retrier, now: now, changed: changed}
}

// Put implements store.MemberStore. It writes the attributes of the link alone: others of the item stay.
func (m *Members) Put(ctx context.Context, member store.Member) error {
	expression := "SET entity_id = :entity, #cascade = :cascade"
	values := codec.Item{
		":entity":  codec.S(member.Entity),
		":cascade": &types.AttributeValueMemberBOOL{Value: member.Cascade},
	}
	if member.Parent == "" {
		expression += " REMOVE parent_id, GSI1PK, GSI1SK"
	} else {
		expression += ", parent_id = :parent, GSI1PK = :list, GSI1SK = :child"
		values[":parent"], values[":list"] = codec.S(member.Parent), codec.S(item.ParentKey(member.Parent))
		values[":child"] = codec.S(item.ChildPrefix + member.Entity)
	}
	return m.update(ctx, member.Entity, &dynamodb.UpdateItemInput{
		UpdateExpression: &expression, ExpressionAttributeValues: values, ExpressionAttributeNames: cascadeName(),
	})
}

// SetCalendar implements store.MemberStore.
func (m *Members) SetCalendar(ctx context.Context, entity string, since time.Time) error {
	return m.update(ctx, entity, members.SetCalendar(since))
}

// SetPlan implements store.MemberStore. It costs a read and a transaction of two items, four write units. It
// writes nothing if entity is on the plan already: a repeated call costs a read. It fails with a
// *store.ContendedError if others change the plan in each attempt.
func (m *Members) SetPlan(ctx context.Context, entity, plan string, from *string) error {
	for attempt := 1; ; attempt++ {
		old, _, err := m.Get(ctx, entity)
		switch {
		case err != nil:
			return err
		case old.Plan == plan:
			return nil
		case from != nil && *from != old.Plan:
			return &store.ConflictError{At: "plan of " + entity}
		}
		err = m.setPlan(ctx, plan, old, entity)
		if _, changed := errors.AsType[*types.ConditionalCheckFailedException](err); !changed {
			return err
		}
		if attempt == m.retrier.Attempts {
			return &store.ContendedError{Resource: "plan", Entity: entity, Attempts: attempt}
		}
	}
}

// setPlan puts entity on plan, if it still is as old.
func (m *Members) setPlan(ctx context.Context, plan string, old store.Member, entity string) error {
	now := m.now()
	in, version := members.SetPlan(plan, old, now)
	in.TableName, in.Key = &m.retrier.Table, item.EntityKey(entity)
	defer m.changed(entity)
	return audit.Do(ctx, m.api, &m.retrier, audit.Write{Update: in}, version, now, store.Change{
		At: entity, Before: store.PlanFields(old.Plan), After: store.PlanFields(plan),
	})
}

// cascadeName is the name of an attribute that is a reserved word.
func cascadeName() map[string]string { return map[string]string{"#cascade": "cascade"} }

// update sends in, which it completes, for the item of entity.
func (m *Members) update(ctx context.Context, entity string, in *dynamodb.UpdateItemInput) error {
	in.TableName, in.Key = &m.retrier.Table, item.EntityKey(entity)
	defer m.changed(entity)
	return m.retrier.Do(ctx, func() error {
		_, err := m.api.UpdateItem(ctx, in, wire.NoRetry)
		return err
	})
}

// Get implements store.MemberStore.
func (m *Members) Get(ctx context.Context, entity string) (member store.Member, found bool, err error) {
	var out *dynamodb.GetItemOutput
	err = m.retrier.Do(ctx, func() error {
		out, err = members.Get(ctx, m.api, m.retrier.Table, entity)
		return err
	})
	if err != nil {
		return store.Member{}, false, err
	}
	return members.Decode(entity, out.Item)
}

// Delete implements store.MemberStore. It removes the attributes of the link alone. The item stays: with its
// other attributes, or as a bare key, since no condition says that an item has no others.
func (m *Members) Delete(ctx context.Context, entity string) error {
	err := m.update(ctx, entity, &dynamodb.UpdateItemInput{
		UpdateExpression:         aws.String("REMOVE entity_id, #cascade, parent_id, GSI1PK, GSI1SK"),
		ConditionExpression:      aws.String("attribute_exists(PK)"),
		ExpressionAttributeNames: cascadeName(),
	})
	if _, nothing := errors.AsType[*types.ConditionalCheckFailedException](err); nothing {
		return nil
	}
	return err
}

// Children implements store.MemberStore. The index that it reads may be a moment behind.
func (m *Members) Children(ctx context.Context, entity string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for page, err := range wire.Query(ctx, m.api, &m.retrier, item.Indexes()[0], item.ParentKey(entity)) {
			if err != nil {
				yield("", err)
				return
			}
			for _, key := range page {
				if !yield(strings.TrimPrefix(key, item.ChildPrefix), nil) {
					return
				}
			}
		}
	}
}

// erasesAtOnce bounds the deletions of one Erase that are under way.
const erasesAtOnce = 8

// Erase implements store.MemberStore. It deletes each item below the entity's key, one write unit or more
// each. First goes the link, so that look-ups fail, then overrides, so that no new bucket has their numbers.
func (m *Members) Erase(ctx context.Context, entity string, how store.Erasing) (n store.Erased, err error) {
	if !how.LeaveChildren {
		if err := store.Childless(ctx, m, entity); err != nil {
			return n, err
		}
	}
	keys, err := m.keysOf(ctx, entity)
	if err != nil {
		return n, err
	}
	slices.SortStableFunc(keys, func(a, b codec.Item) int {
		return cmp.Compare(kindOf(item.KeyOf(a).SK), kindOf(item.KeyOf(b).SK))
	})
	defer m.changed(entity)
	for len(keys) > 0 && err == nil {
		kind := kindOf(item.KeyOf(keys[0]).SK)
		end := slices.IndexFunc(keys, func(key codec.Item) bool { return kindOf(item.KeyOf(key).SK) != kind })
		if end < 0 {
			end = len(keys)
		}
		done := end
		if !how.DryRun {
			done, err = m.deleteAll(ctx, keys[:end])
		}
		*kind.counter(&n) += done
		keys = keys[end:]
	}
	return n, err
}

// keysOf returns the keys of all items of entity, read consistently.
func (m *Members) keysOf(ctx context.Context, entity string) (keys []codec.Item, err error) {
	in := &dynamodb.QueryInput{
		TableName:                 &m.retrier.Table,
		KeyConditionExpression:    aws.String("PK = :pk"),
		ExpressionAttributeValues: codec.Item{":pk": item.EntityKey(entity)[item.PK]},
		ProjectionExpression:      aws.String("PK, SK"), ConsistentRead: aws.Bool(true),
	}
	for page, err := range wire.Pages(ctx, m.api, &m.retrier, in) {
		if err != nil {
			return nil, err
		}
		keys = append(keys, page.Items...)
	}
	return keys, nil
}

// deleteAll deletes the items with these keys, several at a time, and returns how many it deleted. It ends
// with the first error.
func (m *Members) deleteAll(ctx context.Context, keys []codec.Item) (done int, err error) {
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(erasesAtOnce)
	for _, key := range keys {
		group.Go(func() error {
			err := m.retrier.Do(ctx, func() error {
				_, err := m.api.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &m.retrier.Table, Key: key},
					wire.NoRetry)
				return err
			})
			if err == nil {
				mu.Lock()
				done++
				mu.Unlock()
			}
			return err
		})
	}
	err = group.Wait()
	return done, err
}

// erasedKind is a kind of an entity's items, in the order in which Erase deletes them.
type erasedKind int

const (
	linkItem erasedKind = iota
	overrideItem
	bucketItem
	usageItem
	otherItem
)

// kindOf returns the kind of the item with sort key sk. A predecessor's per-limit item is no bucket.
func kindOf(sk string) erasedKind {
	resource, ofBucket := strings.CutPrefix(sk, item.BucketPrefix)
	switch {
	case sk == item.EntitySK:
		return linkItem
	case strings.HasPrefix(sk, item.ConfigPrefix):
		return overrideItem
	case ofBucket && !strings.Contains(resource, "#"):
		return bucketItem
	case strings.HasPrefix(sk, item.UsagePrefix):
		return usageItem
	}
	return otherItem
}

// counter returns the field of n that counts items of k.
func (k erasedKind) counter(n *store.Erased) *int {
	switch k {
	case overrideItem:
		return &n.Overrides
	case bucketItem:
		return &n.Buckets
	case usageItem:
		return &n.Usage
	}
	return &n.Other
}
