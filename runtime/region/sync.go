package region

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// Sync keeps one region's shares in order. All that it may not lose is in its snapshot and in its table: after a crash, another one
// of the same Config goes on. A region has one at a time, of which none goes on after another has begun: where there are two, each
// finds that the other's snapshot is not its own, and starts again from the floor, but until then they may share out too much. It is
// not safe for concurrent use.
type Sync struct {
	Config

	regions *store.Regions
	epoch   int64 // 0 until it is known
	known   map[string]Known
	books   *books
	entries map[string]map[key]*Entry   // as last published, by region
	limits  map[string][][]bucket.Limit // what all regions have, by resource and kind
	listed  time.Time                   // when the buckets were last read
	buckets map[key]*bucket.Image       // as they were then
	now     time.Time                   // when this cycle began
	quiet   time.Time                   // until then nothing is published: shares of an earlier epoch may still be in force

	sequence int64            // of the last snapshot that was put
	put      time.Time        // when that was generated
	sure     time.Time        // when the last cycle began that nobody can have taken the region for silent in; zero for none
	said     map[string]Known // what it said of the others
}

// New returns a Sync. It does no I/O. It fails with a *store.SetupError.
func New(c Config) (*Sync, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	return newSync(c), nil
}

func newSync(c Config) *Sync {
	s := &Sync{Config: c, regions: c.Specs[0].Regions}
	s.clear(0)
	return s
}

// clear has s know nothing but its epoch.
func (s *Sync) clear(epoch int64) {
	*s = Sync{
		Config: s.Config, regions: s.regions, epoch: epoch, known: map[string]Known{}, books: newBooks(),
		entries: map[string]map[key]*Entry{}, limits: map[string][][]bucket.Limit{},
	}
	for _, name := range s.regions.Names {
		if name != s.Region {
			s.known[name] = Known{}
		}
	}
}

// Run has a cycle each window until ctx ends, and returns its error. Cycles that fail are logged, and told in their reports.
func (s *Sync) Run(ctx context.Context) error {
	next := s.Clock.Now()
	for {
		if _, err := s.Cycle(ctx); err != nil && ctx.Err() == nil {
			s.Logger.LogAttrs(ctx, slog.LevelError, "sluice: regional sync failed, and is tried again in a window", slog.String("region", s.Region), slog.Any("error", err))
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

// Plan returns what a cycle would write by now, and writes nothing. It knows what a Sync does that has just been started. Where an
// epoch would begin, or this one's first snapshot waits, there is no more to write: the report says so.
func (s *Sync) Plan(ctx context.Context) (*Report, error) {
	plan := newSync(s.Config)
	start := plan.Clock.Now()
	r := &Report{Region: s.Region, At: start}
	peers, next, err := plan.learn(ctx, start, r)
	if next != nil {
		r.Epoch, r.Begins = next.epoch, next.why
	}
	if err != nil || next != nil || !r.Waits.IsZero() {
		return r, err
	}
	for _, it := range plan.plan(ctx, peers, start, r) {
		r.Writes = append(r.Writes, it.Write)
	}
	r.Shares = plan.books.shares()
	return r, nil
}

// Cycle reads the other regions' snapshots, lowers what this region is to give, publishes, renews the heartbeat, and raises what
// it was given, in this order. An error is why nothing was published; what else failed is in the report, and is tried again by the
// next cycle.
func (s *Sync) Cycle(ctx context.Context) (*Report, error) {
	ctx, cancel := context.WithTimeout(ctx, fresh*s.regions.Window) // beyond that the heartbeat is stale anyway
	defer cancel()
	start := s.Clock.Now()
	r := &Report{Region: s.Region, At: start}
	err := s.cycle(ctx, start, r)
	if s.Told != nil {
		s.Told(r)
	}
	return r, err
}

// learn reads what this region and the others have published. It returns the others, or the epoch that is to begin.
func (s *Sync) learn(ctx context.Context, start time.Time, r *Report) ([]*peer, *beginning, error) {
	next, err := s.recall(ctx, start)
	if err != nil || next != nil {
		return nil, next, err
	}
	peers := s.meet(ctx, start)
	r.Epoch, r.Peers = s.epoch, s.told(peers, start)
	if epoch := s.ended(peers); epoch != 0 {
		return nil, &beginning{max(epoch, s.epoch) + 1, "the other regions have shared out what it held, for it was silent for too long", false}, nil
	}
	if start.Before(s.quiet) {
		r.Waits = s.quiet
	}
	return peers, nil, nil
}

func (s *Sync) cycle(ctx context.Context, start time.Time, r *Report) error {
	peers, next, err := s.learn(ctx, start, r)
	switch {
	case err != nil:
		return err
	case next != nil:
		return s.begin(ctx, next, r)
	case !r.Waits.IsZero():
		return nil
	}
	items := s.plan(ctx, peers, start, r)
	s.write(ctx, items, false, start, r)
	before := s.put
	if err := s.publish(ctx, start, r); err != nil {
		return err
	}
	// Others may have taken this region for silent, if it was, and shared out what it holds: then one of them says so. Who was not
	// silent since all of them were read cannot have been.
	now := s.Clock.Now()
	sure := s.continuous(now) || known(peers) && (before.IsZero() || now.Sub(before) <= fresh*s.regions.Window)
	if sure {
		s.sure = start
	}
	if sure || known(peers) {
		beat := store.Heartbeat{Region: s.Region, Epoch: s.epoch, Expires: start.Add(fresh * s.regions.Window).UnixMilli()}
		if err := s.Table.Beat(ctx, beat); err != nil {
			r.Failed = append(r.Failed, fmt.Errorf("heartbeat: %w", err))
			if s.taken(ctx) { // nothing more is written there, until the next cycle has found out whose it is
				s.clear(0)
			}
		} else {
			r.Beating = true
			s.write(ctx, items, true, start, r)
		}
	}
	for _, it := range items {
		r.Writes = append(r.Writes, it.Write)
	}
	return nil
}

// known reports that all peers were read: none of them knows what this region does not.
func known(peers []*peer) bool {
	for _, p := range peers {
		if !p.read {
			return false
		}
	}
	return true
}
