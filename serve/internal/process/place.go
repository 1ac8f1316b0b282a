package process

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/gen"
	"github.com/sluice-go/sluice/internal/tool/awsclient"
	"github.com/sluice-go/sluice/internal/tool/redisclient"
	"github.com/sluice-go/sluice/internal/tool/secrets"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/redisstore"
)

// place is the store that the flags name.
type place struct {
	name  string
	open  func() runtime.Store
	loses bool // what it keeps, when the process ends
	close func()
}

// place connects to the store. ctx is that of the process.
func (f *Flags) place(ctx context.Context) (*place, error) {
	switch {
	case f.Redis != nil:
		return f.onRedis(ctx)
	case f.onTable():
		return f.inTable(ctx)
	}
	engine := memdynamo.New()
	const table = "limits"
	client := engine.Client()
	if _, err := operator.CreateTable(ctx, client, table); err != nil {
		return nil, err
	}
	// Nobody reads the table's changes, and the engine would keep those of a day.
	if _, err := client.UpdateTable(ctx, &dynamodb.UpdateTableInput{TableName: aws.String(table),
		StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(false)}}); err != nil {
		return nil, err
	}
	return &place{
		name: "this process", loses: true, close: func() {},
		open: func() runtime.Store { return dynamo.New(client, table) },
	}, nil
}

// inTable connects to a DynamoDB table.
func (f *Flags) inTable(ctx context.Context) (*place, error) {
	client, err := awsclient.Lean(ctx, f.Endpoint, f.Region)
	if err != nil {
		return nil, err
	}
	table := "rate_limits"
	if f.Table != nil {
		table = *f.Table
	}
	var options []dynamo.Option
	name := "table " + table
	if f.Namespace != nil {
		options = append(options, dynamo.Namespace(*f.Namespace))
		name = "namespace " + *f.Namespace + " of " + name
	}
	if f.Endpoint != "" {
		name += " at " + secrets.URL(f.Endpoint)
	}
	return &place{
		name: name, close: func() {},
		open: func() runtime.Store { return dynamo.New(client, table, options...) },
	}, nil
}

// onRedis connects to a Redis.
func (f *Flags) onRedis(ctx context.Context) (*place, error) {
	name := redisclient.Name(*f.Redis)
	// The client outlives ctx: the last settles are written after a signal.
	connected, stop := context.WithCancel(context.WithoutCancel(ctx))
	early := context.AfterFunc(ctx, stop)
	client, err := redisclient.New(connected, *f.Redis)
	if !early() {
		err = ctx.Err()
	}
	if err != nil {
		stop()
		return nil, fmt.Errorf("%s does not answer as Redis does: %w: check the URL (--redis, SLUICE_REDIS_URL)",
			name, err)
	}
	prefix := redisstore.DefaultPrefix
	if f.Prefix != nil {
		prefix = *f.Prefix
	}
	return &place{
		name: name + ", prefix " + prefix, close: func() { _ = client.Close(); stop() },
		open: func() runtime.Store { return redisstore.New(client, redisstore.Prefix(prefix)) },
	}, nil
}

// fits returns an error unless the schema lists the store that the flags name.
func (f *Flags) fits(stores []string) error {
	kind, or := gen.StoreDynamoDB, "pass --redis"
	if f.Redis != nil {
		kind, or = gen.StoreRedis, "leave out --redis"
	}
	if slices.Contains(stores, kind) {
		return nil
	}
	return fmt.Errorf("%s does not list %s in its stores: add it, or %s", f.File, kind, or)
}
