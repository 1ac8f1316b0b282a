package operator

import (
	"context"
	"iter"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/members"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// Members reads and writes the entity items of one table. It implements store.MemberStore. A write of unknown
// outcome is sent again: it replaces the whole item, so that once or twice is the same.
type Members struct {
	api     wire.API
	retrier wire.Retrier
	changed func(entity string)
}

// NewMembers returns the entities in table. It does no I/O.
func NewMembers(client wire.API, table string) *Members {
	return MembersWith(client, wire.NewRetrier(table), func(string) {})
}

// MembersWith is NewMembers for a store, which has a retrier of its own. It calls changed after each write,
// whatever the write's outcome.
func MembersWith(client wire.API, retrier wire.Retrier, changed func(entity string)) *Members {
	return &Members{api: client, retrier: retrier, changed: changed}
}

// Put implements store.MemberStore.
func (m *Members) Put(ctx context.Context, member store.Member) error {
	entity := item.EntityKey(member.Entity)
	entity["entity_id"] = codec.S(member.Entity)
	entity["cascade"] = &types.AttributeValueMemberBOOL{Value: member.Cascade}
	if member.Parent != "" {
		entity["parent_id"] = codec.S(member.Parent)
		entity["GSI1PK"], entity["GSI1SK"] = codec.S(
			item.ParentKey(member.Parent),
		), codec.S(
			item.ChildPrefix+member.Entity,
		)
	}
	defer m.changed(member.Entity)
	return m.retrier.Do(ctx, func() error {
		_, err := m.api.PutItem(
			ctx,
			&dynamodb.PutItemInput{TableName: &m.retrier.Table, Item: entity},
			wire.NoRetry,
		)
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

// Delete implements store.MemberStore.
func (m *Members) Delete(ctx context.Context, entity string) error {
	defer m.changed(entity)
	return m.retrier.Do(ctx, func() error {
		_, err := m.api.DeleteItem(
			ctx,
			&dynamodb.DeleteItemInput{TableName: &m.retrier.Table, Key: item.EntityKey(entity)},
			wire.NoRetry,
		)
		return err
	})
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
