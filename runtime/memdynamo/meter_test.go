package memdynamo_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// TestConsumed holds the meter to AWS's price list. A put of an indexed item is two units, a refused one is
// one that no reply shows, and a cancelled transaction is two for each item.
func TestConsumed(t *testing.T) {
	engine, client := setUp(t)
	engine.ResetConsumed()
	must(t, ignore(client.PutItem(t.Context(), put("a"))))
	fails[*types.ConditionalCheckFailedException](t, ignore(client.PutItem(t.Context(), put("a"))))
	must(t, ignore(client.UpdateItem(t.Context(), add("a"))))
	must(t, ignore(client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String(things),
		Key: item{"id": s("a")}})))
	get(t, engine, "a")
	p := put("a")
	_, err := client.TransactWriteItems(t.Context(),
		&dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
			{Put: &types.Put{TableName: p.TableName, Item: item{"id": s("b")}}},
			{Put: &types.Put{TableName: p.TableName, Item: p.Item, ConditionExpression: p.ConditionExpression}},
		}})
	fails[*types.TransactionCanceledException](t, err)
	must(t, ignore(client.TransactWriteItems(t.Context(), transaction("c", "d"))))

	consumed := engine.Consumed()
	units := func(operation string) memdynamo.Usage { return consumed.Tables[things][operation] }
	equal(t, "PutItem", units("PutItem"), memdynamo.Usage{Applied: memdynamo.Units{Write: 2},
		Refused: memdynamo.Units{Write: 1}})
	equal(t, "UpdateItem", units("UpdateItem"), memdynamo.Usage{Applied: memdynamo.Units{Write: 1}})
	equal(t, "GetItem", units("GetItem"), memdynamo.Usage{Applied: memdynamo.Units{Read: 1.5}})
	equal(t, "TransactWriteItems", units("TransactWriteItems"),
		memdynamo.Usage{Applied: memdynamo.Units{Write: 4}, Cancelled: memdynamo.Units{Write: 4}})
	equal(t, "all", consumed.Total().Total(), memdynamo.Units{Read: 1.5, Write: 12})
	equal(t, "the table", consumed.Table(things), consumed.Total())
	equal(t, "another table", consumed.Table("none"), memdynamo.Usage{})
	equal(t, "puts", consumed.Requests["PutItem"], 2)

	engine.ResetConsumed()
	equal(t, "after a reset", engine.Consumed().Total(), memdynamo.Usage{})
	equal(t, "the snapshot", consumed.Requests["PutItem"], 2)
}
