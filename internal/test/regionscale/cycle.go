package regionscale

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/region"
	"github.com/sluice-go/sluice/runtime/region/images"
	"github.com/sluice-go/sluice/runtime/store"
)

// Cycle has cycles of one region whose buckets are all used. The other regions have published a new snapshot
// each time. Nothing leaves the process, and a cycle waits for nothing.
type Cycle struct {
	now      time.Time
	specs    []*store.Spec
	entities []string
	objects  map[string][]byte
	syncs    []*region.Sync
	quotas   int // of the last cycle
}

// NewCycle makes regions of so many entities that have divided their limits. With stream, syncs take rates
// and balances from the table's stream, else they read every bucket.
func NewCycle(ctx context.Context, entities int, stream bool) (*Cycle, error) {
	c := &Cycle{now: begin, objects: map[string][]byte{}}
	regions := &store.Regions{Names: names(), Floor: floor, Window: Window}
	for r := range Resources {
		c.specs = append(c.specs, &store.Spec{
			Resource: fmt.Sprint("model-", r), Revision: 1, Limits: []string{"rpm"}, Regions: regions,
			Kinds: []store.Kind{{Name: "user", Prefix: "user-", Parent: store.NoParent,
				Limits: []bucket.Limit{bucket.Per(whole, time.Minute)}, PerCall: []int64{1}}},
		})
	}
	for e := range entities {
		c.entities = append(c.entities, fmt.Sprintf("user-%08x-%04x-%012x", e, e*7, e*31))
	}
	for i, name := range regions.Names {
		config := region.Config{Region: name, Table: &table{Cycle: c, region: i}, Snapshots: c, Specs: c.specs,
			Clock: c, Logger: slog.New(slog.DiscardHandler)}
		if stream {
			config.Images = images.New(c.specs)
			config.Images.Reading([]string{shard})
		}
		s, err := region.New(config)
		if err != nil {
			return nil, err
		}
		c.syncs = append(c.syncs, s)
	}
	const begun = 12 // windows, until quotas have followed demand
	for range begun {
		if err := errors.Join(c.Others(ctx), c.Own(ctx)); err != nil {
			return nil, err
		}
	}
	if c.quotas != entities*Resources {
		return nil, fmt.Errorf("a cycle is of %d quotas, want %d", c.quotas, entities*Resources)
	}
	return c, nil
}

// shard is the only one of each stream.
const shard = "shard"

// Others has a window pass, and a cycle of each region except the first.
func (c *Cycle) Others(ctx context.Context) error {
	c.now = c.now.Add(Window)
	for _, s := range c.syncs {
		if err := c.feed(ctx, s); err != nil {
			return err
		}
	}
	for _, s := range c.syncs[1:] {
		if err := c.cycle(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// Own has a cycle of the first region: the one to measure.
func (c *Cycle) Own(ctx context.Context) error { return c.cycle(ctx, c.syncs[0]) }

func (c *Cycle) cycle(ctx context.Context, s *region.Sync) error {
	r, err := s.Cycle(ctx)
	if err != nil {
		return err
	}
	c.quotas = r.Quotas
	return r.Failures(1)
}

// feed brings the images of s up to date, if it has any.
func (c *Cycle) feed(ctx context.Context, s *region.Sync) error {
	m := s.Images
	if m == nil {
		return nil
	}
	m.Heard(shard, c.now, c.now)
	for _, spec := range c.specs {
		if err := s.Table.Each(ctx, spec.Resource, func(entity string, img *bucket.Image) {
			m.Put(spec.Resource, entity, "1", img)
		}); err != nil {
			return err
		}
	}
	return nil
}

// Now implements store.Clock.
func (c *Cycle) Now() time.Time { return c.now }

// After implements store.Clock. Nothing waits for it.
func (*Cycle) After(time.Duration) <-chan time.Time { return nil }

// Get implements region.Snapshots.
func (c *Cycle) Get(_ context.Context, name string) ([]byte, error) {
	if o := c.objects[name]; o != nil {
		return o, nil
	}
	return nil, fs.ErrNotExist
}

// Put implements region.Snapshots.
func (c *Cycle) Put(_ context.Context, name string, object []byte) error {
	c.objects[name] = object
	return nil
}

// table is the table of one region.
type table struct {
	*Cycle
	region int
	beat   store.Heartbeat
}

// Each implements region.Table. Every third bucket of a region is used alike, and another third in each.
func (t *table) Each(_ context.Context, _ string, f func(string, *bucket.Image)) error {
	ms := t.now.UnixMilli()
	for i, entity := range t.entities {
		portion := 1 + int64(i+t.region)%3
		limit := bucket.Per(whole, time.Minute).Quota(portion * 150)
		f(entity, &bucket.Image{Refilled: ms, TTL: ms/1000 + 1000, Extra: []bucket.Named{{Name: "rpm",
			Balance: bucket.Balance{Limit: limit, Tokens: limit.Burst, Consumed: ms * portion}}}})
	}
	return nil
}

// Get implements region.Table. Nothing is stored.
func (*table) Get(_ context.Context, _ *store.Spec, at ...string) ([]store.Stored, error) {
	return make([]store.Stored, len(at)), nil
}

// PutQuota implements region.Table.
func (*table) PutQuota(context.Context, *store.Spec, store.Stored) (store.Revision, error) {
	return "1", nil
}

// Grant implements region.Table.
func (*table) Grant(context.Context, *store.Spec, string, []bucket.Limit, []int64) (bool, error) {
	return false, nil
}

// Heartbeat implements region.Table.
func (t *table) Heartbeat(context.Context) (store.Heartbeat, error) { return t.beat, nil }

// PutHeartbeat implements region.Table.
func (t *table) PutHeartbeat(_ context.Context, h store.Heartbeat) error {
	t.beat = h
	return nil
}
