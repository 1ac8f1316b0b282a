package dynamo

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// Members reads and writes the entity items of one table. It implements store.MemberStore. A write of unknown outcome
// goes again: it says all there is of an entity, so that once or twice is the same.
type Members struct {
	api      wire.API
	table    string
	patience wire.Retrier
	changed  func(entity string) // told of each write, whatever became of it
}

// NewMembers returns the entities in table. It does no I/O.
func NewMembers(client wire.API, table string) *Members {
	return &Members{api: client, table: table, patience: wire.NewRetrier(table), changed: func(string) {}}
}

// Members implements store.Session. What they write, this session's Member sees at once; others see it when what they
// remember is due.
func (s *session) Members() store.MemberStore {
	return &Members{api: s.api, table: s.table, patience: s.patience(wire.OperatorAttempts), changed: s.lookups.Forget}
}

// Put implements store.MemberStore.
func (e *Members) Put(ctx context.Context, m store.Member) error {
	entity := item.EntityKey(m.Entity)
	entity["entity_id"] = codec.S(m.Entity)
	entity["cascade"] = &types.AttributeValueMemberBOOL{Value: m.Cascade}
	if m.Parent != "" {
		entity["parent_id"] = codec.S(m.Parent)
		entity["GSI1PK"], entity["GSI1SK"] = codec.S(item.ParentKey(m.Parent)), codec.S(item.ChildPrefix+m.Entity)
	}
	defer e.changed(m.Entity)
	return e.patience.Do(ctx, func() error {
		_, err := e.api.PutItem(ctx, &dynamodb.PutItemInput{TableName: &e.table, Item: entity}, wire.NoRetry)
		return err
	})
}

// Get implements store.MemberStore.
func (e *Members) Get(ctx context.Context, entity string) (m store.Member, found bool, err error) {
	var out *dynamodb.GetItemOutput
	err = e.patience.Do(ctx, func() error {
		out, err = e.get(ctx, entity)
		return err
	})
	if err != nil {
		return store.Member{}, false, err
	}
	return decodeMember(entity, out.Item)
}

// get reads an entity's item once.
func (e *Members) get(ctx context.Context, entity string) (*dynamodb.GetItemOutput, error) {
	return e.api.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &e.table, Key: item.EntityKey(entity), ConsistentRead: aws.Bool(true),
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	}, wire.NoRetry)
}

// Delete implements store.MemberStore.
func (e *Members) Delete(ctx context.Context, entity string) error {
	defer e.changed(entity)
	return e.patience.Do(ctx, func() error {
		_, err := e.api.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &e.table, Key: item.EntityKey(entity)}, wire.NoRetry)
		return err
	})
}

// Children implements store.MemberStore, by an index that may be a moment behind.
func (e *Members) Children(ctx context.Context, entity string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for page, err := range wire.Query(ctx, e.api, &e.patience, item.Indexes()[0], item.ParentKey(entity)) {
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

// decodeMember reads an entity item, which may be empty: found is false then. It fails with a *store.SetupError.
func decodeMember(entity string, raw codec.Item) (m store.Member, found bool, err error) {
	if len(raw) == 0 {
		return store.Member{}, false, nil
	}
	m = store.Member{Entity: entity, Cascade: true}
	d := codec.Decoder{Item: raw}
	if _, ok := raw["parent_id"]; ok {
		m.Parent = d.Text("parent_id")
	}
	if _, ok := raw["cascade"]; ok {
		m.Cascade = d.Bool("cascade")
	}
	if err := d.Err(); err != nil {
		return store.Member{}, false, &store.SetupError{
			What: fmt.Sprintf("what is stored of %s is malformed", entity),
			Do:   "mend or delete the item " + item.KeyOf(item.EntityKey(entity)).String(),
			Err:  err,
		}
	}
	return m, true, nil
}
