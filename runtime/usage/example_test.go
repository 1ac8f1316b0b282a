package usage_test

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

const table = "rate_limits"

// aggregate adds up the records of a table's stream, up to its end. A Lambda function passes HandleLambda to
// lambda.Start in place of a Poller.
func aggregate(ctx context.Context, engine *memdynamo.Engine) error {
	client, streams := engine.Client(), engine.Streams()
	aggregator, err := usage.New(usage.Config{
		Client: client, Table: table, Extract: limits.ExtractDeltas,
		Poisoned: func(ctx context.Context, p usage.Poison) error {
			slog.ErrorContext(ctx, "a stream record cannot be read", "record", p)
			return nil // the records behind it count
		},
	})
	if err != nil {
		return err
	}
	poller, err := poll.New(poll.Config{Client: client, Streams: streams, Table: table, Aggregator: aggregator})
	if err != nil {
		return err
	}
	return poller.Drain(ctx) // a service calls Run
}

// show prints what an entity consumed, for each day.
func show(ctx context.Context, client usage.Querier, entity string) error {
	question := usage.Question{Entity: entity, Resource: limits.GPT4, Span: usage.Day}
	for day, err := range usage.Read(ctx, client, table, question) {
		if err != nil {
			return err
		}
		fmt.Println(day.Limits, "millitokens")
	}
	return nil
}

// Two calls of a user are added up.
func Example() {
	ctx, engine := context.Background(), memdynamo.New()
	if err := consume(ctx, engine); err != nil {
		fmt.Println(err)
		return
	}
	if err := aggregate(ctx, engine); err != nil {
		fmt.Println(err)
		return
	}
	if err := show(ctx, engine.Client(), "user-123"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// [{rpm 2000} {tpm 1800000}] millitokens
}

// consume has user-123 make two calls, of 900 tokens each.
func consume(ctx context.Context, engine *memdynamo.Engine) error {
	client := engine.Client()
	if _, err := operator.CreateTable(ctx, client, table); err != nil {
		return err
	}
	lim, err := limits.New(dynamo.New(client, table))
	if err != nil {
		return err
	}
	for range 2 {
		user := limits.User{ID: "123", Project: limits.Project{ID: "1"}}
		lease, err := lim.GPT4.Acquire(ctx, user, limits.GPT4Cost{TPM: 1_200})
		if err != nil {
			return err
		}
		if err := lease.Settle(ctx, limits.GPT4Cost{TPM: 900}); err != nil {
			return err
		}
	}
	return lim.Close(ctx)
}
