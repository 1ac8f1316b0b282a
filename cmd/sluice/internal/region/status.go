package region

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/internal/connect"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"

	"github.com/alecthomas/kong"

	"github.com/sluice-go/sluice/runtime/region"
	"github.com/sluice-go/sluice/runtime/store"
)

type statusCommand struct {
	connect.NoRedis
	publishing

	Region string  `placeholder:"REGION" help:"AWS region of the S3 client; the bucket may be in another."`
	Entity *string `placeholder:"ENTITY" type:"entity" help:"Show the quotas of this entity as bars."`
	Costs  bool    `help:"${costs}"`
	JSON   bool    `name:"json" help:"Print JSON."`
	prices
}

// Help describes the quotas.
func (statusCommand) Help() string {
	return "It shows what regions have published: their quotas of each limit, and tokens on the way " +
		"from one region to another. Tokens on the way are negative if the receiver has published " +
		"after the sender. The total never exceeds the limit, except for a while after a limit was " +
		"lowered. A silent region keeps its quota. A region that has published nothing, or whose " +
		"epoch has ended, counts with what every region keeps. IN ALL is what regions may hold, LEFT what " +
		"their buckets had: a raised quota adds no tokens, only refill.\n\n" +
		"With --costs, it shows what the syncs come to in 30 days, if they go on as in their last 6 windows: " +
		"read units of overrides and of the daily audit, write units of quotas and heartbeats, reads of a stream " +
		"with one shard, and S3. The default prices are those of us-east-1.\n\n" +
		"The exit code is 1 if a region's snapshot cannot be read.\n\n" +
		"Example: sluice region status --snapshots s3://quotas/limits --entity user-123"
}

// AfterApply checks the flags that other commands have, too.
func (c statusCommand) AfterApply(command *kong.Context) error {
	return errors.Join(c.NoRedis.AfterApply(command), connect.Connection{}.AfterApply(command))
}

// Run reads all snapshots and prints them.
func (c statusCommand) Run(ctx context.Context, p program.Env) error {
	s, regions, err := c.divided()
	if err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return err
	}
	if c.Entity != nil {
		if err := schemafile.CheckEntity(*c.Entity); err != nil {
			return err
		}
	}
	place, err := c.place()
	if err != nil {
		return err
	}
	from, err := place.open(ctx, c.Region)
	if err != nil {
		return err
	}
	now := p.Now()
	world, failed := readSnapshots(ctx, from, regions, now)
	summaries := world.summaries()
	if c.Entity != nil {
		summaries = slices.DeleteFunc(summaries, func(s region.Summary) bool { return s.Entity != *c.Entity })
	}
	var costs []regionCosts
	if c.Costs {
		if costs, err = c.costs(world, s.Specs); err != nil {
			return err
		}
	}
	switch {
	case c.JSON:
		err = worldJSON(p, world, summaries, costs)
	case c.Costs:
		err = describeCosts(p, costs)
	case c.Entity != nil:
		err = describeEntity(p, world, *c.Entity, summaries)
	default:
		err = describeWorld(p, world, summaries)
	}
	return errors.Join(err, failed)
}

// worldSeen is the state of all regions, as published.
type worldSeen struct {
	regions *store.Regions
	now     time.Time
	sites   []siteSeen // in the order of regions.Names
}

// siteSeen is the state of one region.
type siteSeen struct {
	name  string
	state region.State     // empty if the snapshot cannot be read
	snap  *region.Snapshot // nil if there is none
}

// readSnapshots reads the regions' snapshots. The error joins those of unreadable ones; the rest is still
// valid.
func readSnapshots(
	ctx context.Context, from region.Snapshots, regions *store.Regions, now time.Time,
) (w worldSeen, err error) {
	w.regions, w.now = regions, now
	var failed []error
	for _, name := range regions.Names {
		site := siteSeen{name: name, state: region.Silent}
		object, err := from.Get(ctx, name+"/snapshot.json")
		if err == nil {
			site.snap, err = region.Decode(object, name, regions.Window, now, regions.Window)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			site.state = region.NeverSeen
		case err != nil:
			site.state = ""
			failed = append(failed, connect.ExplainS3(err))
		case site.snap.Fresh(now):
			site.state = region.Live
		}
		w.sites = append(w.sites, site)
	}
	var live []*region.Snapshot
	for _, site := range w.sites {
		if site.state == region.Live {
			live = append(live, site.snap)
		}
	}
	for i := range w.sites {
		if site := &w.sites[i]; site.snap != nil && site.snap.Ended(live) {
			site.state = region.Evicted
		}
	}
	return w, errors.Join(failed...)
}

// summaries returns how each limit is divided.
func (w worldSeen) summaries() []region.Summary {
	snaps := make([]*region.Snapshot, len(w.sites))
	for i, site := range w.sites {
		if site.state != region.Evicted {
			snaps[i] = site.snap
		}
	}
	return region.Summarize(w.regions, snaps)
}

// age returns the age of a region's snapshot.
func (w worldSeen) age(site siteSeen) time.Duration {
	return w.now.Sub(time.UnixMilli(site.snap.GeneratedAt))
}

// shownState writes the state of a region.
func (s siteSeen) shownState() string {
	if s.state == "" {
		return "unreadable"
	}
	return string(s.state)
}

// none says that no region has published anything about an entity.
func (w worldSeen) none(entity string) string {
	return fmt.Sprintf("%s: no region has published anything about it: it was not used, is not counted yet, "+
		"or the name is wrong; each region keeps %d %% of its limits", term.Quote(entity), w.regions.Floor)
}
