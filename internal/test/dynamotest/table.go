package dynamotest

import (
	"context"
	"crypto/rand"
	"errors"
	"regexp"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// tableTimeout is for creating and for deleting a table. The engine does either in 0.1 s; a table on AWS,
// which SLUICE_DYNAMODB_ENDPOINT may name, takes some ten seconds.
const tableTimeout = time.Minute

// Table creates a table for this test alone, waits until it is active and returns its name; the test's end
// deletes it. input makes the request for a table of the given name. Names are new in each run, so that runs
// may share an engine.
func Table(t testing.TB, client *dynamodb.Client, input func(name string) *dynamodb.CreateTableInput) string {
	t.Helper()
	name := tableName(t.Name())
	ctx, cancel := context.WithTimeout(t.Context(), tableTimeout)
	defer cancel()
	if _, err := client.CreateTable(ctx, input(name)); err != nil {
		t.Fatalf("create table %s: %v", name, err)
	}
	t.Cleanup(func() { deleteTable(t, client, name) })
	active := dynamodb.NewTableExistsWaiter(client, func(o *dynamodb.TableExistsWaiterOptions) {
		o.MinDelay = 100 * time.Millisecond // the SDK's 20 s are meant for AWS alone
		o.MaxDelay = time.Second
	})
	if err := active.Wait(ctx, &dynamodb.DescribeTableInput{TableName: &name}, tableTimeout); err != nil {
		t.Fatalf("wait for table %s: %v", name, err)
	}
	return name
}

// Streamless returns input without a stream, for tests that read none. Each record in a stream makes all
// later writes of DynamoDB Local slower, from 2 ms to 6 ms after 9,000 records. That holds for other tables
// too, and after the stream's table is gone.
func Streamless(
	input func(name string) *dynamodb.CreateTableInput,
) func(name string) *dynamodb.CreateTableInput {
	return func(name string) *dynamodb.CreateTableInput {
		in := input(name)
		in.StreamSpecification = nil
		return in
	}
}

// deleteTable runs as a cleanup, when the test's own context has ended. A test may have deleted its table
// itself.
func deleteTable(t testing.TB, client *dynamodb.Client, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), tableTimeout)
	defer cancel()
	_, err := client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &name})
	if _, missing := errors.AsType[*types.ResourceNotFoundException](err); err != nil && !missing {
		t.Errorf("delete table %s: %v", name, err)
	}
}

var notInTableNames = regexp.MustCompile(`[^a-zA-Z0-9_.-]+`)

// tableName returns a unique table name that tells which test it belongs to: of DynamoDB's 255 characters a
// test's name gets 200.
func tableName(test string) string {
	test = notInTableNames.ReplaceAllString(test, "-")
	return test[:min(len(test), 200)] + "-" + rand.Text()
}
