package waitlist

import "math"

// order is the waiters of a queue as they came, with sums of what those ahead want. A join, a departure and a
// sum take O(log n). The mu of the queue guards it.
type order struct {
	tickets []*Ticket // by place; nil for one that has left
	head    int       // all places before it are empty
	count   int
	sums    map[*queue]sums // of the costs, for each bucket of any waiter's chain
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
	o.head, o.sums = 0, map[*queue]sums{}
	for _, t := range old {
		if t != nil {
			o.append(t)
		}
	}
}

func (o *order) append(t *Ticket) {
	t.place = len(o.tickets)
	o.tickets = append(o.tickets, t)
	o.add(t, 1)
}

// add adds sign times t's cost to the sums of its chain's buckets.
func (o *order) add(t *Ticket, sign int64) {
	for _, q := range t.chain {
		s, ok := o.sums[q]
		if !ok {
			s = newSums(cap(o.tickets), len(t.cost))
			o.sums[q] = s
		}
		s.add(t.place, t.cost, sign)
	}
}

// leave removes t, and returns the ticket that is first from now on because t was: nil if there is none.
func (o *order) leave(t *Ticket) (first *Ticket) {
	wasFirst := o.first() == t
	o.add(t, -1)
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

// replace gives t's place to another ticket.
func (o *order) replace(t, other *Ticket) {
	o.add(t, -1)
	o.tickets[t.place] = other
	t.place, other.place = left, t.place
	o.add(other, 1)
}

// first returns the ticket that has waited longest, nil if there is none.
func (o *order) first() *Ticket {
	if o.count == 0 {
		return nil
	}
	return o.tickets[o.head]
}

// ahead returns what the waiters ahead of t want of q, a bucket of its chain.
func (o *order) ahead(t *Ticket, q *queue) []int64 { return o.sums[q].before(t.place) }

// sums is a Fenwick tree of cost vectors by place: entry i has the sum of the i & -i places that end before
// place i. A vector is as wide as its resource has limits. Sums are exact below 2^64, which is more than
// 10,000 times the largest cost.
type sums struct {
	width int
	tree  []uint64
}

func newSums(places, width int) sums { return sums{width, make([]uint64, (places+1)*width)} }

// add adds sign times cost at place.
func (s sums) add(place int, cost []int64, sign int64) {
	for i := place + 1; i*s.width < len(s.tree); i += i & -i {
		for j, c := range cost {
			s.tree[i*s.width+j] += uint64(sign * c)
		}
	}
}

// before returns the sum of all places before place.
func (s sums) before(place int) []int64 {
	total := make([]uint64, s.width)
	for i := place; i > 0; i -= i & -i {
		for j := range total {
			total[j] += s.tree[i*s.width+j]
		}
	}
	ahead := make([]int64, s.width)
	for j, n := range total {
		ahead[j] = int64(min(n, math.MaxInt64))
	}
	return ahead
}
