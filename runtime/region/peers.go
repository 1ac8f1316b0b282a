package region

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// fresh is for how many windows a snapshot speaks for its region, and a heartbeat holds.
const fresh = 3

// peer is another region, as this cycle has read it.
type peer struct {
	name  string
	state State
	snap  *Snapshot // nil unless live or silent
	read  bool      // the store has answered: what it has of the region is known
	err   error
}

// name is what a region's snapshot is stored as.
func objectName(region string) string { return region + "/snapshot.json" }

// meet reads the other regions' snapshots, and learns from them who has started again, and who is gone.
func (s *Sync) meet(ctx context.Context, now time.Time) []*peer {
	var peers []*peer
	for _, name := range s.regions.Names {
		if name != s.Region {
			p := &peer{name: name}
			s.read(ctx, p, now)
			peers = append(peers, p)
		}
	}
	for _, p := range peers {
		if p.state == Live && !s.known[p.name].Gone {
			s.hear(p.snap)
		}
	}
	for _, p := range peers {
		if s.known[p.name].Gone {
			p.state = Gone
		}
	}
	return peers
}

// read gets p's snapshot and judges it.
func (s *Sync) read(ctx context.Context, p *peer, now time.Time) {
	known := s.known[p.name]
	object, err := s.Snapshots.Get(ctx, objectName(p.name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.read = true
		if p.state = Silent; known.Epoch == 0 {
			p.state = Unseen
		}
		return
	case err != nil:
		p.state, p.err = Silent, err
		return
	}
	p.state = Silent
	snap, err := Decode(object, p.name, s.regions.Window, now, s.regions.Window)
	if err != nil {
		p.err = err
		return
	}
	switch {
	case snap.Epoch < known.Epoch:
		p.err = fmt.Errorf("the snapshot of %s, %s, is of epoch %d, which has ended; its sync puts a new one: see that it runs", p.name, objectName(p.name), snap.Epoch)
		return
	case snap.Epoch == known.Epoch && snap.Sequence < known.Sequence:
		p.err = fmt.Errorf("the snapshot of %s, %s, has sequence %d, below the %d that was seen before: an older one was put back; %s",
			p.name, objectName(p.name), snap.Sequence, known.Sequence, foreign(p.name))
		return
	case snap.Epoch > known.Epoch:
		known = Known{Epoch: snap.Epoch}
		s.books.forget(p.name)
	}
	p.read, p.snap = true, snap
	known.Sequence, known.GeneratedAt = snap.Sequence, snap.GeneratedAt
	s.known[p.name] = known
	s.remember(p)
	if now.UnixMilli()-snap.GeneratedAt <= fresh*s.window() {
		p.state = Live
	}
}

// remember keeps what p has published, for the time that it is silent.
func (s *Sync) remember(p *peer) {
	entries := make(map[key]*Entry, len(p.snap.Entries))
	for i := range p.snap.Entries {
		e := &p.snap.Entries[i]
		entries[e.key()] = e
	}
	s.entries[p.name] = entries
}

// hear learns from a live region's snapshot who is gone.
func (s *Sync) hear(snap *Snapshot) {
	for name, theirs := range snap.Peers {
		known, listed := s.known[name]
		if listed && theirs.Gone && (theirs.Epoch > known.Epoch || theirs.Epoch == known.Epoch && !known.Gone) {
			s.bury(name, theirs.Epoch)
		}
	}
}

// bury ends the epoch of a region that was silent for too long: what it holds counts as its floor, and is no longer traded.
func (s *Sync) bury(name string, epoch int64) {
	known := s.known[name]
	known.Epoch, known.Gone, known.AgreedAt = epoch, true, 0
	s.known[name] = known
	s.books.forget(name)
	s.Logger.Warn("sluice: a region was silent for too long: what it held is shared out, when all who are left know", "region", name, "epoch", epoch)
}

// evict buries who has been silent for too long. Only who is not silent itself may, and of whom the store has told: a region
// that cannot be read may be well.
func (s *Sync) evict(peers []*peer, now time.Time) {
	if !s.continuous(now) {
		return
	}
	for _, p := range peers {
		if known := s.known[p.name]; p.state == Silent && p.read && now.Sub(time.UnixMilli(known.GeneratedAt)) > s.Evict {
			s.bury(p.name, known.Epoch)
			p.state = Gone
		}
	}
}

// continuous reports that this region's snapshots have not been old for long enough for another to have taken it for silent, since
// it last knew that none had.
func (s *Sync) continuous(now time.Time) bool {
	return !s.sure.IsZero() && now.Sub(s.sure) <= fresh*s.regions.Window
}

// ended returns the epoch of this region that others say has ended, 0 if none does. One that they know, and in which this region
// has put nothing yet, was begun by a table that is no longer this one.
func (s *Sync) ended(peers []*peer) int64 {
	epoch := int64(0)
	for _, p := range peers {
		if p.snap == nil {
			continue
		}
		known := p.snap.Peers[s.Region]
		if known.Epoch > s.epoch || known.Epoch == s.epoch && (known.Gone || s.put.IsZero()) {
			epoch = max(epoch, known.Epoch)
		}
	}
	return epoch
}

// trades reports that shares may move between this region and p: each knows the other in its epoch.
func (s *Sync) trades(p *peer) bool {
	return p.state == Live && p.snap.Peers[s.Region].Epoch == s.epoch && !p.snap.Peers[s.Region].Gone
}

// presides reports that this region is the one that takes what is in nobody's hands: the first by name of those who are live, who
// all know the same of each other, while nobody is silent, and the shares of those who are gone are certainly no longer in force.
// Two regions that both think so know each other to be gone, or one of them sees that it is.
func (s *Sync) presides(peers []*peer, now time.Time) bool {
	presides := true
	for _, p := range peers {
		switch p.state {
		case Live:
			presides = presides && p.name > s.Region && s.trades(p) && s.agrees(p)
		case Silent:
			presides = false
		case Gone, Unseen:
			presides = s.settled(p.name, peers, now) && presides
		}
	}
	return presides
}

// agrees reports that p knows the same as this region of all others.
func (s *Sync) agrees(p *peer) bool {
	for name, known := range s.known {
		if name != p.name {
			if theirs := p.snap.Peers[name]; theirs.Epoch != known.Epoch || theirs.Gone != known.Gone {
				return false
			}
		}
	}
	return true
}

// settled reports that all who are live have said for long enough that a region is gone, or was never seen. Its heartbeat cannot hold
// any longer then: it stamps the beginning of what it does, and where it began later it has read that it is gone. What was never
// seen may have been lost: who is alive puts it again.
func (s *Sync) settled(gone string, peers []*peer, now time.Time) bool {
	known := s.known[gone]
	agreed := s.said[gone].Epoch == known.Epoch && s.said[gone].Gone == known.Gone
	for _, p := range peers {
		if p.state == Live {
			theirs := p.snap.Peers[gone]
			agreed = agreed && theirs.Epoch == known.Epoch && theirs.Gone == known.Gone
		}
	}
	if !agreed {
		known.AgreedAt = 0
	} else if known.AgreedAt == 0 {
		known.AgreedAt = now.UnixMilli()
	}
	s.known[gone] = known
	return agreed && now.UnixMilli()-known.AgreedAt >= leastEvict*s.window()
}

// window is in ms.
func (s *Sync) window() int64 { return s.regions.Window.Milliseconds() }

// told returns peers as a Report has them.
func (s *Sync) told(peers []*peer, now time.Time) []Peer {
	told := make([]Peer, len(peers))
	for i, p := range peers {
		told[i] = Peer{Region: p.name, State: p.state, Err: p.err}
		if at := s.known[p.name].GeneratedAt; at != 0 {
			told[i].Age = now.Sub(time.UnixMilli(at))
		}
	}
	return told
}
