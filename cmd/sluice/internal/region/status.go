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

	"github.com/alecthomas/kong"

	"github.com/sluice-go/sluice/runtime/region"
	"github.com/sluice-go/sluice/runtime/store"
)

type statusCommand struct {
	connect.NoRedis
	publishing

	Region string  `placeholder:"REGION" help:"AWS region that S3 is asked in; the bucket may be in another."`
	Entity *string `placeholder:"ENTITY" help:"What each region holds of this one's limits, as bars: an entity as stored, as in user-123."`
	JSON   bool    `name:"json" help:"Print it as JSON."`
}

// Help says what is counted.
func (statusCommand) Help() string {
	return `All of it is from what regions have published: what they hold of each limit, and what some have handed over that others have not taken yet. That is below 0 where who took it published later than who gave it; in all it is never more than the limit, but for a while after a limit was lowered. A region that is silent keeps what it holds; of one that has published nothing, or whose epoch has ended, what every region keeps is counted.

The exit code is 1 if a region's snapshot cannot be read.

Example: sluice region status --snapshots s3://quotas/limits --entity user-123`
}

// AfterApply checks the flags that other commands have too.
func (c statusCommand) AfterApply(command *kong.Context) error {
	return errors.Join(c.NoRedis.AfterApply(command), connect.Connection{}.AfterApply(command))
}

// Run reads all snapshots, and prints what they say.
func (c statusCommand) Run(ctx context.Context, p program.Env) error {
	_, regions, err := c.shared()
	if err != nil {
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
	world, failed := look(ctx, from, regions, now)
	summaries := world.summaries()
	if c.Entity != nil {
		summaries = slices.DeleteFunc(summaries, func(s region.Summary) bool { return s.Entity != *c.Entity })
	}
	switch {
	case c.JSON:
		err = worldJSON(p, world, summaries)
	case c.Entity != nil:
		err = describeEntity(p, world, *c.Entity, summaries)
	default:
		err = describeWorld(p, world, summaries)
	}
	return errors.Join(err, failed)
}

// worldSeen is all regions, as they have published.
type worldSeen struct {
	regions *store.Regions
	now     time.Time
	sites   []siteSeen // in the order of the regions' names
}

// siteSeen is one region.
type siteSeen struct {
	name  string
	state region.State     // empty where the snapshot cannot be read
	snap  *region.Snapshot // nil where there is none
}

// look reads the regions' snapshots. The error is of those that cannot be read.
func look(ctx context.Context, from region.Snapshots, regions *store.Regions, now time.Time) (w worldSeen, err error) {
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
			failed = append(failed, err)
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

// summaries are how each limit is shared out.
func (w worldSeen) summaries() []region.Summary {
	snaps := make([]*region.Snapshot, len(w.sites))
	for i, site := range w.sites {
		if site.state != region.Evicted {
			snaps[i] = site.snap
		}
	}
	return region.Summarize(w.regions, snaps)
}

// age is how old a region's snapshot is.
func (w worldSeen) age(site siteSeen) time.Duration {
	return w.now.Sub(time.UnixMilli(site.snap.GeneratedAt))
}

// shownState writes a region's state.
func (s siteSeen) shownState() string {
	if s.state == "" {
		return "unreadable"
	}
	return string(s.state)
}

// none says that nobody has books of an entity.
func (w worldSeen) none(entity string) string {
	return fmt.Sprintf("%s: no region has published anything of it: it was not used, or not yet counted, or its name is misspelt; each region keeps %d %% of its limits", entity, w.regions.Floor)
}
