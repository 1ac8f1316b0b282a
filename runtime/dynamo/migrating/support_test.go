package migrating

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/google/go-cmp/cmp"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/internal/seal"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/store"
)

func TestMain(m *testing.M) { dynamotest.Main(m) }

// family returns r as if its schema gave projects and their users these limits.
func family(r codec.Resource, cascade store.Cascade, project, user []bucket.Limit) *variant {
	spec := *r.Spec()
	perCall := make([]int64, len(user))
	spec.Cascade = cascade
	spec.Kinds = []store.Kind{
		{Name: "project", Prefix: "project-", Parent: store.NoParent, Limits: project, PerCall: perCall},
		{Name: "user", Prefix: "user-", Parent: 0, Limits: user, PerCall: perCall},
	}
	return &variant{Resource: r, spec: &spec}
}

// member is a user of a project, or, without a user, the project.
type member struct{ user, project string }

func (m member) Chain(dst []store.Link) []store.Link {
	if m.user != "" {
		dst = append(dst, store.Link{Kind: 1, ID: m.user})
	}
	return append(dst, store.Link{Kind: 0, ID: m.project})
}

// house is a process with resources of families.
type house struct {
	*runtime.Limiter
	*events
	at []*runtime.Resource[member, tokens]
}

// acquire takes cost on the first resource.
func (h *house) acquire(t testing.TB, m member, cost ...int64) *runtime.Lease[tokens] {
	t.Helper()
	lease, err := h.at[0].Acquire(t.Context(), m, cost)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// held returns an entity's balance and consumption of embeddings, in whole tokens.
func (e *engine) held(t testing.TB, entity string) (tk, tc int64) {
	t.Helper()
	item := e.get(t, item.BucketKey(entity, "embeddings"))
	if item["b_rps_tk"] == nil {
		return 0, 0
	}
	return number(item["b_rps_tk"]) / bucket.Milli, number(item["b_rps_tc"]) / bucket.Milli
}

// holding holds entities' balances and consumption to want: "user-1 3 7".
func (e *engine) holding(t testing.TB, want ...string) {
	t.Helper()
	for _, line := range want {
		entity, _, _ := strings.Cut(line, " ")
		tk, tc := e.held(t, entity)
		if got := fmt.Sprint(entity, " ", tk, " ", tc); got != line {
			t.Errorf("got %q, want %q", got, line)
		}
	}
}

var alicesHome = member{"1", "1"}

// minute returns limits of so many tokens a minute: nothing refills between a test's steps.
func minute(n int64) []bucket.Limit { return []bucket.Limit{bucket.Per(n, time.Minute)} }

// tableWith creates a table whose layout was changed.
func tableWith(t *testing.T, client *dynamodb.Client, change func(*dynamodb.CreateTableInput)) string {
	t.Helper()
	return dynamotest.Table(t, client, func(name string) *dynamodb.CreateTableInput {
		in := operator.Table(name)
		change(in)
		return in
	})
}

// checked calls Check on a table, with a clock that is so much ahead, and returns its error's text and what
// was logged.
func checked(t *testing.T, client *dynamodb.Client, table string, ahead time.Duration) (text, logged string) {
	t.Helper()
	var log bytes.Buffer
	handler := slog.NewTextHandler(
		&log,
		&slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}},
	)
	l, err := limits.New(
		dynamo.New(client, table),
		runtime.WithClock(offsetClock(ahead)),
		runtime.WithLogger(slog.New(handler)),
	)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Check(t.Context()); err != nil {
		text = strings.ReplaceAll(err.Error(), table, "TABLE")
	}
	return text, strings.ReplaceAll(log.String(), table, "TABLE")
}

// ttlOn creates a table whose layout was changed, and enables its TTL.
func ttlOn(t *testing.T, client *dynamodb.Client, change func(*dynamodb.CreateTableInput)) string {
	t.Helper()
	table := tableWith(t, client, change)
	if _, err := client.UpdateTimeToLive(t.Context(),
		operator.Definition{Table: table}.TimeToLive()); err != nil {
		t.Fatal(err)
	}
	return table
}

// newFaulty is newEngine on an engine in the process of its own, on the test's clock, for what only that one
// suffers from.
func newFaulty(t testing.TB) (*engine, *memdynamo.Engine) {
	t.Helper()
	e := &engine{}
	memory := memdynamo.New(memdynamo.WithClock(&e.clock))
	e.client = memory.Client()
	e.table = dynamotest.Table(t, e.client, operator.Table)
	return e, memory
}

// operator is who sets overrides, with a clock that is so many ms ahead of the engine's. Pauses take no time.
func (e *engine) operator(api wire.API, ahead int64) *operator.Overrides {
	return e.operatorWith(api, e.retrier(), ahead)
}

func (e *engine) operatorWith(api wire.API, retrier wire.Retrier, ahead int64) *operator.Overrides {
	return operator.OverridesWith(
		api,
		retrier,
		func() time.Time { return time.UnixMilli(e.clock.Now().UnixMilli() + ahead) },
	)
}

// retrier is an operator's, with pauses that take no time.
func (e *engine) retrier() wire.Retrier {
	retrier := wire.NewRetrier(e.table)
	retrier.After = e.clock.After
	return retrier
}

// rates is a resource with limits rpm and tpm.
func rates() *store.Spec {
	return &store.Spec{Resource: "gpt-4", Revision: 1, Limits: []string{"rpm", "tpm"}}
}

// stored is what a level of rates says: rpm, then tpm; 0 inherits.
func stored(at string, rev store.Revision, perMinute ...int64) store.Stored {
	s := store.Stored{At: at, Limits: make([]*bucket.Limit, 2), Revision: rev}
	for i, n := range perMinute {
		if n != 0 {
			l := bucket.Per(n, time.Minute)
			s.Limits[i] = &l
		}
	}
	return s
}

// together calls do(0) to do(n-1) at once and fails the test on errors.
func together(t *testing.T, n int, do func(int) error) {
	t.Helper()
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			if err := do(i); err != nil {
				t.Errorf("process %d: %v", i, err)
			}
		})
	}
	close(start)
	wg.Wait()
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// t0 is when the tests' clock starts, in ms. It is a whole minute, so that a refill since then has no
// remainder, and years ahead, so that no ttl has passed for the engine. The instants of a row and of a
// handClock count from it.
const t0 = 1_800_000_000_000

// handClock is time that a test sets. A pause takes none of it.
type handClock struct{ since atomic.Int64 }

func (c *handClock) Now() time.Time { return time.UnixMilli(t0 + c.since.Load()) }

func (c *handClock) set(ms int64) { c.since.Store(ms) }

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

func (e *engine) desk(t testing.TB, s store.Store, def store.Definition) *desk {
	t.Helper()
	d := &desk{events: &events{}}
	b := runtime.NewBuilder(s, e.options(d.events)...)
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

// records reads a stream from its beginning to where it ends now.
func records(t testing.TB, client *dynamodbstreams.Client, arn string) iter.Seq[streamtypes.Record] {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	return func(yield func(streamtypes.Record) bool) {
		stream, err := client.DescribeStream(t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: &arn})
		must(err)
		for _, shard := range stream.StreamDescription.Shards {
			at, err := client.GetShardIterator(t.Context(), &dynamodbstreams.GetShardIteratorInput{
				StreamArn: &arn, ShardId: shard.ShardId, ShardIteratorType: streamtypes.ShardIteratorTypeTrimHorizon,
			})
			must(err)
			for next := at.ShardIterator; next != nil; {
				page, err := client.GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: next})
				must(err)
				for _, r := range page.Records {
					if !yield(r) {
						return
					}
				}
				if next = page.NextShardIterator; len(page.Records) == 0 {
					break
				}
			}
		}
	}
}

// offsetClock is a host's clock, so much ahead of the table's.
type offsetClock time.Duration

func (c offsetClock) Now() time.Time { return time.Now().Add(time.Duration(c)) }

func (c offsetClock) After(d time.Duration) <-chan time.Time { return time.After(d.Truncate(turns)) }

// turns is what all of a history's spans are multiples of, in nanoseconds. Each caller begins at another
// remainder, and goes on at it after each call; so do requests on the way for it, and what a process does by
// itself. So no two are ever at work at the same instant, and a seed gives one history.
const turns = 128

// generated returns the generated code of the demonstration's resources.
func generated(t testing.TB) (gpt4, embeddings codec.Resource) {
	t.Helper()
	var store capture
	if _, err := limits.New(&store); err != nil {
		t.Fatal(err)
	}
	return store.defs[0].(codec.Resource), store.defs[1].(codec.Resource)
}

// capture is a store that only looks at what is opened.
type capture struct{ defs []store.Definition }

func (c *capture) Sealed(seal.Sealed) {}

func (c *capture) Open(_ *store.Env, defs ...store.Definition) (store.Session, error) {
	c.defs = defs
	return nil, nil
}

// variant is a generated resource with other numbers.
type variant struct {
	codec.Resource
	spec *store.Spec
}

func (v *variant) Spec() *store.Spec { return v.spec }

// withNumbers returns the resource as if its schema had these limits under that revision.
func withNumbers(r codec.Resource, limits ...bucket.Limit) *variant {
	spec := *r.Spec()
	spec.Revision = 1
	spec.Kinds = []store.Kind{
		{Name: "user", Prefix: "user-", Limits: limits, PerCall: make([]int64, len(limits))},
	}
	return &variant{Resource: r, spec: &spec}
}

func number(v types.AttributeValue) int64 {
	n, _ := strconv.ParseInt(v.(*types.AttributeValueMemberN).Value, 10, 64) // saturates
	return n
}

var errReset = &smithyhttp.RequestSendError{Err: errors.New("connection reset")}
