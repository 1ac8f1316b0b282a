// Package members reads the items that name entities' parents.
package members

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// Get reads an entity's item once, consistently. Its Item is nil if it has none of the attributes of a link:
// a deletion leaves such an item. With an error it is an empty output.
func Get(ctx context.Context, api wire.API, table, entity string) (*dynamodb.GetItemOutput, error) {
	out, err := api.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &table, Key: item.EntityKey(entity), ConsistentRead: aws.Bool(true),
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	}, wire.NoRetry)
	if err != nil {
		return &dynamodb.GetItemOutput{}, err
	}
	if out.Item["entity_id"] == nil && out.Item["parent_id"] == nil && out.Item["cascade"] == nil {
		out.Item = nil
	}
	return out, nil
}

// lookupAttempts is how often a look-up is tried, since an acquire waits for it.
const lookupAttempts = 3

// Lookup is Get and Decode of a session. Its retries come from the session's budget, so that an outage meets
// no more reads than were asked for. Beside Decode's error it fails as wire.Retrier does.
func Lookup(
	ctx context.Context, conn *wire.Conn, jitter func() float64, entity string,
) (m store.Member, found bool, err error) {
	retrier := conn.Retrier(lookupAttempts, jitter)
	retrier.Budget = conn.Budget
	var out *dynamodb.GetItemOutput
	if err = retrier.Do(ctx, func() (err error) {
		began := conn.Env.Clock.Now()
		out, err = Get(ctx, conn.API, conn.Table, entity)
		conn.Report(ctx, wire.ReadEvent("GetItem", "member", began, len(out.Item) > 0, out.ConsumedCapacity, err))
		return err
	}); err != nil {
		return store.Member{}, false, err
	}
	return Decode(entity, out.Item)
}

// Decode reads an entity item, which may be empty: found is false then. It fails with a *store.SetupError.
func Decode(entity string, raw codec.Item) (m store.Member, found bool, err error) {
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
			What: fmt.Sprintf("what is stored of %s is malformed", store.Quote(entity)),
			Do:   "fix or delete the item " + item.NameOf(raw),
			Err:  err,
		}
	}
	return m, true, nil
}
