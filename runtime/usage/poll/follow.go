package poll

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

// relist is how often the streams are described again where no shard ends.
const relist = time.Minute

// run is one Run or Drain.
type run struct {
	*Poller

	once     bool // read to the end as it is, and no further
	began    time.Time
	progress progress
	lanes    map[string]*lane
	underWay int
	finished chan finish
	reading  sync.WaitGroup
}

// lane is what is known of one shard.
type lane struct {
	shard
	position

	kept time.Time // at, of its checkpoint; zero for none

	listed  bool
	reading bool // its goroutine is under way
	rested  bool // it had nothing more, and that was all that was asked for
}

// finish is that a shard is not read any more.
type finish struct {
	lane *lane
	at   position
	ending
	err error
}

// follow reads the table's streams. It returns once every shard's goroutine has ended.
func (p *Poller) follow(ctx context.Context, once bool) error {
	r := &run{
		Poller: p, once: once, began: p.Clock.Now(), lanes: map[string]*lane{}, finished: make(chan finish),
		progress: progress{report: p.Report, behind: map[string]time.Time{}},
	}
	defer r.reading.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	kept, err := r.checkpoints(ctx)
	if err != nil {
		return err
	}
	for id, position := range kept {
		r.lanes[id] = &lane{shard: shard{id: id}, position: position, kept: position.at}
	}
	return r.coordinate(ctx)
}

// coordinate lists shards, and has those read whose time has come, until there are none left or ctx ends.
func (r *run) coordinate(ctx context.Context) error {
	for seen, off := false, false; ; {
		found, err := r.list(ctx)
		if err != nil {
			return err
		}
		if err := r.know(ctx, found); err != nil {
			return err
		}
		r.start(ctx)
		seen = seen || found.streams > 0
		switch nothing := r.underWay == 0; {
		case nothing && !found.on && (r.once || off || !seen):
			return r.wrongStream(fmt.Sprintf("table %s has no stream that is on", r.name))
		case nothing && r.once:
			return nil
		default:
			off = nothing && !found.on // while it is switched on again there is none for a moment
		}
		if err := r.attend(ctx); err != nil {
			return err
		}
	}
}

// attend waits until shards have to be listed again.
func (r *run) attend(ctx context.Context) error {
	again := r.Clock.After(relist)
	for {
		select {
		case f := <-r.finished:
			if f.err != nil {
				return f.err
			}
			known := r.finish(f)
			r.start(ctx)
			if !known || r.underWay == 0 {
				return nil
			}
		case <-again:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// know takes in what was listed. A shard ended more than a day before it is not listed any more: what was not
// read of it is gone. One of which less than that was left is missed by the list alone, which may be behind:
// it is kept in mind, for a shard that is noted as done is never read again.
func (r *run) know(ctx context.Context, found listing) error {
	for _, l := range r.lanes {
		l.listed = false
	}
	for _, s := range found.shards {
		l := r.lanes[s.id]
		if l == nil {
			l = &lane{}
			r.lanes[s.id] = l
		}
		l.shard, l.listed = s, true
	}
	for _, id := range r.inOrder() {
		l := r.lanes[id]
		if l.listed || l.done || l.reading || !r.trimmed(l.position) {
			continue
		}
		r.lost(ctx, id, &l.position)
		l.done = true
		if err := r.patiently(ctx, "write the checkpoint of the shard "+id, func() error {
			return r.put(ctx, id, l.position)
		}); err != nil {
			return err
		}
	}
	r.tell(func(p *Progress) { p.Streams = found.streams })
	return nil
}

// inOrder returns the ids of all shards that are known: as texts, they sort by age.
func (r *run) inOrder() []string { return slices.Sorted(maps.Keys(r.lanes)) }

// start has those shards read whose parents are done, and forgets those that are not listed any more and have
// no position to keep.
func (r *run) start(ctx context.Context) {
	for _, id := range r.inOrder() {
		l := r.lanes[id]
		parent := r.lanes[l.parent]
		if !l.listed || l.done || l.reading || l.rested || parent != nil && parent.listed && !parent.done {
			continue
		}
		if parent != nil && l.at.IsZero() {
			l.at = parent.at // what the parent's position leaves open, the child's does
		}
		l.reading = true
		r.underWay++
		d := &reader{run: r, shard: l.shard, position: l.position, kept: l.kept}
		r.reading.Go(func() {
			how, err := d.read(ctx)
			select {
			case r.finished <- finish{l, d.position, how, err}:
			case <-ctx.Done():
			}
		})
	}
	maps.DeleteFunc(r.lanes, func(_ string, l *lane) bool {
		return !l.listed && !l.reading && (l.done || l.at.IsZero())
	})
	r.tell(func(p *Progress) {
		p.Reading, p.Shards, p.Done = r.underWay, 0, 0
		for _, l := range r.lanes {
			if l.listed {
				p.Shards++
				if l.done {
					p.Done++
				}
			}
		}
	})
}

// finish notes that a shard is not read any more. It reports whether what comes next is known, without
// listing shards again.
func (r *run) finish(f finish) (known bool) {
	r.underWay--
	r.caughtUp(f.lane.id)
	f.lane.position, f.lane.reading, f.lane.rested = f.at, false, f.ending == rested
	switch f.ending {
	case rested:
		return true
	case gone:
		return false
	}
	for _, l := range r.lanes {
		if l.parent == f.lane.id {
			return true
		}
	}
	return false
}

// trimmed reports that some of what comes after a position may be gone.
func (r *run) trimmed(p position) bool {
	return !p.at.IsZero() && p.at.Before(r.Clock.Now().Add(-retention))
}

// lost says so if records of a shard may be gone that were written after its position, and sets that to where
// there may be some again.
func (r *run) lost(ctx context.Context, shard string, p *position) {
	if !r.trimmed(*p) {
		return
	}
	oldest := r.Clock.Now().Add(-retention)
	r.Logger.LogAttrs(ctx, slog.LevelError,
		"sluice: records may be lost: a stream keeps them for 24 hours, and this shard was not read for longer",
		slog.String("table", r.name), slog.String("shard", shard), slog.Time("from", p.at), slog.Time("to", oldest))
	p.at = oldest
	r.tell(func(p *Progress) { p.Lost++ })
}
