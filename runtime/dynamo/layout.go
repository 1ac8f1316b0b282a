package dynamo

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// Layouts of a table, as its version item records them. A program stops at one that it does not know.
const (
	layoutBuckets  = 1 // buckets alone
	layoutCarrying = 2 // beside per-limit items, which become buckets: whoever does not know them would make full ones

	layoutNewest = layoutCarrying
)

// recordLayout replaces layout from, or none, by to. Where there is another, it leaves it.
func recordLayout(ctx context.Context, api wire.API, table string, from, to int64) error {
	_, err := api.UpdateItem(ctx, layoutUpdate(table, from, to))
	if _, other := errors.AsType[*types.ConditionalCheckFailedException](err); other {
		return nil
	}
	return err
}

func layoutUpdate(table string, from, to int64) *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{
		TableName:                 &table,
		Key:                       item.VersionKey(),
		UpdateExpression:          aws.String("SET layout = :to, revision = if_not_exists(revision, :none)"),
		ConditionExpression:       aws.String("attribute_not_exists(layout) OR layout = :from"),
		ExpressionAttributeValues: codec.Item{":from": codec.N(from), ":to": codec.N(to), ":none": codec.N(0)},
	}
}

// note writes to the table's own item, whose condition may say that there is nothing to be noted.
func (s *session) note(ctx context.Context, in *dynamodb.UpdateItemInput) error {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	event := store.StoreEvent{Call: "UpdateItem", Path: "system", Began: s.env.Clock.Now()}
	out, err := s.api.UpdateItem(ctx, in)
	o := wire.Applied
	if err != nil {
		o, _ = wire.Classify(err)
		event.Write = wire.WriteUnits(o, nil)
	} else {
		event.Write = wire.WriteUnits(o, out.ConsumedCapacity)
	}
	event.Outcome = o.String()
	s.tell(ctx, event)
	if o == wire.Refused {
		return nil
	}
	return err
}
