package waitlist

import (
	"fmt"
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

const many = 10_000

// gpt4 is the resource that calls wait for.
func gpt4() *store.Spec { return &store.Spec{Resource: "gpt-4", Kinds: make([]store.Kind, 2)} }

// chainOf returns the buckets of a user of project-3, which hold tokens.
func chainOf(user string, tokens int64) []store.Bucket {
	balances := []bucket.Balance{{Tokens: tokens}, {Tokens: tokens}}
	img := &bucket.Image{Balances: balances, Missing: []bool{false, false}}
	return []store.Bucket{{Entity: user, After: img}, {Entity: "project-3", After: img}}
}

// join adds a waiter whose cost is n of both limits.
func join(t *testing.T, l *List, user string, n int64, tooLate func(*View) bool) *Ticket {
	t.Helper()
	ticket, ok := l.Join(gpt4(), &store.Part{Buckets: chainOf(user, 0), Cost: []int64{n, n}}, tooLate)
	if !ok {
		t.Fatalf("no place for %s", user)
	}
	return ticket
}

// block has a ticket look, and denies it by the first limit of the chain's i-th bucket.
func block(ticket *Ticket, i int) (watches bool) {
	ticket.Look()
	watches, _ = ticket.Block(i, 0, 0, time.Hour, false)
	return watches
}

// woken returns how many of tickets were woken since the last time.
func woken(tickets []*Ticket) (n int) {
	for _, t := range tickets {
		select {
		case <-t.News():
			n++
		default:
		}
	}
	return n
}

// TestWakes: what happens to a bucket with 10,000 waiters wakes at most two of them, be they in one queue or
// each in its own.
func TestWakes(t *testing.T) {
	for name, user := range map[string]func(i int) string{
		"one queue":        func(int) string { return "user-1" },
		"a queue for each": func(i int) string { return fmt.Sprint("user-", i) },
	} {
		t.Run(name, func(t *testing.T) {
			l := New(many)
			var tickets []*Ticket
			for i := range many {
				ticket := join(t, l, user(i), int64(i+1), func(*View) bool { return false })
				if tickets = append(tickets, ticket); ticket.Look().First {
					block(ticket, 1)
				}
			}
			step := func(what string, most int, do func()) {
				t.Helper()
				woken(tickets)
				do()
				if n := woken(tickets); n > most {
					t.Errorf("%s wakes %d waiters, want at most %d", what, n, most)
				}
			}
			step("nothing", 0, func() {})
			step("a give-back", 1, func() { l.GaveBack(gpt4(), chainOf("none", 5)[1:], 0) })
			step("a denial that shows something new", 0, func() {
				tickets[0].Look()
				tickets[0].Denied(chainOf(user(0), 4), 0)
			})
			step("one that leaves from the middle", 0, func() { tickets[5000].Leave(nil, 0) })
			step("a served call", 2, func() { tickets[0].Leave(chainOf(user(0), 3), 0) })
			step("everybody, the control", many, func() {
				for _, ticket := range tickets {
					ticket.Wake()
				}
				if n := woken(tickets); n != many {
					t.Errorf("%d waiters are seen to be woken, want all", n)
				}
			})
			for i, ticket := range tickets {
				if i != 0 && i != 5000 {
					ticket.Leave(nil, 0)
				}
			}
			if n := l.Buckets(); n != 0 {
				t.Errorf("%d buckets are left", n)
			}
		})
	}
}

// TestWatcher: of those that one limit blocks, the one that costs least watches it, then the one that came
// first.
func TestWatcher(t *testing.T) {
	l := New(many)
	a, b, c := join(t, l, "user-1", 7, nil), join(t, l, "user-2", 5, nil), join(t, l, "user-3", 5, nil)
	for _, step := range []struct {
		ticket  *Ticket
		watches bool
	}{{a, true}, {b, true}, {c, false}, {a, false}} {
		if got := block(step.ticket, 1); got != step.watches {
			t.Errorf("%s watches: %v, want %v", step.ticket.chain[0].key.entity, got, step.watches)
		}
	}
	woken([]*Ticket{a, b, c})
	b.Leave(nil, 0)
	if woken([]*Ticket{c}) != 1 || woken([]*Ticket{a}) != 0 {
		t.Error("the next one to watch the limit is not woken, or another one is")
	}
	if block(c, 0); woken([]*Ticket{a}) != 1 { // of its own bucket now
		t.Error("one that another limit blocks still watches the old one")
	}
}

// TestExtend: a ticket whose call has found more ancestors keeps its place, and counts in their buckets too.
func TestExtend(t *testing.T) {
	l := New(2)
	ticketOf := func(buckets []store.Bucket, n int64) *Ticket {
		ticket, ok := l.Join(gpt4(), &store.Part{Buckets: buckets, Cost: []int64{n, n}}, nil)
		if !ok {
			t.Fatal("no place")
		}
		return ticket
	}
	a, b := ticketOf(chainOf("user-1", 0)[:1], 4), ticketOf(chainOf("user-1", 0), 5)
	c := join(t, l, "user-2", 5, nil)
	block(a, 0)
	block(c, 1)
	woken([]*Ticket{a, b, c})
	same := &store.Part{Buckets: chainOf("user-1", 0)[:1], Cost: a.cost}
	if a.Extend(same) != a {
		t.Error("another ticket for the same chain")
	}
	long := a.Extend(&store.Part{Buckets: chainOf("user-1", 0), Cost: a.cost})
	long.Denied(chainOf("user-1", 3), 0)
	if woken([]*Ticket{c}) != 1 || c.Look().Seen[1].After.Balances[0].Tokens != 3 {
		t.Error("what the denial shows of the new ancestor is not news to those that watch it")
	}
	if v := long.Look(); !v.First || len(v.Seen) != 2 {
		t.Errorf("first: %v, with a chain of %d buckets", v.First, len(v.Seen))
	}
	if ahead := b.Look().Ahead; ahead[0][0] != 4 || ahead[1][0] != 4 {
		t.Errorf("%v ahead of the next, want 4 of each bucket", ahead)
	}
	if !block(long, 1) {
		t.Error("it does not watch the new ancestor, though it costs less than the other one there")
	}
	long.Leave(nil, 0)
	if woken([]*Ticket{b}) != 1 || woken([]*Ticket{c}) != 1 || !b.Look().First {
		t.Error("those that follow it do not notice that it leaves")
	}
	b.Leave(nil, 0)
	c.Leave(nil, 0)
	if n := l.Buckets(); n != 0 {
		t.Errorf("%d buckets are left", n)
	}
}

// TestNothingIsLostBetween: a bucket that changes after a waiter looked, and before anybody knows that it
// waits there, wakes it.
func TestNothingIsLostBetween(t *testing.T) {
	l := New(many)
	a := join(t, l, "user-1", 7, nil)
	a.Look()
	l.GaveBack(gpt4(), chainOf("user-1", 5), 0)
	a.Denied(chainOf("user-1", 1), 0) // as it was before
	a.Block(1, 0, 0, time.Hour, false)
	if woken([]*Ticket{a}) != 1 {
		t.Error("it sleeps on what it saw before")
	}
	if got := a.Look().Seen[1].After.Balances[0].Tokens; got != 5 {
		t.Errorf("the bucket has %d, want the 5 that were given back", got)
	}
	a.Block(1, 0, 0, time.Hour, false)
	if woken([]*Ticket{a}) != 0 {
		t.Error("it is woken for nothing new")
	}
	b := join(t, l, "user-1", 7, nil)
	l.GaveBack(gpt4(), chainOf("user-1", 9), 0)
	a.Leave(chainOf("user-1", 2), 0) // as it was before
	if got := b.Look().Seen[0].After.Balances[0].Tokens; got != 9 {
		t.Errorf("the bucket has %d, want the 9 that were given back", got)
	}
}

// TestTooLate: what the first one finds wakes those that it makes too late, at most once a second.
func TestTooLate(t *testing.T) {
	l := New(many)
	first := join(t, l, "user-1", 1, nil)
	below := func(least int64) func(*View) bool {
		return func(v *View) bool { return v.Seen[0].After.Balances[0].Tokens-v.Ahead[0][0] < least }
	}
	strict, patient := join(t, l, "user-1", 1, below(4)), join(t, l, "user-1", 1, below(-100))
	for _, step := range []struct {
		now, tokens   int64
		strict, other int
	}{{1000, 9, 0, 0}, {1999, 3, 0, 0}, {2000, 2, 1, 0}, {2500, 1, 0, 0}, {3000, -99, 1, 1}} {
		first.Look()
		first.Denied(chainOf("user-1", step.tokens), step.now)
		if s, o := woken([]*Ticket{strict}), woken([]*Ticket{patient}); s != step.strict || o != step.other {
			t.Errorf("%d tokens at %d ms wake %d and %d, want %d and %d", step.tokens, step.now, s, o, step.strict,
				step.other)
		}
	}
}

// TestReads: the pauses double up to a tenth of the wait that is left, or 30 s, and are at least a second.
// Those for a slot are a fifth of a second.
func TestReads(t *testing.T) {
	for _, test := range []struct {
		wait  time.Duration
		slots bool
		want  string // s after the denial
	}{
		{12 * time.Hour, false, "[1 3 7 15 31 61 91 121]"},
		{time.Minute, false, "[1 3 7 12.3 17.07 21.363 25.226 28.703]"},
		{5 * time.Second, false, "[1 2 3 4]"},
		{time.Second, false, "[]"},
		{time.Minute, true, "[0.2 0.4 0.6 0.8 1 1.2 1.4 1.6]"},
	} {
		var r reads
		r.reset(0)
		var at []float64
		for now := int64(0); len(at) < 8; {
			left := test.wait - time.Duration(now)*time.Millisecond
			next := r.next(now, left, test.slots)
			if next >= left {
				break
			}
			now += next.Milliseconds()
			if count := r.count; !r.claim(now, count) || r.claim(now, count) {
				t.Error("not exactly one may read")
			}
			at = append(at, float64(now)/1000)
		}
		if got := fmt.Sprint(at); got != test.want {
			t.Errorf("of a wait of %v, reads after %s s, want %s", test.wait, got, test.want)
		}
	}
}

// TestSlotPause: right after a waiter was served, the next read for a slot is a second away. Then reads come
// five times a second, and once a second at last.
func TestSlotPause(t *testing.T) {
	const began = 1_000_000 // ms
	var r reads
	r.reset(began)
	for _, step := range []struct {
		at     int64 // ms after the beginning
		served bool
		want   time.Duration
	}{
		{0, false, 200 * time.Millisecond},
		{9_000, false, 200 * time.Millisecond},
		{20_000, false, 400 * time.Millisecond},
		{300_000, false, time.Second},
		{300_000, true, time.Second},
		{301_000, false, time.Second},
		{301_200, false, 200 * time.Millisecond},
		{-5_000, false, time.Second}, // the clock was set back
	} {
		if step.served {
			r.serve(began + step.at)
		}
		r.reset(began + step.at)
		if got := r.next(began+step.at, time.Hour, true); got != step.want {
			t.Errorf("%d ms after the beginning the pause is %v, want %v", step.at, got, step.want)
		}
	}
}

// TestMost: a queue has no more places than it may.
func TestMost(t *testing.T) {
	l := New(2)
	a := join(t, l, "user-1", 1, nil)
	join(t, l, "user-1", 1, nil)
	if _, ok := l.Join(gpt4(), &store.Part{Buckets: chainOf("user-1", 0), Cost: []int64{1}}, nil); ok {
		t.Error("a third one waits")
	}
	join(t, l, "user-2", 1, nil)
	if n := l.Buckets(); n != 3 {
		t.Errorf("%d buckets, want two users and their project", n)
	}
	a.Leave(nil, 0)
	join(t, l, "user-1", 1, nil)
}

// TestResourceAndName: those who wait for a resource, and for the name of a template that goes on with its
// buckets and has other limits, stand in queues of their own.
func TestResourceAndName(t *testing.T) {
	l := New(many)
	of := gpt4()
	of.Template = "model"
	for i, spec := range []*store.Spec{gpt4(), of} {
		part := &store.Part{Buckets: chainOf("user-1", 0), Cost: make([]int64, 2+i)}
		ticket, ok := l.Join(spec, part, nil)
		if !ok || !ticket.Look().First {
			t.Errorf("the first of %s is behind another one", spec.Resource+" "+spec.Template)
		}
	}
	if n := l.Buckets(); n != 4 {
		t.Errorf("%d buckets, want 4", n)
	}
}
