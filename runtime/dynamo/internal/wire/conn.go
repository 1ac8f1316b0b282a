package wire

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// Conn sends single calls to one table. It reports each to the observer. Answers to calls about buckets fill
// the retry budget, and their dates bound this host's clock. It is safe for concurrent use.
type Conn struct {
	API    API
	Table  string
	Env    *store.Env
	Budget *Budget

	host    hostClock
	inputs  sync.Pool // of *reusableInput
	noRetry []func(*dynamodb.Options)
}

// NewConn returns a Conn with a full retry budget.
func NewConn(api API, table string, env *store.Env) *Conn {
	c := &Conn{
		API: api, Table: table, Env: env, Budget: NewBudget(BudgetTokens),
		inputs:  sync.Pool{New: func() any { return new(reusableInput) }},
		noRetry: []func(*dynamodb.Options){NoRetry},
	}
	c.host.start(env.Clock.Now())
	return c
}

// Now returns the time in milliseconds: the clock's, unless that is far from DynamoDB's (At).
func (c *Conn) Now() int64 { return c.host.at(c.Env.Clock.Now()) }

// At returns the time of a reading of the clock, in milliseconds. A reading that is more than a second off
// DynamoDB's time is replaced by that. An rf so far ahead would stop the bucket's refill for all processes,
// and a clock so far behind would keep a window open that is over. DynamoDB's time is taken from the dates of
// replies (hostClock).
func (c *Conn) At(reading time.Time) int64 { return c.host.at(reading) }

// watch bounds the clock by the date of a reply to a request that began at a reading. It reports a clock that
// is off. A zero date says nothing.
func (c *Conn) watch(ctx context.Context, began, date time.Time) {
	if date.IsZero() {
		return
	}
	ended := c.Env.Clock.Now()
	c.host.bound(began, ended, date)
	ahead := skew(began, ended, date)
	if ahead == 0 || !c.host.due(ended) {
		return
	}
	if c.Env.Observer.Skew != nil {
		c.Env.Observer.Skew(ahead)
	}
	if ahead > 0 {
		c.Env.Logger.LogAttrs(ctx, slog.LevelWarn,
			"sluice: this host's clock is ahead of DynamoDB's: DynamoDB's date is used instead; set the clock by NTP",
			slog.String("table", c.Table), slog.Duration("ahead", ahead.Round(time.Millisecond)))
	}
}

// CheckClock compares this host's clock with the date of a reply to a request that began at a reading. It
// returns a *store.SetupError if they differ by more than is tolerated, nil too if the reply has no date.
func (c *Conn) CheckClock(began time.Time, metadata middleware.Metadata) error {
	date := dateOf(Applied, metadata, nil)
	if date.IsZero() {
		return nil
	}
	return skewError(skew(began, c.Env.Clock.Now(), date))
}

// Resource is a generated resource, for buckets of one kind.
type Resource struct {
	Generated codec.Resource
	Spec      *store.Spec
	Kind      int
	SortKey   string // of its buckets
	Name      string // the resource in its buckets, if it is a name of a template; "" for the generated one
}

// Bucket names the bucket that a call is about.
type Bucket struct {
	*Resource

	Partition, Entity string // the item's partition key, and the entity as stored
}

// Key returns the key of b's item.
func (b *Bucket) Key() item.Key { return item.Key{PK: b.Partition, SK: b.SortKey} }

// Decode decodes b's item. An empty item is a missing bucket: nil. The error is a *store.SetupError.
func (b *Bucket) Decode(stored codec.Item) (*bucket.Image, error) {
	if len(stored) == 0 {
		return nil, nil
	}
	img := &bucket.Image{}
	if err := b.Generated.Decode(img, stored); err != nil {
		return nil, Malformed(b.Entity, b.Spec.Resource, err)
	}
	if b.Spec.Plans == nil { // it may have had plans
		(&codec.Decoder{Item: stored}).PlanOf(img)
	}
	return img, nil
}

// Attempt is one attempt to write to a bucket.
type Attempt struct {
	Plan        *plan.Plan
	Op          string
	SettlesOnly bool // no acquire is among the requests
	Served      int  // the number of requests
}

// Reply is how one write ended.
type Reply struct {
	Outcome   Outcome
	Image     *bucket.Image // as an applied write left the bucket or a refused one found it; nil if missing
	Err       error         // why the outcome is neither Applied nor Refused
	Malformed bool          // the outcome is Failed because the bucket's item cannot be decoded
	Stands    bool          // the write was applied although the item is malformed
	SentAt    int64         // ms
}

// reusableInput is the input of one write. It is used again once the reply is there, since nothing keeps any
// of it.
type reusableInput struct {
	codec.Write

	update dynamodb.UpdateItemInput
	put    dynamodb.PutItemInput
}

// Write writes to b, once.
func (c *Conn) Write(ctx context.Context, b *Bucket, a Attempt) Reply {
	in := c.inputs.Get().(*reusableInput)
	defer c.inputs.Put(in)
	if err := b.Build(&in.Write, a.Plan, a.Op); err != nil {
		return Reply{Outcome: Failed, Err: err}
	}
	began := c.Env.Clock.Now()
	stored, consumed, metadata, err := c.call(ctx, b, a.Plan, in)
	r := Reply{Outcome: Applied}
	if err != nil {
		r.Outcome, stored = Classify(err)
		r.Err = Explain(c.Table, r.Outcome, err)
	}
	if r.Outcome == Applied && len(stored) == 0 { // not DynamoDB's reply: something in between answered
		r.Outcome, r.Err = Unknown, errors.New("the reply to an update is empty")
	}
	date := dateOf(r.Outcome, metadata, err)
	if r.Outcome == Applied || r.Outcome == Refused {
		if r.Image, err = b.imageOf(r.Outcome, &a, stored); err != nil {
			r.Outcome, r.Err, r.Malformed, r.Stands = Failed, err, true, r.Outcome == Applied
		}
	}
	c.Budget.Answered(r.Outcome)
	if c.Env.Observer.Store != nil {
		event := store.StoreEvent{
			Call: "UpdateItem", Path: a.Plan.Label(a.SettlesOnly), Generic: a.Plan.Generic,
			Outcome: r.Outcome.String(), Coalesced: a.Served, Write: WriteUnits(r.Outcome, consumed), Began: began,
		}
		if a.Plan.Path == plan.Create {
			event.Call = "PutItem"
		}
		if a.Plan.RepairsTTL || a.Plan.Uncharged {
			event.Coalesced = 0
		}
		if r.Outcome == Applied {
			event.Swept = swept(b.Spec, a.Plan)
		}
		c.reportFor(ctx, b, event)
	}
	c.watch(ctx, began, date)
	r.SentAt = c.At(began) // by the clock as this reply bounds it
	return r
}

// call puts or updates the item. It returns the item as the write left it.
func (c *Conn) call(
	ctx context.Context, b *Bucket, p *plan.Plan, in *reusableInput,
) (codec.Item, *types.ConsumedCapacity, middleware.Metadata, error) {
	if p.Path == plan.Create {
		in.put = dynamodb.PutItemInput{
			TableName:                           &c.Table,
			Item:                                in.Item,
			ConditionExpression:                 &in.Cond,
			ReturnConsumedCapacity:              types.ReturnConsumedCapacityTotal,
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}
		out, err := c.API.PutItem(ctx, &in.put, c.noRetry...)
		if err != nil {
			return nil, nil, middleware.Metadata{}, err
		}
		return in.Item, out.ConsumedCapacity, out.ResultMetadata, nil
	}
	in.SetKey(b.Partition, b.SortKey)
	in.update = dynamodb.UpdateItemInput{
		TableName:                           &c.Table,
		Key:                                 in.Key,
		UpdateExpression:                    &in.Update,
		ConditionExpression:                 &in.Cond,
		ExpressionAttributeNames:            in.Names,
		ExpressionAttributeValues:           in.Values,
		ReturnConsumedCapacity:              types.ReturnConsumedCapacityTotal,
		ReturnValues:                        types.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	out, err := c.API.UpdateItem(ctx, &in.update, c.noRetry...)
	if err != nil {
		return nil, nil, middleware.Metadata{}, err
	}
	return out.Attributes, out.ConsumedCapacity, out.ResultMetadata, nil
}

// Read reads b consistently, once. The image is nil if b is missing. The outcome is that of a write: Applied,
// or why there is no answer, which err says.
func (c *Conn) Read(ctx context.Context, b *Bucket) (img *bucket.Image, at int64, o Outcome, err error) {
	began := c.Env.Clock.Now()
	out, err := c.API.GetItem(ctx, &dynamodb.GetItemInput{
		TableName:              &c.Table,
		Key:                    b.Key().Item(),
		ConsistentRead:         aws.Bool(true),
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	}, c.noRetry...)
	if err != nil {
		o, _ := Classify(err)
		c.reportFor(ctx, b, ReadEvent("GetItem", "read", began, false, nil, err))
		c.watch(ctx, began, dateOf(o, middleware.Metadata{}, err))
		return nil, 0, o, Explain(c.Table, o, err)
	}
	c.Budget.Answered(Applied)
	c.reportFor(ctx, b, ReadEvent("GetItem", "read", began, len(out.Item) > 0, out.ConsumedCapacity, nil))
	c.watch(ctx, began, dateOf(Applied, out.ResultMetadata, nil))
	if img, err = b.Decode(out.Item); err != nil {
		return nil, 0, Failed, err
	}
	return img, c.At(began), Applied, nil
}

// ReadAll reads up to MaxBatchGet keys, once: of buckets, of overrides, of the heartbeat. The event is of
// spec. The outcome is that of a write, as in Read.
func (c *Conn) ReadAll(
	ctx context.Context, spec *store.Spec, keys []codec.Item, consistent bool,
) (Batch, Outcome, error) {
	began := c.Env.Clock.Now()
	got, err := BatchGet(ctx, c.API, c.Table, keys, consistent)
	event := store.StoreEvent{
		Call: "BatchGetItem", Path: "levels", Resource: spec.Resource, Template: spec.Template, Outcome: "found",
		Read: got.Units, Began: began,
	}
	if len(got.Items) == 0 {
		event.Outcome = "missing"
	}
	for _, stored := range keys {
		key := item.KeyOf(stored)
		if !strings.HasPrefix(key.SK, item.BucketPrefix) {
			continue
		}
		event.Path = "read"
		event.Buckets++
		if got.Items[key] == nil {
			event.Outcome = "missing"
		}
	}
	if err != nil {
		o, _ := Classify(err)
		event.Outcome = "failed"
		c.Report(ctx, event)
		c.watch(ctx, began, dateOf(o, middleware.Metadata{}, err))
		return Batch{}, o, Explain(c.Table, o, err)
	}
	c.Budget.Answered(Applied)
	c.Report(ctx, event)
	c.watch(ctx, began, dateOf(Applied, got.Metadata, nil))
	return got, Applied, nil
}

// Transaction is a TransactWriteItems as it was built, with the plans that it was built from. Under its token
// it may be sent any number of times, and is applied once.
type Transaction struct {
	Plans []plan.Plan // with vectors of their own
	op    string

	input *dynamodb.TransactWriteItemsInput
	spec  *store.Spec // of the first bucket
	swept int64       // whole tokens of holds that are over
}

// NewTransaction returns an empty write under op.
func NewTransaction(op string) *Transaction {
	token := NewOp()
	return &Transaction{op: op, input: &dynamodb.TransactWriteItemsInput{
		ClientRequestToken:     &token,
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	}}
}

// Add adds p, a write to b in table. Each bucket may occur once.
func (tx *Transaction) Add(table *string, b *Bucket, p *plan.Plan) error {
	w := &codec.Write{}
	if err := b.Build(w, p, tx.op); err != nil {
		return err
	}
	if len(tx.Plans) == 0 {
		tx.spec = b.Spec
	}
	tx.Plans = append(tx.Plans, p.Clone())
	tx.swept += swept(b.Spec, p)
	var write types.TransactWriteItem
	if p.Path == plan.Create {
		write.Put = &types.Put{
			TableName: table, Item: w.Item, ConditionExpression: &w.Cond,
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}
	} else {
		write.Update = &types.Update{
			TableName: table, Key: b.Key().Item(), UpdateExpression: &w.Update,
			ConditionExpression: &w.Cond, ExpressionAttributeNames: w.Names, ExpressionAttributeValues: w.Values,
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}
	}
	tx.input.TransactItems = append(tx.input.TransactItems, write)
	return nil
}

// swept returns how many whole tokens a write gives back of holds that are over. Money is none.
func swept(spec *store.Spec, p *plan.Plan) (tokens int64) {
	for i := range min(len(p.Holds), len(spec.Limits)) {
		if spec.Unit(i) == "" {
			tokens += p.Swept(i) / bucket.Milli
		}
	}
	return tokens
}

// Transact sends tx once. served is the number of requests that it serves. The error says why the transaction
// was not applied.
func (c *Conn) Transact(ctx context.Context, tx *Transaction, served int) (Outcome, error) {
	began := c.Env.Clock.Now()
	out, err := c.API.TransactWriteItems(ctx, tx.input, NoRetry)
	o := Applied
	event := store.StoreEvent{
		Call: "TransactWriteItems", Path: "transact", Resource: tx.spec.Resource, Template: tx.spec.Template,
		Buckets: len(tx.Plans), Coalesced: served, Began: began,
		Generic: slices.ContainsFunc(tx.Plans, func(p plan.Plan) bool { return p.Generic }),
	}
	var metadata middleware.Metadata
	if err == nil {
		metadata = out.ResultMetadata
		for _, used := range out.ConsumedCapacity {
			event.Write += aws.ToFloat64(used.CapacityUnits)
		}
	} else {
		o, err = ClassifyTransaction(err, len(tx.Plans))
		event.Write = CancelledUnits(o, len(tx.Plans))
		err = Explain(c.Table, o, err)
	}
	if o == Applied {
		event.Swept = tx.swept
	}
	c.Budget.Answered(o)
	event.Outcome = o.String()
	c.Report(ctx, event)
	c.watch(ctx, began, dateOf(o, metadata, err))
	return o, err
}

// Retrier returns a Retrier for calls that charge nothing.
func (c *Conn) Retrier(attempts int, jitter func() float64) Retrier {
	return Retrier{Table: c.Table, Attempts: attempts, After: c.Env.Clock.After, Jitter: jitter}
}

// reportFor reports a call that is about b.
func (c *Conn) reportFor(ctx context.Context, b *Bucket, e store.StoreEvent) {
	e.Resource, e.Template = b.Spec.Resource, b.Spec.Template
	c.Report(ctx, e)
}

// Report reports a call that has just ended to the breaker and the observer.
func (c *Conn) Report(ctx context.Context, e store.StoreEvent) {
	e.System = "dynamodb"
	c.Env.Report(ctx, e)
}
