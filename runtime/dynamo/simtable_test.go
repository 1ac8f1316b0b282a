package dynamo

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/item"

	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/scheduler"
	"github.com/sluice-go/sluice/runtime/store"
)

// faults are the network's and the table's, as shares of all writes, or of all reads.
type faults struct {
	lostRequest, lostReply, late, throttled float64
	unread                                  float64 // of a batch, as often its first key alone
	conflict                                float64 // with a transaction that nobody else sees
}

// simTable is one table on virtual time: a request travels, is applied at one instant, and its reply travels
// back. It keeps a log of what was applied, which the oracle replays.
type simTable struct {
	wire.API // the methods that the simulation does not need

	decode   func(*bucket.Image, codec.Item) error
	minDelay time.Duration // each way
	maxDelay time.Duration
	work     time.Duration // for how long a transaction keeps others from its items
	ttlLag   time.Duration // at most, between an item's ttl and its deletion
	faults   faults
	seed     uint64

	mu      sync.Mutex
	items   map[string]codec.Item
	busy    map[string]bool            // at work in a transaction
	tokens  map[string]*simTransaction // at work or applied
	firsts  map[string]tag             // by token
	parse   evaluators
	quiet   bool // keeps no log
	log     []commit
	cut     map[string]bool // ops of writes whose client did not wait for the reply
	changes []change
	writes  int // of buckets, refused ones too; one for each bucket of a transaction
	reads   int
	refused int
}

// simWrite is one conditional write: an update, or a put.
type simWrite struct {
	key          codec.Item
	cond, update *string
	names        map[string]string
	values, put  codec.Item
}

// same reports that b would do just what w does.
func (w simWrite) same(b simWrite) bool {
	equal := func(x, y types.AttributeValue) bool { c, ok := compare(x, y); return ok && c == 0 }
	return keyOf(w.key) == keyOf(b.key) && *w.cond == *b.cond && (w.update == nil) == (b.update == nil) &&
		(w.update == nil || *w.update == *b.update) && maps.Equal(w.names, b.names) &&
		maps.EqualFunc(w.values, b.values, equal) && maps.EqualFunc(w.put, b.put, equal)
}

// kept returns w with nothing that its client may use again, which it does as soon as it has, or no longer
// awaits, a reply.
func (w simWrite) kept() simWrite {
	text := func(s *string) *string {
		if s == nil {
			return nil
		}
		return aws.String(*s)
	}
	item := func(of codec.Item) codec.Item {
		if of == nil {
			return nil
		}
		own := make(codec.Item, len(of))
		for name, v := range of {
			switch v := v.(type) {
			case *types.AttributeValueMemberN:
				own[name] = &types.AttributeValueMemberN{Value: v.Value}
			case *types.AttributeValueMemberS:
				own[name] = &types.AttributeValueMemberS{Value: v.Value}
			default:
				panic(fmt.Sprintf("a value of type %T", v))
			}
		}
		return own
	}
	return simWrite{item(w.key), text(w.cond), text(w.update), maps.Clone(w.names), item(w.values), item(w.put)}
}

// commit is one applied write of a bucket.
type commit struct {
	entity        string
	before, after *bucket.Image // nil: no item
	tag           tag
	values        codec.Item
	adjust        bool // by its text
	generic       bool // text and all
	at            time.Time
}

// change is one applied write of a config item.
type change struct {
	at   string // an entity, or a kind
	item codec.Item
	when time.Time
}

// tag is what the oracle must know of the calls behind a write: the store passes contexts on.
type tag struct {
	turn   time.Duration // of the caller that waits for it
	began  time.Time     // by the table's clock; the last of them
	settle bool          // nobody acquires
	call   *acquired
	lease  []*acquired // of a settle, oldest first
	reset  bool        // an operator fills windows

	// Of a write for all who are included.
	included      int // how many; 0 for one that is nobody's, such as an undo
	by            *process
	sent          int64 // when it was planned and sent, by its process's clock
	first, called int64 // when the first and the last of them were called, by their process's clock
	targets       int   // buckets that acquires take from, all or none
	returns       bool  // acquires give back what they have charged, and that is all
	gives         bool  // some of them give back
	wants         map[string]demand
	calls         []*acquired
	undone        []*acquired // whose charges are given back
	parts         []demandOf
}

// demandOf is what one of those included wants of one bucket.
type demandOf struct {
	entity string
	cost   []int64
	settle bool
	calls  []*acquired // that take it, or took what is given back; oldest first
}

// demand is what those included want of one entity's bucket, by limit.
type demand struct {
	take   []int64 // acquires, together
	most   []int64 // the largest of them
	change []int64 // settles, together
}

// onWrite returns ctx for a write that serves all. The turn is p's own where none of them waits.
func (p *process) onWrite(ctx context.Context, all []*scheduler.Request) context.Context {
	where, _ := ctx.Value(tagKey{}).(tag)
	t := tag{
		turn: p.clock.turn, by: p, sent: p.clock.Now().UnixMilli(), settle: true, included: len(all),
		first: math.MaxInt64, returns: true, wants: map[string]demand{},
	}
	for _, request := range all {
		r := request.Served()
		own, _ := r.Ctx.Value(tagKey{}).(tag)
		if t.first, t.called = min(t.first, r.Called), max(t.called, r.Called); own.began.After(t.began) {
			t.began = own.began
		}
		t.settle, t.returns = t.settle && r.Settle, t.returns && r.Settle && !own.settle
		t.gives = t.gives || r.GivesBack
		if !r.Lazy && own.turn == where.turn {
			t.turn = where.turn
		}
		switch {
		case !r.Settle:
			t.calls = append(t.calls, own.call)
		case own.call != nil:
			t.undone = append(t.undone, own.call)
		}
		request.Costs(func(of *store.Spec, entity string, cost []int64) {
			d, ok := t.wants[entity]
			cost = p.spread(of, cost)
			calls := own.lease
			if own.call != nil {
				calls = []*acquired{own.call}
			}
			t.parts = append(t.parts, demandOf{entity, slices.Clone(cost), r.Settle, calls})
			if n := len(cost); !ok {
				d = demand{make([]int64, n), make([]int64, n), make([]int64, n)}
				t.wants[entity] = d
			}
			for j, c := range cost {
				if r.Settle {
					d.change[j] += c
				} else {
					d.take[j], d.most[j] = d.take[j]+c, max(d.most[j], c)
				}
			}
		})
	}
	for _, d := range t.wants {
		if slices.ContainsFunc(d.take, positive) {
			t.targets++
		}
	}
	return tagged(ctx, t)
}

// stamped returns ctx with the instant at which a write that is nobody's is sent.
func stamped(ctx context.Context) context.Context {
	where, ok := ctx.Value(tagKey{}).(tag)
	if !ok || where.by == nil || where.included > 0 {
		return ctx
	}
	where.sent = where.by.clock.Now().UnixMilli()
	return tagged(ctx, where)
}

type tagKey struct{}

func tagged(ctx context.Context, t tag) context.Context { return context.WithValue(ctx, tagKey{}, t) }

func newSimTable(seed uint64, decode func(*bucket.Image, codec.Item) error) *simTable {
	return &simTable{
		decode: decode, minDelay: time.Millisecond, maxDelay: 4 * time.Millisecond, work: 2000 * turns, seed: seed,
		items: map[string]codec.Item{}, busy: map[string]bool{}, tokens: map[string]*simTransaction{},
		parse:  evaluators{},
		firsts: map[string]tag{}, cut: map[string]bool{},
	}
}

// dice returns what decides a request's fate. It is of the request alone: a call may have several under way,
// and which one the scheduler has roll first must not matter.
func (t *simTable) dice(key string) *rand.Rand {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, key, time.Now().UnixNano())
	return rand.New(rand.NewPCG(t.seed, h.Sum64()))
}

// errThrottled is a call that the table did not serve.
var errThrottled = &types.ProvisionedThroughputExceededException{}

var errReset = &smithyhttp.RequestSendError{Err: errors.New("connection reset")}

// travel runs apply after a request's way and returns after the reply's. A write that ctx's end cuts off is
// applied all the same.
func travel[T any](
	ctx context.Context,
	t *simTable,
	write bool,
	key string,
	apply func(*rand.Rand) (T, error),
) (T, error) {
	type reply struct {
		out T
		err error
	}
	if err := ctx.Err(); err != nil { // a client does not send it then
		return *new(T), &smithy.OperationError{ServiceID: dynamodb.ServiceID, Err: err}
	}
	dice := t.dice(key)
	if t.maxDelay == 0 {
		return apply(dice)
	}
	delay := func() time.Duration {
		return (t.minDelay + time.Duration(dice.Float64()*float64(t.maxDelay-t.minDelay))).Truncate(turns)
	}
	there, back := delay(), delay()
	if where, ok := ctx.Value(tagKey{}).(tag); ok {
		there = until(there, where.turn)
	}
	done := make(chan reply, 1)
	var none T
	fate, f := dice.Float64(), t.faults
	switch {
	case !write && fate < f.unread:
		<-time.After(there + back)
		return none, errThrottled
	case !write:
	case fate < f.lostRequest:
		<-time.After(there)
		return none, errReset
	case fate < f.lostRequest+f.lostReply:
		<-time.After(there)
		_, _ = apply(dice)
		<-time.After(back)
		return none, errReset
	case fate < f.lostRequest+f.lostReply+f.late:
		go func() {
			<-time.After(there + time.Duration(dice.Float64()*float64(300*time.Millisecond)).Truncate(turns))
			_, _ = apply(dice)
		}()
		<-time.After(there)
		return none, errReset
	case fate < f.lostRequest+f.lostReply+f.late+f.throttled:
		<-time.After(there + back)
		return none, errThrottled
	}
	go func() {
		<-time.After(there)
		out, err := apply(dice)
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
	return item["PK"].(*types.AttributeValueMemberS).Value + "|" +
		item["SK"].(*types.AttributeValueMemberS).Value
}

// load returns an item, or nothing once its ttl has had it deleted. The caller holds t.mu.
func (t *simTable) load(key string, dice *rand.Rand) codec.Item {
	item := t.items[key]
	if item == nil {
		return nil
	}
	if ttl, ok := item["ttl"]; ok {
		expired := time.Unix(number(ttl), 0).Add(time.Duration(dice.Float64() * float64(t.ttlLag)))
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

// entityOf returns whose the item is, or which kind's.
func entityOf(key string) string {
	holder, _, _ := strings.Cut(key, "|")
	_, name, _ := strings.Cut(holder, "#")
	return name
}

func isBucket(key string) bool { return strings.Contains(key, "|#BUCKET#") }

// holds judges w's condition on what is there. The caller holds t.mu.
func (t *simTable) holds(w simWrite, before codec.Item) bool {
	if isBucket(keyOf(w.key)) {
		t.writes++
	}
	holds := t.parse.of(*w.cond, w.names, w.values, before).or()
	if !holds {
		t.refused++
	}
	return holds
}

// commit applies w, whose condition holds, and returns what is there now. The caller holds t.mu.
func (t *simTable) commit(ctx context.Context, w simWrite, before codec.Item) codec.Item {
	key, after := keyOf(w.key), w.put
	if w.update != nil {
		from := before
		if from == nil {
			from = w.key
		}
		after = t.parse.of(*w.update, w.names, w.values, from).update()
	}
	t.items[key] = after
	switch {
	case strings.Contains(key, "|"+item.AuditPrefix): // nothing reads it but the command
	case !isBucket(key):
		t.changes = append(t.changes, change{entityOf(key), after, time.Now()})
	case !t.quiet:
		where, _ := ctx.Value(tagKey{}).(tag)
		t.log = append(t.log, commit{
			entity: entityOf(key), before: t.image(before), after: t.image(after), tag: where, values: w.named(),
			adjust: w.update != nil && adjusts(*w.cond), generic: w.generic(), at: time.Now(),
		})
	}
	return maps.Clone(after)
}

// apply runs one conditional write, unless a transaction is at work on its item.
func (t *simTable) apply(ctx context.Context, w simWrite, dice *rand.Rand) (codec.Item, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if key := keyOf(w.key); isBucket(key) && (t.busy[key] || dice.Float64() < t.faults.conflict) {
		return nil, &types.TransactionConflictException{}
	}
	before := t.load(keyOf(w.key), dice)
	if !t.holds(w, before) {
		return nil, &types.ConditionalCheckFailedException{Item: maps.Clone(before)}
	}
	return t.commit(ctx, w, before), nil
}

// simTransaction is one that is at work, or was applied.
type simTransaction struct {
	writes  []simWrite
	applied bool
}

// transact is at work on its items for a while, and then applies all writes at one instant, or none. A
// transaction sent again under the token of an applied one has no effect.
func (t *simTable) transact(ctx context.Context, token string, writes []simWrite, dice *rand.Rand) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.tokens[token]; known != nil {
		switch {
		case !slices.EqualFunc(known.writes, writes, simWrite.same):
			return &types.IdempotentParameterMismatchException{}
		case !known.applied:
			return &types.TransactionInProgressException{}
		}
		return nil
	}
	reasons := make([]types.CancellationReason, len(writes))
	cancelled := false
	cancel := func(i int, code string, item codec.Item) {
		cancelled = true
		reasons[i] = types.CancellationReason{Code: &code, Item: maps.Clone(item)}
	}
	conflicting := -1
	if dice.Float64() < t.faults.conflict {
		conflicting = dice.IntN(len(writes))
	}
	keys := map[string]bool{}
	for i, w := range writes {
		key := keyOf(w.key)
		if keys[key] {
			panic("ValidationException: two operations on one item")
		}
		keys[key] = true
		reasons[i].Code = aws.String("None")
		if t.busy[key] || i == conflicting {
			cancel(i, "TransactionConflict", nil)
		}
	}
	if cancelled {
		return &types.TransactionCanceledException{CancellationReasons: reasons}
	}
	t.tokens[token] = &simTransaction{writes: writes}
	maps.Copy(t.busy, keys)
	t.mu.Unlock()
	<-time.After(t.work)
	t.mu.Lock()
	maps.DeleteFunc(t.busy, func(key string, _ bool) bool { return keys[key] })
	before := make([]codec.Item, len(writes))
	for i, w := range writes {
		before[i] = t.load(keyOf(w.key), dice)
		if !t.holds(w, before[i]) {
			cancel(i, "ConditionalCheckFailed", before[i])
		}
	}
	if cancelled {
		delete(t.tokens, token)
		return &types.TransactionCanceledException{CancellationReasons: reasons}
	}
	for i, w := range writes {
		t.commit(ctx, w, before[i])
	}
	t.tokens[token].applied = true
	return nil
}

func (t *simTable) TransactWriteItems(
	ctx context.Context,
	in *dynamodb.TransactWriteItemsInput,
	_ ...func(*dynamodb.Options),
) (*dynamodb.TransactWriteItemsOutput, error) {
	writes, keys := make([]simWrite, len(in.TransactItems)), ""
	for i, item := range in.TransactItems {
		if put := item.Put; put != nil {
			writes[i] = simWrite{
				key:    put.Item,
				cond:   put.ConditionExpression,
				values: put.ExpressionAttributeValues,
				put:    put.Item,
			}
		} else {
			u := item.Update
			writes[i] = simWrite{u.Key, u.ConditionExpression, u.UpdateExpression, u.ExpressionAttributeNames,
				u.ExpressionAttributeValues, nil}
		}
		writes[i] = writes[i].kept()
		keys += keyOf(writes[i].key)
	}
	token := *in.ClientRequestToken
	at := tagged(ctx, t.first(ctx, token))
	out, err := travel(ctx, t, true, keys, func(dice *rand.Rand) (*dynamodb.TransactWriteItemsOutput, error) {
		return &dynamodb.TransactWriteItemsOutput{}, t.transact(at, token, writes, dice)
	})
	t.left(err, writes[0])
	if errors.Is(err, errThrottled) { // which a transaction says of one item
		reasons := slices.Repeat([]types.CancellationReason{{Code: aws.String("None")}}, len(writes))
		reasons[0].Code = aws.String("ThrottlingError")
		err = &types.TransactionCanceledException{CancellationReasons: reasons}
	}
	return out, err
}

func (t *simTable) UpdateItem(
	ctx context.Context,
	in *dynamodb.UpdateItemInput,
	_ ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	if keyOf(in.Key) == keyOf(item.VersionKey()) {
		return &dynamodb.UpdateItemOutput{}, nil
	}
	w := simWrite{
		in.Key,
		in.ConditionExpression,
		in.UpdateExpression,
		in.ExpressionAttributeNames,
		in.ExpressionAttributeValues,
		nil,
	}.kept()
	at := stamped(ctx)
	out, err := travel(ctx, t, true, keyOf(w.key), func(dice *rand.Rand) (*dynamodb.UpdateItemOutput, error) {
		item, err := t.apply(at, w, dice)
		return &dynamodb.UpdateItemOutput{Attributes: item}, err
	})
	t.left(err, w)
	return out, err
}

func (t *simTable) PutItem(
	ctx context.Context,
	in *dynamodb.PutItemInput,
	_ ...func(*dynamodb.Options),
) (*dynamodb.PutItemOutput, error) {
	w := simWrite{
		key:    in.Item,
		cond:   in.ConditionExpression,
		values: in.ExpressionAttributeValues,
		put:    in.Item,
	}.kept()
	out, err := travel(ctx, t, true, keyOf(w.key), func(dice *rand.Rand) (*dynamodb.PutItemOutput, error) {
		_, err := t.apply(ctx, w, dice)
		return &dynamodb.PutItemOutput{}, err
	})
	t.left(err, w)
	return out, err
}

// first returns the tag of a transaction as it was first sent. It goes again as it is, even if some whom it
// was for have left.
func (t *simTable) first(ctx context.Context, token string) tag {
	t.mu.Lock()
	defer t.mu.Unlock()
	where, ok := t.firsts[token]
	if !ok {
		where, _ = ctx.Value(tagKey{}).(tag)
		t.firsts[token] = where
	}
	return where
}

// left notes that a write's client did not wait for its reply, if err says so.
func (t *simTable) left(err error, w simWrite) {
	op, _ := w.named()[":op"].(*types.AttributeValueMemberS)
	if w.put != nil {
		op, _ = w.put["op"].(*types.AttributeValueMemberS)
	}
	if op == nil || !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) ||
		wire.IsUnsent(err) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cut[op.Value] = true
}

func (t *simTable) GetItem(
	ctx context.Context,
	in *dynamodb.GetItemInput,
	_ ...func(*dynamodb.Options),
) (*dynamodb.GetItemOutput, error) {
	return travel(ctx, t, false, keyOf(in.Key), func(dice *rand.Rand) (*dynamodb.GetItemOutput, error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.reads++
		return &dynamodb.GetItemOutput{Item: maps.Clone(t.load(keyOf(in.Key), dice))}, nil
	})
}

// BatchGetItem reads buckets, and the overrides of their limits.
func (t *simTable) BatchGetItem(
	ctx context.Context,
	in *dynamodb.BatchGetItemInput,
	_ ...func(*dynamodb.Options),
) (*dynamodb.BatchGetItemOutput, error) {
	keys := in.RequestItems["sim"].Keys
	return travel(ctx, t, false, keyOf(keys[0]), func(dice *rand.Rand) (*dynamodb.BatchGetItemOutput, error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.reads++
		out := &dynamodb.BatchGetItemOutput{Responses: map[string][]codec.Item{}}
		read := keys
		if len(keys) > 1 && dice.Float64() < t.faults.unread {
			read = keys[1:]
			out.UnprocessedKeys = map[string]types.KeysAndAttributes{"sim": {Keys: keys[:1]}}
		}
		for _, key := range read {
			if item := t.load(keyOf(key), dice); len(item) > 0 {
				out.Responses["sim"] = append(out.Responses["sim"], maps.Clone(item))
			}
		}
		return out, nil
	})
}
