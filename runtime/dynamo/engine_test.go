package dynamo

import (
	"maps"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/internal/test/storetest"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/store"
)

func TestMain(m *testing.M) { dynamotest.Main(m) }

// Helpers that tests of packages around this one use too.
type (
	tokens  = storetest.Tokens
	row     = storetest.Row
	user    = storetest.User
	variant = storetest.Variant
)

const t0 = storetest.T0

var (
	userRPM, userTPM = storetest.UserRPM, storetest.UserTPM

	generated   = storetest.Generated
	withNumbers = storetest.WithNumbers
	family      = storetest.Family
	minute      = storetest.Minute
	holds       = storetest.Holds
	number      = storetest.Number
	plain       = storetest.Plain
	records     = storetest.Records
	together    = storetest.Together
)

// handClock is time that a test sets. A pause takes none of it.
type handClock struct{ storetest.Clock }

func (c *handClock) set(ms int64) { c.Set(ms) }

// events records what an observer saw.
type events struct{ storetest.Events }

func (e *events) count(what string) int { return e.Count(what) }

func (e *events) calls(t testing.TB, want ...string) {
	t.Helper()
	e.Calls(t, want...)
}

// callsBeside is calls where the first two were under way at once, and may have ended in either order.
func (e *events) callsBeside(t testing.TB, write, read string, then ...string) {
	t.Helper()
	e.Mu.Lock()
	if len(e.Paths) > 1 && e.Paths[0] == read {
		e.Paths[0], e.Paths[1] = e.Paths[1], e.Paths[0]
	}
	e.Mu.Unlock()
	e.calls(t, append([]string{write, read}, then...)...)
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
	e := &engine{ttl: 24 * time.Hour}
	e.client = storetest.Dated(dynamotest.Client(t), &e.clock)
	e.table = dynamotest.Table(t, e.client, dynamotest.Streamless(operator.Table))
	return e
}

func (e *engine) options(seen *events) []runtime.Option {
	return storetest.Options(&e.clock, &seen.Events, e.ttl)
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
	return &variant{Resource: r, Numbers: &spec}
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
	l, resources := storetest.Open[user](t, newStore(api, e.table, opts...), e.options(d.events), def)
	d.Limiter, d.Resource = l, resources[0]
	return d
}

// with returns balances and one more.
func with(balances map[string]bucket.Balance, name string, b bucket.Balance) map[string]bucket.Balance {
	balances = maps.Clone(balances)
	balances[name] = b
	return balances
}

// raw is the table without the store.
func (e *engine) raw() storetest.Table { return storetest.Table{Client: e.client, Name: e.table} }

func (e *engine) put(t testing.TB, item codec.Item) {
	t.Helper()
	e.raw().Put(t, item)
}

func (e *engine) get(t testing.TB, key codec.Item) codec.Item {
	t.Helper()
	return e.raw().Get(t, key)
}

func (e *engine) balance(t testing.TB, resource, limit string) (tk, tc int64) {
	t.Helper()
	return e.raw().Balance(t, resource, limit)
}

func (e *engine) stored(t testing.TB, want row) {
	t.Helper()
	e.raw().Stored(t, want)
}

func (e *engine) held(t testing.TB, entity string) (tk, tc int64) {
	t.Helper()
	return e.raw().Held(t, entity)
}

func (e *engine) holding(t testing.TB, want ...string) {
	t.Helper()
	e.raw().Holding(t, want...)
}
