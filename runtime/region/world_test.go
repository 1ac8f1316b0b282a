package region

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// world is regions on one clock, which stands still while one of them has its cycle.
type world struct {
	t       *testing.T
	now     time.Time
	spec    *store.Spec
	objects map[string][]byte
	down    map[string]bool // regions that the store does not answer
	regions []*site
}

// site is one region.
type site struct {
	*world

	name   string
	sync   *Sync
	stored map[string]store.Stored
	ours   map[string]bool // stored that sync may write
	beat   store.Heartbeat
	rates  map[string]int64 // asked for, in tokens a second, by entity: it is given what its quota refills
	used   map[string]int64
	last   map[string]time.Time // when that was; now where it is not said
	report *Report
	broken error // what the table says
	writes int
}

// window is that of all tests, and user who calls in them.
const (
	window = 10 * time.Second
	user   = "user-1"
)

// newWorld has regions that share out whole tokens a minute.
func newWorld(t *testing.T, whole int64, names ...string) *world {
	t.Helper()
	w := &world{t: t, now: time.UnixMilli(1_700_000_000_000), objects: map[string][]byte{},
		down: map[string]bool{}}
	w.spec = &store.Spec{
		Resource: "gpt-4", Revision: 1, Limits: []string{"rpm"},
		Kinds: []store.Kind{{Name: "user", Prefix: "user-", Parent: store.NoParent,
			Limits: []bucket.Limit{bucket.Per(whole, time.Minute)}, PerCall: []int64{1}}},
		Regions: &store.Regions{Names: names, Floor: 5, Window: window},
	}
	for _, name := range names {
		s := &site{world: w, name: name, stored: map[string]store.Stored{}, ours: map[string]bool{},
			rates: map[string]int64{}, used: map[string]int64{}, last: map[string]time.Time{}}
		w.regions = append(w.regions, s)
		s.restart()
	}
	return w
}

// restart has s's sync forget what it has in memory.
func (s *site) restart() {
	sync, err := New(Config{
		Region: s.name, Table: s, Snapshots: objects{s}, Specs: []*store.Spec{s.spec}, Clock: s,
		Logger: slog.New(slog.DiscardHandler), Writers: 1, Drift: 1,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.sync = sync
}

// run has so many windows pass, with a cycle of each region in each.
func (w *world) run(windows int, regions ...string) {
	w.t.Helper()
	for range windows {
		w.now = w.now.Add(window)
		for _, s := range w.regions {
			if len(regions) > 0 && !slices.Contains(regions, s.name) {
				continue
			}
			for entity, rate := range s.rates {
				s.used[entity] += min(rate*10_000, s.inForce(entity)*bucket.Milli/6) // millitokens
			}
			s.report, _ = s.sync.Cycle(w.t.Context())
			w.check()
		}
	}
}

// inForce returns what a region's processes use of an entity's limit.
func (s *site) inForce(entity string) int64 {
	whole := s.spec.Kinds[0].Limits[0]
	if level := s.stored[entity]; level.Overrides() && (!s.ours[entity] || level.Epoch == s.beat.Epoch &&
		s.beat.Alive(s.now.UnixMilli())) {
		return level.Limits[0].Capacity / bucket.Milli
	}
	return s.spec.Regions.Keeps(whole).Capacity / bucket.Milli
}

// check fails if more is in force than there is.
func (w *world) check() {
	w.t.Helper()
	whole := w.spec.Kinds[0].Limits[0].Capacity / bucket.Milli
	for _, at := range w.regions {
		for entity := range at.stored {
			sum, all := int64(0), []string(nil)
			for _, s := range w.regions {
				if s.stored[entity].Overrides() && !s.ours[entity] {
					return // an operator's
				}
				sum += s.inForce(entity)
				all = append(all, fmt.Sprint(s.name, " ", s.inForce(entity)))
			}
			if sum > whole {
				w.t.Fatalf("%d of %d are in force for %s: %v", sum, whole, entity, all)
			}
		}
	}
}

// want fails unless the regions' quotas of user are these, or differ by a hundredth of the whole: what drifts
// by less is not written.
func (w *world) want(quotas ...int64) {
	w.t.Helper()
	got, slack := make([]int64, len(w.regions)), w.spec.Kinds[0].Limits[0].Capacity/bucket.Milli/100
	for i, s := range w.regions {
		got[i] = s.inForce(user)
	}
	if !slices.EqualFunc(got, quotas, func(a, b int64) bool { return max(a-b, b-a) <= slack }) {
		w.t.Errorf("%d are in force, want %d", got, quotas)
	}
}

// Now implements store.Clock.
func (w *world) Now() time.Time { return w.now }

// After implements store.Clock.
func (w *world) After(time.Duration) <-chan time.Time { panic("a cycle waits for nothing") }

// objects is a region's way to the snapshots.
type objects struct{ *site }

// Get implements Snapshots.
func (s objects) Get(_ context.Context, name string) ([]byte, error) {
	if s.down[s.name] {
		return nil, fmt.Errorf("no answer")
	}
	if object, ok := s.world.objects[name]; ok {
		return object, nil
	}
	return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
}

// Put implements Snapshots.
func (s objects) Put(_ context.Context, name string, object []byte) error {
	if s.down[s.name] {
		return fmt.Errorf("no answer")
	}
	s.world.objects[name] = object
	return nil
}

// Each implements Table.
func (s *site) Each(_ context.Context, _ string, f func(string, *bucket.Image)) error {
	if s.broken != nil {
		return s.broken
	}
	for entity, used := range s.used {
		limit := s.spec.Kinds[0].Limits[0].Quota(s.inForce(entity))
		if level := s.stored[entity]; level.Overrides() {
			limit = *level.Limits[0]
		}
		tokens := limit.Burst
		if s.rates[entity]*60*bucket.Milli > limit.Capacity {
			tokens = 0
		}
		last, ok := s.last[entity]
		if !ok {
			last = s.now
		}
		f(entity, &bucket.Image{Refilled: last.UnixMilli(), TTL: s.now.Unix() + 1000, Extra: []bucket.Named{{
			Name: "rpm", Balance: bucket.Balance{Limit: limit, Tokens: tokens, Consumed: used},
		}}})
	}
	return nil
}

// Get implements Table.
func (s *site) Get(_ context.Context, _ *store.Spec, at ...string) ([]store.Stored, error) {
	all := make([]store.Stored, len(at))
	for i, level := range at {
		all[i] = s.stored[level]
	}
	return all, s.broken
}

// Quota implements Table.
func (s *site) PutQuota(_ context.Context, spec *store.Spec, quota store.Stored) (store.Revision,
	error) {
	s.writes++
	if s.broken != nil {
		return "", s.broken
	}
	old := s.stored[quota.At]
	if old.Overrides() && !s.ours[quota.At] {
		return "", &store.ConflictError{Resource: spec.Resource, At: quota.At}
	}
	rev, _ := strconv.Atoi(cmp.Or(string(old.Revision), "0"))
	quota.Revision = store.Revision(strconv.Itoa(rev + 1))
	s.stored[quota.At], s.ours[quota.At] = quota, true
	return quota.Revision, nil
}

// Grant implements Table. No bucket here has the limits of its quota.
func (*site) Grant(context.Context, *store.Spec, string, []bucket.Limit, []int64) (bool, error) {
	return false, nil
}

// Heartbeat implements Table.
func (s *site) Heartbeat(context.Context) (store.Heartbeat, error) { return s.beat, s.broken }

// PutHeartbeat implements Table.
func (s *site) PutHeartbeat(_ context.Context, h store.Heartbeat) error {
	if s.broken != nil {
		return s.broken
	}
	if err := s.beat.Another(h.Region, s.now.UnixMilli()); err != nil {
		return err
	}
	if s.beat.Epoch > h.Epoch || s.beat.Epoch == h.Epoch &&
		(s.beat.Expires > h.Expires || s.beat.OfAnother(h.Region)) {
		return &store.ConflictError{At: "heartbeat"}
	}
	if h.Since = s.beat.Since; h.Epoch != s.beat.Epoch || !s.beat.Alive(s.now.UnixMilli()) {
		h.Since = s.now.UnixMilli()
	}
	s.beat = h
	return nil
}
