package dynamo_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
)

// silentAPI is a DynamoDB that takes the connection and does not answer.
type silentAPI struct{ dynamo.API }

func (silentAPI) DescribeTable(
	ctx context.Context, _ *dynamodb.DescribeTableInput, _ ...func(*dynamodb.Options),
) (*dynamodb.DescribeTableOutput, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestCheckOfSilentService: Check is for the start of a service, and does not stop it for ever. A deadline of
// the caller holds as it is.
func TestCheckOfSilentService(t *testing.T) {
	for _, own := range []time.Duration{time.Hour, time.Second} {
		synctest.Test(t, func(t *testing.T) {
			lim, err := limits.New(dynamo.New(silentAPI{}, "limits"))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), own)
			defer cancel()
			began := time.Now()
			err = lim.Check(ctx)
			_, down := errors.AsType[*runtime.UnavailableError](err)
			took, want := time.Since(began), min(own, 10*time.Second)
			if !down || !errors.Is(err, context.DeadlineExceeded) || took != want {
				t.Errorf("after %v, want %v: %v", took, want, err)
			}
		})
	}
}
