package waitlist

import (
	"math"
	"math/bits"
	"slices"
)

// order is the waiters of a queue as they came, with sums of what those ahead want. A join, a departure and a
// sum take O(log n), and its memory is O(n). The mu of the queue guards it.
type order struct {
	tickets []*Ticket // by place; nil for one that has left
	head    int       // all places before it are empty
	count   int
	sums    map[*queue]*sums // of the costs, for each bucket of any waiter's chain
}

// join puts t behind the others.
func (o *order) join(t *Ticket) {
	if len(o.tickets) == cap(o.tickets) {
		o.renumber()
	}
	o.append(t)
	o.count++
}

// renumber drops the empty places and makes space for as many waiters again. That is O(log n) for each join
// since the last time.
func (o *order) renumber() {
	old := o.tickets[o.head:]
	o.tickets = make([]*Ticket, 0, max(8, 2*o.count))
	o.head = 0
	fresh := make(map[*queue]*sums, len(o.sums))
	for q, s := range o.sums {
		fresh[q] = newSums(2*s.count, len(q.blocked))
	}
	o.sums = fresh
	for _, t := range old {
		if t != nil {
			o.append(t)
		}
	}
}

func (o *order) append(t *Ticket) {
	t.place = len(o.tickets)
	o.tickets = append(o.tickets, t)
	for _, q := range t.chain {
		s := o.sums[q]
		if s == nil {
			s = newSums(1, len(t.cost))
			o.sums[q] = s
		}
		s.append(t)
	}
}

// leave removes t, and returns the ticket that is first from now on because t was: nil if there is none.
func (o *order) leave(t *Ticket) (first *Ticket) {
	wasFirst := o.first() == t
	for _, q := range t.chain {
		s := o.sums[q]
		if s.remove(t); s.count == 0 {
			delete(o.sums, q)
		}
	}
	o.tickets[t.place] = nil
	o.count--
	t.place = left
	if !wasFirst {
		return nil
	}
	for o.head < len(o.tickets) && o.tickets[o.head] == nil {
		o.head++
	}
	return o.first()
}

// replace gives t's place to longer, whose cost is the same and whose chain begins with t's. That is O(n).
func (o *order) replace(t, longer *Ticket) {
	o.tickets[t.place] = longer
	t.place, longer.place = left, t.place
	for _, q := range longer.chain[len(t.chain):] {
		var places []int
		if old := o.sums[q]; old != nil {
			places = old.places
		}
		at, _ := slices.BinarySearch(places, longer.place)
		s := newSums(len(places)+1, len(longer.cost))
		for _, place := range slices.Insert(places, at, longer.place) {
			if t := o.tickets[place]; t != nil {
				s.append(t)
			}
		}
		o.sums[q] = s
	}
}

// first returns the ticket that has waited longest, nil if there is none.
func (o *order) first() *Ticket {
	if o.count == 0 {
		return nil
	}
	return o.tickets[o.head]
}

// ahead returns what the waiters ahead of t want of q, a bucket of its chain.
func (o *order) ahead(t *Ticket, q *queue) []int64 { return o.sums[q].before(t) }

// sums is the costs of the waiters whose chains have one bucket. It has an entry for each of those that have
// joined since the order was last renumbered. So a bucket of few waiters takes little, whatever the queue's
// length.
type sums struct {
	places []int   // by entry, ascending
	tree   []total // a Fenwick tree of vectors: entry i has the sum of the i & -i last ones up to it
	count  int     // of the waiters that have not left
}

// newSums returns sums with space for some waiters whose resource has width limits.
func newSums(space, width int) *sums {
	return &sums{places: make([]int, 0, space), tree: make([]total, 0, space*width)}
}

// append adds t, whose place is behind all others.
func (s *sums) append(t *Ticket) {
	s.count++
	s.places = append(s.places, t.place)
	for _, c := range t.cost {
		s.tree = append(s.tree, totalOf(c))
	}
	i := len(s.places)
	last := s.entry(i, len(t.cost))
	for part := i - 1; part > i-i&-i; part -= part & -part {
		for j, n := range s.entry(part, len(t.cost)) {
			last[j].add(n)
		}
	}
}

// remove takes t's cost out of the sums. The entry stays, with nothing.
func (s *sums) remove(t *Ticket) {
	s.count--
	at, _ := slices.BinarySearch(s.places, t.place)
	for i := at + 1; i <= len(s.places); i += i & -i {
		entry := s.entry(i, len(t.cost))
		for j, c := range t.cost {
			entry[j].add(totalOf(-c))
		}
	}
}

// before returns the sum of all entries before t's.
func (s *sums) before(t *Ticket) []int64 {
	sum := make([]total, len(t.cost))
	at, _ := slices.BinarySearch(s.places, t.place)
	for i := at; i > 0; i -= i & -i {
		for j, n := range s.entry(i, len(t.cost)) {
			sum[j].add(n)
		}
	}
	ahead := make([]int64, len(sum))
	for j, n := range sum {
		ahead[j] = n.capped()
	}
	return ahead
}

// entry returns the i-th entry, counted from 1. A vector is as wide as its resource has limits.
func (s *sums) entry(i, width int) []total { return s.tree[(i-1)*width : i*width] }

// total is a sum of costs in 128 bits, since more than 18,000 of the largest costs do not fit into 64.
type total struct{ hi, lo uint64 }

// totalOf returns n, which may be negative, as a two's complement.
func totalOf(n int64) total { return total{uint64(n >> 63), uint64(n)} }

func (t *total) add(n total) {
	var carry uint64
	t.lo, carry = bits.Add64(t.lo, n.lo, 0)
	t.hi, _ = bits.Add64(t.hi, n.hi, carry)
}

// capped returns t, or the largest int64 if t is larger.
func (t total) capped() int64 {
	if t.hi > 0 || t.lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(t.lo)
}
