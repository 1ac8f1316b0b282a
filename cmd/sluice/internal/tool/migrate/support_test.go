package migrate

import (
	"bytes"
	"context"
	"fmt"
	"github.com/sluice-go/sluice/internal/test/storetest"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/migrating"
	"github.com/sluice-go/sluice/runtime/dynamo/migrating/perlimit"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/store"
)

func TestMain(m *testing.M) { dynamotest.Main(m) }

// t0 is when all tests are: time stands still, so that books are exact.
var t0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// still is a clock that stands still, and whose waits are the machine's.
type still struct{}

func (still) Now() time.Time                         { return t0 }
func (still) After(d time.Duration) <-chan time.Time { return time.After(d) }

// specs are what generated's limits.yaml says.
func specs() []*store.Spec {
	kinds := func(project, user []bucket.Limit) []store.Kind {
		return []store.Kind{
			{Name: "org", Prefix: "org-", Parent: store.NoParent},
			{Name: "project", Prefix: "project-", Parent: 0, Limits: project, PerCall: []int64{1, 0}},
			{Name: "user", Prefix: "user-", Parent: 1, Limits: user, PerCall: []int64{1, 0}},
		}
	}
	return []*store.Spec{
		{Resource: "gpt-4", Revision: limits.Revision, Limits: []string{"rpm", "tpm"}, Kinds: kinds(
			[]bucket.Limit{bucket.Per(1_000, time.Minute), bucket.Per(100_000, time.Minute).WithBurst(150_000)},
			[]bucket.Limit{bucket.Per(100, time.Minute), bucket.Per(10_000, time.Minute).WithBurst(15_000)})},
		{Resource: "embeddings", Revision: limits.Revision, Limits: []string{"rps"},
			Kinds: kinds([]bucket.Limit{bucket.Per(20, time.Second)}, nil)},
	}
}

// table is a table of a test's own.
type table struct {
	testing.TB

	client *dynamodb.Client
	name   string
}

func newTable(t testing.TB) *table {
	t.Helper()
	client := dynamotest.Client(t)
	return &table{t, client, dynamotest.Table(t, client, operator.Table)}
}

// config is a run's on t, on api or the table's client.
func (t *table) config(job Job, api API) Config {
	if api == nil {
		api = t.client
	}
	return Config{
		Job: job, Client: api, Table: t.name, Specs: specs(), Segments: 4, Progress: &bytes.Buffer{},
		Now: still{}.Now, page: 100,
	}
}

// run runs a job that comes to its end.
func (t *table) run(c Config) *Report {
	t.Helper()
	report, err := Run(t.Context(), c)
	if err != nil || !report.Complete {
		t.Fatalf("%s: %v, report %+v", c.Job, err, report)
	}
	return report
}

// put stores items.
func (t *table) put(items ...codec.Item) {
	t.Helper()
	var all errgroup.Group
	all.SetLimit(4)
	for len(items) > 0 {
		n := min(25, len(items))
		var writes []types.WriteRequest
		for _, item := range items[:n] {
			writes = append(writes, types.WriteRequest{PutRequest: &types.PutRequest{Item: item}})
		}
		items = items[n:]
		all.Go(func() error {
			_, err := t.client.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{
				RequestItems: map[string][]types.WriteRequest{t.name: writes},
			})
			return err
		})
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
}

// all returns all items of the table, by their keys as in "PK SK".
func (t *table) all() map[string]codec.Item {
	t.Helper()
	all := map[string]codec.Item{}
	pages := dynamodb.NewScanPaginator(t.client,
		&dynamodb.ScanInput{TableName: &t.name, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range page.Items {
			all[text(item["PK"])+" "+text(item["SK"])] = item
		}
	}
	return all
}

// remove deletes an item, as TTL does.
func (t *table) remove(key codec.Item) {
	t.Helper()
	if _, err := t.client.DeleteItem(t.Context(),
		&dynamodb.DeleteItemInput{TableName: &t.name, Key: key}); err != nil {
		t.Fatal(err)
	}
}

// layout returns what the version item records.
func (t *table) layout() int64 {
	t.Helper()
	d := codec.Decoder{Item: t.all()["SYSTEM# #VERSION"]}
	return d.Int("layout")
}

// old is a per-limit item, refilled refilled before t0.
func old(entity, resource, limit string, b bucket.Balance, refilled time.Duration) codec.Item {
	return codec.Item{
		"PK": codec.S("ENTITY#" + entity), "SK": codec.S("#BUCKET#" + resource + "#" + limit),
		perlimit.Tokens: codec.N(b.Tokens), perlimit.Consumed: codec.N(b.Consumed),
		perlimit.Refilled: codec.N(t0.Add(-refilled).UnixMilli()),
		perlimit.Capacity: codec.N(b.Capacity), perlimit.Burst: codec.N(b.Burst),
		perlimit.Refill: codec.N(b.Refill), perlimit.Period: codec.N(b.Period),
	}
}

// number reads an attribute, which has to be there.
func number(item codec.Item, attr string) (int64, error) {
	d := codec.Decoder{Item: item}
	n := d.Int(attr)
	return n, d.Err()
}

// limiter is a program that converts buckets as it needs them.
func (t *table) limiter() *limits.Limiter {
	t.Helper()
	lim, err := limits.New(migrating.New(storetest.Dated(t.client, still{}), t.name), runtime.WithClock(still{}),
		runtime.WithSettleTimeout(time.Minute), runtime.WithCallDefaults(runtime.OnUnavailable(store.Deny),
			runtime.Budget(time.Minute)))
	if err != nil {
		t.Fatal(err)
	}
	return lim
}

// users returns the per-limit items of users on gpt-4, two each, half used.
func users(n int) []codec.Item {
	own := specs()[0].Kinds[2].Limits
	var items []codec.Item
	for i := range n {
		for j, limit := range []string{"rpm", "tpm"} {
			b := bucket.Balance{Limit: own[j], Tokens: own[j].Burst / 2, Consumed: int64(1000 * (i + j))}
			items = append(items, old(fmt.Sprint("user-", i), "gpt-4", limit, b, 0))
		}
	}
	return items
}

// killed runs f with a context that ends, and an API that fails, at its kill-th call: before it is made, or
// after it was applied, its reply lost. It returns false once f got through.
func (t *table) killed(kill int, late bool, f func(context.Context, *tap) error) (again bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	calls := make(chan int, 1)
	calls <- 0
	api := &tap{API: t.client, around: func(_ context.Context, _ any, do func() error) error {
		n := <-calls + 1
		calls <- n
		if n == kill {
			if late {
				_ = do()
			}
			cancel()
		}
		if n >= kill {
			return context.Canceled
		}
		return do()
	}}
	err := f(ctx, api)
	n := <-calls
	if (err != nil) != (n >= kill) {
		t.Fatalf("after %d calls, to be killed at %d: %v", n, kill, err)
	}
	return err != nil
}

// matches reports whether got names the buckets of want, with texts that match want's regular expressions.
// The errors' wording is asserted by the tests of the packages that return them.
func matches(got, want []Wrong) bool {
	return slices.EqualFunc(got, want, func(g, w Wrong) bool {
		return g.Bucket == w.Bucket && regexp.MustCompile("^.*"+w.What+".*$").MatchString(g.What)
	})
}
