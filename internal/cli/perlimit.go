package cli

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/perlimit"
)

// becomesBucket says what makes a bucket of per-limit items.
const becomesBucket = "in per-limit items, which become a bucket by its next acquire or by `sluice migrate`"

// inItems returns, where there is no bucket, what its per-limit items hold now; nil where none is left that counts. Saying that
// an entity in such items is unused, and so full, would mislead.
func (c connection) inItems(ctx context.Context, p Program, client *dynamodb.Client, entity, resource string) (*bucket.Image, error) {
	items, err := dynamo.NewCarrier(client, c.Table, p.Now).Items(ctx, entity, resource)
	if err != nil {
		return nil, explain(client, err)
	}
	return ofItems(items, p.Now().UnixMilli()), nil
}

// ofItems returns the balances at now (ms) of those per-limit items that no bucket has taken over, nil where there are none.
func ofItems(items []perlimit.Item, now int64) *bucket.Image {
	img := &bucket.Image{Refilled: now}
	for _, i := range items {
		if i.Counts() {
			i.Tokens = i.At(now)
			img.Extra = append(img.Extra, bucket.Named{Name: i.Name, Balance: i.Balance})
		}
	}
	if len(img.Extra) == 0 {
		return nil
	}
	return img
}
