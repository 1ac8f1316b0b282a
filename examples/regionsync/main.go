// Command regionsync is a Lambda function that shares limits out between regions: one in each, called by
// EventBridge once a window.
//
//	GOOS=linux GOARCH=arm64 CGO_ENABLED=0 go build -tags lambda.norpc -o bootstrap ./examples/regionsync
//
// It reads SLUICE_TABLE, the region's table, and SLUICE_SNAPSHOTS, the place in S3 that all regions share,
// s3://bucket/prefix. Which region of limits.yaml it is, says SLUICE_REGION, or else AWS_REGION, which Lambda
// sets. Its role's policy is what `sluice infra iam --role region-sync --snapshots s3://bucket/prefix`
// prints. It needs a reserved concurrency of 1, and no retries: the next minute is one.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/sluice-go/sluice/examples/regionsync/limits"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/region"
	"github.com/sluice-go/sluice/runtime/region/s3store"
)

func main() {
	h, err := start(context.Background(), os.Getenv)
	if err != nil {
		fmt.Fprintln(os.Stderr, "regionsync:", err)
		os.Exit(1)
	}
	lambda.Start(h.HandleLambda)
}

// start makes the function from its environment.
func start(ctx context.Context, env func(string) string) (*region.Handler, error) {
	table, snapshots := env("SLUICE_TABLE"), env("SLUICE_SNAPSHOTS")
	if table == "" || snapshots == "" {
		return nil, errors.New("SLUICE_TABLE or SLUICE_SNAPSHOTS is not set: name the table, and " +
			"s3://bucket/prefix, which all regions share")
	}
	bucket, prefix, err := s3store.Parse(snapshots)
	if err != nil {
		return nil, err
	}
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, err
	}
	store, err := s3store.New(s3.NewFromConfig(cfg), bucket, prefix)
	if err != nil {
		return nil, err
	}
	return handler(dynamodb.NewFromConfig(cfg), table, store, cmp.Or(env("SLUICE_REGION"), cfg.Region), nil)
}

// handler shares out the limits of limits.yaml, as region as. clock is nil but in tests.
func handler(
	client *dynamodb.Client, table string, snapshots region.Snapshots, as string, clock runtime.Clock,
) (*region.Handler, error) {
	lim, err := limits.New(dynamo.New(client, table))
	if err != nil {
		return nil, err
	}
	now := time.Now
	if clock != nil {
		now = clock.Now
	}
	return region.NewHandler(region.Config{
		Region: as, Table: operator.NewRegional(client, table, now), Snapshots: snapshots,
		Specs: lim.Specs(),
		Clock: clock, Logger: slog.New(slog.NewJSONHandler(os.Stderr, nil)),
	})
}
