// Package audit writes changes that people make together with the records of them, and reads the records.
package audit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/internal/namespace"
	"github.com/sluice-go/sluice/runtime/store"
)

// changeAttribute holds a record, as JSON.
const changeAttribute = "change"

// Write is the write of one item: an update, or a put.
type Write struct {
	Update *dynamodb.UpdateItemInput
	Put    *dynamodb.PutItemInput
}

// key returns the key of the item, or the item itself.
func (w Write) key() codec.Item {
	if w.Put != nil {
		return w.Put.Item
	}
	return w.Update.Key
}

// part returns w as a part of a transaction. If its condition fails, the reply has the item.
func (w Write) part() types.TransactWriteItem {
	const old = types.ReturnValuesOnConditionCheckFailureAllOld
	if put := w.Put; put != nil {
		return types.TransactWriteItem{Put: &types.Put{
			TableName: put.TableName, Item: put.Item, ConditionExpression: put.ConditionExpression,
			ExpressionAttributeNames:  put.ExpressionAttributeNames,
			ExpressionAttributeValues: put.ExpressionAttributeValues, ReturnValuesOnConditionCheckFailure: old,
		}}
	}
	return types.TransactWriteItem{Update: &types.Update{
		TableName: w.Update.TableName, Key: w.Update.Key, UpdateExpression: w.Update.UpdateExpression,
		ConditionExpression:       w.Update.ConditionExpression,
		ExpressionAttributeNames:  w.Update.ExpressionAttributeNames,
		ExpressionAttributeValues: w.Update.ExpressionAttributeValues, ReturnValuesOnConditionCheckFailure: old,
	}}
}

// Do sends w and its record, c, in one transaction, until there is an answer. version is that of what w
// stores, in ms: it orders the records of an item. If the condition of w fails, the error is a
// *types.ConditionalCheckFailedException with the item. An attempt without an answer is sent again under the
// same token: if it was applied, its own write does not make the condition fail.
func Do(
	ctx context.Context, api wire.API, retrier *wire.Retrier, w Write, version int64, now time.Time,
	c store.Change,
) error {
	if c.By, c.Reason = store.ActorOf(ctx); c.By == "" {
		c.By = signer(ctx, api)
	}
	record, err := put(retrier.Table, w.key()[item.PK], version, now, &c)
	if err != nil {
		return err
	}
	token, all := wire.NewOp(), []types.TransactWriteItem{w.part(), {Put: record}}
	in := &dynamodb.TransactWriteItemsInput{ClientRequestToken: &token, TransactItems: all}
	return retrier.Do(ctx, func() error {
		_, err := api.TransactWriteItems(ctx, in, wire.NoRetry)
		one := wire.AsSingle(err, len(all))
		failed, refused := errors.AsType[*types.ConditionalCheckFailedException](one)
		if cancelled, ok := errors.AsType[*types.TransactionCanceledException](err); ok && refused {
			failed.Item = cancelled.CancellationReasons[0].Item
		}
		return one
	})
}

// put returns the put of a record below partition.
func put(
	table string, partition types.AttributeValue, version int64, now time.Time, c *store.Change,
) (*types.Put, error) {
	if pk, _ := partition.(*types.AttributeValueMemberS); pk != nil && pk.Value == item.EntityPrefix+c.At {
		c.At = "" // List fills it in; an id may be long
	}
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // it would make six bytes of one
	if err := encoder.Encode(c); err != nil {
		return nil, fmt.Errorf("record of a change: %w", err)
	}
	record := codec.Item{
		item.PK: partition, item.SK: codec.S(item.AuditSort(version) + "#" + wire.NewOp()),
		changeAttribute: codec.S(strings.TrimSpace(text.String())),
		item.TTL:        codec.N(now.Add(store.ChangesKept).Unix()),
	}
	return &types.Put{
		TableName: &table, Item: record, ConditionExpression: aws.String("attribute_not_exists(PK)"),
	}, nil
}

// signer returns the access key that signs the calls of api, "" if that is not known. It gets credentials as
// the next call would: it does no other I/O.
func signer(ctx context.Context, api wire.API) string {
	client, ok := namespace.Under(api).(interface{ Options() dynamodb.Options })
	if !ok {
		return ""
	}
	provider := client.Options().Credentials
	if provider == nil {
		return ""
	}
	by, err := provider.Retrieve(ctx)
	if err != nil || by.AccessKeyID == "" {
		return "" // the write fails, and says why
	}
	return "access key " + by.AccessKeyID
}

// List yields the records of what is audited since an instant, oldest first, and ends with the first error.
func List(
	ctx context.Context, api wire.API, retrier *wire.Retrier, of store.Audited, since time.Time,
) iter.Seq2[store.Change, error] {
	return func(yield func(store.Change, error) bool) {
		in := &dynamodb.QueryInput{
			TableName: &retrier.Table, ConsistentRead: aws.Bool(true),
			KeyConditionExpression: aws.String("PK = :pk AND SK BETWEEN :since AND :last"),
			ExpressionAttributeValues: codec.Item{
				":pk": codec.S(item.AuditHash(of)), ":since": codec.S(item.AuditSort(max(0, since.UnixMilli()))),
				":last": codec.S(item.AuditPrefix + "~"),
			},
		}
		for page, err := range wire.Pages(ctx, api, retrier, in) {
			if err != nil {
				yield(store.Change{}, err)
				return
			}
			for _, raw := range page.Items {
				c, err := decode(raw)
				if err == nil && of.Plans != "" && c.Resource != of.Plans { // plans of all resources share a partition
					continue
				}
				c.At = cmp.Or(c.At, of.Entity)
				if !yield(c, err) || err != nil {
					return
				}
			}
		}
	}
}

// decode decodes a record. The error is a *store.SetupError.
func decode(raw codec.Item) (c store.Change, err error) {
	d := codec.Decoder{Item: raw}
	text, at := d.Text(changeAttribute), item.AuditTime(item.KeyOf(raw).SK)
	ms, err := strconv.ParseInt(at, 10, 64)
	if err = cmp.Or(err, d.Err()); err == nil {
		err = json.Unmarshal([]byte(text), &c)
	}
	if err != nil {
		return store.Change{}, &store.SetupError{
			What: "the record of a change is malformed", Do: "delete the item " + item.NameOf(raw), Err: err,
		}
	}
	c.Time = time.UnixMilli(ms).UTC()
	return c, nil
}
