package conformance

import (
	"slices"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// possible has what each bucket may be, by key: a call that is refused may give it the limits in force, and
// need not.
type possible map[string][]*ideal

// found returns what a bucket may be as a call finds it, with the limits in force. One that there is not is
// full.
func (p possible) found(key string, now []bucket.Limit, windows []*bucket.Calendar) (all []*ideal) {
	for _, b := range p[key] {
		reshaped := *b
		reshaped.tokens, reshaped.ends = slices.Clone(b.tokens), slices.Clone(b.ends)
		reshaped.reshape(now)
		all = append(all, &reshaped)
	}
	if all == nil {
		all = append(all, newIdeal(now, windows))
	}
	return all
}

// take takes cost, in millitokens, of those of found that have it at an instant, in ms. The bucket is one of
// these.
func (p possible) take(key string, found []*ideal, cost []int64, at int64) {
	all := slices.DeleteFunc(found, func(b *ideal) bool { return b.denies(cost, at) })
	for _, b := range all {
		b.take(cost, at)
	}
	p[key] = all
}

// fill says that a bucket was filled at an instant, in ms, with these limits in force. A store may leave one
// that had more, by earlier limits.
func (p possible) fill(key string, now []bucket.Limit, windows []*bucket.Calendar, at int64) {
	before := p[key]
	full := newIdeal(now, windows)
	full.at, p[key] = at, []*ideal{full}
	for _, b := range before {
		more := newIdeal(b.limits, windows)
		more.at = at
		for i := range now {
			more.tokens[i] = max(full.tokens[i], b.tokens[i])
		}
		p[key] = append(p[key], more)
	}
}

// leave says that a call was refused that found the bucket so. It has these limits, or those from before.
func (p possible) leave(key string, found []*ideal) {
	before := p[key]
	for _, b := range found {
		same := func(o *ideal) bool { return o.like(b) }
		if before != nil && !slices.ContainsFunc(p[key], same) {
			p[key] = append(p[key], b)
		}
	}
}

// like reports whether b differs from o in limits with windows at most, of which usage stays.
func (b *ideal) like(o *ideal) bool {
	for i, l := range b.limits {
		if !l.Windowed() && b.tokens[i] != o.tokens[i] {
			return false
		}
	}
	return true
}

// see leaves out what a bucket that was found so cannot be: differs says how that is not what was seen. It
// returns the first difference if nothing is left.
func (p possible) see(key string, found []*ideal, differs func(*ideal) string) (wrong string) {
	var left []*ideal
	for i, b := range found {
		how := differs(b)
		if wrong == "" {
			wrong = how
		}
		if before := p[key]; how == "" && before != nil {
			left = append(left, before[i])
		} else if how == "" {
			return ""
		}
	}
	if p[key] = left; left == nil {
		return wrong
	}
	return ""
}

// denies reports whether b does not have cost at an instant, in ms.
func (b *ideal) denies(cost []int64, at int64) bool {
	for i, c := range cost {
		if c > 0 && c > b.available(i, at) {
			return true
		}
	}
	return false
}
