package dynamo

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// faults are the network's and the table's, as shares of all writes, or of all reads.
type faults struct {
	lostRequest, lostReply, late, throttled float64
	unread                                  float64
}

// simTable is one table on virtual time: a request travels, is applied at one instant, and its reply travels back. It
// keeps a log of what was applied, which the oracle replays.
type simTable struct {
	API // the methods that the simulation does not need

	decode   func(*bucket.Image, codec.Item) error
	minDelay time.Duration // each way
	maxDelay time.Duration
	ttlLag   time.Duration // at most, between an item's ttl and its deletion
	faults   faults

	mu      sync.Mutex
	rng     *rand.Rand
	items   map[string]codec.Item
	parse   evaluators
	quiet   bool // keeps no log
	log     []commit
	writes  int // all, refused ones too
	reads   int
	refused int
}

// commit is one applied write.
type commit struct {
	key           string
	before, after *bucket.Image // nil: no item
	tag           tag
	values        codec.Item
	at            time.Time
}

// tag is what the oracle must know of the call behind a write: the store passes contexts on.
type tag struct {
	called int64
	settle bool
}

type tagKey struct{}

func tagged(ctx context.Context, t tag) context.Context { return context.WithValue(ctx, tagKey{}, t) }

func newSimTable(seed uint64, decode func(*bucket.Image, codec.Item) error) *simTable {
	return &simTable{
		decode: decode, minDelay: time.Millisecond, maxDelay: 4 * time.Millisecond,
		rng: rand.New(rand.NewPCG(seed, 1)), items: map[string]codec.Item{}, parse: evaluators{},
	}
}

func (t *simTable) random() float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rng.Float64()
}

func (t *simTable) delay() time.Duration {
	return (t.minDelay + time.Duration(t.random()*float64(t.maxDelay-t.minDelay))).Truncate(turns)
}

// errThrottled is a call that the table did not serve.
var errThrottled = &types.ProvisionedThroughputExceededException{}

var errReset = &smithyhttp.RequestSendError{Err: errors.New("connection reset")}

// travel runs apply after a request's way and returns after the reply's. What ctx's end cuts off is applied all the same.
func travel[T any](ctx context.Context, t *simTable, write bool, apply func() (T, error)) (T, error) {
	type reply struct {
		out T
		err error
	}
	if t.maxDelay == 0 {
		return apply()
	}
	there, back := t.delay(), t.delay()
	done := make(chan reply, 1)
	var none T
	if write {
		dice := t.random()
		f := t.faults
		switch {
		case dice < f.lostRequest:
			<-time.After(there)
			return none, errReset
		case dice < f.lostRequest+f.lostReply:
			<-time.After(there)
			_, _ = apply()
			<-time.After(back)
			return none, errReset
		case dice < f.lostRequest+f.lostReply+f.late:
			go func() {
				<-time.After(there + time.Duration(t.random()*float64(300*time.Millisecond)).Truncate(turns))
				_, _ = apply()
			}()
			<-time.After(there)
			return none, errReset
		case dice < f.lostRequest+f.lostReply+f.late+f.throttled:
			<-time.After(there + back)
			return none, errThrottled
		}
	} else if t.faults.unread > 0 && t.random() < t.faults.unread {
		<-time.After(there + back)
		return none, errThrottled
	}
	go func() {
		<-time.After(there)
		out, err := apply()
		<-time.After(back)
		done <- reply{out, err}
	}()
	select {
	case r := <-done:
		return r.out, r.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

func keyOf(item codec.Item) string {
	return item["PK"].(*types.AttributeValueMemberS).Value + "|" + item["SK"].(*types.AttributeValueMemberS).Value
}

// load returns an item, or nothing once its ttl has had it deleted. The caller holds t.mu.
func (t *simTable) load(key string) codec.Item {
	item := t.items[key]
	if item == nil {
		return nil
	}
	if ttl, ok := item["ttl"]; ok {
		expired := time.Unix(number(ttl), 0).Add(time.Duration(t.rng.Float64() * float64(t.ttlLag)))
		if !time.Now().Before(expired) {
			delete(t.items, key)
			return nil
		}
	}
	return item
}

func (t *simTable) image(item codec.Item) *bucket.Image {
	if item == nil {
		return nil
	}
	img := &bucket.Image{}
	if err := t.decode(img, item); err != nil {
		panic(err)
	}
	return img
}

// apply runs one conditional write.
func (t *simTable) apply(ctx context.Context, key string, cond, text *string, names map[string]string, values codec.Item, put codec.Item) (codec.Item, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.writes++
	before := t.load(key)
	if !t.parse.of(*cond, names, values, before).or() {
		t.refused++
		return nil, &types.ConditionalCheckFailedException{Item: maps.Clone(before)}
	}
	after := put
	if text != nil {
		after = t.parse.of(*text, names, values, before).update()
	}
	t.items[key] = after
	if t.quiet {
		return maps.Clone(after), nil
	}
	where, _ := ctx.Value(tagKey{}).(tag)
	t.log = append(t.log, commit{key: key, before: t.image(before), after: t.image(after), tag: where, values: values, at: time.Now()})
	return maps.Clone(after), nil
}

func (t *simTable) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if keyOf(in.Key) == keyOf(versionKey()) {
		return &dynamodb.UpdateItemOutput{}, nil
	}
	values := maps.Clone(in.ExpressionAttributeValues)
	return travel(ctx, t, true, func() (*dynamodb.UpdateItemOutput, error) {
		item, err := t.apply(ctx, keyOf(in.Key), in.ConditionExpression, in.UpdateExpression, in.ExpressionAttributeNames, values, nil)
		return &dynamodb.UpdateItemOutput{Attributes: item}, err
	})
}

func (t *simTable) PutItem(ctx context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return travel(ctx, t, true, func() (*dynamodb.PutItemOutput, error) {
		_, err := t.apply(ctx, keyOf(in.Item), in.ConditionExpression, nil, nil, nil, maps.Clone(in.Item))
		return &dynamodb.PutItemOutput{}, err
	})
}

func (t *simTable) GetItem(ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return travel(ctx, t, false, func() (*dynamodb.GetItemOutput, error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.reads++
		return &dynamodb.GetItemOutput{Item: maps.Clone(t.load(keyOf(in.Key)))}, nil
	})
}

// BatchGetItem reads buckets; nothing overrides their limits.
func (t *simTable) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	return travel(ctx, t, false, func() (*dynamodb.BatchGetItemOutput, error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.reads++
		out := &dynamodb.BatchGetItemOutput{Responses: map[string][]codec.Item{}}
		for table, wanted := range in.RequestItems {
			for _, key := range wanted.Keys {
				if item := t.load(keyOf(key)); len(item) > 0 {
					out.Responses[table] = append(out.Responses[table], maps.Clone(item))
				}
			}
		}
		return out, nil
	})
}

// insistent sends give-backs again when their outcome is unknown, as a client's retries would.
type insistent struct{ API }

func (c *insistent) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	out, err := c.API.UpdateItem(ctx, in, opts...)
	for unanswered(err) && ctx.Err() == nil && isAdjust(in) {
		out, err = c.API.UpdateItem(ctx, in, opts...)
	}
	return out, err
}
