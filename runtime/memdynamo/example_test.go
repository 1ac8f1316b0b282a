package memdynamo_test

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// A put whose reply is lost was applied, so the same put is refused when it is repeated. The SDK's own
// retries are off here, since they wait.
func Example() {
	ctx := context.Background()
	engine := memdynamo.New()
	client := engine.Client(func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
	if err := create(ctx, client); err != nil {
		fmt.Println(err)
		return
	}

	engine.Faults().Script(func(r memdynamo.Request) memdynamo.Fault {
		if r.Operation == "PutItem" && r.Number == 1 {
			return memdynamo.LoseReply
		}
		return memdynamo.None
	})
	put := &dynamodb.PutItemInput{
		TableName:           aws.String("orders"),
		Item:                map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "4711"}},
		ConditionExpression: aws.String("attribute_not_exists(id)"),
	}
	_, err := client.PutItem(ctx, put)
	fmt.Println("lost:", errors.Is(err, syscall.ECONNRESET))
	_, err = client.PutItem(ctx, put)
	_, refused := errors.AsType[*types.ConditionalCheckFailedException](err)
	fmt.Println("refused:", refused)

	consumed := engine.Consumed()
	fmt.Println("requests:", consumed.Requests["PutItem"])
	fmt.Printf("billed: %+v\n", consumed.Table("orders"))
	// Output:
	// lost: true
	// refused: true
	// requests: 2
	// billed: {Applied:{Read:0 Write:1} Refused:{Read:0 Write:1} Cancelled:{Read:0 Write:0}}
}

// create creates the table orders.
func create(ctx context.Context, client *dynamodb.Client) error {
	_, err := client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:   aws.String("orders"),
		BillingMode: types.BillingModePayPerRequest,
		KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("id"),
			KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"),
			AttributeType: types.ScalarAttributeTypeS}},
	})
	return err
}
