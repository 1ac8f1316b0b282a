package waitlist

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// plain is an order without trees: it adds up whenever it is asked.
type plain []*Ticket

func (p plain) first() *Ticket {
	if len(p) == 0 {
		return nil
	}
	return p[0]
}

func (p plain) ahead(t *Ticket, q *queue) []int64 {
	sum := make([]int64, len(t.cost))
	for _, other := range p[:slices.Index(p, t)] {
		if !slices.Contains(other.chain, q) {
			continue
		}
		for j, c := range other.cost {
			sum[j] += c
		}
	}
	return sum
}

// compare returns how an order and a plain one differ after random joins and departures of waiters. They wait
// for one bucket under one of several parents, and some find their parent only later. leave takes a ticket
// out of the order.
func compare(t *rapid.T, leave func(*order, *Ticket)) error {
	own := newQueue(bucketKey{}, 2)
	parents := []*queue{newQueue(bucketKey{}, 2), newQueue(bucketKey{}, 2), nil}
	var o order
	var p plain
	for range rapid.IntRange(1, 200).Draw(t, "steps") {
		step := rapid.IntRange(0, 9).Draw(t, "step")
		switch i := rapid.IntRange(0, max(0, len(p)-1)).Draw(t, "which"); {
		case len(p) == 0 || step > 4:
			ticket := &Ticket{
				chain: []*queue{own},
				cost:  rapid.SliceOfN(rapid.Int64Range(0, 1e15), 2, 2).Draw(t, "cost"),
			}
			if parent := rapid.SampledFrom(parents).Draw(t, "parent"); parent != nil {
				ticket.chain = append(ticket.chain, parent)
			}
			o.join(ticket)
			p = append(p, ticket)
		case step > 0:
			leave(&o, p[i])
			p = slices.Delete(p, i, i+1)
		case len(p[i].chain) == 1:
			longer := &Ticket{chain: []*queue{own, parents[0]}, cost: p[i].cost}
			o.replace(p[i], longer)
			p[i] = longer
		}
		if o.count != len(p) || o.first() != p.first() {
			return fmt.Errorf("%d wait and the first is %v, want %d and %v", o.count, o.first(), len(p), p.first())
		}
		for _, ticket := range p {
			for i, q := range ticket.chain {
				if got, want := o.ahead(ticket, q), p.ahead(ticket, q); !slices.Equal(got, want) {
					return fmt.Errorf("%v ahead in bucket %d, want %v", got, i, want)
				}
			}
		}
	}
	return nil
}

// TestOrder holds the trees to sums that are added up each time.
func TestOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if err := compare(t, func(o *order, ticket *Ticket) { o.leave(ticket) }); err != nil {
			t.Error(err)
		}
	})
}

// TestOrderCatches is the control of TestOrder: an order that goes on counting those who left.
func TestOrderCatches(t *testing.T) {
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		err := compare(t, func(o *order, ticket *Ticket) {
			ticket.cost = slices.Repeat([]int64{0}, 2)
			o.leave(ticket)
		})
		if err != nil && !strings.Contains(err.Error(), " ahead in bucket ") {
			t.Errorf("%v, want what is ahead of a waiter", err)
		}
		if err != nil {
			found++
		}
	})
	if found == 0 {
		t.Error("no history shows that those who left still count")
	}
}

// TestOrderKeepsNoPlaces: an order is no longer than twice its waiters, however many came and went.
func TestOrderKeepsNoPlaces(t *testing.T) {
	own := newQueue(bucketKey{}, 1)
	var o order
	var waiting []*Ticket
	for range 100_000 {
		t := &Ticket{chain: []*queue{own}, cost: []int64{1}}
		o.join(t)
		if waiting = append(waiting, t); len(waiting) > 100 {
			o.leave(waiting[0])
			waiting = waiting[1:]
		}
	}
	if n := cap(o.tickets); n > 202 {
		t.Errorf("%d places for 100 waiters", n)
	}
	if got := o.ahead(waiting[99], own)[0]; got != 99 {
		t.Errorf("%d ahead of the last, want 99", got)
	}
}

// TestOrderIsLinear: waiters on one bucket, each under another parent, take an entry for each bucket of their
// chains, and none once they have left.
func TestOrderIsLinear(t *testing.T) {
	own := newQueue(bucketKey{}, 2)
	var o order
	var waiting []*Ticket
	for range 4000 {
		t := &Ticket{chain: []*queue{own, newQueue(bucketKey{}, 2)}, cost: []int64{1, 1}}
		o.join(t)
		waiting = append(waiting, t)
	}
	entries := 0
	for _, s := range o.sums {
		entries += len(s.tree) / 2
	}
	if entries != 8000 {
		t.Errorf("%d entries for 4,000 waiters with 2 buckets each", entries)
	}
	for _, t := range waiting {
		o.leave(t)
	}
	if n := len(o.sums); n != 0 {
		t.Errorf("sums of %d buckets are left", n)
	}
}

// TestOrderSaturates: what very many waiters with the largest costs want is not less than what a few want.
func TestOrderSaturates(t *testing.T) {
	own := newQueue(bucketKey{}, 1)
	var o order
	var waiting []*Ticket
	for range 20_001 {
		t := &Ticket{chain: []*queue{own}, cost: []int64{1e15}}
		o.join(t)
		waiting = append(waiting, t)
	}
	last := waiting[20_000]
	if got := o.ahead(last, own)[0]; got != math.MaxInt64 {
		t.Errorf("%d ahead of the last, want the largest number", got)
	}
	for _, t := range waiting[:19_990] {
		o.leave(t)
	}
	if got := o.ahead(last, own)[0]; got != 10*1e15 {
		t.Errorf("%d ahead of the last, want that of ten", got)
	}
}
