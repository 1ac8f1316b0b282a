package region

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// freshWindows is the number of windows for which a snapshot or a heartbeat is valid.
const freshWindows = 3

// peer is another region as this cycle has read it.
type peer struct {
	name  string
	state State
	snap  *Snapshot // nil unless live or silent
	read  bool      // the region's snapshot was read, or the store has none
	err   error
}

// membership determines which regions take part, from what they have published.
type membership struct{ *Sync }

// objectName returns the name of a region's snapshot in the store.
func objectName(region string) string { return region + "/snapshot.json" }

// readPeers reads the other regions' snapshots. It records which regions have begun a new epoch and which
// were evicted.
func (s membership) readPeers(ctx context.Context, now time.Time) []*peer {
	var peers []*peer
	for _, name := range s.regions.Names {
		if name != s.Region {
			p := &peer{name: name}
			s.read(ctx, p, now)
			peers = append(peers, p)
		}
	}
	for _, p := range peers {
		if p.state == Live && !s.known[p.name].Evicted {
			s.adoptEvictions(p.snap)
		}
	}
	for _, p := range peers {
		if s.known[p.name].Evicted {
			p.state = Evicted
		}
	}
	return peers
}

// read reads p's snapshot and sets p's state.
func (s membership) read(ctx context.Context, p *peer, now time.Time) {
	known := s.known[p.name]
	object, err := s.Snapshots.Get(ctx, objectName(p.name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.read = true
		if p.state = Silent; known.Epoch == 0 {
			p.state = NeverSeen
		}
		return
	case err != nil:
		p.state, p.err = Silent, err
		return
	}
	p.state = Silent
	snap, err := decode(object, p.name, s.regions.Window, now, s.regions.Window, s.snaps[p.name])
	if err != nil {
		p.err = err
		return
	}
	switch {
	case snap.Epoch < known.Epoch:
		p.err = fmt.Errorf("the snapshot of %s, %s, is of epoch %d, which has ended; its sync puts a new one: "+
			"see that it runs",
			p.name, objectName(p.name), snap.Epoch)
		return
	case snap.Epoch == known.Epoch && snap.Sequence < known.Sequence:
		p.err = fmt.Errorf("the snapshot of %s, %s, has sequence %d, below the %d that was seen before: "+
			"an older one was put back; %s",
			p.name, objectName(p.name), snap.Sequence, known.Sequence, foreign(p.name))
		return
	case snap.Epoch > known.Epoch:
		known = Known{Epoch: snap.Epoch}
		s.books.resetAccounts(p.name)
	}
	p.read, p.snap = true, snap
	known.Sequence, known.GeneratedAt = snap.Sequence, snap.GeneratedAt
	s.known[p.name] = known
	s.keepEntries(p)
	if now.UnixMilli()-snap.GeneratedAt <= freshWindows*s.window() {
		p.state = Live
	}
}

// keepEntries keeps p's published entries for the time that p is silent.
func (s membership) keepEntries(p *peer) {
	entries := make(map[key]*Entry, len(p.snap.Entries))
	for i := range p.snap.Entries {
		e := &p.snap.Entries[i]
		entries[e.key()] = e
	}
	s.entries[p.name], s.snaps[p.name] = entries, p.snap
}

// adoptEvictions evicts the regions that a live region's snapshot says are evicted.
func (s membership) adoptEvictions(snap *Snapshot) {
	for name, theirs := range snap.Peers {
		known, listed := s.known[name]
		if listed && theirs.Evicted && (theirs.Epoch > known.Epoch || theirs.Epoch == known.Epoch &&
			!known.Evicted) {
			s.evictPeer(name, theirs.Epoch)
		}
	}
}

// evictPeer ends the epoch of a region that was silent for too long: it holds its floor, and trades no more
// in that epoch.
func (s membership) evictPeer(name string, epoch int64) {
	known := s.known[name]
	known.Epoch, known.Evicted, known.AgreedAt = epoch, true, 0
	s.known[name] = known
	s.books.resetAccounts(name)
	s.Logger.Warn("sluice: a region was silent for too long: its quotas are divided among the others once "+
		"all of them know",
		"region", name, "epoch", epoch)
}

// evict evicts peers that have been silent for too long. Only a region that was not silent itself may do so,
// and only for peers that the store has answered for: a region that cannot be read may be well.
func (s membership) evict(peers []*peer, now time.Time) {
	if !s.continuous(now) {
		return
	}
	for _, p := range peers {
		if known := s.known[p.name]; p.state == Silent && p.read &&
			now.Sub(time.UnixMilli(known.GeneratedAt)) > s.Evict {
			s.evictPeer(p.name, known.Epoch)
			p.state = Evicted
		}
	}
}

// continuous reports whether no other region can have taken this one for silent since it last knew that none
// had: its snapshots were never old enough for that.
func (s membership) continuous(now time.Time) bool {
	return !s.notSilent.IsZero() && now.Sub(s.notSilent) <= freshWindows*s.regions.Window
}

// ended returns the epoch of this region that has ended according to the others, 0 if there is none. An epoch
// that the others know, but in which this region has published nothing yet, belongs to an earlier table.
func (s membership) ended(peers []*peer) int64 {
	epoch := int64(0)
	for _, p := range peers {
		if p.snap == nil {
			continue
		}
		known := p.snap.Peers[s.Region]
		if known.Epoch > s.epoch || known.Epoch == s.epoch && (known.Evicted || s.putAt.IsZero()) {
			epoch = max(epoch, known.Epoch)
		}
	}
	return epoch
}

// trades reports whether quotas may move between this region and p: each knows the other's current epoch.
func (s membership) trades(p *peer) bool {
	return p.state == Live && p.snap.Peers[s.Region].Epoch == s.epoch && !p.snap.Peers[s.Region].Evicted
}

// coordinates reports whether this region is the coordinator, which takes tokens that no region holds. It is
// the first by name of the live regions, under these conditions:
//
//   - All live regions know the same of each other, and none is silent.
//   - The quotas of evicted regions are certainly not in force any more.
//
// Of two regions that both take themselves for the coordinator, each has evicted the other, or one of them
// sees that it was evicted.
func (s membership) coordinates(peers []*peer, now time.Time) bool {
	coordinates := true
	for _, p := range peers {
		switch p.state {
		case Live:
			coordinates = coordinates && p.name > s.Region && s.trades(p) && s.agrees(p)
		case Silent:
			coordinates = false
		case Evicted, NeverSeen:
			coordinates = s.agreedLongEnough(p.name, peers, now) && coordinates
		}
	}
	return coordinates
}

// agrees reports whether p knows the same as this region of all others.
func (s membership) agrees(p *peer) bool {
	for name, known := range s.known {
		if name != p.name {
			if theirs := p.snap.Peers[name]; theirs.Epoch != known.Epoch || theirs.Evicted != known.Evicted {
				return false
			}
		}
	}
	return true
}

// agreedLongEnough reports whether all live regions have said for long enough that a region was evicted or
// never seen. Its heartbeat cannot be valid any more then: a heartbeat counts from the beginning of its
// cycle, and a cycle that began later has read the eviction. A region never seen may have published a
// snapshot that was lost: if it is alive, it publishes it again.
func (s membership) agreedLongEnough(name string, peers []*peer, now time.Time) bool {
	known := s.known[name]
	agreed := s.publishedPeers[name].Epoch == known.Epoch && s.publishedPeers[name].Evicted == known.Evicted
	for _, p := range peers {
		if p.state == Live {
			theirs := p.snap.Peers[name]
			agreed = agreed && theirs.Epoch == known.Epoch && theirs.Evicted == known.Evicted
		}
	}
	if !agreed {
		known.AgreedAt = 0
	} else if known.AgreedAt == 0 {
		known.AgreedAt = now.UnixMilli()
	}
	s.known[name] = known
	return agreed && now.UnixMilli()-known.AgreedAt >= minEvictWindows*s.window()
}

// window returns the window in ms.
func (s *Sync) window() int64 { return s.regions.Window.Milliseconds() }

// reportPeers returns peers in the form of a Report.
func (s membership) reportPeers(peers []*peer, now time.Time) []Peer {
	reportPeers := make([]Peer, len(peers))
	for i, p := range peers {
		reportPeers[i] = Peer{Region: p.name, State: p.state, Err: p.err}
		if at := s.known[p.name].GeneratedAt; at != 0 {
			reportPeers[i].Age = now.Sub(time.UnixMilli(at))
		}
	}
	return reportPeers
}
