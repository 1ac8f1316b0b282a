package prefetch_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"

	"github.com/sluice-go/sluice/internal/test/simulated"
	"github.com/sluice-go/sluice/internal/test/storetest"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/store"
)

const table = "prefetched"

// Kinds of the tests' schemas.
const (
	project = 0
	user    = 1
)

// of is an entity: its links, nearest first.
type of []store.Link

// Chain implements store.Entity.
func (o of) Chain(dst []store.Link) []store.Link { return append(dst, o...) }

// stored returns the stored ids of o's links.
func (o of) stored() (ids []string) {
	for _, link := range o {
		ids = append(ids, [...]string{project: "project-", user: "user-"}[link.Kind]+link.ID)
	}
	return ids
}

func hot() of { return of{{Kind: project, ID: "hot"}} }

func userOf(id string) of { return of{{Kind: user, ID: id}, {Kind: project, ID: "hot"}} }

// resource is a resource of a test. Its costs are in whole tokens of rpm and tpm.
type resource = runtime.Resource[of, [2]int64]

// prefetching returns gpt-4 with these limits of rpm and tpm of projects and their users, and a prefetch.
func prefetching(t testing.TB, prefetch time.Duration, projects, users []bucket.Limit) *storetest.Variant {
	t.Helper()
	gpt4, _ := storetest.Generated(t)
	def := storetest.Family(gpt4, store.CascadeAtomic, projects, users)
	def.Numbers.Prefetch = prefetch
	return def
}

// alike returns the same limits for rpm and tpm: so much a second, of which a bucket holds burst.
func alike(perSecond, burst int64) []bucket.Limit {
	one := bucket.Per(perSecond, time.Second).WithBurst(burst)
	return []bucket.Limit{one, one}
}

// newEngine returns an engine with a table, which has no stream.
func newEngine(t testing.TB, opts ...memdynamo.Option) *memdynamo.Engine {
	t.Helper()
	engine := memdynamo.New(opts...)
	if err := simulated.CreateTable(t.Context(), engine, table); err != nil {
		t.Fatal(err)
	}
	engine.Faults().TTLLag(time.Hour)
	return engine
}

// process is one process with its limiter.
type process struct {
	*runtime.Limiter
	*resource
	config *runtime.Config[of, [2]int64, []*runtime.Rate]
}

// open starts a process on def.
func open(t testing.TB, client dynamo.API, def codec.Resource, opts ...runtime.Option) *process {
	t.Helper()
	return openOn(t, dynamo.New(client, table), def, opts...)
}

// openOn starts a process on a store.
func openOn(t testing.TB, on runtime.Store, def store.Definition, opts ...runtime.Option) *process {
	t.Helper()
	opts = append([]runtime.Option{
		runtime.WithLogger(slog.New(slog.DiscardHandler)),
		runtime.WithCallDefaults(runtime.OnUnavailable(runtime.Deny)),
	}, opts...)
	b := runtime.NewBuilder(on, opts...)
	costs := func(c [2]int64, dst []int64) []int64 { return append(dst, c[:]...) }
	p := &process{resource: runtime.Bind[of](b, def, costs,
		func(v []int64) [2]int64 { return [2]int64(v) })}
	p.config = runtime.BindConfig[of](b, def, costs,
		func(all []*runtime.Rate, dst []*runtime.Rate) []*runtime.Rate { return append(dst, all...) },
		func(all []*runtime.Rate) []*runtime.Rate { return all })
	var err error
	if p.Limiter, err = b.Limiter(); err != nil {
		t.Fatal(err)
	}
	return p
}

// close closes a process.
func (p *process) close(t testing.TB) {
	t.Helper()
	if err := p.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Error("close:", err)
	}
}

// sleep sleeps in a bubble.
func sleep(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // in a bubble

// outcomes counts how calls ended. It is safe for concurrent use.
type outcomes struct {
	mu       sync.Mutex
	admitted int
	denied   int
	others   []error
}

func (o *outcomes) add(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, denied := errors.AsType[*runtime.DeniedError](err)
	switch {
	case err == nil:
		o.admitted++
	case denied:
		o.denied++
	default:
		o.others = append(o.others, err)
	}
}

// stored returns a number of a bucket of gpt-4 as stored, such as rpm_tk, in millitokens. It is 0 if there is
// no bucket.
func stored(t testing.TB, engine *memdynamo.Engine, entity, attribute string) int64 {
	t.Helper()
	item := storetest.Table{Client: engine.Client(), Name: table}.Get(t, storetest.BucketKey(entity, "gpt-4"))
	if item == nil {
		return 0
	}
	var n int64
	if err := attributevalue.Unmarshal(item["b_"+attribute], &n); err != nil {
		t.Fatal(err)
	}
	return n
}
