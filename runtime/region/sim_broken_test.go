package region_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/internal/test/regionsim"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/region"
	"github.com/sluice-go/sluice/runtime/store"
)

// These wrappers distort what a sync sees of its table and of the store, so that it acts as a broken sync
// would.

// lowering keeps back what lowers a quota until the sync takes it for certain that nobody has seen more for a
// window.
type lowering struct {
	region.Table
	last map[string]store.Stored // by resource and entity
	late map[string]func() error
}

// Quota implements region.Table.
func (l *lowering) PutQuota(ctx context.Context, spec *store.Spec, quota store.Stored) (store.Revision,
	error) {
	at := spec.Resource + " " + quota.At
	last := l.last[at]
	l.last[at] = quota
	write := func() error {
		quota.Revision = "" // what is stored has one by now
		_, err := l.Table.PutQuota(ctx, spec, quota)
		return err
	}
	for i, limit := range quota.Limits {
		if i < len(last.Limits) && limit.Capacity < last.Limits[i].Capacity {
			l.late[at] = write
			return quota.Revision, nil
		}
	}
	delete(l.late, at)
	return l.Table.PutQuota(ctx, spec, quota)
}

// loweringStore is the store of the same sync. It writes what was kept back right before what gives it is
// put, or after.
type loweringStore struct {
	region.Snapshots
	table  *lowering
	before bool
}

// Put implements region.Snapshots.
func (s loweringStore) Put(ctx context.Context, name string, object []byte) error {
	write := func() error {
		for _, e := range decoded(object).Entries {
			at := e.Resource + " " + e.Entity
			if late := s.table.late[at]; late != nil &&
				!slices.ContainsFunc(e.Limits, func(h region.Holding) bool { return h.Quota != h.Written }) {
				delete(s.table.late, at)
				if err := late(); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if s.before {
		if err := write(); err != nil {
			return err
		}
		return s.Snapshots.Put(ctx, name, object)
	}
	if err := s.Snapshots.Put(ctx, name, object); err != nil {
		return err
	}
	return write()
}

// lowersLate has givers lower what they use right before they publish that they have given it, or after.
func lowersLate(before bool) regionsim.Wrap {
	return func(_ int, t region.Table, s region.Snapshots) (region.Table, region.Snapshots) {
		table := &lowering{t, map[string]store.Stored{}, map[string]func() error{}}
		return table, loweringStore{s, table, before}
	}
}

// beating shows the sync the heartbeat that it has stored itself.
type beating struct {
	region.Table
	own store.Heartbeat
}

// Heartbeat implements region.Table.
func (b *beating) Heartbeat(ctx context.Context) (store.Heartbeat, error) {
	if b.own.Epoch != 0 {
		return b.own, nil
	}
	return b.Table.Heartbeat(ctx)
}

// PutHeartbeat implements region.Table.
func (b *beating) PutHeartbeat(ctx context.Context, h store.Heartbeat) error {
	err := b.Table.PutHeartbeat(ctx, h)
	if err == nil {
		b.own, err = b.Table.Heartbeat(ctx)
	}
	return err
}

// beatingStore is the store of the same sync: it renews the heartbeat before it puts.
type beatingStore struct {
	region.Snapshots
	table region.Table
}

// Put implements region.Snapshots.
func (s beatingStore) Put(ctx context.Context, name string, object []byte) error {
	snap := decoded(object)
	if err := s.table.PutHeartbeat(ctx, store.Heartbeat{Epoch: snap.Epoch, Expires: snap.GeneratedAt +
		3*snap.Window}); err != nil {
		return err
	}
	return s.Snapshots.Put(ctx, name, object)
}

// beatsFirst has regions renew their heartbeat before they publish.
func beatsFirst(_ int, t region.Table, s region.Snapshots) (region.Table, region.Snapshots) {
	return &beating{Table: t}, beatingStore{s, t}
}

// editing changes what is read of other regions. own is what this one has published.
type editing struct {
	region.Snapshots
	self string
	edit func(other, own *region.Snapshot)
}

// Get implements region.Snapshots.
func (s editing) Get(ctx context.Context, name string) ([]byte, error) {
	object, err := s.Snapshots.Get(ctx, name)
	if err != nil || strings.HasPrefix(name, s.self+"/") {
		return object, err
	}
	own, err := s.Snapshots.Get(ctx, s.self+"/snapshot.json")
	if errors.Is(err, fs.ErrNotExist) { // nothing is published yet
		return object, nil
	}
	if err != nil {
		return nil, err
	}
	other := decoded(object)
	s.edit(other, decoded(own))
	return json.Marshal(other)
}

// reads has regions read something else of others.
func reads(edit func(other, own *region.Snapshot)) regionsim.Wrap {
	return func(self int, t region.Table, s region.Snapshots) (region.Table, region.Snapshots) {
		return t, editing{s, names(4)[self], edit}
	}
}

// takesTwice has what is given taken twice, by who believes that the giver has that much less.
func takesTwice(other, own *region.Snapshot) {
	for _, h := range holdings(other) {
		if given := h.Given[own.Region]; given > 0 {
			h.Given[own.Region] += given
			h.Held = max(0, h.Held-given)
		}
	}
}

// evicts has who is silent for two windows hold no more than the floor.
func evicts(other, own *region.Snapshot) {
	if own.GeneratedAt-other.GeneratedAt < own.Window {
		return
	}
	other.GeneratedAt = own.GeneratedAt
	mine := holdings(own)
	for at, h := range holdings(other) {
		floor := bucket.Floor(h.Whole, len(own.Peers)+1, 5)
		h.Held, h.Quota, h.Written, h.Rate = floor, floor, floor, 0
		if mine := mine[at]; mine != nil && mine.Given[other.Region] > 0 {
			h.Taken = map[string]int64{own.Region: mine.Given[other.Region]}
		}
	}
}

// strangers has nobody known to anybody, so that nothing moves.
func strangers(other, _ *region.Snapshot) { other.Peers = nil }

// halving stores half of what every region keeps.
type halving struct{ region.Table }

// Quota implements region.Table.
func (t halving) PutQuota(ctx context.Context, spec *store.Spec, quota store.Stored) (store.Revision,
	error) {
	for i := range quota.Limits {
		whole := spec.Kinds[0].Limits[i]
		half := whole.Quota(spec.Regions.Keeps(whole).Capacity / bucket.Milli / 2)
		quota.Limits[i] = &half
	}
	return t.Table.PutQuota(ctx, spec, quota)
}

// halves has quotas below the floor.
func halves(_ int, t region.Table, s region.Snapshots) (region.Table, region.Snapshots) {
	return halving{t}, s
}

// decoded is what an object says that a sync has put.
func decoded(object []byte) *region.Snapshot {
	snap := new(region.Snapshot)
	if err := json.Unmarshal(object, snap); err != nil {
		panic(err)
	}
	return snap
}

// holdings are what a snapshot says, by resource, entity and limit.
func holdings(snap *region.Snapshot) map[string]*region.Holding {
	all := map[string]*region.Holding{}
	for i := range snap.Entries {
		for j := range snap.Entries[i].Limits {
			h := &snap.Entries[i].Limits[j]
			all[snap.Entries[i].Resource+" "+snap.Entries[i].Entity+" "+h.Limit] = h
		}
	}
	return all
}
