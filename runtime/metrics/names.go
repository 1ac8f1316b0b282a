package metrics

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"
)

// Bounds of what names remembers. In all, no more than twice mostNames get a value of their own.
const (
	mostNames  = 200
	mostOthers = 1000 // names without a value, whose uses are counted
	countUp    = 64   // so many uses of one of these, and it is compared with those that have a value
)

// names says which names of templates have a value of their own for Name: the most used ones. The first
// mostNames have one. Later, a name that was used twice as much as the least used of them takes its place.
// The zero names is ready, and safe for concurrent use; it must not be copied.
type names struct {
	known atomic.Pointer[map[named]*atomic.Int64] // those that have one, and how often they were used

	mu       sync.Mutex // held while known is replaced; it guards what follows
	others   map[named]int64
	replaced int
}

// named is a name of a template, by the resource that its buckets are stored under.
type named struct{ template, resource string }

// labels returns the values of Resource and Name for an event of resource: of a name of a template, the
// template and the name.
func (n *names) labels(resource, template string) (of, name string) {
	if template == "" {
		return resource, ""
	}
	if !n.hasOwn(named{template, resource}) {
		return template, OtherName
	}
	return template, strings.TrimPrefix(resource, template+"/")
}

// all returns those that have a value. Do not write to it.
func (n *names) all() map[named]*atomic.Int64 {
	if known := n.known.Load(); known != nil {
		return *known
	}
	return nil
}

// hasOwn counts a use of name, and reports whether it has a value.
func (n *names) hasOwn(name named) bool {
	if uses := n.all()[name]; uses != nil {
		uses.Add(1)
		return true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	all := n.all()
	if all[name] != nil {
		all[name].Add(1)
		return true
	}
	if len(all) < mostNames {
		n.give(name, 1, named{})
		return true
	}
	if n.replaced == mostNames {
		return false
	}
	if n.others == nil || len(n.others) == mostOthers {
		n.others = map[named]int64{}
	}
	n.others[name]++
	if n.others[name]%countUp != 0 {
		return false
	}
	least := leastUsed(all)
	if n.others[name] < 2*all[least].Load() {
		return false
	}
	n.give(name, n.others[name], least)
	n.replaced++
	delete(n.others, name)
	return true
}

// give gives name a value in the place of another one, which may have none. The caller holds mu.
func (n *names) give(name named, used int64, inPlaceOf named) {
	next := make(map[named]*atomic.Int64, mostNames)
	maps.Copy(next, n.all())
	delete(next, inPlaceOf)
	uses := &atomic.Int64{}
	uses.Store(used)
	next[name] = uses
	n.known.Store(&next)
}

// leastUsed returns the one of all, which are not empty, that was used least.
func leastUsed(all map[named]*atomic.Int64) (least named) {
	fewest := int64(-1)
	for name, uses := range all {
		if used := uses.Load(); fewest < 0 || used < fewest {
			least, fewest = name, used
		}
	}
	return least
}
