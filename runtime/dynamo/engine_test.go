package dynamo

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/internal/item"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/store"
)

func TestMain(m *testing.M) { dynamotest.Main(m) }

// t0 is when the tests' clock starts, in milliseconds. It is a whole minute, so a refill has no remainder of
// before. It is years ahead, so no ttl has passed for the engine. A row's and a handClock's instants count
// from it.
const t0 = 1_800_000_000_000

// handClock is time that a test sets. A pause takes none of it.
type handClock struct{ since atomic.Int64 }

func (c *handClock) Now() time.Time { return time.UnixMilli(t0 + c.since.Load()) }
func (c *handClock) set(ms int64)   { c.since.Store(ms) }
func (c *handClock) After(time.Duration) <-chan time.Time {
	over := make(chan time.Time)
	close(over)
	return over
}

// engine is a table of the real engine, and what its tests' processes share.
type engine struct {
	client *dynamodb.Client
	table  string
	clock  handClock
	ttl    time.Duration // of overrides
}

func newEngine(t testing.TB) *engine {
	t.Helper()
	client := dynamotest.Client(t)
	return &engine{client: client, table: dynamotest.Table(t, client, operator.Table), ttl: 24 * time.Hour}
}

// options are those of every limiter here. Budgets are generous: the engine is slow under load, and no test
// is about time that passes. Errors are told as they are: no policy covers them.
func (e *engine) options(seen *events) []runtime.Option {
	return []runtime.Option{
		runtime.WithClock(
			&e.clock,
		), runtime.WithObserver(seen.observer()), runtime.WithLogger(slog.New(slog.DiscardHandler)),
		runtime.SettleTimeout(20 * time.Second), runtime.WithCacheTTL(e.ttl),
		runtime.CallDefaults(runtime.Budget(time.Minute), runtime.OnUnavailable(store.Deny)),
	}
}

// demo is a process with the demonstration's limits, where users are charged alone: engine_cascade_test.go
// has the chains.
type demo struct {
	*limits.Limiter
	*events
}

func (e *engine) demo(t testing.TB, api wire.API, opts ...storeChange) demo {
	t.Helper()
	seen := &events{}
	gpt4, embeddings := generated(t)
	b := runtime.NewBuilder(newStore(api, e.table, opts...), e.options(seen)...)
	l := &limits.Limiter{
		GPT4: runtime.Bind[limits.GPT4Entity](b, alone(gpt4),
			func(c limits.GPT4Cost, dst []int64) []int64 { return append(dst, c.RPM, c.TPM) },
			func(v []int64) limits.GPT4Cost { return limits.GPT4Cost{RPM: v[0], TPM: v[1]} }),
		Embeddings: runtime.Bind[limits.EmbeddingsEntity](b, embeddings,
			func(c limits.EmbeddingsCost, dst []int64) []int64 { return append(dst, c.RPS) },
			func(v []int64) limits.EmbeddingsCost { return limits.EmbeddingsCost{RPS: v[0]} }),
	}
	var err error
	if l.Limiter, err = b.Limiter(); err != nil {
		t.Fatal(err)
	}
	return demo{l, seen}
}

// alone returns r without its cascade.
func alone(r codec.Resource) *variant {
	spec := *r.Spec()
	spec.Cascade = store.CascadeNone
	return &variant{Resource: r, spec: &spec}
}

// user is an entity of the one kind that withNumbers gives a resource, and tokens a cost in schema order.
type (
	user   string
	tokens []int64
)

func (u user) Chain(dst []store.Link) []store.Link {
	return append(dst, store.Link{ID: string(u)})
}

// desk is a process with one resource of any numbers, through the same front door.
type desk struct {
	*runtime.Limiter
	*runtime.Resource[user, tokens]
	*events
}

func (e *engine) desk(t testing.TB, api wire.API, def store.Definition, opts ...storeChange) *desk {
	t.Helper()
	d := &desk{events: &events{}}
	b := runtime.NewBuilder(newStore(api, e.table, opts...), e.options(d.events)...)
	d.Resource = runtime.Bind[user](b, def,
		func(c tokens, dst []int64) []int64 { return append(dst, c...) }, func(v []int64) tokens { return v })
	var err error
	if d.Limiter, err = b.Limiter(); err != nil {
		t.Fatal(err)
	}
	return d
}

// events is what an observer was told.
type events struct {
	mu     sync.Mutex
	store  []string
	failed []error
	other  []string // acquired, denied, settled, released
	all    []store.StoreEvent
}

func (e *events) observer() *store.Observer {
	note := func(what string) func(_ context.Context, _ store.Event) {
		return func(_ context.Context, _ store.Event) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.other = append(e.other, what)
		}
	}
	return &store.Observer{
		Acquired: note("acquired"), Denied: note("denied"), Settled: note("settled"), Released: note("released"),
		Failed: func(_ context.Context, v store.Event) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.failed = append(e.failed, v.Err)
		},
		Store: func(_ context.Context, v store.StoreEvent) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.all = append(e.all, v)
			if v.Path == "system" { // in the background
				return
			}
			what := v.Path + " " + v.Outcome
			if v.Generic {
				what = "generic " + what
			}
			e.store = append(e.store, what)
		},
	}
}

// count returns how many calls to the store were what ("reshape applied").
func (e *events) count(what string) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, event := range e.store {
		if strings.HasSuffix(event, what) {
			n++
		}
	}
	return n
}

// calls holds the calls to the store since the last time to want.
func (e *events) calls(t testing.TB, want ...string) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if !slices.Equal(e.store, want) {
		t.Errorf("calls to the store: %q\nwant %q", e.store, want)
	}
	e.store = nil
}

// row is a bucket as it is to be stored, by attributevalue: the oracle of marshalers and expressions.
type row struct {
	Entity, Resource string // user-1 and gpt-4 unless given
	RF               int64  // ms since t0
	CV               int64  // revision
	TTL              int64  // s since t0
	Op               string
	Limits           map[string]bucket.Balance
}

func (r row) item(t testing.TB) codec.Item {
	t.Helper()
	if r.Entity == "" {
		r.Entity = "user-1"
	}
	if r.Resource == "" {
		r.Resource = "gpt-4"
	}
	plain := map[string]any{
		"PK": "ENTITY#" + r.Entity, "SK": "#BUCKET#" + r.Resource,
		"GSI2PK": "RESOURCE#" + r.Resource, "GSI2SK": "BUCKET#" + r.Entity,
		"entity_id": r.Entity, "resource": r.Resource,
		"rf": t0 + r.RF, "cv": r.CV * plan.RevisionUnit, "ttl": t0/1000 + r.TTL, "op": r.Op,
	}
	for name, b := range r.Limits {
		p := "b_" + name + "_"
		plain[p+"tk"], plain[p+"tc"] = b.Tokens, b.Consumed
		plain[p+"cp"], plain[p+"bx"], plain[p+"ra"], plain[p+"rp"] = b.Capacity, b.Burst, b.Refill, b.Period
	}
	item, err := attributevalue.MarshalMap(plain)
	if err != nil {
		t.Fatal(err)
	}
	return item
}

// The demonstration's limits of a user.
var (
	userRPM = bucket.Per(100, time.Minute)
	userTPM = bucket.Per(10_000, time.Minute).WithBurst(15_000)
)

// holds returns the balances of gpt-4 for a user: tokens and consumed of rpm, then of tpm.
func holds(rpm, rpmUsed, tpm, tpmUsed int64) map[string]bucket.Balance {
	return map[string]bucket.Balance{
		"rpm": {Limit: userRPM, Tokens: rpm, Consumed: rpmUsed},
		"tpm": {Limit: userTPM, Tokens: tpm, Consumed: tpmUsed},
	}
}

// with returns balances and one more.
func with(balances map[string]bucket.Balance, name string, b bucket.Balance) map[string]bucket.Balance {
	balances = maps.Clone(balances)
	balances[name] = b
	return balances
}

func (e *engine) put(t testing.TB, item codec.Item) {
	t.Helper()
	if _, err := e.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &e.table,
		Item: item}); err != nil {
		t.Fatal(err)
	}
}

func (e *engine) get(t testing.TB, key codec.Item) codec.Item {
	t.Helper()
	out, err := e.client.GetItem(
		t.Context(),
		&dynamodb.GetItemInput{TableName: &e.table, Key: key, ConsistentRead: aws.Bool(true)},
	)
	if err != nil {
		t.Fatal(err)
	}
	return out.Item
}

// balance reads one limit of user-1's bucket raw.
func (e *engine) balance(t testing.TB, resource, limit string) (tk, tc int64) {
	t.Helper()
	item := e.get(t, item.BucketKey("user-1", resource))
	if item == nil {
		t.Fatalf("no bucket of user-1 on %s", resource)
	}
	return number(item["b_"+limit+"_tk"]), number(item["b_"+limit+"_tc"])
}

// stored holds user-1's bucket to want, attribute by attribute. A want without op takes any that a write
// would have.
func (e *engine) stored(t testing.TB, want row) {
	t.Helper()
	wanted := want.item(t)
	got := e.get(t, codec.Item{"PK": wanted["PK"], "SK": wanted["SK"]})
	if got == nil {
		t.Error("the bucket is not there")
		return
	}
	if op, ok := got["op"].(*types.AttributeValueMemberS); want.Op == "" && ok && len(op.Value) == 12 {
		wanted["op"] = op
	}
	if diff := cmp.Diff(plain(wanted), plain(got)); diff != "" {
		t.Errorf("the bucket, - wanted, + stored:\n%s", diff)
	}
}

// plain shows an item as text, types included.
func plain(item codec.Item) map[string]string {
	text := make(map[string]string, len(item))
	for name, v := range item {
		switch v := v.(type) {
		case *types.AttributeValueMemberS:
			text[name] = "S " + v.Value
		case *types.AttributeValueMemberN:
			text[name] = "N " + v.Value
		default:
			text[name] = "another type"
		}
	}
	return text
}
