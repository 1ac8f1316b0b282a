// Package seeds is the limiter that the benchmarks are held against: read, then write. It is the protocol
// that this project started from, as it was written down, and not as the runtime has it today.
//
// An acquire reads the bucket consistently. Its balance is the stored tokens plus the refill since rf. If
// that suffices, the acquire claims the refill and takes the cost, on the condition that rf is still what it
// read. An acquire that loses that race has two ways on. It takes the cost from the stored tokens, on the
// condition that they suffice, and is refused otherwise. Or, with rf as the only lock, it reads again.
package seeds

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// API is the part of *dynamodb.Client that a Limiter calls.
type API interface {
	BatchGetItem(context.Context, *dynamodb.BatchGetItemInput,
		...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error)
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput,
		...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
}

// ErrDenied is returned by Acquire when tokens are missing.
var ErrDenied = errors.New("seeds: rate limit exceeded")

// Limit is one limit: in millitokens, and milliseconds.
type Limit struct {
	Name                  string
	Burst, Refill, Period int64
}

// Lost is what follows a lost race for rf.
type Lost uint8

// Ways to go on.
const (
	TakeStored Lost = iota // as the protocol has it: its Retry
	ReadAgain              // as any read-then-write has to that is without such a path
)

// Limiter limits one resource. It is safe for concurrent use.
type Limiter struct {
	api             API
	table, resource string
	limits          []Limit
	lost            Lost
	now             func() time.Time

	normal, retry, enough string // text of updates, and Retry's condition
}

// New returns a Limiter on table. now is its clock.
func New(api API, table, resource string, limits []Limit, lost Lost, now func() time.Time) *Limiter {
	var add, enough []string
	for _, l := range limits {
		add = append(add, fmt.Sprintf("b_%s_tk :%s_net, b_%[1]s_tc :%[2]s_use", l.Name, l.Name))
		enough = append(enough, fmt.Sprintf("b_%s_tk >= :%s_use", l.Name, l.Name))
	}
	adds := "ADD " + strings.Join(add, ", ")
	return &Limiter{
		api: api, table: table, resource: resource, limits: limits, lost: lost, now: now,
		normal: adds + " SET rf = :rf", retry: adds, enough: strings.Join(enough, " AND "),
	}
}

// Acquire takes cost, in millitokens and the order of the limits, from entity's bucket, or fails with
// ErrDenied.
func (l *Limiter) Acquire(ctx context.Context, entity string, cost []int64) error {
	for {
		item, err := l.read(ctx, entity)
		if err != nil {
			return err
		}
		if item == nil {
			err = l.create(ctx, entity, cost)
		} else {
			err = l.take(ctx, entity, item, cost)
		}
		if !refused(err) {
			return err
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

// pause waits before the next attempt, at random up to 8 ms, about a round trip. Compared were none, 2 ms, 8
// ms, and 8 ms doubled with each attempt. With 16 or 64 contending callers at 5 ms each way, 8 ms let most of
// them through.
func pause(ctx context.Context) error {
	select {
	case <-time.After(rand.N(8 * time.Millisecond)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// item is a bucket's item.
type item = map[string]types.AttributeValue

func (l *Limiter) key(entity string) item {
	return item{"PK": text("ENTITY#" + entity), "SK": text("#BUCKET#" + l.resource)}
}

// read returns the bucket, nil for none. The entity's own item, which the read of the protocol includes, is
// taken as cached.
func (l *Limiter) read(ctx context.Context, entity string) (item, error) {
	out, err := l.api.BatchGetItem(ctx,
		&dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
			l.table: {Keys: []item{l.key(entity)}, ConsistentRead: aws.Bool(true)},
		}})
	if err != nil {
		return nil, err
	}
	if found := out.Responses[l.table]; len(found) > 0 {
		return found[0], nil
	}
	if len(out.UnprocessedKeys) > 0 {
		return nil, fmt.Errorf("seeds: bucket of %s was not read: throttled", entity)
	}
	return nil, nil
}

// create puts a full bucket less cost, if there is none.
func (l *Limiter) create(ctx context.Context, entity string, cost []int64) error {
	made := l.key(entity)
	made["rf"] = number(l.now().UnixMilli())
	for i, limit := range l.limits {
		if cost[i] > limit.Burst {
			return ErrDenied
		}
		p := "b_" + limit.Name + "_"
		made[p+"tk"], made[p+"tc"] = number(limit.Burst-cost[i]), number(cost[i])
		made[p+"bx"], made[p+"ra"], made[p+"rp"] = number(limit.Burst), number(limit.Refill), number(limit.Period)
	}
	_, err := l.api.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &l.table, Item: made, ConditionExpression: aws.String("attribute_not_exists(PK)"),
	})
	return err
}

// take takes cost from a bucket as it was read. A race that was lost is an error for refused.
func (l *Limiter) take(ctx context.Context, entity string, read item, cost []int64) error {
	rf, err := integer(read, "rf")
	if err != nil {
		return err
	}
	now := l.now().UnixMilli()
	values := item{":rf": number(max(now, rf)), ":expected": number(rf)}
	for i, limit := range l.limits {
		tk, err := integer(read, "b_"+limit.Name+"_tk")
		if err != nil {
			return err
		}
		refill := max(0, min((now-rf)*limit.Refill/limit.Period, limit.Burst-tk))
		if tk+refill < cost[i] {
			return ErrDenied
		}
		values[":"+limit.Name+"_net"], values[":"+limit.Name+"_use"] = number(refill-cost[i]), number(cost[i])
	}
	err = l.update(ctx, entity, l.normal, "rf = :expected", values)
	if !refused(err) || l.lost == ReadAgain {
		return err
	}
	delete(values, ":rf")
	delete(values, ":expected")
	for i, limit := range l.limits {
		values[":"+limit.Name+"_net"] = number(-cost[i])
	}
	if err = l.update(ctx, entity, l.retry, l.enough, values); refused(err) {
		return ErrDenied
	}
	return err
}

func (l *Limiter) update(ctx context.Context, entity, update, condition string, values item) error {
	_, err := l.api.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &l.table, Key: l.key(entity), UpdateExpression: &update, ConditionExpression: &condition,
		ExpressionAttributeValues: values,
	})
	return err
}

// refused reports that a write's condition failed.
func refused(err error) bool {
	_, ok := errors.AsType[*types.ConditionalCheckFailedException](err)
	return ok
}

func text(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }

func number(v int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(v, 10)}
}

// integer reads a number of a bucket.
func integer(read item, attr string) (int64, error) {
	v, ok := read[attr].(*types.AttributeValueMemberN)
	if !ok {
		return 0, fmt.Errorf("seeds: attribute %s is no number", attr)
	}
	return strconv.ParseInt(v.Value, 10, 64)
}
