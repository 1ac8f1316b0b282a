// Package blocks is the arithmetic of prefetch (docs/design.md, "Prefetch"): what a process has taken of a
// bucket and not used yet. It has no clock, lock or I/O.
//
// Instants are durations since some start, by a clock that never moves back. Tokens are millitokens, in
// vectors by limit.
package blocks

import (
	"slices"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// Most is how many blocks of a bucket a process holds, for calls with the same prefetch: one in use, and one
// for after it.
const Most = 2

// Block is tokens that one write took. A Pool changes it; others only read its Ends.
type Block struct {
	Ends []int64 // of the windows that it was taken from, by limit, in ms; nil if no limit has windows

	from    time.Duration // the instant of its call
	until   time.Duration
	version int64   // of the bucket's shape
	taken   []int64 // by its write
	left    []int64
	ended   bool
}

// New returns a block of all of taken, by a call at from. Calls use it before until, unless its bucket has a
// later version or a later window before.
func New(taken []int64, from, until time.Duration, version int64, ends []int64) *Block {
	return &Block{
		Ends: ends, from: from, until: until, version: version, taken: taken, left: slices.Clone(taken),
	}
}

// endsFor returns until when calls with this prefetch may use b.
func (b *Block) endsFor(prefetch time.Duration) time.Duration { return min(b.until, b.from+prefetch) }

// covers reports whether b has all of cost.
func (b *Block) covers(cost []int64) bool {
	for i, n := range cost {
		if n > b.left[i] {
			return false
		}
	}
	return true
}

// spent reports whether b has nothing left of a limit that it was taken for: few calls can use the others.
func (b *Block) spent() bool {
	for i, n := range b.taken {
		if n > 0 && b.left[i] == 0 {
			return true
		}
	}
	return false
}

// outdated reports whether a bucket of version, whose windows end at ends, has another shape than b was taken
// under, or other windows. An older version is that of a late reply.
func (b *Block) outdated(version int64, ends []int64) bool {
	if b.version < version {
		return true
	}
	for i, end := range b.Ends {
		if end != 0 && i < len(ends) && ends[i] > end {
			return true
		}
	}
	return false
}

// Draw is what one call took of a block.
type Draw struct {
	Block *Block
	Cost  []int64
}

// Rest is what is to be given back to the bucket: what blocks that ended had left, and what calls gave back
// after the end of theirs.
type Rest struct {
	Tokens []int64
	Ends   []int64       // of the windows that it was taken from; nil if no limit has windows
	Since  time.Duration // when the first of it was left
}

// Pool has what a process holds of one bucket. Call Expire with the same instant before any method but Left
// and LeftFor. The zero Pool holds nothing.
type Pool struct {
	blocks []*Block // that have not ended, oldest first
	rests  []Rest   // one for each set of windows
}

// Full reports whether p takes no further block for calls with a prefetch, since it has Most blocks that
// these calls can use.
func (p *Pool) Full(prefetch, now time.Duration) bool {
	n := 0
	for _, b := range p.blocks {
		if b.endsFor(prefetch) > now && !b.spent() {
			n++
		}
	}
	return n >= Most
}

// Empty reports whether p holds nothing, rests included.
func (p *Pool) Empty() bool { return len(p.blocks) == 0 && len(p.rests) == 0 }

// Live reports whether a block of p has not ended.
func (p *Pool) Live() bool { return len(p.blocks) > 0 }

// Left returns what the blocks of p have left of the i-th limit.
func (p *Pool) Left(i int) (n int64) {
	for _, b := range p.blocks {
		n = bucket.Add(n, b.left[i])
	}
	return n
}

// LeftFor returns what p has left of the i-th limit for calls with a prefetch that are made at an instant.
func (p *Pool) LeftFor(i int, prefetch, at time.Duration) (n int64) {
	for _, b := range p.blocks {
		if b.endsFor(prefetch) > at {
			n = bucket.Add(n, b.left[i])
		}
	}
	return n
}

// Low reports whether p has less than demand asks for within ahead, for calls with a prefetch. Blocks that
// end by then do not count.
func (p *Pool) Low(demand Demand, prefetch, ahead, now time.Duration) bool {
	for i := range demand.Cost {
		if p.LeftFor(i, prefetch, now+ahead) < demand.Ahead(i, ahead) {
			return true
		}
	}
	return false
}

// Add adds b, which was taken for calls with a prefetch, at now. It replaces spent blocks if p has Most
// blocks. If b has ended, or p is full, all of b is a rest. Blocks are never joined, since the tokens of the
// older one would live for longer.
func (p *Pool) Add(b *Block, prefetch, now time.Duration) {
	if b.until <= now || p.Full(prefetch, now) {
		p.end(b, now)
		return
	}
	if len(p.blocks) >= Most {
		p.endIf(now, (*Block).spent)
	}
	p.blocks = append(p.blocks, b)
}

// Take takes cost from one block, the oldest that has all of it, for a call with a prefetch. It returns nil
// if none has.
func (p *Pool) Take(cost []int64, prefetch, now time.Duration) *Block {
	for _, b := range p.blocks {
		if b.endsFor(prefetch) > now && b.covers(cost) {
			for i, n := range cost {
				b.left[i] -= n
			}
			return b
		}
	}
	return nil
}

// TakeSome takes as much of cost as the blocks have, from the oldest first, for a call with a prefetch. It
// returns what it took from each, in that order.
func (p *Pool) TakeSome(cost []int64, prefetch, now time.Duration) (all []Draw) {
	missing := slices.Clone(cost)
	for _, b := range p.blocks {
		if b.endsFor(prefetch) <= now {
			continue
		}
		draw, some := Draw{b, make([]int64, len(cost))}, false
		for i, n := range missing {
			if part := min(n, b.left[i]); part > 0 {
				draw.Cost[i], some = part, true
				b.left[i], missing[i] = b.left[i]-part, n-part
			}
		}
		if some {
			all = append(all, draw)
		}
	}
	return all
}

// Return gives back, at now, tokens that a call took of b. They are in b again while it lives, up to what its
// write took. The others are a rest.
func (p *Pool) Return(b *Block, tokens []int64, now time.Duration) {
	rest, some := make([]int64, len(tokens)), false
	for i, n := range tokens {
		if !b.ended {
			part := min(n, b.taken[i]-b.left[i])
			b.left[i], n = b.left[i]+part, n-part
		}
		rest[i], some = n, some || n > 0
	}
	if some {
		p.leave(rest, b.Ends, now)
	}
}

// Expire ends the blocks whose time is over at now.
func (p *Pool) Expire(now time.Duration) {
	p.endIf(now, func(b *Block) bool { return b.until <= now })
}

// Seen ends the blocks that a reply shows to be outdated: the bucket has a later version, or a later window.
func (p *Pool) Seen(version int64, ends []int64, now time.Duration) {
	p.endIf(now, func(b *Block) bool { return b.outdated(version, ends) })
}

// End ends all blocks.
func (p *Pool) End(now time.Duration) { p.endIf(now, func(*Block) bool { return true }) }

func (p *Pool) endIf(now time.Duration, over func(*Block) bool) {
	kept := p.blocks[:0]
	for _, b := range p.blocks {
		if over(b) {
			p.end(b, now)
		} else {
			kept = append(kept, b)
		}
	}
	clear(p.blocks[len(kept):])
	p.blocks = kept
}

// end ends b, which is not in p any more: what it has left is a rest.
func (p *Pool) end(b *Block, now time.Duration) {
	b.ended = true
	if slices.ContainsFunc(b.left, func(n int64) bool { return n > 0 }) {
		p.leave(b.left, b.Ends, now)
	}
	b.left = make([]int64, len(b.left))
}

// leave adds tokens to p's rest of the windows that end at ends. p keeps tokens.
func (p *Pool) leave(tokens, ends []int64, now time.Duration) {
	for _, r := range p.rests {
		if slices.Equal(r.Ends, ends) {
			for i, n := range tokens {
				r.Tokens[i] = bucket.Add(r.Tokens[i], n)
			}
			return
		}
	}
	p.rests = append(p.rests, Rest{tokens, ends, now})
}

// Rests takes what is to be given back out of p, and returns it.
func (p *Pool) Rests() []Rest {
	rests := p.rests
	p.rests = nil
	return rests
}

// Overdue reports whether a rest is at least as old as after.
func (p *Pool) Overdue(after, now time.Duration) bool {
	return slices.ContainsFunc(p.rests, func(r Rest) bool { return now-r.Since >= after })
}
