package region

import (
	"cmp"
	"slices"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// Fresh reports that s speaks for its region at an instant: one that has put nothing newer is silent then.
func (s *Snapshot) Fresh(now time.Time) bool {
	return now.UnixMilli()-s.GeneratedAt <= fresh*s.Window
}

// Ended reports that some of the others say that s's epoch has ended, for its region was silent for too long.
func (s *Snapshot) Ended(others []*Snapshot) bool {
	return slices.ContainsFunc(others, func(o *Snapshot) bool {
		known := o.Peers[s.Region]
		return known.Epoch > s.Epoch || known.Epoch == s.Epoch && known.Gone
	})
}

// Standing is how one limit of an entity is shared out, in whole tokens.
type Standing struct {
	Entity, Resource, Limit string

	Held  []int64    // by region, in the order of their names: what every region keeps where nothing else is known
	Known []*Holding // what they have published of it, nil for nothing
	Moves int64      // handed over by some, and not yet taken; below 0 where who has taken it published later than who gave it
	Whole int64      // of all regions; the least where they say otherwise
}

// Sum is what all regions hold together.
func (s *Standing) Sum() int64 {
	sum := s.Moves
	for _, held := range s.Held {
		sum += held
	}
	return sum
}

// Stand adds up what regions have published, by resource, entity and limit. snaps are in the order of regions.Names, nil for who has
// published nothing, or nothing that counts. The snapshots may be of different moments: what is on its way between two of them is
// neither missed nor counted twice.
func Stand(regions *store.Regions, snaps []*Snapshot) []Standing {
	all := map[key][]*Entry{}
	for i, snap := range snaps {
		if snap == nil {
			continue
		}
		for j := range snap.Entries {
			e := &snap.Entries[j]
			if all[e.key()] == nil {
				all[e.key()] = make([]*Entry, len(snaps))
			}
			all[e.key()][i] = e
		}
	}
	var standings []Standing
	for k, entries := range all {
		standings = append(standings, stand(regions, k, entries)...)
	}
	slices.SortFunc(standings, func(x, y Standing) int {
		return cmp.Or(cmp.Compare(x.Resource, y.Resource), cmp.Compare(x.Entity, y.Entity), cmp.Compare(x.Limit, y.Limit))
	})
	return standings
}

// stand is Stand of one entry, as each region has it.
func stand(regions *store.Regions, k key, entries []*Entry) []Standing {
	gen := int64(0) // shares have moved between the books of one gen alone: who is in another holds what every region keeps
	var limits []string
	for _, e := range entries {
		if e != nil {
			gen = max(gen, e.Gen)
			for i := range e.Limits {
				limits = append(limits, e.Limits[i].Limit)
			}
		}
	}
	slices.Sort(limits)
	var standings []Standing
	for _, limit := range slices.Compact(limits) {
		s := Standing{Entity: k.entity, Resource: k.resource, Limit: limit, Held: make([]int64, len(entries)), Known: make([]*Holding, len(entries))}
		rows := make([]*Holding, len(entries))
		for i, e := range entries {
			if e == nil {
				continue
			}
			h := e.holding(limit)
			if s.Known[i] = h; h == nil {
				continue
			}
			if h.Whole > 0 && (s.Whole == 0 || h.Whole < s.Whole) {
				s.Whole = h.Whole
			}
			if e.Gen == gen {
				rows[i] = h
			}
		}
		floor := bucket.Floor(s.Whole, len(entries), regions.Floor)
		for i, row := range rows {
			if s.Held[i] = floor; row == nil {
				continue
			}
			s.Held[i] = max(floor, row.Held)
			for j, name := range regions.Names {
				s.Moves += row.Given[name]
				if rows[j] != nil {
					s.Moves -= row.Taken[name]
				}
			}
		}
		standings = append(standings, s)
	}
	return standings
}
