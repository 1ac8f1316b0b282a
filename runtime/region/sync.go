package region

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/region/images"
	"github.com/sluice-go/sluice/runtime/store"
)

// Sync keeps one region's quotas up to date. All state that must survive is in its snapshot and its table:
// after a crash, another Sync with the same Config goes on.
//
// A region has one Sync at a time, and none goes on after another has begun. Of two, each finds that the
// other's snapshot is not its own, and starts again from the floor. Until then they may give out more than
// there is. It is not safe for concurrent use.
type Sync struct {
	Config

	regions *store.Regions
	epoch   int64 // 0 until known
	known   map[string]Known
	books   *books
	entries map[string]map[key]*Entry   // as last published, by region
	snaps   map[string]*Snapshot        // of which entries are
	limits  map[string][][]bucket.Limit // for all regions together, by resource and kind
	listed  time.Time                   // when the buckets were last seen
	images  *images.Images              // the buckets: Config.Images, or what each cycle reads
	now     time.Time                   // when this cycle began
	// no snapshot before this: quotas of an earlier epoch may still be in force
	quiet time.Time
	began time.Time // when this epoch began at the latest; not set in the first one, before which there was none

	object   []byte    // the last snapshot put; nil if it was not put by s
	sequence int64     // of that
	putAt    time.Time // when that snapshot was generated
	// start of the last cycle in which no region can have taken this one for silent; zero for none
	notSilent      time.Time
	publishedPeers map[string]Known // what that snapshot says of the others
}

// New returns a Sync. It does no I/O. It fails with a *store.SetupError.
func New(c Config) (*Sync, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	return newSync(c), nil
}

func newSync(c Config) *Sync {
	s := &Sync{Config: c, regions: c.Specs[0].Regions, images: c.Images}
	if s.images == nil {
		s.images = images.New(c.Specs)
	}
	s.clear(0)
	return s
}

// clear resets all state of s except its epoch and the images of buckets.
func (s *Sync) clear(epoch int64) {
	*s = Sync{
		Config: s.Config, regions: s.regions, images: s.images, epoch: epoch, books: newBooks(),
		known:   map[string]Known{},
		entries: map[string]map[key]*Entry{}, snaps: map[string]*Snapshot{}, limits: map[string][][]bucket.Limit{},
	}
	for _, name := range s.regions.Names {
		if name != s.Region {
			s.known[name] = Known{}
		}
	}
}

// Run runs a cycle each window until ctx ends, and returns its error. Cycles that fail are logged, and their
// reports have the errors. With Config.Images, the first cycle waits up to a window for the stream.
func (s *Sync) Run(ctx context.Context) error {
	if s.Config.Images != nil {
		select {
		case <-s.images.Ready():
		case <-s.Clock.After(s.regions.Window):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	next := s.Clock.Now()
	for {
		if _, err := s.Cycle(ctx); err != nil && ctx.Err() == nil {
			s.Logger.LogAttrs(ctx, slog.LevelError, "sluice: regional sync failed, and is tried again in a window",
				slog.String("region", s.Region), slog.Any("error", err))
		}
		now := s.Clock.Now()
		for next = next.Add(s.regions.Window); !next.After(now); next = next.Add(s.regions.Window) {
		}
		select {
		case <-s.Clock.After(next.Sub(now)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Plan returns what a cycle would write now, and writes nothing. It knows what a newly started Sync knows. If
// a new epoch would begin, or its first snapshot has to wait, there is nothing more to write: the report says
// so.
func (s *Sync) Plan(ctx context.Context) (*Report, error) {
	plan := newSync(s.Config)
	start := plan.Clock.Now()
	r := &Report{Region: s.Region, At: start}
	peers, next, err := plan.load(ctx, start, r)
	if next != nil {
		r.Epoch, r.Begins = next.epoch, next.why
	}
	if err != nil || next != nil || !r.Waits.IsZero() {
		return r, err
	}
	for _, it := range newPlanner(plan).plan(ctx, peers, start, r) {
		r.Writes = append(r.Writes, it.Write)
	}
	r.Quotas = plan.books.quotas()
	return r, nil
}

// Cycle performs one cycle, in this order:
//
//   - It reads the other regions' snapshots.
//   - It lowers the quotas of which it is to give tokens.
//   - It publishes its snapshot.
//   - It renews the heartbeat.
//   - It raises the quotas that it was given tokens for.
//
// An error says why nothing was published. The report has all other failures, which the next cycle tries
// again.
func (s *Sync) Cycle(ctx context.Context) (*Report, error) {
	// after that the heartbeat has expired anyway
	ctx, cancel := context.WithTimeout(ctx, freshWindows*s.regions.Window)
	defer cancel()
	start := s.Clock.Now()
	r := &Report{Region: s.Region, At: start}
	err := s.cycle(ctx, start, r)
	if s.OnReport != nil {
		s.OnReport(r)
	}
	return r, err
}

// load reads what this region and the others have published. It returns the others, or the epoch about to
// begin.
func (s *Sync) load(ctx context.Context, start time.Time, r *Report) ([]*peer, *beginning, error) {
	next, err := s.loadOwn(ctx, start)
	if err != nil || next != nil {
		return nil, next, err
	}
	members := membership{s}
	peers := members.readPeers(ctx, start)
	r.Epoch, r.Peers = s.epoch, members.reportPeers(peers, start)
	if epoch := members.ended(peers); epoch != 0 {
		return nil, &beginning{max(epoch, s.epoch) + 1,
			"the other regions have divided what it held, since it was silent for too long", false}, nil
	}
	if start.Before(s.quiet) {
		r.Waits = s.quiet
	}
	return peers, nil, nil
}

func (s *Sync) cycle(ctx context.Context, start time.Time, r *Report) error {
	peers, next, err := s.load(ctx, start, r)
	switch {
	case err != nil:
		return err
	case next != nil:
		return s.begin(ctx, next, r)
	case !r.Waits.IsZero():
		return nil
	}
	items := newPlanner(s).plan(ctx, peers, start, r)
	s.write(ctx, items, false, start, r)
	before := s.putAt
	if err := s.publish(ctx, start, r); err != nil {
		return err
	}
	// If this region was silent, others may have evicted it and divided what it held: then one of their
	// snapshots says so. A region that was not silent since it read all of them cannot have been evicted.
	now := s.Clock.Now()
	notSilent := (membership{s}).continuous(now) || allRead(peers) &&
		(before.IsZero() || now.Sub(before) <= freshWindows*s.regions.Window)
	if notSilent {
		s.notSilent = start
	}
	if notSilent || allRead(peers) {
		beat := store.Heartbeat{Region: s.Region, Epoch: s.epoch,
			Expires: start.Add(freshWindows * s.regions.Window).UnixMilli()}
		if err := s.Table.PutHeartbeat(ctx, beat); err != nil {
			r.Failed = append(r.Failed, fmt.Errorf("heartbeat: %w", err))
			if s.taken(ctx) { // nothing more is written until the next cycle has found out which region's table it is
				s.clear(0)
			}
		} else {
			r.Beating = true
			s.write(ctx, items, true, start, r)
			s.grant(ctx, start, r)
		}
	}
	for _, it := range items {
		r.Writes = append(r.Writes, it.Write)
	}
	return nil
}

// allRead reports whether all peers were read: then none of them knows anything that this region does not.
func allRead(peers []*peer) bool {
	for _, p := range peers {
		if !p.read {
			return false
		}
	}
	return true
}
