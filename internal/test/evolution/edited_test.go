package evolution_test

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/runtime/dynamo"
)

// edited is a client whose updates are not what was generated, for negative controls.
type edited struct {
	dynamo.API
	edit func(update, condition string) (string, string)
}

// UpdateItem implements dynamo.API.
func (c *edited) UpdateItem(
	ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	if in.ConditionExpression != nil {
		other := *in
		update, condition := c.edit(*in.UpdateExpression, *in.ConditionExpression)
		other.UpdateExpression, other.ConditionExpression = &update, &condition
		in = &other
	}
	return c.API.UpdateItem(ctx, in, opts...)
}

// TransactWriteItems implements dynamo.API.
func (c *edited) TransactWriteItems(
	ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options),
) (*dynamodb.TransactWriteItemsOutput, error) {
	for _, item := range in.TransactItems {
		if u := item.Update; u != nil {
			update, condition := c.edit(*u.UpdateExpression, *u.ConditionExpression)
			u.UpdateExpression, u.ConditionExpression = &update, &condition
		}
	}
	return c.API.TransactWriteItems(ctx, in, opts...)
}
