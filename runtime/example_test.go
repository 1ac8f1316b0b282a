package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

var ada = limits.User{ID: "ada", Project: limits.Project{ID: "1"}}

// newLimiter returns a limiter on a DynamoDB in the process. A service has dynamodb.NewFromConfig(cfg), and a
// table that `sluice table create` has made.
func newLimiter(ctx context.Context) (*limits.Limiter, error) {
	client := memdynamo.New().Client()
	if _, err := operator.CreateTable(ctx, client, "rate_limits"); err != nil {
		return nil, err
	}
	return limits.New(dynamo.New(client, "rate_limits"))
}

// complete reserves an estimate, calls the model, and settles for what the model used.
func complete(ctx context.Context, lim *limits.Limiter, prompt string) (string, error) {
	lease, err := lim.GPT4.Acquire(ctx, ada, limits.GPT4Cost{TPM: 9_000}) // of the user and its project
	if err != nil {
		return "", err
	}
	defer lease.Release(ctx) // gives all back, unless the lease is settled

	reply, used, err := model(prompt)
	if err != nil {
		return "", err
	}
	return reply, lease.Settle(ctx, limits.GPT4Cost{TPM: used})
}

// model stands for a call whose cost is known once it has ended.
func model(prompt string) (reply string, used int64, err error) {
	if prompt == "" {
		return "", 0, errors.New("the prompt is empty")
	}
	return strings.ToUpper(prompt), 900, nil
}

// Three calls reserve 9,000 tokens each of a burst of 15,000. They fit one after the other: those that
// succeed settle for 900, and the one that fails gives all back.
func Example() {
	ctx := context.Background()
	lim, err := newLimiter(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, prompt := range []string{"hello", "", "again"} {
		reply, err := complete(ctx, lim, prompt)
		fmt.Printf("%q %v\n", reply, err)
	}
	fmt.Println(lim.Close(ctx)) // waits for writes in the background
	// Output:
	// "HELLO" <nil>
	// "" the prompt is empty
	// "AGAIN" <nil>
	// <nil>
}
