package region

import (
	"slices"
	"time"

	"github.com/sluice-go/sluice/runtime/region/images"
)

// mirror opens a book for each book of a live region, so that both sides have accounts.
func (s planner) mirror(peers []*peer, now time.Time) {
	for _, p := range peers {
		if p.state != Live {
			continue
		}
		for i := range p.snap.Entries {
			e := &p.snap.Entries[i]
			if e.Closing || s.books.of[e.key()] != nil {
				continue
			}
			if spec := s.spec(e.Resource); spec != nil && s.whole(spec, e.Entity) != nil {
				bk := s.books.open(spec, e.Entity, now.UnixMilli())
				bk.configure(s.whole(spec, e.Entity))
				img := s.images.Current(images.Key{Resource: e.Resource, Entity: e.Entity})
				bk.observe(img, now.UnixMilli(), 0, s.window())
			}
		}
	}
}

// tidy agrees with the other regions on the generation of bk's accounts, and on closing books that are not
// used. It reports whether bk stays open. A book is closed once all regions hold no more than the floor and
// all of them say so. The coordinator decides that, and begins the accounts.
func (s planner) tidy(bk *book, peers []*peer, coordinates bool, now time.Time) bool {
	gen, unused := int64(0), now.Sub(time.UnixMilli(bk.Used)) > s.Unused
	var first *peer // the first live region that comes before this one
	for _, p := range peers {
		if p.state != Live {
			continue
		}
		if first == nil && p.name < s.Region {
			first = p
		}
		if e := s.published(p, bk.key()); e != nil {
			gen = max(gen, e.Gen)
			unused = unused && now.Sub(time.UnixMilli(e.Used)) > s.Unused
		}
	}
	switch {
	case gen > bk.Gen && !allRead(peers): // a region that was not read may have accounts with this one
	case gen > bk.Gen && (bk.Gen == 0 || bk.atFloor()):
		bk.begin(gen)
		bk.Fresh = s.remembers(bk, now)
		bk.newLimits = bk.spec.Limits
	case gen > bk.Gen: // the others have closed books in which this region still holds tokens
		bk.Closing = true
		return true
	case bk.Gen == 0 && gen == 0 && coordinates:
		bk.begin(now.UnixMilli())
		bk.Fresh = s.remembers(bk, now) && allLive(peers)
	}
	s.resume(bk, peers)
	bk.Fresh = bk.Fresh && !s.anyStale(bk, peers)
	if first != nil {
		e := s.published(first, bk.key())
		if e != nil && e.Gen == bk.Gen {
			bk.Closing = e.Closing
		}
		return e != nil || !bk.Closing || !bk.atFloor()
	}
	if coordinates {
		bk.Closing = unused
		return !unused || !bk.atFloor() || !s.closed(bk, peers)
	}
	return true
}

// begin starts the accounts of gen: nothing was given or taken in it yet.
func (bk *book) begin(gen int64) {
	bk.Gen, bk.Closing = gen, false
	for i := range bk.Limits {
		h := &bk.Limits[i]
		h.Given, h.Taken, h.Held = nil, nil, max(h.Quota, bk.reserved(i)) // Quota is more if the limit was lowered
	}
}

// resume restores accounts that this region may have had before and has lost with its books or with the
// limit. It takes them from the other regions' accounts: what was given has been taken, or is found again as
// not held.
func (s planner) resume(bk *book, peers []*peer) {
	for _, p := range peers {
		e := s.published(p, bk.key())
		if e == nil || e.Gen != bk.Gen || bk.Gen == 0 || p.snap == nil || p.snap.Peers[s.Region].Epoch != s.epoch {
			continue
		}
		for _, limit := range bk.newLimits {
			if h, theirs := bk.holding(limit), e.holding(limit); h != nil && theirs != nil {
				h.Given, h.Taken = withEntry(h.Given, p.name, theirs.Taken[s.Region]),
					withEntry(h.Taken, p.name, theirs.Given[s.Region])
			}
		}
	}
	bk.newLimits = nil
}

// withEntry returns account with n recorded for a region.
func withEntry(account map[string]int64, region string, n int64) map[string]int64 {
	if n == 0 {
		return account
	}
	if account == nil {
		account = map[string]int64{}
	}
	account[region] = n
	return account
}

// atFloor reports whether this region uses no more than the floor and has nothing stored.
func (bk *book) atFloor() bool {
	if bk.stored {
		return false
	}
	for i := range bk.Limits {
		if bk.Limits[i].Quota > bk.reserved(i) {
			return false
		}
	}
	return true
}

// closed reports whether all other regions are ready to close bk's books: they say so, they hold the floor,
// and nothing is in transit.
func (s planner) closed(bk *book, peers []*peer) bool {
	for _, p := range peers {
		if p.state != Live {
			continue
		}
		if e := s.published(p, bk.key()); e == nil || e.Gen != bk.Gen || !e.Closing {
			return false
		}
	}
	for i := range bk.Limits {
		v := s.divisionOf(bk, i, peers)
		if !v.consistent || slices.ContainsFunc(v.parts, func(pl part) bool {
			return pl.incoming > 0 || pl.known != &bk.Limits[i] && pl.state == Live &&
				(pl.held > v.floor || pl.known.Quota > v.floor)
		}) {
			return false
		}
	}
	return true
}
