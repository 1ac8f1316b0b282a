package region

import (
	"maps"
	"slices"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// place is one region's part of a limit, as this region sees it.
type place struct {
	state State    // Live for this region itself
	known *Holding // what it has published, this region's own as it is; nil where that is nothing or no longer counts
	held  int64    // what is reserved for it at least
	comes int64    // given to it, and not yet taken
	due   int64
	fires Trigger // for it
	joins bool    // shares may move between it and this region
}

// view is one limit in all regions, in the order of their names.
type view struct {
	places []place
	self   int
	whole  int64 // what all have: where regions are configured differently, the least
	floor  int64 // what is reserved for each
	tight  bool  // beside that there are fewer tokens than regions
	over   int64 // what is held beyond that; below 0 what nobody holds
	sound  bool  // over is true of one moment: nothing was taken in it that had not been given
}

// look makes the view of the i-th limit of bk.
func (s *Sync) look(bk *book, i int, peers []*peer) *view {
	own := &bk.Limits[i]
	v := &view{places: make([]place, len(s.regions.Names)), whole: own.Whole, sound: true}
	rows := make([]*Holding, len(v.places))
	p := 0
	for at, name := range s.regions.Names {
		pl := &v.places[at]
		if name == s.Region {
			v.self, rows[at] = at, own
			pl.state, pl.known, pl.joins = Live, own, true
			continue
		}
		from := peers[p]
		p++
		pl.state = from.state
		e := s.published(from, bk.key())
		if e == nil {
			continue
		}
		h := e.holding(own.Limit)
		if h == nil {
			continue
		}
		if pl.known = h; from.state == Live && h.Whole > 0 {
			v.whole = min(v.whole, h.Whole)
		}
		if e.Gen == bk.Gen && bk.Gen != 0 && from.state != Gone {
			rows[at], pl.joins = h, s.trades(from)
		}
	}
	v.floor, v.tight = reserve(v.whole, s.regions)
	v.count(s.regions.Names, rows)
	v.share(s)
	return v
}

// published returns what p has last published of an entry, nil if it has nothing or no longer counts.
func (s *Sync) published(p *peer, k key) *Entry {
	if p.state == Gone || p.state == Unseen {
		return nil
	}
	return s.entries[p.name][k]
}

// count adds up what the regions hold and what is on its way. rows are their holdings, nil for who holds the floor.
func (v *view) count(names []string, rows []*Holding) {
	sum := int64(0)
	for i := range v.places {
		pl := &v.places[i]
		switch pl.held = v.floor; {
		case rows[i] != nil:
			pl.held = max(rows[i].Held, v.floor)
		case pl.known != nil: // of other accounts: nothing can be given of it, but it is in use
			pl.held = max(pl.known.Share, v.floor)
		}
		for j, from := range rows {
			if i == j || from == nil {
				continue
			}
			taken := int64(0)
			if rows[i] != nil {
				taken = rows[i].Taken[names[j]]
			}
			given := from.Given[names[i]]
			if given < taken { // the giver's row is older than the receiver's
				v.sound = false
			}
			pl.comes += max(0, given-taken)
		}
		sum += pl.held + pl.comes
	}
	v.over = sum - v.whole
}

// share says what is due to each. Who is not live keeps what it has.
func (v *view) share(s *Sync) {
	pool, live, demand := v.whole, []int(nil), []int64(nil)
	for i := range v.places {
		pl := &v.places[i]
		if pl.state != Live {
			pl.due = pl.held + pl.comes
			pool -= pl.due
			continue
		}
		rate := int64(0)
		if pl.known != nil {
			rate = pl.known.Rate
		}
		live, demand = append(live, i), append(demand, rate)
	}
	v.wish(live, demand)
	// Where nobody wants anything, equal shares would help nobody; but who has nothing cannot show that it wants some.
	wanted := v.floor == 0 || slices.ContainsFunc(demand, func(rate int64) bool { return rate > 0 })
	targets := Targets
	if v.tight {
		targets = even
	}
	for j, due := range targets(pool, v.floor, demand) {
		pl := &v.places[live[j]]
		if pl.due = due; pl.known != nil && wanted {
			pl.fires = fires(pl.known, due, s.regions.Window, s.Drift)
		}
	}
}

// wish adds to the demand of those whose bucket is all but empty. They want more than they consume, which is their share: where all
// are short of tokens, shares by consumption alone would stay as they once were. Nobody knows how much more: so each adds the same,
// and those who are short come to have the same, those who are not what they want.
func (v *view) wish(live []int, demand []int64) {
	sum := int64(0)
	for _, rate := range demand {
		sum = bucket.Add(sum, rate)
	}
	for j, i := range live {
		if h := v.places[i].known; h != nil && h.Rate > 0 && h.TK < h.BX/50 {
			demand[j] = bucket.Add(demand[j], sum/int64(8*len(live)))
		}
	}
}

// fired reports that some region's trigger has.
func (v *view) fired() bool {
	return slices.ContainsFunc(v.places, func(pl place) bool { return pl.fires != "" })
}

// lacks returns what this region is to give to each of the others, by index: who has more than is due to it gives to those who
// have less, both in the order of their names.
func (v *view) lacks() map[int]int64 {
	spare := make([]int64, len(v.places))
	for i, pl := range v.places {
		if pl.joins {
			spare[i] = pl.held + pl.comes - pl.due
		}
	}
	lacks := map[int]int64{}
	giver := 0
	for to := range spare {
		for spare[to] < 0 && giver < len(spare) {
			if spare[giver] <= 0 {
				giver++
				continue
			}
			n := min(spare[giver], -spare[to])
			spare[giver] -= n
			spare[to] += n
			if giver == v.self {
				lacks[to] += n
			}
		}
	}
	return lacks
}

// decision is what a cycle does with one limit.
type decision struct {
	to  int64 // what is to be written
	why Trigger
	due int64 // what it may be raised to when its item is written anyway
}

// settle moves what can be moved of one limit at once, in the books, and says what is to be written so that more can be.
func (s *Sync) settle(bk *book, i int, peers []*peer, presides bool) decision {
	h := &bk.Limits[i]
	s.take(bk, h, peers)
	v := s.look(bk, i, peers)
	if presides && v.sound && v.over < 0 && bk.Gen != 0 {
		h.Held -= v.over // nobody holds it: it was lost on its way, or who held it is gone, or there is more of it now
		v = s.look(bk, i, peers)
	}
	h.Held = max(h.Held, v.floor) // as all count it
	me := &v.places[v.self]
	d := decision{to: bk.Limits[i].Written, due: min(me.due, h.Held)}
	switch {
	case s.operated(bk):
	case bk.Gen == 0: // nobody has more than the floor yet
		if h.Written > v.floor {
			d.to, d.why = v.floor, Lower
		}
		h.Held = max(v.floor, h.Share)
	case v.sound && v.over > 0:
		if to := max(me.due, v.floor); h.Written > to {
			d.to, d.why = to, Lower
		}
		h.Held = max(v.floor, h.Held-max(0, min(v.over, h.Held-max(h.Share, me.due)))) // there is less of it now
	case bk.Closing:
		s.retreat(bk, i, v, &d)
	case v.fired():
		s.trade(bk, i, v, &d)
	}
	return d
}

// trade gives what the others lack and this region does not use, and has what it uses too much of lowered; or raised what it
// lacks itself.
func (s *Sync) trade(bk *book, i int, v *view, d *decision) {
	h, me := &bk.Limits[i], &v.places[v.self]
	lacks := v.lacks()
	lacking := int64(0)
	for _, to := range slices.Sorted(maps.Keys(lacks)) {
		lacking += lacks[to] - h.give(s.regions.Names[to], min(lacks[to], h.Held-max(h.Share, me.due)))
	}
	if to := max(me.due, h.Share-lacking); lacking > 0 && to < bk.Limits[i].Written {
		if d.to, d.why = to, me.fires; d.why == "" {
			d.why = Given
		}
		return
	}
	if why := fires(h, d.due, s.regions.Window, s.Drift); why != "" && d.due > h.Share && bk.Limits[i].Written == h.Share {
		d.to, d.why = d.due, why
	}
}

// retreat gives all but the floor to the region that closes the books, and has the floor written.
func (s *Sync) retreat(bk *book, i int, v *view, d *decision) {
	h := &bk.Limits[i]
	if bk.Limits[i].Written > v.floor || bk.stored {
		d.to, d.why = v.floor, Unused
	}
	d.due = v.floor
	if first := slices.IndexFunc(v.places, func(pl place) bool { return pl.state == Live }); first != v.self && v.places[first].joins {
		h.give(s.regions.Names[first], h.Held-max(h.Share, v.floor))
	}
}

// give moves n tokens to another region, none if n is not above 0, and returns how many.
func (h *Holding) give(to string, n int64) int64 {
	if n <= 0 {
		return 0
	}
	if h.Given == nil {
		h.Given = map[string]int64{}
	}
	h.Given[to] += n
	h.Held -= n
	return n
}

// take adds to h what the others have given.
func (s *Sync) take(bk *book, h *Holding, peers []*peer) {
	for _, p := range peers {
		if !s.trades(p) || bk.Gen == 0 {
			continue
		}
		e := s.published(p, bk.key())
		if e == nil || e.Gen != bk.Gen {
			continue
		}
		theirs := e.holding(h.Limit)
		if theirs == nil {
			continue
		}
		if n := theirs.Given[s.Region] - h.Taken[p.name]; n > 0 {
			if h.Taken == nil {
				h.Taken = map[string]int64{}
			}
			h.Taken[p.name] += n
			h.Held += n
		}
	}
}
