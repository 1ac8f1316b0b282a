package load_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/cmd/sluice/internal/tool/load"
	"github.com/sluice-go/sluice/gen"
	"github.com/sluice-go/sluice/internal/test/simulated"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/store"
)

const table = "load"

// world is an engine with a table, and a load on the resource api of a schema with one limit.
type world struct {
	*testing.T
	engine *memdynamo.Engine
	config load.Config
}

// newWorld has users call, whose limit is capacity a minute. It is for use in a bubble.
func newWorld(t *testing.T, capacity int64) *world {
	t.Helper()
	w := &world{T: t, engine: memdynamo.New()}
	if err := simulated.CreateTable(t.Context(), w.engine, table); err != nil {
		t.Fatal(err)
	}
	statements, err := gen.LoadStatements("testdata/limits.yaml")
	if err != nil {
		t.Fatal(err)
	}
	kinds := []store.Kind{
		{Name: "org", Prefix: "org-", Parent: store.NoParent},
		{Name: "user", Prefix: "user-", Parent: 0, Limits: []bucket.Limit{bucket.Per(capacity, time.Minute)},
			PerCall: []int64{1}},
	}
	w.config = load.Config{
		Plan: &load.Plan{
			Specs: []*store.Spec{{Resource: "api", Revision: 1, Limits: []string{"rpm"}, Kinds: kinds,
				OnUnavailable: store.Deny}},
			Mix:      []load.Portion{{Kind: 1, Weight: 1, Cost: []load.Range{{Least: 1, Most: 1}}}},
			Entities: 10, Children: 10, Seed: 1,
		},
		Statements: statements, Limiters: 1, Callers: 4, Duration: 10 * time.Second, Clock: store.SystemClock(),
		Store: func() store.Store { return dynamo.New(simulated.Client(w.engine), table) },
	}
	return w
}

// do runs the load, and holds its count of units against the engine's bill.
func (w *world) do(ctx context.Context) *load.Result {
	w.Helper()
	r, err := load.New(w.config)
	if err != nil {
		w.Fatal(err)
	}
	before := w.engine.Consumed().Table(table).Total()
	s := r.Do(ctx)
	after := w.engine.Consumed().Table(table).Total()
	if read, write := after.Read-before.Read, after.Write-before.Write; math.Abs(read-s.Units.Read) > 1e-6 ||
		math.Abs(write-s.Units.Write) > 1e-6 {
		w.Errorf("the engine billed %v read and %v write units, the load counted %+v", read, write, s.Units)
	}
	if s.Lost != 0 || s.Unclosed != nil || s.Setup != nil {
		w.Errorf("lost %d, %v, %v", s.Lost, s.Unclosed, s.Setup)
	}
	return s
}

// consumed is what the stored buckets say was taken, in tokens.
func (w *world) consumed() (tokens float64) {
	w.Helper()
	for page, err := range operator.Buckets(w.Context(), w.engine.Client(), table, "api", "") {
		if err != nil {
			w.Fatal(err)
		}
		for _, b := range page.Buckets {
			for _, l := range b.Image.Extra {
				tokens += float64(l.Balance.Consumed) / bucket.Milli
			}
		}
	}
	return tokens
}

// TestClosedLoop: callers call as fast as they are answered, and what was admitted is what is stored.
func TestClosedLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 30)
		w.engine.Faults().Latency(memdynamo.Constant(2 * time.Millisecond))
		w.config.Calls, w.config.Duration = 1000, time.Minute
		s := w.do(t.Context())
		if s.Made != 1000 || s.All.Calls != 1000 || s.Ended != load.EndedCalls {
			t.Errorf("%d calls made, %d ended, by %s", s.Made, s.All.Calls, s.Ended)
		}
		admitted, denied := s.Outcomes[load.Admitted], s.Outcomes[load.Denied]
		if admitted.Calls < 300 || admitted.Calls+denied.Calls != 1000 {
			t.Errorf("%d admitted, %d denied", admitted.Calls, denied.Calls)
		}
		if got := w.consumed(); got != float64(admitted.Calls) {
			t.Errorf("%v tokens were taken, %d calls admitted", got, admitted.Calls)
		}
		if admitted.P50 < 4 || admitted.Max < admitted.P99 || admitted.P99 < admitted.P50 {
			t.Errorf("%+v of round trips of 4 ms", admitted)
		}
		if len(s.Denials) != 1 ||
			s.Denials[0] != (load.Denial{Resource: "api", Kind: "user", Limit: "rpm", Calls: denied.Calls}) {
			t.Errorf("%+v, of %d denials", s.Denials, denied.Calls)
		}
	})
}

// TestOpenLoop: calls come due at a rate, however long others take, and latency counts from then. Nothing
// answers for a second, and the latencies of the calls due meanwhile show it. Callers that wait for their
// answers would have hidden it.
func TestOpenLoop(t *testing.T) {
	stall := func(t *testing.T, rate float64) *load.Result {
		t.Helper()
		w := newWorld(t, 1_000_000)
		w.config.Rate, w.config.Plan.Entities = rate, 1
		w.engine.Faults().Latency(memdynamo.Constant(time.Millisecond))
		time.AfterFunc(5*time.Second,
			func() { w.engine.Faults().Latency(memdynamo.Constant(150 * time.Millisecond)) })
		time.AfterFunc(6*time.Second, func() { w.engine.Faults().Latency(memdynamo.Constant(time.Millisecond)) })
		return w.do(t.Context())
	}
	synctest.Test(t, func(t *testing.T) {
		s := stall(t, 100)
		if s.Made != 1000 || s.Due != 1000 {
			t.Errorf("%d of %d calls made, want 1000", s.Made, s.Due)
		}
		if s.All.P90 < 100 || s.Waited.Max < 100 {
			t.Errorf("a tenth of all calls was due while nothing answered: %+v, began %+v", s.All, s.Waited)
		}
	})
	synctest.Test(t, func(t *testing.T) { // the control
		if s := stall(t, 0); s.All.P90 > 10 || s.Waited.Calls != 0 {
			t.Errorf("callers who wait for their answers see: %+v, began %+v", s.All, s.Waited)
		}
	})
}

// lateClock is a clock whose timers are late.
type lateClock struct {
	store.Clock

	by time.Duration
}

func (c lateClock) After(d time.Duration) <-chan time.Time { return c.Clock.After(d + c.by) }

// TestTimers: latency leaves out how late timers are, a millisecond or so, and includes how late a process
// without a CPU is. The report has both.
func TestTimers(t *testing.T) {
	for late, want := range map[time.Duration]float64{time.Millisecond: 2, 50 * time.Millisecond: 52} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1_000_000)
			w.engine.Faults().Latency(memdynamo.Constant(time.Millisecond))
			w.config.Clock, w.config.Rate, w.config.Callers = lateClock{store.SystemClock(), late}, 10, 16
			s := w.do(t.Context())
			if math.Abs(s.All.P50-want) > 0.1 || math.Abs(s.Waited.P50-float64(late)/1e6) > 0.1 {
				t.Errorf("timers that are %v late: acquires %+v, began late by %+v", late, s.All, s.Waited)
			}
		})
	}
}

// TestOverload: what came due and found no caller is not passed over in silence.
func TestOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1_000_000)
		w.config.Rate, w.config.Callers, w.config.Plan.Entities = 100, 1, 1
		w.engine.Faults().Latency(memdynamo.Constant(50 * time.Millisecond))
		s := w.do(t.Context())
		if s.Due != 1000 || s.Made < 90 || s.Made > 101 || s.All.Calls != s.Made || s.Ended != load.EndedDuration {
			t.Errorf("%d of %d calls made, %d ended, by %s", s.Made, s.Due, s.All.Calls, s.Ended)
		}
		if s.All.Max < 8000 {
			t.Errorf("the last call began when it was due: %+v", s.All)
		}
	})
}

// TestEnds: a load ends early by its bound of units, or when its context does; what is under way is finished.
func TestEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1_000_000)
		w.engine.Faults().Latency(memdynamo.Constant(time.Millisecond))
		w.config.Units = 50
		if s := w.do(t.Context()); s.Ended != load.EndedUnits || s.Units.Write+s.Units.Read < 50 || s.Units.Write+
			s.Units.Read > 50+4*4 {
			t.Errorf("ended by %s at %+v", s.Ended, s.Units)
		}
		w.config.Units = 0
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if s := w.do(ctx); s.Ended != load.EndedEarly || s.Seconds < 1 || s.Seconds > 1.1 ||
			s.Outcomes[load.Failed].Calls != 0 {
			t.Errorf("ended by %s after %vs, %+v", s.Ended, s.Seconds, s.Outcomes[load.Failed])
		}
	})
}

// TestEndsWhileCallersWait: a bound of units holds though more callers than that has calls wait for theirs to
// come due, and does not wait for them.
func TestEndsWhileCallersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1_000_000)
		w.engine.Faults().Latency(memdynamo.Constant(time.Millisecond))
		w.config.Units, w.config.Rate, w.config.Callers, w.config.Duration = 50, 10, 500, time.Hour
		s := w.do(t.Context())
		if used := s.Units.Write + s.Units.Read; s.Ended != load.EndedUnits || used < 50 || used > 50+4 ||
			s.Due != s.Made || s.Seconds > 10 {
			t.Errorf("ended by %s at %+v, %d of %d calls made in %vs", s.Ended, s.Units, s.Made, s.Due, s.Seconds)
		}
	})
}

// TestSettles: what is settled is what is stored in the end, and settles that lag behind are waited for.
func TestSettles(t *testing.T) {
	for _, lazy := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1_000_000)
			w.engine.Faults().Latency(memdynamo.Constant(time.Millisecond))
			w.config.Calls = 200
			w.config.Plan.Specs[0].LazySettle = lazy
			w.config.Plan.Mix[0].Cost = []load.Range{{Least: 10, Most: 10}}
			w.config.Plan.Mix[0].Settle = []load.Range{{Least: 7, Most: 7}}
			if s := w.do(t.Context()); s.Settles.Calls != 200 || w.consumed() != 7*200 {
				t.Errorf("%d settles, %v tokens are stored as consumed, want 1400", s.Settles.Calls, w.consumed())
			}
		})
	}
}

// TestFailures: a store that is down fails calls under policy deny, which are counted and told apart from
// denials.
func TestFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1_000_000)
		w.engine.Faults().Latency(memdynamo.Constant(time.Millisecond))
		time.AfterFunc(5*time.Second, func() { w.engine.Faults().Down(true) })
		w.config.Rate = 20
		s := w.do(t.Context())
		failed := s.Outcomes[load.Failed].Calls
		if s.Made != 200 || failed < 90 || failed > 110 || len(s.Failures) != 1 ||
			s.Failures[0].What != "acquire: the store did not answer" || s.Failures[0].Calls != failed {
			t.Errorf("%d calls, %d failed: %+v", s.Made, failed, s.Failures)
		}
	})
}

// TestBillIsHeldAgainst: the comparison with the engine's bill sees a unit that the load has not consumed.
func TestBillIsHeldAgainst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1_000_000)
		w.config.Calls = 3
		r, err := load.New(w.config)
		if err != nil {
			t.Fatal(err)
		}
		before := w.engine.Consumed().Table(table).Total().Write
		s := r.Do(t.Context())
		name := table
		item := codec.Item{"PK": codec.S("a"), "SK": codec.S("b")}
		if _, err := w.engine.Client().PutItem(t.Context(),
			&dynamodb.PutItemInput{TableName: &name, Item: item}); err != nil {
			t.Fatal(err)
		}
		if bill := w.engine.Consumed().Table(table).Total().Write - before; bill != s.Units.Write+1 {
			t.Errorf("billed %v, counted %+v and 1 besides", bill, s.Units)
		}
	})
}

// TestPooled: calls whose tokens were prefetched are counted; without prefetch there are none.
func TestPooled(t *testing.T) {
	for prefetch, least := range map[time.Duration]int64{0: 0, 200 * time.Millisecond: 900} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 60_000)
			w.engine.Faults().Latency(memdynamo.Constant(2 * time.Millisecond))
			w.config.Plan.Specs[0].Prefetch = prefetch
			w.config.Plan.Entities, w.config.Calls, w.config.Rate = 1, 1000, 500
			s := w.do(t.Context())
			if s.Pooled < least || (s.Pooled > 0) != (prefetch > 0) || s.Outcomes[load.Admitted].Calls != 1000 {
				t.Errorf("prefetch %v: %d of %d made no request", prefetch, s.Pooled, s.Outcomes[load.Admitted].Calls)
			}
			if got := w.consumed(); got != 1000 {
				t.Errorf("prefetch %v: %v tokens were taken of 1,000 calls", prefetch, got)
			}
		})
	}
}
