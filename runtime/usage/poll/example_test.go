package poll_test

import (
	"context"
	"fmt"
	"log/slog"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/usage"
	"github.com/sluice-go/sluice/runtime/usage/poll"
)

// newPoller returns a poller of a table's stream, which says how many records it has counted. A service makes
// its clients by dynamodb.NewFromConfig(cfg) and dynamodbstreams.NewFromConfig(cfg), and calls Run.
func newPoller(engine *memdynamo.Engine, table string, counted *int64) (*poll.Poller, error) {
	client, streams := engine.Client(), engine.Streams()
	aggregator, err := usage.New(usage.Config{
		Client: client, Table: table, Extract: limits.ExtractDeltas,
		Poisoned: func(ctx context.Context, p usage.Poison) error {
			slog.ErrorContext(ctx, "a stream record cannot be read", "record", p)
			return nil // the records behind it count
		},
	})
	if err != nil {
		return nil, err
	}
	return poll.New(poll.Config{
		Client: client, Streams: streams, Table: table, Aggregator: aggregator,
		Report: func(p poll.Progress) { *counted = p.Counted },
	})
}

// The stream has a record for each of three calls.
func Example() {
	ctx, engine := context.Background(), memdynamo.New()
	client := engine.Client()
	if _, err := operator.CreateTable(ctx, client, "rate_limits"); err != nil {
		fmt.Println(err)
		return
	}
	lim, err := limits.New(dynamo.New(client, "rate_limits"))
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		if _, err := lim.GPT4.Acquire(ctx, limits.Project{ID: "1"}, limits.GPT4Cost{TPM: 900}); err != nil {
			fmt.Println(err)
			return
		}
	}
	var counted int64
	poller, err := newPoller(engine, "rate_limits", &counted)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(poller.Drain(ctx), counted) // reads to the end of the stream
	// Output:
	// <nil> 3
}
