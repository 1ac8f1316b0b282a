package regionsim

import (
	"encoding/json"

	"github.com/sluice-go/sluice/runtime/region"
)

// books is what a region has published.
type books struct {
	region.Snapshot
	entries map[place]*region.Entry
}

// readsBooks reports whether the sample of now says what regions have published. The last one does, and each
// that is watched.
func (j *judge) readsBooks() bool {
	w := j.world
	return w.Books && (w.Watch != nil || w.now+w.Window > w.Duration)
}

// read reads all books that are put since it last did; nil is a region that has published nothing.
func (j *judge) read() {
	for r, data := range j.put {
		if data == nil {
			continue
		}
		j.put[r], j.books[r] = nil, nil
		b := &books{entries: map[place]*region.Entry{}}
		if json.Unmarshal(data, &b.Snapshot) != nil {
			continue
		}
		for i := range b.Entries {
			e := &b.Entries[i]
			b.entries[place{e.Entity, e.Resource}] = e
		}
		j.books[r] = b
	}
}

// held is what regions hold of a limit by what they have published, what is on its way included, in tokens.
func (j *judge) held(s *series, limit int) (sum int64) {
	for r, h := range j.world.regions {
		own, gen := j.holding(r, s, limit)
		if own == nil || j.evicted(r) {
			sum += j.world.keeps(h.table.kinds[s.resource][limit].Limit)
			continue
		}
		sum += own.Held
		for n, to := range j.world.regions {
			if n == r || j.evicted(n) || !j.knows(r, n) || !j.knows(n, r) {
				continue
			}
			given := own.Given[to.name]
			if theirs, same := j.holding(n, s, limit); theirs != nil && same == gen {
				given -= theirs.Taken[h.name]
			}
			sum += max(0, given)
		}
	}
	return sum
}

// begun reports that all regions that are not gone have begun accounts of a limit. Until then each holds the
// floor, and nobody has lost anything.
func (j *judge) begun(s *series, limit int) bool {
	for r := range j.world.regions {
		if h, gen := j.holding(r, s, limit); !j.evicted(r) && (h == nil || gen == 0) {
			return false
		}
	}
	return true
}

// holding is what a region has published of a limit, and of which gen that is: nil where that is nothing.
func (j *judge) holding(r int, s *series, limit int) (h *region.Holding, gen int64) {
	if j.books[r] == nil {
		return nil, 0
	}
	e := j.books[r].entries[s.place]
	if e == nil {
		return nil, 0
	}
	for i := range e.Limits {
		if e.Limits[i].Limit == j.world.Resources[s.resource].Limits[limit].Name {
			return &e.Limits[i], e.Gen
		}
	}
	return nil, 0
}

// evicted reports that another region says that a region is gone.
func (j *judge) evicted(r int) bool {
	if j.books[r] == nil {
		return true
	}
	name := j.world.regions[r].name
	for _, other := range j.books {
		if other != nil && other.Peers[name].Evicted && other.Peers[name].Epoch == j.books[r].Epoch {
			return true
		}
	}
	return false
}

// knows reports that a region knows another in the epoch that it is in.
func (j *judge) knows(r, other int) bool {
	return j.books[r] != nil && j.books[other] != nil &&
		j.books[r].Peers[j.world.regions[other].name].Epoch == j.books[other].Epoch
}
