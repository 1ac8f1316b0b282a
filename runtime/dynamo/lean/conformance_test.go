package lean_test

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/internal/test/conformance"
	"github.com/sluice-go/sluice/internal/test/conformance/ondynamo"
	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/lean"
)

// TestConformance runs the suite of all stores on this client, and again in a namespace. The SDK's client
// makes none of the five calls.
func TestConformance(t *testing.T) {
	for name, opts := range map[string][]dynamo.Option{
		"default": nil, "namespace": {dynamo.Namespace("team-a")},
	} {
		t.Run(name, func(t *testing.T) {
			if opts != nil && dynamotest.OnLocal(t) {
				t.Skip("this client, and a namespace, are each played on it")
			}
			var ours, theirs atomic.Int64
			conformance.Again(t, func(t testing.TB) conformance.Store {
				t.Helper()
				table := ondynamo.New(t)
				client := lean.New(aws.Config{}, func(o *dynamodb.Options) {
					*o = table.Breakable()
					o.HTTPClient = counter{o.HTTPClient, &ours, &theirs}
				})
				return table.Store(t, dynamo.New(client, table.Name, opts...))
			}, "package dynamo runs them on the SDK's client")
			if ours.Load() == 0 || theirs.Load() > 0 {
				t.Errorf("%d calls are by this package, and %d by the SDK's client", ours.Load(), theirs.Load())
			}
		})
	}
}

// counter counts who made the five calls.
type counter struct {
	dynamodb.HTTPClient
	ours, theirs *atomic.Int64
}

// Do implements dynamodb.HTTPClient.
func (c counter) Do(r *http.Request) (*http.Response, error) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	five := []string{"UpdateItem", "PutItem", "GetItem", "BatchGetItem", "TransactWriteItems"}
	switch {
	case !slices.Contains(five, operation):
	case strings.Contains(r.Header.Get("User-Agent"), "sluice-lean"):
		c.ours.Add(1)
	default:
		c.theirs.Add(1)
	}
	return c.HTTPClient.Do(r)
}
