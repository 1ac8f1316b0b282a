// Package wire sends calls to DynamoDB. It turns a plan into expressions and values (Bucket.Build), and sends
// them as one put, update or transaction (Conn). It knows how a call ended (Outcome), what it cost, and
// whether it may be repeated (Retrier, Budget). It also keeps this host's clock to the dates of replies
// (hostClock), and reads items and index pages.
package wire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/internal/background"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/internal/namespace"
	"github.com/sluice-go/sluice/runtime/internal/sdklog"
	"github.com/sluice-go/sluice/runtime/store"
)

// API is the part of *dynamodb.Client that the store calls.
type API = namespace.API

// NoRetry turns the client's retries off: a write that is sent again unasked could be applied twice, and a
// read is repeated by the charge that needs it. It also quiets a wrong warning (sdklog.Quiet).
func NoRetry(o *dynamodb.Options) {
	o.Retryer = aws.NopRetryer{}
	sdklog.Quiet(o)
}

// ReadEvent returns the event of a read that began at an instant. It failed with err, or found says whether
// it found anything. used is what it consumed, nil if DynamoDB does not say.
func ReadEvent(
	call, path string, began time.Time, found bool, used *types.ConsumedCapacity, err error,
) store.StoreEvent {
	event := store.StoreEvent{Call: call, Path: path, Outcome: "found", Began: began}
	switch {
	case err != nil:
		event.Outcome = "failed"
		return event
	case !found:
		event.Outcome = "missing"
	}
	if used != nil {
		event.Read = aws.ToFloat64(used.CapacityUnits)
	}
	return event
}

// WriteUnits returns the capacity units of a write. DynamoDB bills a failed condition like a write, and does
// not say so. Buckets are rarely above 1 KB, so that is one unit.
func WriteUnits(o Outcome, consumed *types.ConsumedCapacity) float64 {
	switch {
	case o == Refused:
		return 1
	case consumed != nil:
		return aws.ToFloat64(consumed.CapacityUnits)
	}
	return 0
}

// CancelledUnits returns the capacity units of a cancelled transaction over n items. One that failed a
// condition, or met another transaction, costs as much as an applied one. One that was throttled costs
// nothing.
func CancelledUnits(o Outcome, n int) float64 {
	if o == Refused || o == Conflict {
		return 2 * float64(n)
	}
	return 0
}

// MaxBatchGet is how many keys one BatchGetItem takes.
const MaxBatchGet = 100

// Batch is what one BatchGetItem returned.
type Batch struct {
	Items       map[item.Key]codec.Item
	Unprocessed []codec.Item // keys, of which DynamoDB read nothing for want of throughput
	Units       float64
	Metadata    middleware.Metadata
}

// BatchGet reads up to MaxBatchGet distinct keys in one call, without retries. The error is the client's.
func BatchGet(ctx context.Context, api API, table string, keys []codec.Item, consistent bool) (Batch, error) {
	request := types.KeysAndAttributes{Keys: keys, ConsistentRead: &consistent}
	out, err := api.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
		RequestItems:           map[string]types.KeysAndAttributes{table: request},
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	}, NoRetry)
	if err != nil {
		return Batch{}, err
	}
	b := Batch{Items: make(map[item.Key]codec.Item, len(keys)), Metadata: out.ResultMetadata}
	for _, items := range out.Responses { // one table, under its name even if the request had its ARN
		for _, got := range items {
			b.Items[item.KeyOf(got)] = got
		}
	}
	for _, rest := range out.UnprocessedKeys {
		b.Unprocessed = append(b.Unprocessed, rest.Keys...)
	}
	for _, c := range out.ConsumedCapacity {
		b.Units += aws.ToFloat64(c.CapacityUnits)
	}
	return b, nil
}

// BatchRead reads up to MaxBatchGet distinct keys. It asks again for keys that DynamoDB leaves unprocessed.
// The errors are those of Retrier.Do.
func BatchRead(
	ctx context.Context, api API, retrier *Retrier, keys []codec.Item, consistent bool,
) (Batch, error) {
	all := Batch{Items: make(map[item.Key]codec.Item, len(keys))}
	for left := keys; len(left) > 0; {
		err := retrier.Do(ctx, func() error {
			b, err := BatchGet(ctx, api, retrier.Table, left, consistent)
			if err != nil {
				return err
			}
			maps.Copy(all.Items, b.Items)
			all.Units += b.Units
			stuck := len(b.Unprocessed) == len(left)
			if left = b.Unprocessed; stuck {
				return &types.ProvisionedThroughputExceededException{Message: aws.String("no key of the batch was read")}
			}
			return nil
		})
		if err != nil {
			return Batch{}, err
		}
		if len(left) > 0 {
			retrier.Pause(ctx, 1)
		}
	}
	return all, nil
}

// Getter is the part of *dynamodb.Client that reads an item.
type Getter interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
}

// ReadBucket reads a bucket consistently and without a schema: its limits are Extra, by name. It returns nil
// if there is no bucket. The error is DynamoDB's, or a *store.SetupError if the bucket is malformed.
func ReadBucket(
	ctx context.Context, client Getter, table, entity, resource string, opts ...func(*dynamodb.Options),
) (*bucket.Image, error) {
	out, err := client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &table, Key: item.BucketKey(entity, resource), ConsistentRead: aws.Bool(true),
	}, opts...)
	if err != nil {
		return nil, err
	}
	if len(out.Item) == 0 {
		return nil, nil
	}
	return DecodeBucket(entity, resource, out.Item)
}

// DecodeBucket is codec.DecodeBucket of an entity's bucket. It fails with a *store.SetupError.
func DecodeBucket(entity, resource string, raw codec.Item) (*bucket.Image, error) {
	img, err := codec.DecodeBucket(raw)
	if err != nil {
		return nil, Malformed(entity, resource, err)
	}
	return img, nil
}

// CheckTime is how long Check of a session waits for one part of its answer, in all attempts of the client.
// The SDK has no bound of its own for a service that takes a connection and does not answer.
const CheckTime = 10 * time.Second

// InTime calls do within CheckTime. If the time is up, it returns a *store.UnavailableError, which says what
// to do. It returns a *store.SetupError of do, and any error of do after ctx has ended, as it is.
func InTime(ctx context.Context, table string, do func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, CheckTime)
	defer cancel()
	err := do(bounded)
	if _, setup := errors.AsType[*store.SetupError](err); err == nil || setup || ctx.Err() != nil ||
		bounded.Err() == nil {
		return err
	}
	return &store.UnavailableError{Resource: "table " + table, Err: fmt.Errorf("%w: no answer within %v: "+
		"check the region, the endpoint and the network", context.DeadlineExceeded, CheckTime)}
}

// Retrier repeats calls that had no answer. It is for calls that are safe to repeat, so not for those that
// charge: package dynamo repeats these by rules of its own. It is safe for concurrent use.
type Retrier struct {
	Table    string
	Attempts int
	Budget   *Budget                              // nil for an operator's calls, which are too few to need one
	After    func(time.Duration) <-chan time.Time // the clock's
	Jitter   func() float64                       // in [0, 1)
}

// OperatorAttempts is how often a call is tried that a person waits for. That takes up to five seconds, in
// which DynamoDB adds capacity for what it throttles.
const OperatorAttempts = 10

// NewRetrier returns a retrier for calls outside a session, which have no clock but the system's.
func NewRetrier(table string) Retrier {
	after := time.After //nolint:forbidigo // no Env, no Clock
	return Retrier{Table: table, Attempts: OperatorAttempts, After: after, Jitter: rand.Float64}
}

// Do calls do until it has an answer, within ctx. It returns nil, or one of:
//   - DynamoDB's error for a condition that failed, which is an answer;
//   - a *store.SetupError if somebody has to fix something;
//   - ctx's error if ctx was cancelled;
//   - a *store.UnavailableError otherwise.
func (r *Retrier) Do(ctx context.Context, do func() error) error {
	var cause error // of the last attempt that failed for another reason than ctx
	for attempt := 1; ; attempt++ {
		err := do()
		o, _ := Classify(err)
		if err == nil || o == Refused {
			if r.Budget != nil {
				r.Budget.Answered(Applied)
			}
			return err
		}
		err = CallError(r.Table, err)
		unavailable, ok := errors.AsType[*store.UnavailableError](err)
		if !ok {
			return err
		}
		unavailable.Attempts, unavailable.Throttled = attempt, o == Throttled
		if ctx.Err() == nil {
			cause = unavailable.Err
			// The client of the credentials' service has repeated its own call.
			if attempt == r.Attempts || noCredentials(err) || r.Budget != nil && !r.Budget.Take(ctx) {
				return unavailable
			}
		}
		if !r.Pause(ctx, attempt) {
			return r.ended(ctx, unavailable, cause)
		}
	}
}

// Pause sleeps before the next attempt, with full jitter: up to 32 ms after the first one, and up to 1 s in
// the end. It reports whether ctx lasted.
func (r *Retrier) Pause(ctx context.Context, attempt int) bool {
	most := float64(Backoff(32*time.Millisecond, attempt))
	select {
	case <-r.After(time.Duration(r.Jitter() * most)):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// ended returns the error for a context that is over: a cancellation as it is, and a deadline with what kept
// the call from getting an answer in time.
func (r *Retrier) ended(ctx context.Context, last *store.UnavailableError, cause error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("sluice: table %s: %w", r.Table, context.Canceled)
	}
	last.Err = context.DeadlineExceeded
	if cause != nil {
		last.Err = fmt.Errorf("%w, after %w", context.DeadlineExceeded, cause)
	}
	return last
}

// Backoff returns the longest sleep after so many attempts: first, doubled with each attempt up to 32 times
// first. Callers apply full jitter.
func Backoff(first time.Duration, attempts int) time.Duration {
	return first << max(0, min(attempts-1, 5))
}

// Budget keeps retries from multiplying the load of an outage. A retry after a failure takes RetryCost; a
// call that DynamoDB applies, or refuses by its condition, gives one token back. Once the budget is spent, at
// most one call in five is a retry. Retries after lost races take nothing, since a lost race is an answer. It
// is safe for concurrent use.
type Budget struct{ tokens *ratelimit.TokenRateLimit }

// The budget of a session: a hundred retries at once.
const (
	BudgetTokens = 500
	RetryCost    = 5
)

// NewBudget returns a full budget.
func NewBudget(tokens uint) *Budget {
	return &Budget{ratelimit.NewTokenRateLimit(tokens)}
}

// Take takes the cost of one retry. It reports whether the budget had it.
func (b *Budget) Take(ctx context.Context) bool {
	_, err := b.tokens.GetToken(ctx, RetryCost)
	return err == nil
}

// Answered gives one token back if o is an answer.
func (b *Budget) Answered(o Outcome) {
	if o == Applied || o == Refused {
		_ = b.tokens.AddTokens(1) // never fails
	}
}

// Return gives back what n retries took.
func (b *Budget) Return(n int) { _ = b.tokens.AddTokens(uint(n) * RetryCost) } // never fails

// Note writes to an item of the table's own. A refused condition means that there is nothing to note.
func (c *Conn) Note(ctx context.Context, in *dynamodb.UpdateItemInput) error {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	event := store.StoreEvent{Call: "UpdateItem", Path: "system", Began: c.Env.Clock.Now()}
	out, err := c.API.UpdateItem(ctx, in, sdklog.Quiet)
	o := Applied
	if err != nil {
		o, _ = Classify(err)
		event.Write = WriteUnits(o, nil)
	} else {
		event.Write = WriteUnits(o, out.ConsumedCapacity)
	}
	event.Outcome = o.String()
	c.Report(ctx, event)
	if o == Refused {
		return nil
	}
	return err
}

// NoteInBackground is Note in the background, for a note whose failure is harmless. It logs a failure as a
// warning.
func (c *Conn) NoteInBackground(
	ctx context.Context, tasks *background.Tasks, in *dynamodb.UpdateItemInput, what string,
) {
	tasks.Start(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.Env.SettleTimeout)
		defer cancel()
		if err := c.Note(ctx, in); err != nil {
			c.Env.Logger.LogAttrs(ctx, slog.LevelWarn, "sluice: could not note in the table "+what,
				slog.String("table", c.Table), slog.Any("error", err))
		}
	})
}
