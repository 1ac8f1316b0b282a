package migrating_test

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime/dynamo/migrating"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// open returns a limiter on a table that has per-limit items. Once `sluice migrate --cleanup` is through,
// dynamo.New takes the place of migrating.New.
func open(ctx context.Context, client *dynamodb.Client) (*limits.Limiter, error) {
	store := migrating.New(client, "rate_limits")
	lim, err := limits.New(store)
	if err != nil {
		return nil, err
	}
	return lim, lim.Check(ctx)
}

// The first call on a bucket takes over what the per-limit items say, consumption included.
func Example() {
	ctx, client := context.Background(), memdynamo.New().Client()
	if err := predecessor(ctx, client); err != nil {
		fmt.Println(err)
		return
	}
	lim, err := open(ctx, client)
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := lim.GPT4.Acquire(ctx, limits.Project{ID: "1"}, limits.GPT4Cost{TPM: 300}); err != nil {
		fmt.Println(err)
		return
	}
	image, err := operator.Inspect(ctx, client, "rate_limits", "project-1", limits.GPT4)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, limit := range image.Extra {
		fmt.Println(limit.Name, "consumed", limit.Consumed/1_000)
	}
	// Output:
	// rpm consumed 501
	// tpm consumed 800
}

// predecessor makes a table with the two items of a bucket of which 500 tokens each were consumed.
func predecessor(ctx context.Context, client *dynamodb.Client) error {
	if _, err := operator.CreateTable(ctx, client, "rate_limits"); err != nil {
		return err
	}
	number := func(n string) types.AttributeValue { return &types.AttributeValueMemberN{Value: n} }
	for _, limit := range []string{"rpm", "tpm"} {
		_, err := client.PutItem(ctx, &dynamodb.PutItemInput{
			TableName: aws.String("rate_limits"),
			Item: map[string]types.AttributeValue{
				"PK":           &types.AttributeValueMemberS{Value: "ENTITY#project-1"},
				"SK":           &types.AttributeValueMemberS{Value: "#BUCKET#gpt-4#" + limit},
				"tokens_milli": number("500000"), "capacity_milli": number("1000000"), "burst_milli": number("1000000"),
				"refill_amount_milli": number("1000000"), "refill_period_ms": number("60000"),
				"total_consumed_milli": number("500000"), "last_refill_ms": number("1700000000000"),
			},
		})
		if err != nil {
			return err
		}
	}
	return nil
}
