package lean_test

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/lean"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// open returns a limiter whose calls do without the SDK's middleware. A service takes its configuration from
// config.LoadDefaultConfig.
func open(ctx context.Context, cfg aws.Config) (*limits.Limiter, error) {
	lim, err := limits.New(dynamo.New(lean.New(cfg), "rate_limits"))
	if err != nil {
		return nil, err
	}
	return lim, lim.Check(ctx)
}

// The client takes the place of the SDK's in dynamo.New.
func Example() {
	ctx, engine := context.Background(), memdynamo.New()
	if _, err := operator.CreateTable(ctx, engine.Client(), "rate_limits"); err != nil {
		fmt.Println(err)
		return
	}
	lim, err := open(ctx, aws.Config{
		Region: "eu-central-1", HTTPClient: engine.HTTPClient(),
		Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	user := limits.User{ID: "123", Project: limits.Project{ID: "1"}}
	lease, err := lim.GPT4.Acquire(ctx, user, limits.GPT4Cost{TPM: 1_200})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("took", lease.Cost())
	// Output:
	// took GPT4Cost{RPM:1 TPM:1200}
}
