package memdynamo

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/engine"
)

// Engine is a DynamoDB of its own, without tables at first. It is an http.Handler that speaks the protocol of
// DynamoDB and of DynamoDB Streams. It is safe for concurrent use, starts nothing, and is garbage once nobody
// refers to it.
type Engine struct {
	clock  Clock
	db     *engine.DB
	faults Faults
	meter  meter
}

// New returns an engine. It does no I/O and starts no goroutine: there is nothing to close.
func New(opts ...Option) *Engine {
	o := options{clock: systemClock{}, seed: 1}
	for _, opt := range opts {
		if opt != nil {
			opt(&o)
		}
	}
	e := &Engine{clock: o.clock}
	e.faults.seed = o.seed
	e.db = engine.New(engine.Config{
		Now:        o.clock.Now,
		Rand:       rand.New(rand.NewPCG(o.seed, engineStream)).Float64,
		Conditions: e.faults.conditions,
		Hold:       e.hold,
		Bill:       e.meter.bill,
	})
	return e
}

// engineStream tells the engine's random numbers from those of requests, which count up from 1.
const engineStream = 0

// Faults returns what this engine suffers from, to be changed at any time.
func (e *Engine) Faults() *Faults { return &e.faults }

// Consumed returns what was consumed since the start, or since ResetConsumed.
func (e *Engine) Consumed() Consumption { return e.meter.snapshot() }

// ResetConsumed makes Consumed start again from nothing.
func (e *Engine) ResetConsumed() { e.meter.reset() }

// endpoint is the URL that this package's clients have. Nothing can answer there: a client that lost its
// HTTPClient fails instead of reaching AWS.
const endpoint = "http://memdynamo.invalid"

// credential is what clients sign with. The engine wants a signature, and any will do.
func credential() aws.CredentialsProvider {
	return credentials.NewStaticCredentialsProvider("memdynamo", "memdynamo", "")
}

// Client returns a client of the engine. It is the SDK's own: it signs, checks, retries and waits between
// retries as it does in production, but calls the engine in place of a socket. It reads no configuration.
// optFns are the SDK's.
func (e *Engine) Client(optFns ...func(*dynamodb.Options)) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region:       engine.Region,
		Credentials:  credential(),
		BaseEndpoint: aws.String(endpoint),
		HTTPClient:   e.HTTPClient(),
		EndpointDiscovery: dynamodb.EndpointDiscoveryOptions{
			EnableEndpointDiscovery: aws.EndpointDiscoveryDisabled,
		},
	}, optFns...)
}

// Streams returns a client of the engine's streams, as Client does of its tables.
func (e *Engine) Streams(optFns ...func(*dynamodbstreams.Options)) *dynamodbstreams.Client {
	return dynamodbstreams.New(dynamodbstreams.Options{
		Region:       engine.Region,
		Credentials:  credential(),
		BaseEndpoint: aws.String(endpoint),
		HTTPClient:   e.HTTPClient(),
	}, optFns...)
}

// SplitShards closes every open shard of a table's stream and opens two in its place, as AWS does when a
// table grows. It fails if there is no such table, or it has no stream.
func (e *Engine) SplitShards(table string) error {
	if err := e.db.SplitShards(table); err != nil {
		return fmt.Errorf("memdynamo: split the shards of table %s: %w", table, err)
	}
	return nil
}

// hold returns what keeps a transaction on its items for as long as Faults say; nil if that is no time.
func (e *Engine) hold() func(context.Context) error {
	d := e.faults.held()
	if d <= 0 {
		return nil
	}
	return func(ctx context.Context) error {
		select {
		case <-e.clock.After(d):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
