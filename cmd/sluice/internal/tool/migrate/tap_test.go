package migrate

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// tap is an API whose calls all go through around: to count them, to have them fail, to do something before
// or after.
type tap struct {
	API
	around func(ctx context.Context, in any, do func() error) error
}

type options = []func(*dynamodb.Options)

// tapped makes one call of a tap.
func tapped[I, O any](ctx context.Context, t *tap, in *I, opts options,
	do func(context.Context, *I, ...func(*dynamodb.Options)) (*O, error)) (out *O, err error) {
	err = t.around(ctx, in, func() (err error) {
		out, err = do(ctx, in, opts...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (t *tap) GetItem(
	ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.GetItemOutput, error) {
	return tapped(ctx, t, in, opts, t.API.GetItem)
}

func (t *tap) BatchGetItem(
	ctx context.Context, in *dynamodb.BatchGetItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.BatchGetItemOutput, error) {
	return tapped(ctx, t, in, opts, t.API.BatchGetItem)
}

func (t *tap) PutItem(
	ctx context.Context, in *dynamodb.PutItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.PutItemOutput, error) {
	return tapped(ctx, t, in, opts, t.API.PutItem)
}

func (t *tap) UpdateItem(
	ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	return tapped(ctx, t, in, opts, t.API.UpdateItem)
}

func (t *tap) DeleteItem(
	ctx context.Context, in *dynamodb.DeleteItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.DeleteItemOutput, error) {
	return tapped(ctx, t, in, opts, t.API.DeleteItem)
}

func (t *tap) TransactWriteItems(
	ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options),
) (*dynamodb.TransactWriteItemsOutput, error) {
	return tapped(ctx, t, in, opts, t.API.TransactWriteItems)
}

func (t *tap) Query(
	ctx context.Context, in *dynamodb.QueryInput, opts ...func(*dynamodb.Options),
) (*dynamodb.QueryOutput, error) {
	return tapped(ctx, t, in, opts, t.API.Query)
}

func (t *tap) Scan(
	ctx context.Context, in *dynamodb.ScanInput, opts ...func(*dynamodb.Options),
) (*dynamodb.ScanOutput, error) {
	return tapped(ctx, t, in, opts, t.API.Scan)
}
