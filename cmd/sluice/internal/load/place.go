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

	"github.com/sluice-go/sluice/runtime/dynamo/operator"

	"github.com/sluice-go/sluice/cmd/sluice/internal/bucketstore"
	"github.com/sluice-go/sluice/cmd/sluice/internal/connect"
	"github.com/sluice-go/sluice/cmd/sluice/internal/format"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/cmd/sluice/internal/tool/load"
	"github.com/sluice-go/sluice/gen"
	"github.com/sluice-go/sluice/internal/tool/redisclient"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/redisstore"
	"github.com/sluice-go/sluice/runtime/store"
)

// place is the store that a load runs on.
type place struct {
	name    string
	store   func() store.Store
	explain func(error) error
	delete  func(ctx context.Context, buckets []chargedBucket) error
	bill    func() load.Units // total of the engine in this process; nil for other stores
	close   func()
}

// chargedBucket is a bucket that a load has charged.
type chargedBucket struct {
	spec         *store.Spec
	entity, root string // as stored; root is the last entity that the call charged
}

// place connects to the store of the flags. It refuses a store that is not known to be for tests, unless
// --yes is given.
func (c *Command) place(ctx context.Context, s *schemafile.Schema) (*place, error) {
	if c.InProcess {
		return c.inProcess(ctx, s)
	}
	if c.Redis == nil {
		return c.onTable(ctx, s)
	}
	if err := s.Lists(gen.StoreRedis,
		"pass --table for a DynamoDB table, or --file for another schema"); err != nil {
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
		return nil, program.Usagef("%s is not known to be for tests: it is on another machine, and its prefix "+
			"contains none of %s: pass a --prefix that does, or --yes to write there", name, testWords())
	}
	// Ctrl-C closes the client only while it connects. Later, pending calls finish and --cleanup follows.
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
				if err := r.Buckets.Delete(ctx, b.spec.Resource, b.root, b.entity, b.spec.Limits...); err != nil {
					return err
				}
			}
			return nil
		},
	}, nil
}

// pooled adds a connection for each caller to a URL without pool_size. By default, go-redis has ten per
// CPU, and callers would wait for them.
func pooled(text string, callers int) string {
	u, err := url.Parse(text)
	if err != nil {
		return text // connecting fails with the reason
	}
	options := u.Query()
	if options.Has("pool_size") {
		return text
	}
	options.Set("pool_size", strconv.Itoa(callers))
	u.RawQuery = options.Encode()
	return u.String()
}

// onTable is place for a DynamoDB table.
func (c *Command) onTable(ctx context.Context, s *schemafile.Schema) (*place, error) {
	if err := s.Lists(gen.StoreDynamoDB, "pass --redis for a Redis, or --file for another schema"); err != nil {
		return nil, err
	}
	orRedis := slices.Contains(s.Stores, gen.StoreRedis)
	t, err := bucketstore.ConnectTable(ctx, c.Connection, c.Namespaced, time.Now, orRedis)
	if err != nil {
		return nil, err
	}
	// one connection for each caller
	client := connect.WithTransport(t.Client, func(tr *http.Transport) {
		tr.MaxIdleConns, tr.MaxIdleConnsPerHost = c.Concurrency, c.Concurrency
	})
	at := &place{explain: t.Explain, close: func() {}}
	at.name, _ = t.Place()
	name, _ := operator.TableName(t.Table)
	if base := client.Options().BaseEndpoint; !c.Yes && !forTests(name) &&
		(base == nil || !onThisMachine(*base)) {
		return nil, program.Usagef("%s is not known to be for tests: it is on another machine, and its name "+
			"contains none of %s: pass a --table that does, such as that of `sluice table create --table "+
			"load_limits`, or --yes to write there", at.name, testWords())
	}
	at.on(client, t.Table, c.Name())
	return at, nil
}

// inProcess is place for an engine in this process.
func (c *Command) inProcess(ctx context.Context, s *schemafile.Schema) (*place, error) {
	if err := s.Lists(gen.StoreDynamoDB,
		"leave --in-process out, or pass --file for another schema"); err != nil {
		return nil, err
	}
	const table = "load"
	engine := memdynamo.New()
	if _, err := operator.CreateTable(ctx, engine.Client(), table); err != nil {
		return nil, err
	}
	name := "the engine in this process, without delay"
	if c.Trip != nil && *c.Trip > 0 {
		engine.Faults().Latency(memdynamo.Constant(*c.Trip / 2))
		name = fmt.Sprintf("the engine in this process, with a round trip of %v", *c.Trip)
	}
	at := &place{name: name, explain: func(err error) error { return err }, close: func() {}}
	at.bill = func() load.Units {
		sum := engine.Consumed().Table(table).Total()
		return load.Units{Read: sum.Read, Write: sum.Write}
	}
	at.on(engine.Client(), table, "")
	return at, nil
}

// billed returns what was billed since before, or nil if the store does not say.
func (at *place) billed(before load.Units) *load.Units {
	if at.bill == nil {
		return nil
	}
	now := at.bill()
	return &load.Units{Read: now.Read - before.Read, Write: now.Write - before.Write}
}

// on sets the calls for a namespace of a table.
func (at *place) on(client *dynamodb.Client, table, namespace string) {
	options, prefix := []dynamo.Option{}, ""
	if namespace != "" {
		options, prefix = append(options, dynamo.Namespace(namespace)), namespace+"#"
	}
	at.store = func() store.Store { return dynamo.New(client, table, options...) }
	at.delete = func(ctx context.Context, buckets []chargedBucket) error {
		const most = 25 // items of a BatchWriteItem
		for some := range slices.Chunk(buckets, most) {
			var writes []types.WriteRequest
			for _, b := range some {
				writes = append(writes, types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: codec.Item{
					"PK": codec.S(prefix + "ENTITY#" + b.entity), "SK": codec.S("#BUCKET#" + b.spec.Resource),
				}}})
			}
			left := map[string][]types.WriteRequest{table: writes}
			for attempt := 0; len(left) > 0; attempt++ {
				if attempt > 0 {
					if err := pause(ctx, time.Duration(attempt)*100*time.Millisecond); err != nil {
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

// pause waits for d or for the end of ctx.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// cleanUp deletes the buckets that a load has charged, even after Ctrl-C. It returns the largest number
// that there can have been.
func (c *Command) cleanUp(
	ctx context.Context, p program.Env, at *place, plan *load.Plan, result *load.Result,
) (int, error) {
	charged := map[string]chargedBucket{}
	for portion, touched := range result.Touched {
		spec := specOf(plan, portion)
		for _, index := range touched {
			chain := plan.Charged(portion, index)
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

// forTestWords are words in names of places for tests.
var forTestWords = []string{"test", "tests", "load", "bench", "benchmark", "dev", "sandbox", "scratch",
	"demo", "local"}

// testWords lists forTestWords.
func testWords() string {
	last := len(forTestWords) - 1
	return strings.Join(forTestWords[:last], ", ") + " and " + forTestWords[last]
}

// forTests reports whether a name contains one of the words. latest_limits contains none.
func forTests(name string) bool {
	words := strings.FieldsFunc(strings.ToLower(name),
		func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') })
	return slices.ContainsFunc(words, func(word string) bool { return slices.Contains(forTestWords, word) })
}

// onThisMachine reports whether a URL names a place that no other machine can reach.
func onThisMachine(text string) bool {
	u, err := url.Parse(text)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "unix" || u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}
