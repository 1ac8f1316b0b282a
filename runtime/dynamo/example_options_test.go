package dynamo_test

import (
	"context"
	"errors"
	"fmt"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// Check says what is wrong with a table, and what to do.
func Example_check() {
	_, err := open(context.Background(), memdynamo.New().Client())
	setup, ok := errors.AsType[*limits.SetupError](err)
	if !ok {
		fmt.Println(err)
		return
	}
	fmt.Println(setup.What)
	fmt.Println(setup.Do)
	// Output:
	// table rate_limits does not exist
	// run `sluice table create --table rate_limits`, or check region and endpoint
}

// Two environments share a table, but no bucket.
func ExampleNamespace() {
	ctx, client := context.Background(), memdynamo.New().Client()
	if _, err := operator.CreateTable(ctx, client, "rate_limits"); err != nil {
		fmt.Println(err)
		return
	}
	user := limits.User{ID: "123", Project: limits.Project{ID: "1"}}
	for _, namespace := range []string{"staging", "production", "staging"} {
		lim, err := open(ctx, client, dynamo.Namespace(namespace))
		if err != nil {
			fmt.Println(err)
			return
		}
		_, err = lim.GPT4.Acquire(ctx, user, limits.GPT4Cost{TPM: 9_000})
		_, denied := errors.AsType[*limits.DeniedError](err)
		fmt.Println(namespace, "denied:", denied)
	}
	// Output:
	// staging denied: false
	// production denied: false
	// staging denied: true
}
