package region

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"time"

	"github.com/sluice-go/sluice/runtime/store"
)

// beginning is an epoch about to begin, and the reason.
type beginning struct {
	epoch int64
	why   string
	first bool // the region is new, so nothing is lost
}

// loadOwn loads what s has published, or returns the epoch that has to begin. A new one begins if the
// region's own snapshot is not the one that s put last, or does not match the table's heartbeat. Then s
// cannot be sure of anything that it held.
func (s *Sync) loadOwn(ctx context.Context, now time.Time) (*beginning, error) {
	own, wrong, err := s.own(ctx, now)
	if err != nil {
		return nil, err
	}
	if s.epoch != 0 {
		return s.verifyOwn(own, wrong), nil
	}
	beat, err := s.heartbeat(ctx, now)
	if err != nil {
		return nil, err
	}
	foreignTable := beat.OfAnother(s.Region)
	// begun, and nothing published yet
	if !foreignTable && beat.Epoch > 0 && beat.Expires <= beat.Since && (own == nil || own.Epoch < beat.Epoch) {
		s.clear(beat.Epoch)
		s.began = now
		s.quiet = time.UnixMilli(beat.Since).Add(quietWindows * s.regions.Window)
		return nil, nil
	}
	next := &beginning{epoch: beat.Epoch + 1}
	switch {
	case foreignTable:
		next.why = "its table was that of " + beat.Region
	case own == nil && wrong == nil && beat.Epoch == 0:
		next.why, next.first = "it has published nothing yet", true
	case own == nil:
		next.why = unusable(wrong)
	default:
		next.why = s.mismatch(own, beat)
	}
	if own != nil {
		next.epoch = max(own.Epoch, beat.Epoch) + 1
	}
	if next.why != "" {
		return next, nil
	}
	s.epoch, s.sequence, s.putAt = own.Epoch, own.Sequence, time.UnixMilli(own.GeneratedAt)
	s.listed = s.putAt
	s.began = time.UnixMilli(beat.Since)
	// renewed while valid, which a Sync only does if it was not taken for silent
	if at := beat.Expires - freshWindows*s.window(); at > beat.Since {
		s.notSilent = time.UnixMilli(at)
	}
	s.publishedPeers = own.Peers
	for name, known := range own.Peers {
		if _, listed := s.known[name]; listed {
			s.known[name] = known
		}
	}
	s.books.restore(own.Entries, s.Specs)
	return nil, nil
}

// mismatch says why own, this region's published snapshot, does not match its table, or "" if it does.
func (s *Sync) mismatch(own *Snapshot, beat store.Heartbeat) string {
	switch {
	case own.Epoch != beat.Epoch:
		return fmt.Sprintf("its snapshot is of epoch %d and its table's heartbeat of epoch %d: one of them is "+
			"out of date", own.Epoch, beat.Epoch)
	case own.Window != s.window():
		return fmt.Sprintf("the window was %v and is %v", time.Duration(own.Window)*time.Millisecond,
			s.regions.Window)
	case beat.Expires > own.GeneratedAt+freshWindows*s.window():
		return "its snapshot is older than its table's heartbeat: it is not the one that was put last"
	}
	return ""
}

// unusable says why an own snapshot that was published is not there.
func unusable(wrong error) string {
	if wrong != nil {
		return wrong.Error()
	}
	return "its snapshot is missing"
}

// heartbeat reads this region's heartbeat. It fails if another region's sync runs on the table.
func (s *Sync) heartbeat(ctx context.Context, now time.Time) (store.Heartbeat, error) {
	beat, err := s.Table.Heartbeat(ctx)
	if _, ok := errors.AsType[*store.SetupError](err); ok { // it names the item
		return beat, err
	}
	if err != nil {
		return beat, fmt.Errorf("this region's heartbeat: %w", err)
	}
	holds := beat // an epoch that has begun is valid only once it has published
	holds.Expires = max(beat.Expires, beat.Since+freshWindows*s.window())
	return beat, holds.Another(s.Region, now.UnixMilli())
}

// taken reports whether another sync has begun an epoch in this region's table since this one did. Then this
// one's quotas are not in force there.
func (s *Sync) taken(ctx context.Context) bool {
	beat, err := s.Table.Heartbeat(ctx)
	return err == nil && (beat.Epoch > s.epoch || beat.OfAnother(s.Region))
}

// own returns this region's snapshot. It is nil if there is none, or if it cannot be used: then wrong says
// why.
func (s *Sync) own(ctx context.Context, now time.Time) (own *Snapshot, wrong, err error) {
	object, err := s.Snapshots.Get(ctx, objectName(s.Region))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("this region's own snapshot: %w", err)
	}
	if s.object != nil && bytes.Equal(object, s.object) { // it need not be decoded
		return &Snapshot{Region: s.Region, Epoch: s.epoch, Sequence: s.sequence,
			GeneratedAt: s.putAt.UnixMilli()}, nil, nil
	}
	own, wrong = Decode(object, s.Region, 0, now, s.regions.Window)
	return own, wrong, nil
}

// verifyOwn returns nil if the snapshot read is the one that s has put. Else it returns the epoch to begin:
// the snapshot was lost, or another Sync runs for the region.
func (s *Sync) verifyOwn(own *Snapshot, wrong error) *beginning {
	switch {
	case s.putAt.IsZero() && (own == nil || own.Epoch < s.epoch): // nothing of this epoch was published yet
		return nil
	case own == nil:
		return &beginning{s.epoch + 1, unusable(wrong), false}
	case own.Epoch == s.epoch && own.Sequence == s.sequence && own.GeneratedAt == s.putAt.UnixMilli():
		return nil
	}
	return &beginning{max(s.epoch, own.Epoch) + 1,
		"its snapshot is not the one that was put last: does another sync run for it?", false}
}

// begin starts an epoch: quotas of earlier epochs are void from now on. Nothing is published until every
// process has seen that.
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
	next := store.Heartbeat{Region: s.Region, Epoch: max(b.epoch, beat.Epoch+1),
		Expires: max(now.UnixMilli(), beat.Since)}
	if err := s.Table.PutHeartbeat(ctx, next); err != nil {
		return fmt.Errorf("this region's heartbeat: %w", err)
	}
	if s.clear(next.Epoch); next.Epoch > 1 { // also if the heartbeat was deleted
		s.quiet = s.Clock.Now().Add(quietWindows * s.regions.Window)
	}
	s.began = now
	if r.Epoch, r.Begins, r.Waits = next.Epoch, b.why, s.quiet; !b.first {
		s.Logger.Warn("sluice: a new epoch begins: the region starts again from the floor",
			"region", s.Region, "epoch", next.Epoch, "why", b.why)
	}
	return nil
}

// probe fails if it finds that nothing can be published.
func (s *Sync) probe(ctx context.Context) error {
	if p, ok := s.Snapshots.(Prober); ok {
		if err := p.Probe(ctx, objectName(s.Region)); err != nil {
			return fmt.Errorf("this region's own snapshot: %w", err)
		}
	}
	return nil
}

// Check fails if a cycle would: the table or the store does not answer, the table is another region's, or
// nothing can be published. At the start that is a mistake; later on, Sync waits for it to pass. Check
// changes nothing.
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

// quietWindows is the number of windows for which nothing is published in a new epoch. Processes cache the
// old epoch's heartbeat for one of them.
const quietWindows = 2

// publish puts the snapshot of a cycle that began at start. If it may not have been put, s drops what it has
// decided, and the next cycle starts from what is stored: other regions may have decided differently
// meanwhile.
func (s *Sync) publish(ctx context.Context, start time.Time, r *Report) error {
	own := &Snapshot{
		Version: Version, Region: s.Region, Epoch: s.epoch, Sequence: s.sequence + 1,
		GeneratedAt: start.UnixMilli(), Window: s.window(),
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
	s.object, s.sequence, s.putAt, s.publishedPeers = object, own.Sequence, start, maps.Clone(s.known)
	r.Sequence, r.Quotas = s.sequence, s.books.quotas()
	return nil
}
