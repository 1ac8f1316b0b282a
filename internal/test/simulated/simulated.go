// Package simulated gives simulations what they need of an engine in the process, for little CPU: a client,
// and a table.
package simulated

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/dynamo/lean"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// Client returns a client of an engine, for calls of limiting. With the SDK's client, the client takes most
// of a simulation's CPU.
func Client(engine *memdynamo.Engine, options ...func(*dynamodb.Options)) *lean.Client {
	own := engine.Client(options...).Options()
	return lean.New(aws.Config{}, func(o *dynamodb.Options) { *o = own })
}

// CreateTable creates a sluice table without its stream. An engine keeps all changes for a stream, even if
// nobody reads it.
func CreateTable(ctx context.Context, engine *memdynamo.Engine, table string) error {
	client := engine.Client()
	if _, err := operator.CreateTable(ctx, client, table); err != nil {
		return err
	}
	_, err := client.UpdateTable(ctx, &dynamodb.UpdateTableInput{
		TableName:           &table,
		StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(false)},
	})
	if err != nil {
		return fmt.Errorf("turn the stream of table %s off: %w", table, err)
	}
	return nil
}
