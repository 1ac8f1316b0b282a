package table

import (
	"slices"
	"time"
)

// past is what a table was: its versions, the oldest first, so far as reads that are at most keepFor late can
// see them. A version is made before a change, and costs a copy of the trees' roots; the change then copies
// the nodes on its path, some kilobytes, and shares all others. Nothing is copied while keepFor is 0.
type past struct {
	keepFor  time.Duration
	versions []version
}

// version is the trees as they were until a change at that instant: those of the table's present indexes,
// without the last ones if they are younger.
type version struct {
	until time.Time
	trees []tree
}

// KeepPast makes the table remember, from now on, what it was up to d ago; 0 forgets.
func (t *Table) KeepPast(d time.Duration, now time.Time) {
	t.past.keepFor = d
	t.past.prune(now)
}

// keep remembers the trees before a change.
func (p *past) keep(trees []tree, at time.Time) {
	if p.keepFor <= 0 {
		return
	}
	p.prune(at)
	// A read as of an instant sees all changes of that instant, so nothing is kept between two of them.
	if n := len(p.versions); n > 0 && !at.After(p.versions[n-1].until) {
		return
	}
	v := version{until: at, trees: make([]tree, len(trees))}
	for i := range trees {
		v.trees[i] = trees[i].copy()
	}
	p.versions = append(p.versions, v)
}

// drop forgets a tree.
func (p *past) drop(i int) {
	for v := range p.versions {
		if version := &p.versions[v]; i < len(version.trees) {
			version.trees = slices.Delete(version.trees, i, i+1)
		}
	}
}

// prune forgets the versions that ended too early to be seen, and all if the clock went back: those were of
// another time.
func (p *past) prune(now time.Time) {
	if n := len(p.versions); p.keepFor <= 0 || n > 0 && now.Before(p.versions[n-1].until) {
		p.versions = nil
		return
	}
	kept := p.index(now.Add(-p.keepFor))
	clear(p.versions[:kept]) // for the collector: the next append that grows moves only the rest
	p.versions = p.versions[kept:]
}

// at returns the trees as they were then. Now is what they are now.
func (p *past) at(then time.Time, now []tree) []tree {
	if i := p.index(then); i < len(p.versions) {
		return p.versions[i].trees
	}
	return now
}

// index returns which version is that of then. A change at that very instant is seen.
func (p *past) index(then time.Time) int {
	i, found := slices.BinarySearchFunc(p.versions, then, func(v version, t time.Time) int {
		return v.until.Compare(t)
	})
	if found {
		i++
	}
	return i
}
