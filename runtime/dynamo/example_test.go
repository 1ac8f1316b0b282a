package dynamo_test

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// open returns a limiter on a table that is fit to serve. A service makes its client by
// dynamodb.NewFromConfig(cfg).
func open(ctx context.Context, client *dynamodb.Client, opts ...dynamo.Option) (*limits.Limiter, error) {
	lim, err := limits.New(dynamo.New(client, "rate_limits", opts...)) // no I/O
	if err != nil {
		return nil, err
	}
	return lim, lim.Check(ctx) // before serving: the table is there and right, the clock is too
}

// An acquire of a user and its project is one transaction on two items. The first one creates them, and their
// entries in an index.
func Example() {
	ctx, engine := context.Background(), memdynamo.New()
	if _, err := operator.CreateTable(ctx, engine.Client(), "rate_limits"); err != nil {
		fmt.Println(err)
		return
	}
	lim, err := open(ctx, engine.Client(), dynamo.InFlight(256), dynamo.Attempts(8))
	if err != nil {
		fmt.Println(err)
		return
	}
	user := limits.User{ID: "123", Project: limits.Project{ID: "1"}}
	for range 2 {
		engine.ResetConsumed()
		if _, err := lim.GPT4.Acquire(ctx, user, limits.GPT4Cost{TPM: 1_200}); err != nil {
			fmt.Println(err)
			return
		}
		consumed := engine.Consumed().Tables["rate_limits"]
		fmt.Println(consumed["TransactWriteItems"].Applied.Write, "write units")
	}
	// Output:
	// 8 write units
	// 4 write units
}
