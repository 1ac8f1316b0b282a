package region_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/examples/regionsync/limits"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/region"
	"github.com/sluice-go/sluice/runtime/region/filestore"
)

// tick is a clock that the Example moves. A service leaves it out.
type tick struct{ now atomic.Pointer[time.Time] }

func (c *tick) Set(now time.Time)                    { c.now.Store(&now) }
func (c *tick) Now() time.Time                       { return *c.now.Load() }
func (c *tick) After(time.Duration) <-chan time.Time { return nil }

// place is a region: its limiter on its own table, and its sync.
type place struct {
	name string
	lim  *limits.Limiter
	sync *region.Sync
}

// newPlace returns a region whose table is empty. All regions share the snapshots.
func newPlace(ctx context.Context, name string, snapshots region.Snapshots, clock *tick) (*place, error) {
	client := memdynamo.New(memdynamo.WithClock(clock)).Client()
	if _, err := operator.CreateTable(ctx, client, "rate_limits"); err != nil {
		return nil, err
	}
	lim, err := limits.New(dynamo.New(client, "rate_limits"),
		runtime.WithClock(clock), runtime.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, err
	}
	config := region.Config{
		Region: name, Table: operator.NewRegional(client, "rate_limits", clock.Now),
		Snapshots: snapshots, Specs: lim.Specs(),
	}
	config.Clock, config.Logger = clock, slog.New(slog.DiscardHandler) // of the Example
	sync, err := region.New(config)
	return &place{name, lim, sync}, err
}

// minute has a user make calls in a region, and then a cycle of its sync. A service calls sync.Run.
func (p *place) minute(ctx context.Context, calls int64) error {
	if _, err := p.lim.GPT4.Acquire(ctx, limits.User{ID: "123"}, limits.GPT4Cost{RPM: calls}); err != nil {
		return err
	}
	report, err := p.sync.Cycle(ctx)
	if err != nil {
		return err
	}
	return report.Failures(10)
}

// A user calls mostly in one region, so that one gets more of the limit of 1,000 calls a minute.
func Example() {
	ctx, clock := context.Background(), &tick{}
	clock.Set(time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC))
	dir, err := os.MkdirTemp("", "snapshots")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	snapshots, _ := filestore.New(dir) // for regions far apart: package s3store
	var places []*place
	for _, name := range []string{"eu-central-1", "us-east-1"} {
		p, err := newPlace(ctx, name, snapshots, clock)
		if err != nil {
			fmt.Println(err)
			return
		}
		places = append(places, p)
	}
	for range 12 {
		clock.Set(clock.Now().Add(time.Minute))
		for i, calls := range []int64{45, 15} {
			if err := places[i].minute(ctx, calls); err != nil {
				fmt.Println(err)
			}
		}
	}
	for _, p := range places {
		quota, err := p.lim.GPT4.Peek(ctx, limits.User{ID: "123"})
		fmt.Println(p.name, quota.Buckets[0].Capacity.RPM, err)
	}
	// Output:
	// eu-central-1 725 <nil>
	// us-east-1 262 <nil>
}
