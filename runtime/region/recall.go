package region

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"time"

	"github.com/sluice-go/sluice/runtime"
)

// recall has s know what it has published, or returns the epoch that it is to begin: where its own snapshot is not what it put last,
// or is not what its table's heartbeat says, it cannot be sure of anything that it held.
func (s *Sync) recall(ctx context.Context, now time.Time) (next int64, err error) {
	own, err := s.own(ctx, now)
	if err != nil {
		return 0, err
	}
	if s.epoch != 0 {
		return s.still(own), nil
	}
	beat, err := s.Table.Heartbeat(ctx)
	if err != nil {
		return 0, fmt.Errorf("this region's heartbeat: %w", err)
	}
	switch {
	case beat.Epoch > 0 && beat.Expires <= beat.Since && (own == nil || own.Epoch < beat.Epoch): // begun, and nothing put yet
		s.clear(beat.Epoch)
		s.quiet = time.UnixMilli(beat.Since).Add(quietWindows * s.regions.Window)
		return 0, nil
	case own == nil:
		return beat.Epoch + 1, nil
	case own.Epoch != beat.Epoch || own.Window != s.window() || beat.Expires > own.GeneratedAt+fresh*s.window():
		return max(own.Epoch, beat.Epoch) + 1, nil
	}
	s.epoch, s.sequence, s.put = own.Epoch, own.Sequence, time.UnixMilli(own.GeneratedAt)
	s.listed = s.put
	if at := beat.Expires - fresh*s.window(); at > beat.Since { // it was renewed while it held, which only who is sure does
		s.sure = time.UnixMilli(at)
	}
	s.said = own.Peers
	for name, known := range own.Peers {
		if _, listed := s.known[name]; listed {
			s.known[name] = known
		}
	}
	s.books.restore(own.Entries, s.Specs)
	return 0, nil
}

// own returns this region's snapshot, nil where there is none that can be used.
func (s *Sync) own(ctx context.Context, now time.Time) (*Snapshot, error) {
	object, err := s.Snapshots.Get(ctx, objectName(s.Region))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("this region's own snapshot: %w", err)
	}
	own, err := Decode(object, s.Region, 0, now, s.regions.Window)
	if err != nil {
		s.Logger.Warn("sluice: this region's own snapshot cannot be used", "region", s.Region, "error", err)
		return nil, nil
	}
	return own, nil
}

// still returns 0 if what is read of this region is what s has put, else the epoch to begin: it was lost, or another Sync runs for
// the region.
func (s *Sync) still(own *Snapshot) (next int64) {
	switch {
	case s.put.IsZero() && (own == nil || own.Epoch < s.epoch): // nothing of this epoch was put yet
		return 0
	case own != nil && own.Epoch == s.epoch && own.Sequence == s.sequence && own.GeneratedAt == s.put.UnixMilli():
		return 0
	}
	s.Logger.Warn("sluice: this region's snapshot is not what was put last; does another sync run for it? It starts again from the floor", "region", s.Region)
	if next = s.epoch; own != nil {
		next = max(next, own.Epoch)
	}
	return next + 1
}

// begin starts an epoch: no share of an earlier one counts from now on, and nothing is published until no process can have missed
// that.
func (s *Sync) begin(ctx context.Context, epoch int64) error {
	s.clear(0)
	beat, err := s.Table.Heartbeat(ctx)
	if err != nil {
		return fmt.Errorf("this region's heartbeat: %w", err)
	}
	now := s.Clock.Now()
	next := runtime.Heartbeat{Epoch: max(epoch, beat.Epoch+1), Expires: max(now.UnixMilli(), beat.Since)}
	if err := s.Table.Beat(ctx, next); err != nil {
		return fmt.Errorf("this region's heartbeat: %w", err)
	}
	if s.clear(next.Epoch); next.Epoch > 1 { // also where the heartbeat was deleted
		s.quiet = s.Clock.Now().Add(quietWindows * s.regions.Window)
	}
	return nil
}

// quietWindows is for how many windows nothing is published in a new epoch: for one, processes remember the heartbeat of the old.
const quietWindows = 2

// publish puts the snapshot of a cycle that began at start. Where it is not certain that it did, s forgets what it has decided, and
// the next cycle goes on from what is there: others may have decided differently meanwhile.
func (s *Sync) publish(ctx context.Context, start time.Time, r *Report) error {
	own := &Snapshot{
		Version: Version, Region: s.Region, Epoch: s.epoch, Sequence: s.sequence + 1, GeneratedAt: start.UnixMilli(), Window: s.window(),
		Peers: s.known, Entries: make([]Entry, 0, len(s.books.of)),
	}
	for _, bk := range s.books.all() {
		own.Entries = append(own.Entries, bk.Entry)
	}
	object, err := json.Marshal(own)
	if err == nil {
		err = s.Snapshots.Put(ctx, objectName(s.Region), object)
	}
	if err != nil {
		s.clear(0)
		return fmt.Errorf("this region's own snapshot: %w", err)
	}
	s.sequence, s.put, s.said = own.Sequence, start, maps.Clone(s.known)
	r.Sequence, r.Shares = s.sequence, s.books.shares()
	return nil
}
