package region

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"time"

	"github.com/sluice-go/sluice/runtime/store"
)

// beginning is an epoch that is to begin, and why.
type beginning struct {
	epoch int64
	why   string
	first bool // nothing is lost by it: the region is new
}

// recall has s know what it has published, or returns the epoch that it is to begin: where its own snapshot is not what it put last,
// or is not what its table's heartbeat says, it cannot be sure of anything that it held.
func (s *Sync) recall(ctx context.Context, now time.Time) (*beginning, error) {
	own, wrong, err := s.own(ctx, now)
	if err != nil {
		return nil, err
	}
	if s.epoch != 0 {
		return s.still(own, wrong), nil
	}
	beat, err := s.heartbeat(ctx, now)
	if err != nil {
		return nil, err
	}
	anothers := beat.OfAnother(s.Region)
	if !anothers && beat.Epoch > 0 && beat.Expires <= beat.Since && (own == nil || own.Epoch < beat.Epoch) { // begun, and nothing put yet
		s.clear(beat.Epoch)
		s.quiet = time.UnixMilli(beat.Since).Add(quietWindows * s.regions.Window)
		return nil, nil
	}
	next := &beginning{epoch: beat.Epoch + 1}
	switch {
	case anothers:
		next.why = "its table was that of " + beat.Region
	case own == nil && wrong == nil && beat.Epoch == 0:
		next.why, next.first = "it has published nothing yet", true
	case own == nil:
		next.why = unusable(wrong)
	default:
		next.why = s.doubts(own, beat)
	}
	if own != nil {
		next.epoch = max(own.Epoch, beat.Epoch) + 1
	}
	if next.why != "" {
		return next, nil
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
	return nil, nil
}

// doubts says why own, what this region has published, is not what its table goes by, or "".
func (s *Sync) doubts(own *Snapshot, beat store.Heartbeat) string {
	switch {
	case own.Epoch != beat.Epoch:
		return fmt.Sprintf("its snapshot is of epoch %d and its table's heartbeat of epoch %d: one of them is not what was there last", own.Epoch, beat.Epoch)
	case own.Window != s.window():
		return fmt.Sprintf("the window was %v and is %v", time.Duration(own.Window)*time.Millisecond, s.regions.Window)
	case beat.Expires > own.GeneratedAt+fresh*s.window():
		return "its snapshot is older than its table's heartbeat: it is not what was put last"
	}
	return ""
}

// unusable says why there is no own snapshot, where there was one.
func unusable(wrong error) string {
	if wrong != nil {
		return wrong.Error()
	}
	return "its snapshot is gone"
}

// heartbeat reads that of this region, which fails where the table is kept by another one's sync.
func (s *Sync) heartbeat(ctx context.Context, now time.Time) (store.Heartbeat, error) {
	beat, err := s.Table.Heartbeat(ctx)
	if _, ok := errors.AsType[*store.SetupError](err); ok { // which says what and where
		return beat, err
	}
	if err != nil {
		return beat, fmt.Errorf("this region's heartbeat: %w", err)
	}
	holds := beat // one that has begun is not alive before it has published
	holds.Expires = max(beat.Expires, beat.Since+fresh*s.window())
	return beat, holds.Another(s.Region, now.UnixMilli())
}

// taken reports that another sync has begun an epoch in this region's table since this one did: what this one holds is not in force
// there.
func (s *Sync) taken(ctx context.Context) bool {
	beat, err := s.Table.Heartbeat(ctx)
	return err == nil && (beat.Epoch > s.epoch || beat.OfAnother(s.Region))
}

// own returns this region's snapshot, nil where there is none that can be used, and what is wrong with that one.
func (s *Sync) own(ctx context.Context, now time.Time) (own *Snapshot, wrong, err error) {
	object, err := s.Snapshots.Get(ctx, objectName(s.Region))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("this region's own snapshot: %w", err)
	}
	own, wrong = Decode(object, s.Region, 0, now, s.regions.Window)
	return own, wrong, nil
}

// still returns nil if what is read of this region is what s has put, else the epoch to begin: it was lost, or another Sync runs for
// the region.
func (s *Sync) still(own *Snapshot, wrong error) *beginning {
	switch {
	case s.put.IsZero() && (own == nil || own.Epoch < s.epoch): // nothing of this epoch was put yet
		return nil
	case own == nil:
		return &beginning{s.epoch + 1, unusable(wrong), false}
	case own.Epoch == s.epoch && own.Sequence == s.sequence && own.GeneratedAt == s.put.UnixMilli():
		return nil
	}
	return &beginning{max(s.epoch, own.Epoch) + 1, "its snapshot is not what was put last: does another sync run for it?", false}
}

// begin starts an epoch: no share of an earlier one counts from now on, and nothing is published until no process can have missed
// that.
func (s *Sync) begin(ctx context.Context, b *beginning, r *Report) error {
	s.clear(0)
	beat, err := s.heartbeat(ctx, r.At)
	if err == nil {
		err = s.probe(ctx)
	}
	if err != nil {
		return err
	}
	now := s.Clock.Now()
	next := store.Heartbeat{Region: s.Region, Epoch: max(b.epoch, beat.Epoch+1), Expires: max(now.UnixMilli(), beat.Since)}
	if err := s.Table.Beat(ctx, next); err != nil {
		return fmt.Errorf("this region's heartbeat: %w", err)
	}
	if s.clear(next.Epoch); next.Epoch > 1 { // also where the heartbeat was deleted
		s.quiet = s.Clock.Now().Add(quietWindows * s.regions.Window)
	}
	if r.Epoch, r.Begins, r.Waits = next.Epoch, b.why, s.quiet; !b.first {
		s.Logger.Warn("sluice: an epoch begins, from the floor: what the region held counts no longer", "region", s.Region, "epoch", next.Epoch, "why", b.why)
	}
	return nil
}

// probe fails if it can be told by now that nothing will be published.
func (s *Sync) probe(ctx context.Context) error {
	if p, ok := s.Snapshots.(Prober); ok {
		if err := p.Probe(ctx, objectName(s.Region)); err != nil {
			return fmt.Errorf("this region's own snapshot: %w", err)
		}
	}
	return nil
}

// Check fails where a cycle would, for nobody answers, the table is that of another region, or nothing can be published: what is a
// mistake at the start, and is waited for later on. It changes nothing.
func (s *Sync) Check(ctx context.Context) error {
	now := s.Clock.Now()
	if _, err := s.heartbeat(ctx, now); err != nil {
		return err
	}
	if _, _, err := s.own(ctx, now); err != nil {
		return err
	}
	return s.probe(ctx)
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
