package dynamo_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/internal/test/conformance"
	"github.com/sluice-go/sluice/internal/test/conformance/ondynamo"
	"github.com/sluice-go/sluice/runtime/dynamo"
)

// TestConformance runs the suite of all stores.
func TestConformance(t *testing.T) {
	conformance.Run(t, conformant(func(c aws.HTTPClient) aws.HTTPClient { return c }))
}

// conformant opens stores with a client whose requests go through via.
func conformant(via func(aws.HTTPClient) aws.HTTPClient, opts ...dynamo.Option) conformance.Open {
	return func(t testing.TB) conformance.Store {
		t.Helper()
		table := ondynamo.New(t)
		client := dynamodb.New(table.Breakable(), func(o *dynamodb.Options) { o.HTTPClient = via(o.HTTPClient) })
		return table.Store(t, dynamo.New(client, table.Name, opts...))
	}
}
