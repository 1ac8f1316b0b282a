package region

import (
	"maps"
	"slices"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// part is one region's part of a limit, as this region sees it.
type part struct {
	state    State    // Live for this region itself
	known    *Holding // what it has published, or this region's own holding; nil if there is none that counts
	held     int64    // at least this is reserved for it
	incoming int64    // given to it, and not yet taken
	target   int64
	trigger  Trigger // empty for none
	trades   bool    // quotas may move between it and this region
}

// division is one limit in all regions. parts are in the order of their names.
type division struct {
	parts      []part
	self       int
	whole      int64 // the limit of all together; the least if configurations differ
	floor      int64 // reserved for each region
	tight      bool  // what the floors leave is fewer tokens than regions
	excess     int64 // tokens held above whole; if negative, tokens that no region holds
	consistent bool  // excess is true of one moment: nothing was taken in it that had not been given
}

// divisionOf returns the division of the i-th limit of bk.
func (s planner) divisionOf(bk *book, i int, peers []*peer) *division {
	own := &bk.Limits[i]
	v := &division{parts: make([]part, len(s.regions.Names)), whole: own.Whole, consistent: true}
	rows := make([]*Holding, len(v.parts))
	p := 0
	for at, name := range s.regions.Names {
		pl := &v.parts[at]
		if name == s.Region {
			v.self, rows[at] = at, own
			pl.state, pl.known, pl.trades = Live, own, true
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
		if e.Gen == bk.Gen && bk.Gen != 0 && from.state != Evicted {
			rows[at], pl.trades = h, s.trades(from)
		}
	}
	v.floor, v.tight = reserve(v.whole, s.regions)
	v.count(s.regions.Names, rows)
	v.assignTargets(s.Sync)
	return v
}

// published returns the entry that p last published for k, nil if it has none or it counts no longer.
func (s planner) published(p *peer, k key) *Entry {
	if p.state == Evicted || p.state == NeverSeen {
		return nil
	}
	return s.entries[p.name][k]
}

// count adds up what the regions hold and what is in transit. rows are their holdings, nil for a region that
// holds the floor.
func (v *division) count(names []string, rows []*Holding) {
	sum := int64(0)
	for i := range v.parts {
		pl := &v.parts[i]
		switch pl.held = v.floor; {
		case rows[i] != nil:
			pl.held = max(rows[i].Held, v.floor)
		case pl.known != nil: // in other accounts: it cannot be given, but it is in use
			pl.held = max(pl.known.Quota, v.floor)
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
				v.consistent = false
			}
			pl.incoming += max(0, given-taken)
		}
		sum += pl.held + pl.incoming
	}
	v.excess = sum - v.whole
}

// assignTargets sets the target of each region. A region that is not live keeps what it has.
func (v *division) assignTargets(s *Sync) {
	pool, live, demand := v.whole, []int(nil), []int64(nil)
	for i := range v.parts {
		pl := &v.parts[i]
		if pl.state != Live {
			pl.target = pl.held + pl.incoming
			pool -= pl.target
			continue
		}
		rate := int64(0)
		if pl.known != nil {
			rate = pl.known.Rate
		}
		live, demand = append(live, i), append(demand, rate)
	}
	v.addShortage(live, demand)
	// Without demand, do not rebalance, unless the floor is 0: a region without tokens cannot show demand.
	wanted := v.floor == 0 || slices.ContainsFunc(demand, func(rate int64) bool { return rate > 0 })
	targets := Targets
	if v.tight {
		targets = even
	}
	for j, target := range targets(pool, v.floor, demand) {
		pl := &v.parts[live[j]]
		if pl.target = target; pl.known != nil && wanted {
			pl.trigger = fires(pl.known, target, &s.Config, s.regions.Window)
		}
	}
}

// addShortage adds to the demand of regions whose bucket is nearly empty. They need more than they consume,
// which is their quota. If all are short of tokens, quotas by consumption alone would stay as they are. The
// missing amount is unknown, so each adds the same: regions that are short converge to equal quotas, and the
// others get what they consume.
func (v *division) addShortage(live []int, demand []int64) {
	sum := int64(0)
	for _, rate := range demand {
		sum = bucket.Add(sum, rate)
	}
	for j, i := range live {
		if h := v.parts[i].known; h != nil && h.Rate > 0 && h.TK < h.BX/50 {
			demand[j] = bucket.Add(demand[j], sum/int64(8*len(live)))
		}
	}
}

// fired reports whether some region's trigger has fired.
func (v *division) fired() bool {
	return slices.ContainsFunc(v.parts, func(pl part) bool { return pl.trigger != "" })
}

// transfers returns the tokens that this region gives to each of the others, by index. Regions with more than
// their target give to those with less, both in the order of their names.
func (v *division) transfers() map[int]int64 {
	spare := make([]int64, len(v.parts))
	for i, pl := range v.parts {
		if pl.trades {
			spare[i] = pl.held + pl.incoming - pl.target
		}
	}
	transfers := map[int]int64{}
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
				transfers[to] += n
			}
		}
	}
	return transfers
}

// decision is what a cycle writes for one limit.
type decision struct {
	to     int64 // the quota to write
	why    Trigger
	target int64 // the quota it may be raised to if its item is written anyway
}

// move moves tokens of one limit in the books where it can already, and returns the write that has to come
// before more can be moved.
func (s planner) move(bk *book, i int, peers []*peer, coordinates bool) decision {
	h := &bk.Limits[i]
	s.take(bk, h, peers)
	v := s.divisionOf(bk, i, peers)
	if coordinates && v.consistent && v.excess < 0 && bk.Gen != 0 {
		// no region holds it: it was lost in transit, its holder was evicted, or the limit was raised
		h.Held -= v.excess
		v = s.divisionOf(bk, i, peers)
	}
	h.Held = max(h.Held, v.floor) // as all regions count it
	me := &v.parts[v.self]
	d := decision{to: bk.Limits[i].Written, target: min(me.target, h.Held)}
	switch {
	case s.operated(bk):
	case bk.Gen == 0: // no region has more than the floor yet
		if h.Written > v.floor {
			d.to, d.why = v.floor, Lower
		}
		h.Held = max(v.floor, h.Quota)
	case v.consistent && v.excess > 0:
		if to := max(me.target, v.floor); h.Written > to {
			d.to, d.why = to, Lower
		}
		h.Held = max(v.floor, h.Held-max(0, min(v.excess, h.Held-max(h.Quota, me.target)))) // the limit was lowered
	case bk.Closing:
		s.returnAll(bk, i, v, &d)
	case v.fired():
		s.trade(bk, i, v, &d)
	}
	return d
}

// trade gives the tokens that others need and this region does not use. If it uses more than its target, it
// has the quota lowered first. If it has less than its target, it has the quota raised.
func (s planner) trade(bk *book, i int, v *division, d *decision) {
	h, me := &bk.Limits[i], &v.parts[v.self]
	transfers := v.transfers()
	remaining := int64(0)
	for _, to := range slices.Sorted(maps.Keys(transfers)) {
		remaining += transfers[to] - h.give(s.regions.Names[to], min(transfers[to], h.Held-max(h.Quota, me.target)))
	}
	if to := max(me.target, h.Quota-remaining); remaining > 0 && to < bk.Limits[i].Written {
		if d.to, d.why = to, me.trigger; d.why == "" {
			d.why = Given
		}
		return
	}
	if why := fires(h, d.target, &s.Config, s.regions.Window); why != "" && d.target > h.Quota &&
		bk.Limits[i].Written == h.Quota {
		d.to, d.why = d.target, why
	}
}

// returnAll gives all but the floor to the region that closes the books, and has the floor written.
func (s planner) returnAll(bk *book, i int, v *division, d *decision) {
	h := &bk.Limits[i]
	if bk.Limits[i].Written > v.floor || bk.stored {
		d.to, d.why = v.floor, Unused
	}
	d.target = v.floor
	if first := slices.IndexFunc(v.parts, func(pl part) bool { return pl.state == Live }); first != v.self &&
		v.parts[first].trades {
		h.give(s.regions.Names[first], h.Held-max(h.Quota, v.floor))
	}
}

// give moves n tokens to another region, none if n is not positive. It returns the number moved.
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

// take adds to h the tokens that others have given.
func (s planner) take(bk *book, h *Holding, peers []*peer) {
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
