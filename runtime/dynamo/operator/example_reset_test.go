package operator_test

import (
	"context"
	"fmt"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// Support looks into a bucket and fills it, without limits.yaml.
func ExampleReset() {
	ctx, client := context.Background(), memdynamo.New().Client()
	if _, err := operator.CreateTable(ctx, client, table); err != nil {
		fmt.Println(err)
		return
	}
	lim, err := limits.New(dynamo.New(client, table))
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := lim.GPT4.Acquire(ctx, limits.Project{ID: "1"}, limits.GPT4Cost{TPM: 1_200}); err != nil {
		fmt.Println(err)
		return
	}
	show := func() {
		image, err := operator.Inspect(ctx, client, table, "project-1", limits.GPT4)
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, limit := range image.Extra {
			fmt.Println(limit.Name, limit.Tokens/1_000)
		}
	}
	show()
	fmt.Println(operator.Reset(ctx, client, table, "project-1", limits.GPT4, "tpm"))
	show()
	// Output:
	// rpm 999
	// tpm 148800
	// [tpm] <nil>
	// rpm 999
	// tpm 150000
}
