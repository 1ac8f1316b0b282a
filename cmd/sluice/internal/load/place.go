package load

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/internal/bucketstore"
	"github.com/sluice-go/sluice/cmd/sluice/internal/connect"
	"github.com/sluice-go/sluice/cmd/sluice/internal/format"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/gen"
	"github.com/sluice-go/sluice/internal/tool/load"
	"github.com/sluice-go/sluice/internal/tool/redisclient"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/redisstore"
	"github.com/sluice-go/sluice/runtime/store"
)

// loadPlace is what a load is put on.
type place struct {
	name    string
	store   func() store.Store
	explain func(error) error
	delete  func(ctx context.Context, buckets []chargedBucket) error
	bill    func() load.Units // what the engine in this process has billed; nil elsewhere
	close   func()
}

// loadedBucket is a bucket that a load has charged.
type chargedBucket struct {
	spec         *store.Spec
	entity, root string // as stored; root is where the chain of a call that charged it ends
}

// place opens what the flags say, if the schema has limiters there, and if it is for tests, or --yes says that it may be written to.
func (c *Command) place(ctx context.Context, s *schemafile.Schema) (*place, error) {
	if c.InProcess {
		return c.inProcess(ctx, s)
	}
	if c.Redis == nil {
		return c.onTable(ctx, s)
	}
	if err := s.Lists(gen.StoreRedis, "pass --table for a table of DynamoDB, or --file for another schema"); err != nil {
		return nil, err
	}
	prefix := ""
	if c.Prefix != nil {
		prefix = *c.Prefix
	}
	if prefix == "" {
		prefix = redisstore.DefaultPrefix
	}
	name := redisclient.Name(*c.Redis) + ", prefix " + prefix
	if !c.Yes && !forTests(prefix) && !onThisMachine(*c.Redis) {
		return nil, program.Usagef("%s is not known to be for tests: it is on another machine, and its prefix has none of %s in it: "+
			"pass a --prefix that has, or --yes to write there all the same", name, testWords())
	}
	// Ctrl-C closes the client while it connects, and not later: calls under way are finished, and --cleanup comes after them.
	connected, closeEarly := context.WithCancel(context.WithoutCancel(ctx))
	keep := context.AfterFunc(ctx, closeEarly)
	r, err := bucketstore.ConnectRedis(connected, pooled(*c.Redis, c.Concurrency), prefix, s)
	if err != nil {
		closeEarly()
		return nil, err
	}
	if !keep() {
		r.Close()
		return nil, ctx.Err()
	}
	return &place{
		name: name, explain: r.Explain, close: func() { r.Close(); closeEarly() },
		store: func() store.Store { return redisstore.New(r.Client, redisstore.Prefix(prefix)) },
		delete: func(ctx context.Context, buckets []chargedBucket) error {
			for _, b := range buckets {
				if err := r.Buckets.Fill(ctx, b.spec.Resource, b.root, b.entity, b.spec.Limits...); err != nil { // a full bucket is a missing one
					return err
				}
			}
			return nil
		},
	}, nil
}

// pooled returns a URL of a Redis for a client that has a connection for each call that can be under way, unless the URL says how
// many it has: go-redis has ten for each CPU, and callers would wait for them.
func pooled(text string, callers int) string {
	u, err := url.Parse(text)
	if err != nil {
		return text // whoever connects says what is wrong
	}
	options := u.Query()
	if options.Has("pool_size") {
		return text
	}
	options.Set("pool_size", strconv.Itoa(callers))
	u.RawQuery = options.Encode()
	return u.String()
}

// onTable is place for a table of DynamoDB.
func (c *Command) onTable(ctx context.Context, s *schemafile.Schema) (*place, error) {
	if err := s.Lists(gen.StoreDynamoDB, "pass --redis for a Redis, or --file for another schema"); err != nil {
		return nil, err
	}
	t, err := bucketstore.ConnectTable(ctx, c.Connection, time.Now, slices.Contains(s.Stores, gen.StoreRedis))
	if err != nil {
		return nil, err
	}
	client := dynamodb.New(t.Client.Options(), func(o *dynamodb.Options) { // one connection for each call that can be under way
		usual, ok := o.HTTPClient.(*awshttp.BuildableClient) // with AWS_CA_BUNDLE, where that is set
		if !ok {
			usual = awshttp.NewBuildableClient()
		}
		o.HTTPClient = usual.WithTransportOptions(func(tr *http.Transport) {
			tr.MaxIdleConns, tr.MaxIdleConnsPerHost = c.Concurrency, c.Concurrency
		})
	})
	at := &place{name: fmt.Sprintf("table %s (%s)", t.Table, connect.Place(client)), explain: t.Explain, close: func() {}}
	name, _ := operator.TableName(t.Table)
	if base := client.Options().BaseEndpoint; !c.Yes && !forTests(name) && (base == nil || !onThisMachine(*base)) {
		return nil, program.Usagef("%s is not known to be for tests: it is on another machine, and its name has none of %s in it: "+
			"pass a --table that has, as `sluice table create --table load_limits` makes, or --yes to write there all the same", at.name, testWords())
	}
	at.on(client, t.Table)
	return at, nil
}

// inProcess is place for an engine of our own.
func (c *Command) inProcess(ctx context.Context, s *schemafile.Schema) (*place, error) {
	if err := s.Lists(gen.StoreDynamoDB, "leave --in-process out, or pass --file for another schema"); err != nil {
		return nil, err
	}
	const table = "load"
	engine := memdynamo.New()
	if _, err := operator.CreateTable(ctx, engine.Client(), table); err != nil {
		return nil, err
	}
	name := "the engine in this process, no time away"
	if c.Trip != nil && *c.Trip > 0 {
		engine.Faults().Latency(memdynamo.Constant(*c.Trip / 2))
		name = fmt.Sprintf("the engine in this process, a round trip of %v away", *c.Trip)
	}
	at := &place{name: name, explain: func(err error) error { return err }, close: func() {}}
	at.bill = func() load.Units {
		sum := engine.Consumed().Table(table).Total()
		return load.Units{Read: sum.Read, Write: sum.Write}
	}
	at.on(engine.Client(), table)
	return at, nil
}

// billed returns what was billed since before, nil where nobody says that.
func (at *place) billed(before load.Units) *load.Units {
	if at.bill == nil {
		return nil
	}
	now := at.bill()
	return &load.Units{Read: now.Read - before.Read, Write: now.Write - before.Write}
}

// on puts the load on a table.
func (at *place) on(client *dynamodb.Client, table string) {
	at.store = func() store.Store { return dynamo.New(client, table) }
	at.delete = func(ctx context.Context, buckets []chargedBucket) error {
		const most = 25 // that a batch takes
		for some := range slices.Chunk(buckets, most) {
			var writes []types.WriteRequest
			for _, b := range some {
				writes = append(writes, types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: codec.Item{
					"PK": codec.S("ENTITY#" + b.entity), "SK": codec.S("#BUCKET#" + b.spec.Resource),
				}}})
			}
			left := map[string][]types.WriteRequest{table: writes}
			for tries := 0; len(left) > 0; tries++ {
				if tries > 0 {
					if err := pause(ctx, time.Duration(tries)*100*time.Millisecond); err != nil {
						return err
					}
				}
				out, err := client.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: left})
				if err != nil {
					return err
				}
				left = out.UnprocessedItems
			}
		}
		return nil
	}
}

// pause waits.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// cleanUp deletes the buckets that a load has charged, after Ctrl-C too, and returns how many there can have been.
func (c *Command) cleanUp(ctx context.Context, p program.Env, at *place, plan *load.Plan, result *load.Result) (int, error) {
	charged := map[string]chargedBucket{}
	for share, touched := range result.Touched {
		spec := specOf(plan, share)
		for _, index := range touched {
			chain := plan.Charged(share, index)
			for _, entity := range chain {
				charged[spec.Resource+" "+entity] = chargedBucket{spec, entity, chain[len(chain)-1]}
			}
		}
	}
	var buckets []chargedBucket
	for _, key := range slices.Sorted(maps.Keys(charged)) {
		buckets = append(buckets, charged[key])
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Minute)
	defer cancel()
	p.Note("deleting %s\n", format.Quantity(int64(len(buckets)), "bucket"))
	return len(buckets), at.delete(bounded, buckets)
}

// words by which a place is known to be for tests.
var forTestWords = []string{"test", "tests", "load", "bench", "benchmark", "dev", "sandbox", "scratch", "demo", "local"}

// testWords lists them.
func testWords() string {
	last := len(forTestWords) - 1
	return strings.Join(forTestWords[:last], ", ") + " and " + forTestWords[last]
}

// forTests reports that a name has one of the words: whole, so that latest_limits is none.
func forTests(name string) bool {
	words := strings.FieldsFunc(strings.ToLower(name), func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') })
	return slices.ContainsFunc(words, func(word string) bool { return slices.Contains(forTestWords, word) })
}

// onThisMachine reports that what a URL names cannot be reached from elsewhere.
func onThisMachine(text string) bool {
	u, err := url.Parse(text)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "unix" || u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}
