package images_test

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/examples/regionsync/limits"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/region/images"
)

// read returns the images of a table's buckets. A service passes images.New to feed.New and to region.Config:
// these read the table when they must.
func read(ctx context.Context, lim *limits.Limiter, client *dynamodb.Client) (*images.Images, error) {
	buckets := images.New(lim.Specs())
	table := operator.NewRegional(client, "rate_limits", now)
	if err := buckets.Read(ctx, table, lim.Specs(), now(), images.Start); err != nil {
		return nil, err
	}
	return buckets, nil
}

func now() time.Time { return time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC) }

// The images are those of buckets that regions share, in millitokens.
func Example() {
	ctx, client := context.Background(), memdynamo.New().Client()
	if _, err := operator.CreateTable(ctx, client, "rate_limits"); err != nil {
		fmt.Println(err)
		return
	}
	lim, err := limits.New(dynamo.New(client, "rate_limits"))
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := lim.GPT4.Acquire(ctx, limits.User{ID: "123"}, limits.GPT4Cost{TPM: 900}); err != nil {
		fmt.Println(err)
		return
	}
	buckets, err := read(ctx, lim, client)
	if err != nil {
		fmt.Println(err)
		return
	}
	image := buckets.Current(images.Key{Resource: limits.GPT4, Entity: "user-123"})
	for _, limit := range image.Extra {
		fmt.Println(limit.Name, limit.Consumed)
	}
	// Output:
	// rpm 1000
	// tpm 900000
}
