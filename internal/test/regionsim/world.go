// Package regionsim simulates regions that divide limits: syncs, their tables, a store of snapshots, traffic,
// and faults, on a virtual clock. A World is the input. Run plays it, checks at every event what processes
// may use, and returns what it saw.
//
// The worst possible process determines what processes may use. It has read each item just before it was
// written, keeps it for as long as is allowed, and its clock is as slow as any. A limit that is changed
// counts as before until all regions have had the time to follow.
package regionsim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/region"
	"github.com/sluice-go/sluice/runtime/store"
)

// World is what a history is made of. The same World gives the same history.
type World struct {
	Seed     uint64        // of all that is random: when cycles begin, what calls take, clocks, settles, noise
	Names    []string      // of the regions, sorted
	Window   time.Duration // between two cycles of a region
	Floor    int64         // what each region keeps of a limit, percent
	Evict    time.Duration // as region.Config has it
	Writers  int           // as if so many quotas were written at once: each takes that much less; 0 is 1
	Duration time.Duration
	Skew     time.Duration // clocks are up to so much off, either way: those of syncs, and of processes

	Entities  int // user-1 and so on: each has a bucket of each resource in each region
	Resources []Resource
	Load      func(entity, resource int) Load // by index, from 0 on
	// percent of half windows at whose end more is given back than was charged in them
	Settles int
	Calm    time.Duration // from then on, demand stays as it is; 0 is never
	Faults  []Fault

	New  func(region.Config) (Sync, error) // as region.New
	Wrap Wrap                              // what each sync sees; nil for all that there is
	// processes remember what they read for so long; 0 is Window, as it should be
	Keep time.Duration
	// syncs take rates from the stream; they read all buckets at the start, after losses, and once in Audit
	Stream bool
	Audit  time.Duration // as region.Config has it

	Books bool              // Sample.Unheld and Unbegun are wanted: it takes reading what syncs publish
	Watch func(Sample)      // is called once a window; may be nil
	Trace func(line string) // is told all that syncs do, and that happens to them; may be nil
}

// Wrap returns what a region's sync sees in place of its table and of the store: how the test of a test
// breaks a sync. It is called for each sync that is started.
type Wrap func(region int, t region.Table, s region.Snapshots) (region.Table, region.Snapshots)

// Resource is one that is shared out.
type Resource struct {
	Name   string
	Limits []Limit
}

// Limit is one of a resource's limits.
type Limit struct {
	Name  string
	Whole bucket.Limit // what all regions have together
}

// Sync is what is played: *region.Sync, or one that does worse.
type Sync interface {
	Cycle(ctx context.Context) (*region.Report, error)
}

// begin is when every world begins.
var begin = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// world is a World at play.
type world struct {
	World
	schedule
	rng     *rand.Rand
	specs   []*store.Spec
	series  []*series
	byName  map[place]*series
	regions []*home
	objects *backend
	judge   judge
}

// place is a bucket, of every region's.
type place struct{ entity, resource string }

// series is a bucket of every region's, and what is asked of it.
type series struct {
	place
	index    int
	resource int
	load     Load
}

// home is a region.
type home struct {
	index  int
	name   string
	table  *table
	flows  []*flow // by series
	host   *host
	stream *stream       // nil without World.Stream
	phase  time.Duration // of its cycles
	cycles int
}

// kind is whom limits are for.
const kind = "user"

// Run plays w, until its end or until something was violated.
func (w World) Run() *Result {
	all := &world{World: w, rng: rand.New(rand.NewPCG(w.Seed, 10)), byName: map[place]*series{}}
	if all.Keep == 0 {
		all.Keep = w.Window
	}
	if all.Calm == 0 {
		all.Calm = w.Duration
	}
	quota := &store.Regions{Names: w.Names, Floor: w.Floor, Window: w.Window}
	for r, res := range w.Resources {
		spec := &store.Spec{Resource: res.Name, Revision: 1, Regions: quota}
		k := store.Kind{Name: kind, Prefix: kind + "-", Parent: store.NoParent}
		for _, l := range res.Limits {
			spec.Limits = append(spec.Limits, l.Name)
			k.Limits, k.PerCall = append(k.Limits, l.Whole), append(k.PerCall, 0)
		}
		spec.Kinds = []store.Kind{k}
		all.specs = append(all.specs, spec)
		for e := range w.Entities {
			s := &series{place{fmt.Sprint(kind, "-", e+1), res.Name}, len(all.series), r, w.Load(e, r)}
			all.series = append(all.series, s)
			all.byName[s.place] = s
		}
	}
	all.objects = &backend{world: all, objects: map[string][]object{}}
	for i, name := range w.Names {
		h := &home{index: i, name: name, phase: upTo(all.rng, w.Window)}
		h.table = newTable(all, h)
		for _, s := range all.series {
			h.flows = append(h.flows, newFlow(s, len(all.specs[s.resource].Limits)))
		}
		h.host = &host{world: all, home: h}
		all.regions = append(all.regions, h)
	}
	all.judge.begin(all)
	for n, f := range w.Faults {
		f.At += time.Duration(n) // so that no two are at one instant
		all.arm(f)
	}
	for _, h := range all.regions {
		if w.Stream {
			all.open(h)
		}
		h.host.start(0)
	}
	for at := w.Window; at <= w.Duration; at += w.Window {
		all.after(at, all.judge.sample)
	}
	all.run(w.Duration, func() bool { return len(all.judge.Violations) > 0 })
	all.end()
	return all.judge.close()
}

// upTo is a span below most.
func upTo(rng *rand.Rand, most time.Duration) time.Duration {
	if most <= 0 {
		return 0
	}
	return time.Duration(rng.Int64N(int64(most)))
}

// millis is an instant of the world, in ms, by a clock that is so much ahead.
func (w *world) millis(ahead time.Duration) int64 { return begin.Add(w.now + ahead).UnixMilli() }

// whole returns what the schema says of a limit.
func (w *world) whole(s *series, limit int) bucket.Limit {
	return w.Resources[s.resource].Limits[limit].Whole
}

// keeps returns what every region keeps of whole, in tokens.
func (w *world) keeps(whole bucket.Limit) int64 {
	return w.specs[0].Regions.Keeps(whole).Capacity / bucket.Milli
}

// trace adds a line to the world's trace.
func (w *world) trace(h *home, format string, args ...any) {
	if w.Trace == nil {
		return
	}
	at := "world"
	if h != nil {
		at = h.name
	}
	w.Trace(fmt.Sprintf("%9.3fs %-5s %s", w.now.Seconds(), at, fmt.Sprintf(format, args...)))
}

// find returns the bucket that a call is about.
func (w *world) find(entity, resource string) (*series, error) {
	s := w.byName[place{entity, resource}]
	if s == nil {
		return nil, fmt.Errorf("regionsim: nobody knows %s on %s", entity, resource)
	}
	return s, nil
}

// from returns the regions in order, from one on.
func (w *world) from(first int) []*home {
	first %= len(w.regions)
	return slices.Concat(w.regions[first:], w.regions[:first])
}
