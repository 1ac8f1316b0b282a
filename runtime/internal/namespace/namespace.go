// Package namespace has a client of DynamoDB for the items of one namespace of a table.
package namespace

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/internal/item"
)

// API is the part of *dynamodb.Client that the store calls.
type API interface {
	GetItem(
		context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options),
	) (*dynamodb.GetItemOutput, error)
	BatchGetItem(
		context.Context, *dynamodb.BatchGetItemInput, ...func(*dynamodb.Options),
	) (*dynamodb.BatchGetItemOutput, error)
	PutItem(
		context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options),
	) (*dynamodb.PutItemOutput, error)
	UpdateItem(
		context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options),
	) (*dynamodb.UpdateItemOutput, error)
	DeleteItem(
		context.Context, *dynamodb.DeleteItemInput, ...func(*dynamodb.Options),
	) (*dynamodb.DeleteItemOutput, error)
	TransactWriteItems(
		context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options),
	) (*dynamodb.TransactWriteItemsOutput, error)
	Query(
		context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options),
	) (*dynamodb.QueryOutput, error)
	DescribeTable(
		context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options),
	) (*dynamodb.DescribeTableOutput, error)
	DescribeTimeToLive(
		context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options),
	) (*dynamodb.DescribeTimeToLiveOutput, error)
}

// New returns a client of api for the items of n. Its callers name items as in the default namespace. It
// moves the hash keys of requests to n, in copies: callers reuse requests, and send them again. Replies stay
// as they are, and item.KeyOf reads keys without the namespace. It is as safe for concurrent use as api.
func New(api API, n item.Namespace) API {
	if n == "" {
		return api
	}
	return &client{API: api, namespace: n}
}

// Of returns the namespace of api, an API or a part of one.
func Of(api any) item.Namespace {
	if c, ok := api.(*client); ok {
		return c.namespace
	}
	return ""
}

// Under returns the API that api is made of, if New has made it, else api.
func Under(api API) API {
	if c, ok := api.(*client); ok {
		return c.API
	}
	return api
}

type client struct {
	API
	namespace item.Namespace
}

// GetItem implements API.
func (c *client) GetItem(
	ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.GetItemOutput, error) {
	moved := *in
	moved.Key = c.namespace.In(in.Key)
	return c.API.GetItem(ctx, &moved, opts...)
}

// BatchGetItem implements API.
func (c *client) BatchGetItem(
	ctx context.Context, in *dynamodb.BatchGetItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.BatchGetItemOutput, error) {
	moved := *in
	moved.RequestItems = make(map[string]types.KeysAndAttributes, len(in.RequestItems))
	for table, read := range in.RequestItems {
		read.Keys = slices.Clone(read.Keys)
		for i, key := range read.Keys {
			read.Keys[i] = c.namespace.In(key)
		}
		moved.RequestItems[table] = read
	}
	return c.API.BatchGetItem(ctx, &moved, opts...)
}

// PutItem implements API.
func (c *client) PutItem(
	ctx context.Context, in *dynamodb.PutItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.PutItemOutput, error) {
	moved := *in
	moved.Item = c.namespace.In(in.Item)
	return c.API.PutItem(ctx, &moved, opts...)
}

// UpdateItem implements API. An expression may set the hash key of an index.
func (c *client) UpdateItem(
	ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	moved := *in
	moved.Key = c.namespace.In(in.Key)
	moved.ExpressionAttributeValues = c.namespace.In(in.ExpressionAttributeValues)
	return c.API.UpdateItem(ctx, &moved, opts...)
}

// DeleteItem implements API.
func (c *client) DeleteItem(
	ctx context.Context, in *dynamodb.DeleteItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.DeleteItemOutput, error) {
	moved := *in
	moved.Key = c.namespace.In(in.Key)
	return c.API.DeleteItem(ctx, &moved, opts...)
}

// TransactWriteItems implements API.
func (c *client) TransactWriteItems(
	ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options),
) (*dynamodb.TransactWriteItemsOutput, error) {
	moved := *in
	moved.TransactItems = slices.Clone(in.TransactItems)
	for i := range moved.TransactItems {
		c.move(&moved.TransactItems[i])
	}
	return c.API.TransactWriteItems(ctx, &moved, opts...)
}

// move moves the hash keys of a part of a transaction.
func (c *client) move(part *types.TransactWriteItem) {
	if part.Put != nil {
		put := *part.Put
		put.Item = c.namespace.In(put.Item)
		part.Put = &put
	}
	if part.Update != nil {
		update := *part.Update
		update.Key = c.namespace.In(update.Key)
		update.ExpressionAttributeValues = c.namespace.In(update.ExpressionAttributeValues)
		part.Update = &update
	}
	if part.Delete != nil {
		deletion := *part.Delete
		deletion.Key = c.namespace.In(deletion.Key)
		part.Delete = &deletion
	}
	if part.ConditionCheck != nil {
		check := *part.ConditionCheck
		check.Key = c.namespace.In(check.Key)
		part.ConditionCheck = &check
	}
}

// Query implements API. A page begins where the reply before says, so after a key with its namespace.
func (c *client) Query(
	ctx context.Context, in *dynamodb.QueryInput, opts ...func(*dynamodb.Options),
) (*dynamodb.QueryOutput, error) {
	moved := *in
	moved.ExpressionAttributeValues = c.namespace.In(in.ExpressionAttributeValues)
	return c.API.Query(ctx, &moved, opts...)
}
