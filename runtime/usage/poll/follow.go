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

// relist is the interval at which the streams are described again while no shard ends.
const relist = time.Minute

// run is one Run or Drain.
type run struct {
	*Poller

	once     bool // read to the present end, and no further
	began    time.Time
	progress progress
	tracked  map[string]*tracked
	underWay int
	listed   bool // the shards have been listed before
	finished chan finish
	reading  sync.WaitGroup
}

// tracked is what the run knows of one shard.
type tracked struct {
	shard
	position

	kept   time.Time // at, of its checkpoint; zero for none
	latest bool      // without a position, it is read from its present end

	listed  bool
	reading bool // its goroutine is under way
	rested  bool // it had nothing more, and only its present end was asked for
}

// finish is the message that a shard's goroutine has ended.
type finish struct {
	of *tracked
	at position
	ending
	err error
}

// follow reads the table's streams. It returns once every shard's goroutine has ended.
func (p *Poller) follow(ctx context.Context, once bool) error {
	r := &run{
		Poller: p, once: once, began: p.Clock.Now(), tracked: map[string]*tracked{}, finished: make(chan finish),
		progress: progress{report: p.Report, behind: map[string]time.Time{}},
	}
	defer r.reading.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var kept map[string]position
	if p.Aggregator != nil {
		var err error
		if kept, err = r.checkpoints(ctx); err != nil {
			return err
		}
	}
	for id, position := range kept {
		r.tracked[id] = &tracked{shard: shard{id: id}, position: position, kept: position.at}
	}
	return r.coordinate(ctx)
}

// coordinate lists shards and starts readers of those that can be read, until there are none left or ctx
// ends.
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
		consumers(r.Consumers).reading(r.inOrder(), r.tracked)
		seen = seen || found.streams > 0
		switch nothing := r.underWay == 0; {
		case nothing && !found.on && (r.once || off || !seen):
			return r.wrongStream(fmt.Sprintf("table %s has no stream that is on", r.name))
		case nothing && r.once:
			return nil
		default:
			off = nothing && !found.on // while a stream is switched on again there is none for a moment
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
				return nil // Consumers take the shard for read until its children are known
			}
			consumers(r.Consumers).reading(r.inOrder(), r.tracked)
		case <-again:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// know records the listed shards. A shard is no longer listed a day after its end; if some of it was not read
// by then, that is lost. A shard that is missing from the list earlier stays tracked, since the list may lag
// behind. It is not marked as done, since a shard marked so is never read again.
func (r *run) know(ctx context.Context, found listing) error {
	known := map[string]bool{}
	for id, l := range r.tracked {
		l.listed, known[id] = false, true
	}
	for _, s := range found.shards {
		l := r.tracked[s.id]
		if l == nil {
			l = &tracked{}
			r.tracked[s.id] = l
			meet(r, l, s)
		}
		l.shard, l.listed = s, true
	}
	if orphans(r, found, known) {
		consumers(r.Consumers).lost()
	}
	r.listed = true
	for _, id := range r.inOrder() {
		l := r.tracked[id]
		if l.listed || l.done || l.reading || !r.trimmed(l.position) {
			continue
		}
		r.lost(ctx, id, &l.position)
		l.done = true
		if r.Aggregator == nil {
			continue
		}
		if err := r.retry(ctx, "write the checkpoint of the shard "+id, func() error {
			return r.put(ctx, id, l.position)
		}); err != nil {
			return err
		}
	}
	r.report(func(p *Progress) { p.Streams = found.streams })
	return nil
}

// inOrder returns the ids of all tracked shards: as text, they sort by age.
func (r *run) inOrder() []string { return slices.Sorted(maps.Keys(r.tracked)) }

// start starts readers of the shards whose parents are done. It drops shards that are not listed any more and
// have no position to keep.
func (r *run) start(ctx context.Context) {
	for _, id := range r.inOrder() {
		l := r.tracked[id]
		parent := r.tracked[l.parent]
		if !l.listed || l.done || l.reading || l.rested || parent != nil && parent.listed && !parent.done {
			continue
		}
		if parent != nil && l.at.IsZero() {
			l.at = parent.at // the child's position starts where the parent's is
		}
		l.reading = true
		r.underWay++
		d := &reader{run: r, shard: l.shard, position: l.position, kept: l.kept, latest: l.latest}
		l.latest = false
		r.reading.Go(func() {
			how, err := d.read(ctx)
			select {
			case r.finished <- finish{l, d.position, how, err}:
			case <-ctx.Done():
			}
		})
	}
	maps.DeleteFunc(r.tracked, func(_ string, l *tracked) bool {
		return !l.listed && !l.reading && (l.done || l.at.IsZero())
	})
	r.report(func(p *Progress) {
		p.Reading, p.Shards, p.Done = r.underWay, 0, 0
		for _, l := range r.tracked {
			if l.listed {
				p.Shards++
				if l.done {
					p.Done++
				}
			}
		}
	})
}

// finish records that a shard's reader has ended. It reports whether the next shard is known without listing
// the shards again.
func (r *run) finish(f finish) (known bool) {
	r.underWay--
	r.caughtUp(f.of.id)
	f.of.position, f.of.reading, f.of.rested = f.at, false, f.ending == rested
	switch f.ending {
	case rested:
		return true
	case absent:
		return false
	}
	for _, l := range r.tracked {
		if l.parent == f.of.id {
			return true
		}
	}
	return false
}

// trimmed reports whether some records after a position may have been deleted.
func (p *Poller) trimmed(at position) bool {
	return !at.at.IsZero() && at.at.Before(p.Clock.Now().Add(-retention))
}

// lost reports records of a shard after its position that may have been deleted before they were read. Then
// it moves the position to the oldest that the stream may still have.
func (r *run) lost(ctx context.Context, shard string, p *position) {
	if !r.trimmed(*p) {
		return
	}
	oldest := r.Clock.Now().Add(-retention)
	r.Logger.LogAttrs(ctx, slog.LevelError,
		"sluice: records may be lost: a stream keeps them for 24 hours, and this shard was not read for longer",
		slog.String("table", r.name), slog.String("shard", shard), slog.Time("from", p.at), slog.Time("to", oldest))
	p.at = oldest
	r.report(func(p *Progress) { p.Lost++ })
	consumers(r.Consumers).lost()
}
