package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/sluice-go/sluice/runtime/region/filestore"
)

// story is what happens while three regions run: one's sync stops, and comes back.
type story struct {
	who          string
	stops, backs time.Duration
	ends         time.Duration
	evict        time.Duration // after so long a silence regions are taken to be gone
}

// mainStory is the story that the program runs. Windows are of a second: three of them, and the heartbeat
// ends; after five the others take the region for gone, and five later share out what it held.
func mainStory() story {
	return story{who: "us", stops: 8 * time.Second, backs: 24 * time.Second, ends: 34 * time.Second,
		evict: 5 * time.Second}
}

// live runs three regions in this process, a second a line.
func live(ctx context.Context, s story, out io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "sluice-regions-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	snapshots, err := filestore.New(dir)
	if err != nil {
		return err
	}
	all, err := newPlaces(ctx, snapshots, s.evict)
	if err != nil {
		return err
	}
	sees := newLookout(all)
	if _, err := fmt.Fprintf(out,
		"%d regions, each with a table of its own, share out rps of chat: G = %d, of which each keeps %d. "+
			"Snapshots are in a folder.\n"+
			"%s's sync stops after %v and is back after %v; a window is %v: after three its heartbeat ends, after %v "+
			"it is taken for gone,\n"+
			"and what it held is shared out when all have known that for five. QUOTA is what the bucket of user-1 "+
			"has,\n"+
			"GRANTED and DENIED are its calls in the last second.\n\n",
		len(all), sees.whole, sees.floor, s.who, s.stops, s.backs, all[0].window(), s.evict); err != nil {
		return err
	}
	err = tell(ctx, s, all, sees, out)
	for _, p := range all {
		err = errors.Join(err, p.close(context.WithoutCancel(ctx)))
	}
	if err != nil {
		return err
	}
	return sees.check(out)
}

// tell runs traffic and syncs until the story ends, or ctx does.
func tell(ctx context.Context, s story, all []*place, sees *lookout, out io.Writer) error {
	ctx, end := context.WithTimeout(ctx, s.ends)
	defer end()
	for _, p := range all {
		if err := p.sync(ctx); err != nil {
			return err
		}
		p.call(ctx)
	}
	if _, err := fmt.Fprintln(out, head(all)); err != nil {
		return err
	}
	tick := time.NewTicker(sees.every)
	defer tick.Stop()
	began, lines := time.Now(), 0
	for left := s.steps(all); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		since := time.Since(began)
		if err := sees.look(context.WithoutCancel(ctx)); err != nil {
			return err
		}
		for len(left) > 0 && since >= left[0].at {
			if err := left[0].do(ctx); err != nil {
				return err
			}
			left = left[1:]
		}
		if since < time.Duration(lines+1)*time.Second {
			continue
		}
		lines++
		if _, err := fmt.Fprintln(out, sees.line(lines)); err != nil {
			return err
		}
	}
}

// step is something that happens.
type step struct {
	at time.Duration
	do func(ctx context.Context) error
}

// steps are what happens, in order.
func (s story) steps(all []*place) []step {
	var steps []step
	for _, p := range all {
		if p.name == s.who {
			steps = []step{
				{s.stops, func(context.Context) error {
					p.stop()
					p.say(p.name + "'s sync stops")
					return nil
				}},
				{s.backs, func(ctx context.Context) error {
					p.say(p.name + "'s sync is back")
					return p.sync(ctx)
				}},
			}
		}
	}
	return steps
}
