package lean_test

import (
	"context"
	"log"

	"github.com/aws/aws-sdk-go-v2/config"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/lean"
)

// A limiter whose calls do without the SDK's middleware.
func ExampleNew() {
	ctx := context.Background()
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		log.Fatal(err)
	}
	lim, err := limits.New(dynamo.New(lean.New(cfg), "rate_limits"))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = lim.Close(ctx) }()
	if err := lim.Check(ctx); err != nil {
		log.Print(err)
	}
}
