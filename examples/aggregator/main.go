// Command aggregator is a Lambda function that adds up what a table's stream says was consumed, in windows of
// the same table.
//
//	GOOS=linux GOARCH=arm64 CGO_ENABLED=0 go build -tags lambda.norpc -o bootstrap ./examples/aggregator
//
// It reads SLUICE_TABLE. Its event source mapping is the table's stream, with FunctionResponseTypes
// ReportBatchItemFailures; its role's policy is what `sluice infra iam --role aggregator` prints. With -event
// it adds up the batch in a file, on an engine in the process, and prints the windows:
//
//	go run ./examples/aggregator -event examples/aggregator/event.json
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/usage"
)

func main() {
	event := flag.String("event", "", "add up the batch in this `file`, on an engine in the process")
	flag.Parse()
	if err := run(context.Background(), *event, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "aggregator:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, file string, out io.Writer) error {
	if file != "" {
		return runOnce(ctx, file, out)
	}
	table := os.Getenv("SLUICE_TABLE")
	if table == "" {
		return errors.New("SLUICE_TABLE is not set: name the table; or pass -event to try a batch here")
	}
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return err
	}
	a, err := aggregator(dynamodb.NewFromConfig(cfg), table)
	if err != nil {
		return err
	}
	lambda.Start(a.HandleLambda)
	return nil
}

// aggregator reads buckets of the demo's limits. Records that cannot be read go to the log, as JSON, with all
// that is known of them.
func aggregator(client usage.API, table string) (*usage.Aggregator, error) {
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	return usage.New(usage.Config{
		Client: client, Table: table, Extract: limits.ExtractDeltas,
		Poisoned: func(ctx context.Context, p usage.Poison) error {
			log.ErrorContext(ctx, "a stream record cannot be read", "record", p)
			return nil
		},
	})
}

// runOnce adds up one batch in memory, and prints what it came to.
func runOnce(ctx context.Context, file string, out io.Writer) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var event events.DynamoDBEvent
	if err := json.Unmarshal(text, &event); err != nil {
		return fmt.Errorf("%s is no event of a table's stream: %w", file, err)
	}
	if len(event.Records) == 0 { // as JSON of another kind has none
		return fmt.Errorf("%s has no records: want an event of a table's stream, as event.json beside this program",
			file)
	}
	const table = "rate_limits"
	client := memdynamo.New().Client()
	if _, err := operator.CreateTable(ctx, client, table); err != nil {
		return err
	}
	a, err := aggregator(client, table)
	if err != nil {
		return err
	}
	response, err := a.HandleLambda(ctx, event)
	if err != nil {
		return err
	}
	if n := len(response.BatchItemFailures); n > 0 {
		return fmt.Errorf("record %s is not counted", response.BatchItemFailures[0].ItemIdentifier)
	}
	return printWindows(ctx, client, table, out)
}
