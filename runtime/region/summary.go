package region

import (
	"cmp"
	"slices"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// Fresh reports whether s is valid at now. A region without a newer snapshot is silent afterwards.
func (s *Snapshot) Fresh(now time.Time) bool {
	return now.UnixMilli()-s.GeneratedAt <= freshWindows*s.Window
}

// Ended reports whether another region says that s's epoch has ended because its region was silent for too
// long.
func (s *Snapshot) Ended(others []*Snapshot) bool {
	return slices.ContainsFunc(others, func(o *Snapshot) bool {
		known := o.Peers[s.Region]
		return known.Epoch > s.Epoch || known.Epoch == s.Epoch && known.Evicted
	})
}

// Summary is how one limit of an entity is divided among regions, in whole tokens.
type Summary struct {
	Entity, Resource, Limit string

	Held      []int64    // by region, in the order of their names; the floor where nothing else is known
	Known     []*Holding // what they have published of the limit, nil for nothing
	InTransit int64      // given and not yet taken; negative if the receiver has published later than the giver
	Whole     int64      // of all regions together; the least if they differ
	// millitokens in the buckets, as published with Known. A bucket in debt counts as empty.
	Left int64
}

// Sum returns what all regions hold together.
func (s *Summary) Sum() int64 {
	sum := s.InTransit
	for _, held := range s.Held {
		sum += held
	}
	return sum
}

// Summarize adds up what regions have published, by resource, entity and limit. snaps are in the order of
// regions.Names, nil for a region without a valid snapshot. The snapshots may be of different moments: tokens
// in transit between two of them are neither missed nor counted twice.
func Summarize(regions *store.Regions, snaps []*Snapshot) []Summary {
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
	var summaries []Summary
	for k, entries := range all {
		summaries = append(summaries, summarize(regions, k, entries)...)
	}
	slices.SortFunc(summaries, func(x, y Summary) int {
		return cmp.Or(cmp.Compare(x.Resource, y.Resource), cmp.Compare(x.Entity, y.Entity),
			cmp.Compare(x.Limit, y.Limit))
	})
	return summaries
}

// summarize is Summarize for one entry; entries are in the order of regions.Names.
func summarize(regions *store.Regions, k key, entries []*Entry) []Summary {
	gen := int64(0) // quotas have moved only within one gen: a region in another one holds the floor
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
	var summaries []Summary
	for _, limit := range slices.Compact(limits) {
		s := Summary{Entity: k.entity, Resource: k.resource, Limit: limit, Held: make([]int64, len(entries)),
			Known: make([]*Holding, len(entries))}
		s.fill(regions, gen, entries)
		summaries = append(summaries, s)
	}
	return summaries
}

// fill sets what s has of its limit in entries, whose highest generation is gen.
func (s *Summary) fill(regions *store.Regions, gen int64, entries []*Entry) {
	rows := make([]*Holding, len(entries))
	for i, e := range entries {
		if e == nil {
			continue
		}
		h := e.holding(s.Limit)
		if s.Known[i] = h; h == nil {
			continue
		}
		s.Left = bucket.Add(s.Left, max(0, h.TK))
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
			s.InTransit += row.Given[name]
			if rows[j] != nil {
				s.InTransit -= row.Taken[name]
			}
		}
	}
}
