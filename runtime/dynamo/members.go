package dynamo

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// Members reads and writes the entity items of one table. It implements runtime.MemberStore. A write of unknown outcome
// goes again: it says all there is of an entity, so that once or twice is the same.
type Members struct {
	api      API
	table    string
	patience patience
	changed  func(entity string) // told of each write, whatever became of it
}

// NewMembers returns the entities in table. It does no I/O.
func NewMembers(client API, table string) *Members {
	return &Members{api: client, table: table, patience: newPatience(table), changed: func(string) {}}
}

// Members implements runtime.Session. What they write, this session's Member sees at once; others see it when what they
// remember is due.
func (s *session) Members() runtime.MemberStore {
	return &Members{api: s.api, table: s.table, patience: s.patience(operatorTries), changed: s.lookups.Forget}
}

// Put implements runtime.MemberStore.
func (e *Members) Put(ctx context.Context, m runtime.Member) error {
	item := memberKey(m.Entity)
	item["entity_id"] = codec.S(m.Entity)
	item["cascade"] = &types.AttributeValueMemberBOOL{Value: m.Cascade}
	if m.Parent != "" {
		item["parent_id"] = codec.S(m.Parent)
		item["GSI1PK"], item["GSI1SK"] = codec.S(parentKey(m.Parent)), codec.S(childPrefix+m.Entity)
	}
	defer e.changed(m.Entity)
	return e.patience.call(ctx, func() error {
		_, err := e.api.PutItem(ctx, &dynamodb.PutItemInput{TableName: &e.table, Item: item}, once)
		return err
	})
}

// Get implements runtime.MemberStore.
func (e *Members) Get(ctx context.Context, entity string) (m runtime.Member, found bool, err error) {
	var out *dynamodb.GetItemOutput
	err = e.patience.call(ctx, func() error {
		out, err = e.get(ctx, entity)
		return err
	})
	if err != nil {
		return runtime.Member{}, false, err
	}
	return decodeMember(entity, out.Item)
}

// get reads an entity's item once.
func (e *Members) get(ctx context.Context, entity string) (*dynamodb.GetItemOutput, error) {
	return e.api.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &e.table, Key: memberKey(entity), ConsistentRead: aws.Bool(true),
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	}, once)
}

// Delete implements runtime.MemberStore.
func (e *Members) Delete(ctx context.Context, entity string) error {
	defer e.changed(entity)
	return e.patience.call(ctx, func() error {
		_, err := e.api.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &e.table, Key: memberKey(entity)}, once)
		return err
	})
}

// Children implements runtime.MemberStore, by an index that may be a moment behind.
func (e *Members) Children(ctx context.Context, entity string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for page, err := range query(ctx, e.api, &e.patience, indexes()[0], parentKey(entity)) {
			if err != nil {
				yield("", err)
				return
			}
			for _, key := range page {
				if !yield(strings.TrimPrefix(key, childPrefix), nil) {
					return
				}
			}
		}
	}
}

const childPrefix = "CHILD#"

func parentKey(entity string) string { return "PARENT#" + entity }

// memberKey is the key of the item of entity.
func memberKey(entity string) codec.Item {
	return codec.Item{hashKey: codec.S(entityPrefix + entity), rangeKey: codec.S("#META")}
}

// decodeMember reads an entity item, which may be empty: found is false then. It fails with a *runtime.SetupError.
func decodeMember(entity string, item codec.Item) (m runtime.Member, found bool, err error) {
	if len(item) == 0 {
		return runtime.Member{}, false, nil
	}
	m = runtime.Member{Entity: entity, Cascade: true}
	d := codec.Decoder{Item: item}
	if _, ok := item["parent_id"]; ok {
		m.Parent = d.Text("parent_id")
	}
	if _, ok := item["cascade"]; ok {
		m.Cascade = d.Bool("cascade")
	}
	if err := d.Err(); err != nil {
		return runtime.Member{}, false, &runtime.SetupError{
			What: fmt.Sprintf("what is stored of %s is malformed", entity),
			Do:   "mend or delete the item " + itemText(memberKey(entity)),
			Err:  err,
		}
	}
	return m, true, nil
}
