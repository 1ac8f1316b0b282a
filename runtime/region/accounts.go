package region

import (
	"fmt"

	"github.com/sluice-go/sluice/runtime/store"
)

// refuse refuses the snapshots whose accounts with this region cannot be: they count as not read, so nothing
// is raised by them.
func refuse(s planner, peers []*peer, r *Report) {
	refused := false
	for _, p := range peers {
		if p.state != Live || !s.trades(p) {
			continue
		}
		if wrong := wrongAccount(s, p); wrong != "" {
			p.err = fmt.Errorf("the snapshot of %s, %s, %s; %s", p.name, objectName(p.name), wrong, foreign(p.name))
			p.state, p.read, p.snap = Silent, false, nil
			delete(s.entries, p.name)
			refused = true
		}
	}
	if refused {
		r.Peers = s.reportPeers(peers, s.now)
	}
}

// wrongAccount says which account of p is wrong, "" if none is. Tokens under way are at most the limit that
// was in force when they were given, and p takes none that were not given.
func wrongAccount(s planner, p *peer) string {
	for i := range p.snap.Entries {
		e := &p.snap.Entries[i]
		bk := s.books.of[e.key()]
		if bk == nil || bk.Gen != e.Gen || bk.Gen == 0 || len(bk.newLimits) > 0 {
			continue
		}
		for j := range bk.Limits {
			h, theirs := &bk.Limits[j], e.holding(bk.Limits[j].Limit)
			if theirs == nil {
				continue
			}
			most := bk.most(h, theirs)
			given, taken := theirs.Given[s.Region], theirs.Taken[s.Region]
			switch {
			case given-h.Taken[p.name] > most:
				return fmt.Sprintf("says that %d tokens of limit %s of %s for %s are given to %s, which has taken %d: "+
					"more than the limit, %d, are under way",
					given, store.Quote(h.Limit), store.Quote(bk.Resource), store.Quote(bk.Entity), s.Region,
					h.Taken[p.name], most)
			case taken > h.Given[p.name]:
				return fmt.Sprintf("says that %d tokens of limit %s of %s for %s are taken from %s, which has given %d",
					taken, store.Quote(h.Limit), store.Quote(bk.Resource), store.Quote(bk.Entity), s.Region,
					h.Given[p.name])
			}
		}
	}
	return ""
}

// most returns the most tokens of a limit that a region can have held since bk was opened. A limit may have
// been lowered since.
func (bk *book) most(own, theirs *Holding) int64 {
	if bk.highest == nil {
		bk.highest = map[string]int64{}
	}
	most := max(bk.highest[own.Limit], own.Whole, theirs.Whole, own.Held)
	if most > bk.highest[own.Limit] {
		bk.highest[own.Limit] = most
	}
	return most
}
