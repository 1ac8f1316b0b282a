package dynamo

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/gen/testdata/golden/inflight/out"
	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/internal/test/storetest"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// airfield is a table of calls in flight in a bubble of testing/synctest, on the bubble's time.
type airfield struct {
	engine *memdynamo.Engine
	client *dynamodb.Client
	table  string
}

// inFlight calls f in a bubble.
func inFlight(t *testing.T, f func(*testing.T, *airfield)) {
	t.Helper()
	skipOnLocal(t)
	synctest.Test(t, func(t *testing.T) {
		a := &airfield{engine: memdynamo.New()}
		a.client = a.engine.Client()
		a.table = dynamotest.Table(t, a.client, dynamotest.Streamless(operator.Table))
		f(t, a)
	})
}

// process starts a process that reaches the table by api.
func (a *airfield) process(t testing.TB, api wire.API, opts ...runtime.Option) *inflight.Limiter {
	t.Helper()
	lim, err := inflight.New(newStore(api, a.table),
		append([]runtime.Option{runtime.WithLogger(slog.New(slog.DiscardHandler)),
			runtime.WithCacheTTL(240 * time.Hour)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return lim
}

// open starts a process that the test's end closes.
func (a *airfield) open(t testing.TB, opts ...runtime.Option) *inflight.Limiter {
	t.Helper()
	lim := a.process(t, a.client, opts...)
	t.Cleanup(func() {
		if err := lim.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return lim
}

// bill is what requests cost: their number, and units of writes and reads.
type bill struct {
	requests    int
	write, read float64
}

// billed returns what was billed since the last time.
func (a *airfield) billed() bill {
	c := a.engine.Consumed()
	a.engine.ResetConsumed()
	units := c.Total().Total()
	b := bill{write: units.Write, read: units.Read}
	for _, n := range c.Requests {
		b.requests += n
	}
	return b
}

// costs fails the test unless what was billed since the last time is as wanted.
func (a *airfield) costs(t testing.TB, what string, want bill) {
	t.Helper()
	if got := a.billed(); got != want {
		t.Errorf("%s cost %+v, want %+v", what, got, want)
	}
}

// slots is an in-flight limit as stored, in whole tokens.
type slots struct{ free, h0, h1, burst, used int64 }

// slots returns an entity's limit parallel, and checks that none of its slots was made or lost.
func (a *airfield) slots(t testing.TB, entity, resource string) slots {
	t.Helper()
	item := storetest.Table{Client: a.client, Name: a.table}.Get(t, storetest.BucketKey(entity, resource))
	if item == nil {
		t.Fatalf("no bucket of %s on %s", entity, resource)
	}
	whole := func(field string) int64 { return number(item["b_parallel_"+field]) / bucket.Milli }
	s := slots{whole("tk"), whole("h0"), whole("h1"), whole("bx"), whole("tc")}
	if s.free+s.h0+s.h1 != s.burst || min(s.h0, s.h1) < 0 {
		t.Errorf("slots were made or lost: %+v", s)
	}
	return s
}

// itemSize returns what an item is billed by, as AWS documents it, in bytes.
func itemSize(item codec.Item) (bytes int) {
	for name, text := range plain(item) {
		bytes += len(name)
		switch value := text[2:]; text[:2] {
		case "S ":
			bytes += len(value)
		case "N ":
			if value[0] == '-' {
				bytes++
				value = value[1:]
			}
			bytes += (len(value)+1)/2 + 1
		}
	}
	return bytes
}

// take acquires a slot of an entity, which must be free.
func take[E runtime.Entity, C any](
	t testing.TB, from *runtime.Resource[E, C], entity E, cost C,
) *runtime.Lease[C] {
	t.Helper()
	lease, err := from.Acquire(t.Context(), entity, cost)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// nextMinute lets time pass until so long after the begin of the next minute.
func nextMinute(after time.Duration) {
	now := time.Now()
	elapse(now.Truncate(time.Minute).Add(time.Minute + after).Sub(now))
}
