package memdynamo_test

import (
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// things is the table of these tests: hash key id, and an index by kind.
const things = "things"

// setUp returns an engine with an empty table, and a client that tries once.
func setUp(t testing.TB, opts ...memdynamo.Option) (*memdynamo.Engine, *dynamodb.Client) {
	t.Helper()
	engine := memdynamo.New(opts...)
	client := engine.Client(once)
	createThings(t, client)
	return engine, client
}

// once makes a client try once.
func once(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }

func createThings(t testing.TB, client *dynamodb.Client) {
	t.Helper()
	attribute := func(name string) types.AttributeDefinition {
		return types.AttributeDefinition{AttributeName: &name, AttributeType: types.ScalarAttributeTypeS}
	}
	hash := func(name string) []types.KeySchemaElement {
		return []types.KeySchemaElement{{AttributeName: &name, KeyType: types.KeyTypeHash}}
	}
	_, err := client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName:            aws.String(things),
		BillingMode:          types.BillingModePayPerRequest,
		KeySchema:            hash("id"),
		AttributeDefinitions: []types.AttributeDefinition{attribute("id"), attribute("kind")},
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName: aws.String("kinds"), KeySchema: hash("kind"),
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
		}},
		StreamSpecification: &types.StreamSpecification{
			StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages,
		},
	})
	must(t, err)
}

type item = map[string]types.AttributeValue

func s(text string) types.AttributeValue   { return &types.AttributeValueMemberS{Value: text} }
func n(number string) types.AttributeValue { return &types.AttributeValueMemberN{Value: number} }

// put is a request that writes an item which is not there yet.
func put(id string) *dynamodb.PutItemInput {
	return &dynamodb.PutItemInput{
		TableName: aws.String(things), Item: item{"id": s(id), "kind": s("k")},
		ConditionExpression: aws.String("attribute_not_exists(id)"),
	}
}

// add is a request that counts.
func add(id string) *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{
		TableName: aws.String(things), Key: item{"id": s(id)},
		UpdateExpression: aws.String("ADD n :one"), ExpressionAttributeValues: item{":one": n("1")},
		ReturnValues: types.ReturnValueAllNew,
	}
}

// get reads an item consistently, past what the engine suffers from; nil if it is not there.
func get(t testing.TB, engine *memdynamo.Engine, id string) item {
	t.Helper()
	out, err := engine.Client().GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: aws.String(things), Key: item{"id": s(id)}, ConsistentRead: aws.Bool(true),
	})
	must(t, err)
	return out.Item
}

// count returns how often add was applied.
func count(t testing.TB, engine *memdynamo.Engine, id string) string {
	t.Helper()
	if v, ok := get(t, engine, id)["n"].(*types.AttributeValueMemberN); ok {
		return v.Value
	}
	return "0"
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fails fails the test unless err is an E.
func fails[E error](t testing.TB, err error) {
	t.Helper()
	_ = as[E](t, err)
}

// as returns the E that err is, or fails the test.
func as[E error](t testing.TB, err error) E {
	t.Helper()
	e, ok := errors.AsType[E](err)
	if !ok {
		t.Fatalf("the error is %v, want a %T", err, e)
	}
	return e
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
