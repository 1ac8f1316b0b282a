package dynamo

import (
	"context"
	"fmt"
	"math/rand/v2"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/gen/testdata/golden/inflight/out"
	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/internal/test/simulated"
	"github.com/sluice-go/sluice/internal/test/storetest"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// mortal is a process's connection, which its death cuts: between two requests, or at a write that extends,
// before it arrives or after it was applied.
type mortal struct {
	*line
	mu   sync.Mutex
	when death
	died chan struct{}
}

// death is when a process dies.
type death int

const (
	between death = iota
	beforeWrite
	afterWrite
)

// dies says that the process is to die at its next write.
func (m *mortal) dies(when death) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.when = when
}

// cut cuts the connection, if it is to be cut now.
func (m *mortal) cut(now death) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.when != now {
		return
	}
	m.when = between
	m.line.mu.Lock()
	m.line.dead = true
	m.line.mu.Unlock()
	close(m.died)
}

func (m *mortal) UpdateItem(
	ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	m.cut(beforeWrite)
	out, err := m.line.UpdateItem(ctx, in, o...)
	m.cut(afterWrite)
	if down := m.line.down(); down != nil {
		return nil, down
	}
	return out, err
}

// killing has processes die with open leases on one bucket, one after the other in each of some places.
type killing struct {
	*airfield
	api wire.API // of processes

	mu       sync.Mutex
	most     int   // deaths with open leases
	deaths   int   // so far
	old      int   // deaths of processes whose leases had been extended
	leaked   int   // leases that died with their process
	admitted int64 // slots of calls
	month    int64 // what these calls have reserved of the month
}

// next reports whether another process is to live and die.
func (k *killing) next() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.deaths < k.most
}

// live has one process take one to three leases, each of a slot or two, and die with them.
func (k *killing) live(t *testing.T, rng *rand.Rand) {
	t.Helper()
	m := &mortal{line: &line{API: k.api}, died: make(chan struct{})}
	lim := k.process(t, m)
	var open []*inflight.CallsLease
	for range 1 + rng.IntN(3) {
		cost := inflight.CallsCost{Month: 1 + rng.Int64N(3), Parallel: 1 + rng.Int64N(2)}
		lease, err := lim.Calls.Acquire(t.Context(), acme, cost)
		switch {
		case err == nil:
			open = append(open, lease)
			k.mu.Lock()
			k.admitted, k.month = k.admitted+cost.Parallel, k.month+cost.Month
			k.mu.Unlock()
		case isA[*inflight.DeniedError](err):
			<-time.After(time.Duration(5+rng.IntN(20)) * time.Second)
		default:
			t.Errorf("a call failed: %v", err)
		}
	}
	when, life := death(rng.IntN(3)), time.Duration(rng.Int64N(int64(3*time.Minute)))
	began := time.Now()
	if when != between {
		<-time.After(life / 2)
		m.dies(when)
	}
	select {
	case <-m.died:
	case <-time.After(life):
	}
	m.line.die(lim)
	goruntime.KeepAlive(open)
	if len(open) == 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.deaths, k.leaked = k.deaths+1, k.leaked+len(open)
	if time.Since(began) > 90*time.Second {
		k.old++
	}
}

// back says what is not back of acme's limits, or is counted wrong, two minutes after the last death.
func (k *killing) back(t *testing.T) (wrong string) {
	t.Helper()
	lim := k.open(t)
	snap, err := lim.Calls.Peek(t.Context(), acme)
	if err != nil {
		t.Fatal(err)
	}
	free := snap.Buckets[0].Available
	if free.Parallel != 20 || free.Month != 500 {
		return fmt.Sprintf("%d of 20 slots and %d of 500 of the month are back", free.Parallel, free.Month)
	}
	lease, err := lim.Calls.Acquire(t.Context(), acme, inflight.CallsCost{Parallel: 20, Month: 500})
	if err != nil {
		return fmt.Sprintf("what was free is not had: %v", err)
	}
	lease.Release(t.Context())
	if s := k.slots(t, acme.String(), inflight.Calls); s.free != 20 || s.used != k.admitted {
		return fmt.Sprintf("%+v, want all free and %d used", s, k.admitted)
	}
	table := storetest.Table{Client: k.client, Name: k.table}
	item := table.Get(t, storetest.BucketKey(acme.String(), inflight.Calls))
	if used := number(item["b_month_tc"]) / bucket.Milli; used != k.month {
		return fmt.Sprintf("%d of the month in usage, want %d", used, k.month)
	}
	return ""
}

// kill has so many processes die, and returns what is wrong two minutes later.
func (k *killing) kill(t *testing.T, places int) string {
	t.Helper()
	k.api = simulated.Client(k.engine)
	k.engine.Faults().Latency(memdynamo.LogNormal(2*time.Millisecond, 0.5))
	var lives sync.WaitGroup
	for place := range places {
		rng := rand.New(rand.NewPCG(uint64(place), 1))
		lives.Go(func() {
			for k.next() {
				k.live(t, rng)
			}
		})
	}
	lives.Wait()
	elapse(2 * time.Minute)
	return k.back(t)
}

// TestHoldKills: processes die with one to three open leases each, some before they extend them, some after,
// some while they do. Two minutes after the last death, all slots are back, as is what was reserved. Usage
// has what was admitted.
func TestHoldKills(t *testing.T) {
	inFlight(t, func(t *testing.T, a *airfield) {
		t.Helper()
		k := &killing{airfield: a, most: longform.Count(t, "kills", 10_000, 200)}
		if wrong := k.kill(t, 8); wrong != "" {
			t.Error(wrong)
		}
		t.Logf("%d deaths with %d open leases, %d of them after an extension; %d slots admitted", k.deaths,
			k.leaked, k.old, k.admitted)
		if k.old == 0 {
			t.Error("no process died after an extension")
		}
	})
}

// TestHoldKillsCaught: what does not come back, or is counted twice, is seen.
func TestHoldKillsCaught(t *testing.T) {
	longform.NoRace(t, "a control, whose broken variant ships nowhere")
	for name, test := range map[string]struct {
		breaks func(*testing.T, *killing) func(context.Context)
		want   string
	}{
		"a process lives on": {func(t *testing.T, k *killing) func(context.Context) {
			t.Helper()
			return take(t, k.open(t).Calls, inflight.CallsEntity(acme), inflight.CallsCost{Month: 1}).Keep
		}, "19 of 20 slots and 499 of 500 of the month are back"},
		"an admission is not counted": {func(_ *testing.T, k *killing) func(context.Context) {
			k.admitted++
			return func(context.Context) {}
		}, "want all free and"},
	} {
		t.Run(name, func(t *testing.T) {
			inFlight(t, func(t *testing.T, a *airfield) {
				t.Helper()
				k := &killing{airfield: a, most: 5}
				end := test.breaks(t, k)
				if wrong := k.kill(t, 2); !strings.Contains(wrong, test.want) {
					t.Errorf("found %q, want %q", wrong, test.want)
				}
				end(t.Context())
			})
		})
	}
}
