package dynamo

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/internal/test/storetest"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/store"
)

// price is what a call costs.
type price struct {
	Trips int // round trips
	memdynamo.Units
}

func (p price) String() string {
	return fmt.Sprintf("%d trips, %v read, %v write units", p.Trips, p.Read, p.Write)
}

// idleTimes are the pauses of callers that call rarely.
var idleTimes = []time.Duration{2 * time.Minute, time.Hour, 2 * 24 * time.Hour, 7 * 24 * time.Hour}

// priceAfter returns what the call m costs that comes so long after another one by the same process, on
// buckets that are full within two minutes.
func priceAfter(t *testing.T, idle time.Duration, m member, changes ...storeChange) (p price) {
	t.Helper()
	const trip = 10 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		engine := memdynamo.New()
		_, embeddings := generated(t)
		def := family(embeddings, store.CascadeAtomic, minute(1000), minute(100))
		l, resources, _ := openIdle(t, engine, def, changes...)
		engine.Faults().Latency(memdynamo.Constant(trip / 2))
		for _, m := range []member{m, m} {
			time.Sleep(idle) //nolint:forbidigo // in a bubble of testing/synctest
			engine.ResetConsumed()
			began := time.Now()
			if _, err := resources[0].Acquire(t.Context(), m, tokens{1}); err != nil {
				t.Error(err)
			}
			p = price{int(time.Since(began) / trip), engine.Consumed().Total().Total()}
		}
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	return p
}

// openIdle opens a process on a new table of engine, whose items expire. Time is the bubble's.
func openIdle(
	t *testing.T, engine *memdynamo.Engine, def codec.Resource, changes ...storeChange,
) (*runtime.Limiter, []*runtime.Resource[member, tokens], string) {
	t.Helper()
	client := engine.Client()
	table := dynamotest.Table(t, client, dynamotest.Streamless(operator.Table))
	if _, err := operator.CreateTable(t.Context(), client, table); err != nil { // its TTL
		t.Fatal(err)
	}
	s := New(client, table)
	for _, change := range changes {
		change(s)
	}
	l, resources := storetest.Open[member](t, s, []runtime.Option{
		runtime.WithClock(store.SystemClock()), runtime.WithLogger(slog.New(slog.DiscardHandler)),
	}, def)
	return l, resources, table
}

// TestRareCallers holds what a call costs of a process that calls rarely.
func TestRareCallers(t *testing.T) {
	single, chain := price{1, memdynamo.Units{Read: 1, Write: 1}}, price{1, memdynamo.Units{Read: 2, Write: 4}}
	for _, idle := range idleTimes {
		for m, want := range map[member]price{solo: single, alicesHome: chain} {
			if got := priceAfter(t, idle, m); got != want {
				t.Errorf("after %v, %+v: %v, want %v", idle, m, got, want)
			}
		}
	}
}

// TestRareCallersAreSeen: items that are deleted once they are full cost their callers a trip and two to
// three times the write units.
func TestRareCallersAreSeen(t *testing.T) {
	full := func(s *Store) { s.seams.KeepIdle = 0 }
	for _, idle := range idleTimes[1:] {
		for m, want := range map[member]price{
			solo:       {2, memdynamo.Units{Read: 1, Write: 3}},
			alicesHome: {2, memdynamo.Units{Read: 2, Write: 12}},
		} {
			if got := priceAfter(t, idle, m, full); got != want {
				t.Errorf("after %v, %+v: %v, want %v", idle, m, got, want)
			}
		}
	}
}

// TestLoweredMeanwhile: a limit is lowered while nobody calls. Of a crowd that comes then, as many are
// admitted as the new limit allows, although the first write goes by the old one.
func TestLoweredMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memdynamo.New()
		_, embeddings := generated(t)
		def := family(embeddings, store.CascadeAtomic, minute(1000), minute(100))
		l, resources, table := openIdle(t, engine, def)
		if _, err := resources[0].Acquire(t.Context(), solo, tokens{1}); err != nil {
			t.Fatal(err)
		}
		operators := manager{operator.NewOverrides(engine.Client(), table, store.SystemClock().Now), def.Spec()}
		operators.set(t, "project-1", per(5))
		time.Sleep(2 * time.Minute) //nolint:forbidigo // in a bubble of testing/synctest
		engine.Faults().Latency(memdynamo.Constant(5 * time.Millisecond))
		var crowd sync.WaitGroup
		var admitted, denied atomic.Int64
		for range 20 {
			crowd.Go(func() {
				switch _, err := resources[0].Acquire(t.Context(), solo, tokens{1}); {
				case err == nil:
					admitted.Add(1)
				case isA[*store.DeniedError](err):
					denied.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		crowd.Wait()
		if admitted.Load() != 5 || denied.Load() != 15 {
			t.Errorf("%d admitted and %d denied, want 5 and 15", admitted.Load(), denied.Load())
		}
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
