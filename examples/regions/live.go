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

// told is the story that the program tells. Windows are of a second: three of them, and the heartbeat ends; after five the others
// take the region for gone, and five later share out what it held.
func told() story {
	return story{who: "us", stops: 8 * time.Second, backs: 24 * time.Second, ends: 34 * time.Second, evict: 5 * time.Second}
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
	if _, err := fmt.Fprintf(out, "%d regions, each with a table of its own, share out chat's rps: G = %d; each keeps %d. Snapshots are in a folder, a window is %v.\n"+
		"GRANTED and DENIED are calls of user-1 in the last second, SHARE is what its bucket has now.\n\n", len(all), sees.whole, sees.floor, all[0].window()); err != nil {
		return err
	}
	err = tell(ctx, s, all, sees, out)
	for _, p := range all {
		err = errors.Join(err, p.close(context.WithoutCancel(ctx)))
	}
	if err != nil {
		return err
	}
	return sees.verdict(out)
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
	stopped, back := false, false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		since := time.Since(began)
		if err := sees.look(context.WithoutCancel(ctx)); err != nil {
			return err
		}
		for _, p := range all {
			if p.name != s.who {
				continue
			}
			if !stopped && since >= s.stops {
				stopped = true
				p.stop()
			}
			if !back && since >= s.backs {
				back = true
				if err := p.sync(ctx); err != nil {
					return err
				}
			}
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
