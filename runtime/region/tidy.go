package region

import (
	"slices"
	"time"
)

// mirror opens books of what live regions have books of, so that there are accounts on both sides.
func (s *Sync) mirror(peers []*peer, now time.Time) {
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
				bk.observe(s.buckets[e.key()], now.UnixMilli(), 0, s.window())
			}
		}
	}
}

// tidy agrees with the others on which accounts count, and on closing books that nobody uses. It reports whether bk goes on: it ends
// where all regions hold no more than the floor, and all of them say so. Who presides decides that, and begins the accounts.
func (s *Sync) tidy(bk *book, peers []*peer, presides bool, now time.Time) bool {
	gen, unused := int64(0), now.Sub(time.UnixMilli(bk.Used)) > s.Unused
	var first *peer // who is live and comes before this region
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
	case gen > bk.Gen && !known(peers): // who cannot be read may have accounts of it with this region
	case gen > bk.Gen && (bk.Gen == 0 || bk.floored()):
		bk.begin(gen)
		bk.lacked = bk.spec.Limits
	case gen > bk.Gen: // the others have closed books in which this region still holds something
		bk.Closing = true
		return true
	case bk.Gen == 0 && gen == 0 && presides:
		bk.begin(now.UnixMilli())
	}
	s.resume(bk, peers)
	if first != nil {
		e := s.published(first, bk.key())
		if e != nil && e.Gen == bk.Gen {
			bk.Closing = e.Closing
		}
		return e != nil || !bk.Closing || !bk.floored()
	}
	if presides {
		bk.Closing = unused
		return !unused || !bk.floored() || !s.closed(bk, peers)
	}
	return true
}

// begin starts accounts of a gen: nothing was given or taken in it.
func (bk *book) begin(gen int64) {
	bk.Gen, bk.Closing = gen, false
	for i := range bk.Limits {
		h := &bk.Limits[i]
		h.Given, h.Taken, h.Held = nil, nil, max(h.Share, bk.reserved(i)) // more where the limit was lowered
	}
}

// resume takes up accounts that this region may have had before, and has lost with its books or with the limit, by what the others
// say of them: what was given then has been taken, or is to be found again.
func (s *Sync) resume(bk *book, peers []*peer) {
	for _, p := range peers {
		e := s.published(p, bk.key())
		if e == nil || e.Gen != bk.Gen || bk.Gen == 0 || p.snap == nil || p.snap.Peers[s.Region].Epoch != s.epoch {
			continue
		}
		for _, limit := range bk.lacked {
			if h, theirs := bk.holding(limit), e.holding(limit); theirs != nil {
				h.Given, h.Taken = noted(h.Given, p.name, theirs.Taken[s.Region]), noted(h.Taken, p.name, theirs.Given[s.Region])
			}
		}
	}
	bk.lacked = nil
}

// noted returns account with n noted for a region.
func noted(account map[string]int64, region string, n int64) map[string]int64 {
	if n == 0 {
		return account
	}
	if account == nil {
		account = map[string]int64{}
	}
	account[region] = n
	return account
}

// floored reports that this region uses no more than the floor, and has nothing stored.
func (bk *book) floored() bool {
	if bk.stored {
		return false
	}
	for i := range bk.Limits {
		if bk.Limits[i].Share > bk.reserved(i) {
			return false
		}
	}
	return true
}

// closed reports that all other regions say that they are ready to close bk's books: they hold the floor, and nothing is on its way.
func (s *Sync) closed(bk *book, peers []*peer) bool {
	for _, p := range peers {
		if p.state != Live {
			continue
		}
		if e := s.published(p, bk.key()); e == nil || e.Gen != bk.Gen || !e.Closing {
			return false
		}
	}
	for i := range bk.Limits {
		v := s.look(bk, i, peers)
		if !v.sound || slices.ContainsFunc(v.places, func(pl place) bool {
			return pl.comes > 0 || pl.known != &bk.Limits[i] && pl.state == Live && (pl.held > v.floor || pl.known.Share > v.floor)
		}) {
			return false
		}
	}
	return true
}
