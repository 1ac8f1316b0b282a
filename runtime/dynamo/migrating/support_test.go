package migrating

import (
	"errors"
	"testing"
	"time"

	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/internal/test/storetest"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/store"
)

func TestMain(m *testing.M) { dynamotest.Main(m) }

// engine is a table of the real engine, and what its tests' processes share.
type engine struct {
	storetest.Table
	clock storetest.Clock
	ttl   time.Duration // of overrides
}

func newEngine(t testing.TB) *engine {
	t.Helper()
	e := &engine{ttl: 24 * time.Hour}
	e.Client = storetest.Dated(dynamotest.Client(t), &e.clock)
	e.Name = dynamotest.Table(t, e.Client, operator.Table)
	return e
}

// newFaulty returns a table of an engine of this test alone, on the test's clock.
func newFaulty(t testing.TB) (*engine, *memdynamo.Engine) {
	t.Helper()
	e := &engine{ttl: time.Hour}
	memory := memdynamo.New(memdynamo.WithClock(&e.clock))
	e.Client = memory.Client()
	e.Name = dynamotest.Table(t, e.Client, operator.Table)
	return e, memory
}

// Shorter names of what most tests here use.
type (
	user   = storetest.User
	tokens = storetest.Tokens
	row    = storetest.Row
)

var (
	userRPM, userTPM = storetest.UserRPM, storetest.UserTPM
	holds, number    = storetest.Holds, storetest.Number
)

// rates returns gpt-4 with the demonstration's limits of a user, and no parents.
func rates(t testing.TB) *storetest.Variant {
	t.Helper()
	gpt4, _ := storetest.Generated(t)
	return storetest.WithNumbers(gpt4, 1, userRPM, userTPM)
}

// alice is user-1 of project-1.
type alice struct{}

func (alice) Chain(dst []store.Link) []store.Link {
	return append(dst, store.Link{Kind: 1, ID: "1"}, store.Link{Kind: 0, ID: "1"})
}

// process is a process with one resource.
type process[E store.Entity] struct {
	*runtime.Limiter
	*runtime.Resource[E, tokens]
	*storetest.Events
}

func start[E store.Entity](t testing.TB, e *engine, s store.Store, def store.Definition) *process[E] {
	t.Helper()
	p := &process[E]{Events: &storetest.Events{}}
	l, resources := storetest.Open[E](t, s, storetest.Options(&e.clock, p.Events, e.ttl), def)
	p.Limiter, p.Resource = l, resources[0]
	return p
}

// startRates starts a process with rates that carries over.
func startRates(t testing.TB, e *engine, api wire.API) *process[user] {
	t.Helper()
	return start[user](t, e, New(api, e.Name), rates(t))
}

// startChain starts a process that carries over, and charges a user and its project for embeddings: 100
// tokens a minute, and 1000.
func startChain(t testing.TB, e *engine, api wire.API, cascade store.Cascade) *process[alice] {
	t.Helper()
	_, embeddings := storetest.Generated(t)
	def := storetest.Family(embeddings, cascade, storetest.Minute(1000), storetest.Minute(100))
	return start[alice](t, e, New(api, e.Name), def)
}

var errReset = &smithyhttp.RequestSendError{Err: errors.New("connection reset")}
