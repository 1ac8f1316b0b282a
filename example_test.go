package sluice_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// serve reserves an estimate for a user, and settles for what its call used.
func serve(ctx context.Context, gpt4 limits.GPT4Acquirer, user limits.User) (time.Duration, error) {
	lease, err := gpt4.Acquire(ctx, user, limits.GPT4Cost{TPM: 9_000}) // of the user and its project
	if denied, ok := errors.AsType[*limits.DeniedError](err); ok {
		return denied.RetryAfter, nil
	}
	if err != nil {
		return 0, err
	}
	defer lease.Release(ctx) // gives all back, unless the lease is settled
	used, err := call(ctx)
	if err != nil {
		return 0, err
	}
	return 0, lease.Settle(ctx, limits.GPT4Cost{TPM: used})
}

// call stands for what costs tokens.
func call(context.Context) (used int64, err error) { return 7_500, nil }

// The limits are those of limits.yaml beside this package; package generated is made from it.
func Example() {
	ctx := context.Background()
	client := memdynamo.New().Client() // in production: dynamodb.NewFromConfig(cfg)
	if _, err := operator.CreateTable(ctx, client, "rate_limits"); err != nil {
		fmt.Println(err)
		return
	}
	lim, err := limits.New(dynamo.New(client, "rate_limits"))
	if err != nil {
		fmt.Println(err)
		return
	}
	user := limits.User{ID: "123", Project: limits.Project{ID: "1"}}
	for range 2 {
		retryAfter, err := serve(ctx, lim.GPT4, user)
		fmt.Println(retryAfter > 0, err)
	}
	// Output:
	// false <nil>
	// true <nil>
}
