package operator_test

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

const table = "rate_limits"

// create makes a table that is protected, or completes one that was begun, and prints what to know about it.
func create(ctx context.Context, client *dynamodb.Client) error {
	definition := operator.Definition{Table: table, Protected: true}
	created, err := definition.CreateTable(ctx, client)
	if err != nil {
		return err // an existing table is not altered: the error names what differs
	}
	fmt.Println("created:", created)

	notes, err := operator.CheckTable(ctx, client, table)
	for _, note := range notes {
		fmt.Println("note:", note.What)
	}
	return err
}

// A table is created once, and again without effect.
func Example() {
	ctx, client := context.Background(), memdynamo.New().Client()
	for range 2 {
		if err := create(ctx, client); err != nil {
			fmt.Println(err)
			return
		}
	}
	// Output:
	// created: true
	// note: billing is on demand
	// note: point-in-time recovery is off
	// created: false
	// note: billing is on demand
	// note: point-in-time recovery is off
}
