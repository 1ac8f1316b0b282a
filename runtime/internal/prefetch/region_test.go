package prefetch_test

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/internal/test/simulated"
	"github.com/sluice-go/sluice/internal/test/storetest"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/region"
	"github.com/sluice-go/sluice/runtime/store"
)

// shared has the snapshots of all regions.
type shared struct {
	mu      sync.Mutex
	objects map[string][]byte
}

// Get implements region.Snapshots.
func (s *shared) Get(_ context.Context, name string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if object, ok := s.objects[name]; ok {
		return object, nil
	}
	return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
}

// Put implements region.Snapshots.
func (s *shared) Put(_ context.Context, name string, object []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[name] = object
	return nil
}

// place is a region: its table, its processes, and its quota of the limit in the course of time.
type place struct {
	engine *memdynamo.Engine
	all    []*process
	quotas []int64 // tokens a second, by window, as its bucket had them
}

// TestQuotaMoves has two regions that divide a limit, with a sync each. Both ask for more than it, first one
// for most of it, and then the other. So quotas move while processes hold blocks that they took by the old
// ones. Together the regions admit no more than the bound of the whole limit, and each table has charged what
// calls have of it.
func TestQuotaMoves(t *testing.T) {
	longform.NoRace(t, "TestRegion and TestHistories run the same goroutines")
	for _, divided := range []bool{true, false} {
		t.Run(fmt.Sprint("divided ", divided), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				def := prefetching(t, life, alike(projectRate, projectRate), alike(1, 1))
				if divided {
					def.Numbers.Regions = &store.Regions{Names: []string{"eu", "us"}, Floor: 5, Window: time.Second}
				}
				places, total := moves(t, def)
				worst := total.excess("project-hot", projectRate, projectRate, life)
				t.Logf("%d admitted, %d tokens beyond the bound, d %v", total.admitted, worst, total.waited)
				if divided != (worst <= 0) {
					t.Errorf("%d tokens beyond the bound of the whole limit", worst)
				}
				for i, p := range places {
					t.Logf("quotas of region %d: %d", i, p.quotas)
					if divided && slices.Max(p.quotas)-slices.Min(p.quotas[len(p.quotas)/3:]) < projectRate/2 {
						t.Error("it hardly moved")
					}
				}
			})
		})
	}
}

// moves plays TestQuotaMoves.
func moves(t *testing.T, def *storetest.Variant) (places []*place, total *books) {
	t.Helper()
	const lasts, many, few = 12 * time.Second, 1_500, 150 // calls a second
	snapshots := &shared{objects: map[string][]byte{}}
	total = newBooks()
	ended := make(chan struct{})
	var calls, syncs sync.WaitGroup
	for i, name := range []string{"eu", "us"} {
		p := &place{engine: newEngine(t)}
		p.engine.Faults().Latency(memdynamo.Constant(2 * time.Millisecond))
		own := newBooks()
		for j := range 3 {
			one := open(t, simulated.Client(p.engine), def)
			rng := rand.New(rand.NewPCG(uint64(i), uint64(j)))
			p.all = append(p.all, one)
			calls.Go(func() {
				for began := time.Now(); time.Since(began) < 2*lasts; {
					rate := few
					if (time.Since(began) < lasts) == (i == 0) {
						rate = many
					}
					sleep(time.Duration(3 * float64(time.Second) / float64(rate) * rng.ExpFloat64()))
					calls.Go(func() {
						called := time.Now()
						if _, err := one.Acquire(t.Context(), hot(), [2]int64{1, 1}); err == nil {
							own.add(hot(), 1, time.Since(called))
							total.admit(hot(), 1, time.Since(called))
						}
					})
				}
			})
		}
		if def.Numbers.Regions != nil {
			syncs.Go(func() { p.sync(t, name, snapshots, def.Spec(), ended) })
		}
		defer func() {
			for _, one := range p.all {
				one.close(t)
			}
			charged, used := stored(t, p.engine, "project-hot", "rpm_tc"), own.net["project-hot"]*bucket.Milli
			if charged != used {
				t.Errorf("%s charged %d, want %d", name, charged, used)
			}
		}()
		places = append(places, p)
	}
	calls.Wait()
	close(ended)
	syncs.Wait()
	return places, total
}

// sync keeps p's quotas until the end.
func (p *place) sync(
	t *testing.T, name string, all region.Snapshots, spec *store.Spec, ended <-chan struct{},
) {
	t.Helper()
	keeper, err := region.New(region.Config{
		Region: name, Table: operator.NewRegional(p.engine.Client(), table, time.Now), Snapshots: all,
		Specs: []*store.Spec{spec}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Error(err)
		return
	}
	for {
		select {
		case <-time.After(spec.Regions.Window):
		case <-ended:
			return
		}
		if _, err := keeper.Cycle(t.Context()); err != nil {
			t.Error(err)
		}
		p.quotas = append(p.quotas, stored(t, p.engine, "project-hot", "rpm_cp")/bucket.Milli)
	}
}
