package blocks

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// rules are those by which the processes of a simulation hold blocks.
type rules struct {
	until  func(called, replied, prefetch time.Duration) time.Duration
	joins  bool // what is left of a block that ends joins the newest one
	trusts bool // a block of unknown outcome is used
	noWait bool // the bound has no d
}

// sound are the rules of this package.
func sound() rules {
	return rules{until: func(called, _, prefetch time.Duration) time.Duration { return called + prefetch }}
}

// load is the demand of a simulation: in turns, each process calls at its rate and is idle.
type load struct {
	prefetch time.Duration
	trip     time.Duration // of a write, mostly
	// stall is the time between the instants at which replies come, to all writes or to those of blocks alone.
	// Replies come at once if it is 0.
	stall  time.Duration
	blocks bool
	lost   float64       // the portion of blocks whose request is lost, and of those whose reply is
	rates  []float64     // calls a second, by second: each process has them in turn
	lasts  time.Duration // of a call, which then is settled at a tenth; 0 for none
}

// perSecond and burst are the limit of all simulations, in millitokens.
const (
	perSecond = 1_000 * bucket.Milli
	burst     = 3 * perSecond
)

// event is something that happens in a simulation.
type event struct {
	at time.Duration
	do func()
}

// world is a simulation: a table with one bucket, and processes that hold blocks of it.
type world struct {
	load   load
	rules  rules
	rng    *rand.Rand
	now    time.Duration
	events []event // by time, the next one last

	limit  bucket.Limit
	tokens int64
	refill time.Duration
	waited time.Duration // the longest that a call waited for its own write: d
	calls  []entry       // that were admitted
	back   []entry       // what settles gave back, when the bucket or a block had it
	writes int
}

// entry is tokens at an instant.
type entry struct {
	at     time.Duration
	tokens int64
}

// process is one of them.
type process struct {
	*world

	pool    Pool
	meter   Meter
	asking  bool
	settled int64 // of the rests, what settles gave back
	level   int64
	levelAt time.Duration
}

// after has f happen in a while.
func (w *world) after(d time.Duration, f func()) {
	e := event{w.now + d, f}
	i, _ := slices.BinarySearchFunc(w.events, e, func(a, b event) int {
		if a.at >= b.at { // of one instant, the first that came is the last of the slice
			return -1
		}
		return 1
	})
	for i > 0 && w.events[i-1].at == e.at {
		i--
	}
	w.events = slices.Insert(w.events, i, e)
}

// take takes cost from the table's bucket, if it has that; a negative cost is given back.
func (w *world) take(cost int64) (left int64, ok bool) {
	b := bucket.Balance{Limit: w.limit, Tokens: w.tokens}
	w.tokens = bucket.Available(b, w.refill.Milliseconds(), w.now.Milliseconds())
	w.refill = w.now
	if cost > w.tokens {
		return w.tokens, false
	}
	w.tokens = min(w.tokens-cost, w.limit.Burst)
	return w.tokens, true
}

// call is one call of p, of one token.
func (p *process) call() {
	called, cost := p.now, []int64{bucket.Milli}
	p.expire()
	p.meter.Add(cost, called)
	if b := p.pool.Take(cost, time.Hour, called); b != nil {
		p.admit(b)
	} else {
		p.write(cost[0], false, func(ok bool) {
			if ok {
				p.waited = max(p.waited, p.now-called)
				p.admit(nil)
			}
		})
	}
	p.prefetch()
}

// admit admits a call that has its token of b, or of the table.
func (p *process) admit(b *Block) {
	p.calls = append(p.calls, entry{p.now, bucket.Milli})
	if p.load.lasts == 0 {
		return
	}
	back := int64(bucket.Milli * 9 / 10)
	p.after(p.load.lasts, func() {
		p.expire()
		switch {
		case b != nil && !b.ended:
			p.pool.Return(b, []int64{back}, p.now)
		case b != nil:
			p.pool.Return(b, []int64{back}, p.now)
			p.settled += back
			return
		default:
			p.settled += back
			p.write(-back, false, func(bool) {})
			return
		}
		p.back = append(p.back, entry{p.now, back})
	})
}

// write has a write change the bucket on half of its way, first by the rests of p. done is called once it has
// returned.
func (p *process) write(cost int64, block bool, done func(ok bool)) {
	p.writes++
	back, settled := int64(0), p.settled
	p.settled = 0
	if !p.rules.joins {
		for _, r := range p.pool.Rests() {
			back += r.Tokens[0]
		}
	}
	lost := block && p.rng.Float64() < p.load.lost
	unanswered := lost || block && p.rng.Float64() < p.load.lost
	p.after(p.load.trip/2, func() {
		if lost {
			p.after(p.load.trip, func() { p.unknown(cost, back, false, done) })
			return
		}
		p.take(-back)
		p.back = append(p.back, entry{p.now, settled})
		left, ok := p.take(cost)
		reply := p.load.trip / 2
		if p.load.stall > 0 && (block || !p.load.blocks) {
			reply = p.load.stall - p.now%p.load.stall
		}
		if unanswered {
			p.after(p.load.trip, func() { p.unknown(cost, 0, ok, done) })
			return
		}
		p.after(reply, func() {
			p.level, p.levelAt = left, p.now
			p.expire()
			done(ok)
		})
	})
}

// unknown ends the write of a block of cost, and of back, that has no answer. Tokens that it took go
// back by a reversal, unless the block is used.
func (p *process) unknown(cost, back int64, taken bool, done func(ok bool)) {
	if p.rules.trusts {
		done(true)
		return
	}
	if taken {
		back += cost
	}
	p.take(-back)
	done(false)
}

// expire ends blocks, and joins what they leave to the newest one if that is the rule.
func (p *process) expire() {
	p.pool.Expire(p.now)
	if !p.rules.joins || !p.pool.Live() {
		return
	}
	for _, r := range p.pool.Rests() {
		newest := p.pool.blocks[len(p.pool.blocks)-1]
		newest.left[0] += r.Tokens[0]
	}
}

// prefetch takes a block if less than a quarter of the demand ahead is left.
func (p *process) prefetch() {
	d := p.meter.Demand(p.now)
	if p.asking || p.pool.Full(time.Hour, p.now) ||
		!p.pool.Low(d, time.Hour, Margin(p.load.trip, p.load.prefetch), p.now) {
		return
	}
	level := bucket.Available(bucket.Balance{Limit: p.limit, Tokens: p.level}, p.levelAt.Milliseconds(),
		p.now.Milliseconds())
	size := Size(d, p.load.prefetch, []int64{p.pool.Left(0)}, []int64{level})
	if size == nil {
		return
	}
	p.asking = true
	called := p.now
	p.write(size[0], true, func(ok bool) {
		if p.asking = false; !ok {
			return
		}
		b := New(size, called, p.rules.until(called, p.now, p.load.prefetch), 0, nil)
		p.pool.Add(b, time.Hour, p.now)
		p.expire()
	})
}

// tick gives back what was left for long, as a process does beside its calls.
func (p *process) tick() {
	p.expire()
	if !p.rules.joins && p.pool.Overdue(p.load.prefetch, p.now) {
		p.write(0, false, func(bool) {})
	}
	p.after(p.load.prefetch/4, p.tick)
}

// run plays a load for so long on so many processes.
func run(l load, r rules, processes int, d time.Duration, seed uint64) *world {
	w := &world{load: l, rules: r, rng: rand.New(rand.NewPCG(seed, 0))}
	w.limit = bucket.Per(perSecond/bucket.Milli, time.Second).WithBurst(burst / bucket.Milli)
	w.tokens = w.limit.Burst
	for range processes {
		p := &process{world: w, meter: NewMeter(1), level: w.limit.Burst}
		w.after(0, p.tick)
		w.after(time.Duration(w.rng.Int64N(int64(time.Second))), p.next)
	}
	for len(w.events) > 0 {
		e := w.events[len(w.events)-1]
		if e.at > d {
			break
		}
		w.events = w.events[:len(w.events)-1]
		w.now = e.at
		e.do()
	}
	return w
}

// next calls, and again later.
func (p *process) next() {
	p.call()
	rate := p.load.rates[int(p.now/time.Second)%len(p.load.rates)]
	if rate == 0 {
		p.after(time.Second-p.now%time.Second, p.next)
		return
	}
	p.after(time.Duration(float64(time.Second)/rate*p.rng.ExpFloat64()), p.next)
}

// excess returns by how many tokens admissions are beyond the bound in the worst of all intervals: 0 or less
// for none. The bound is burst + rate * (t - s + ahead), where ahead is prefetch + d, and what settles gave
// back from s - ahead to t.
func (w *world) excess() int64 {
	ahead := w.load.prefetch + w.waited
	if w.rules.noWait {
		ahead = w.load.prefetch
	}
	var admitted, before, until int64 // the last two are what was given back: up to s - ahead, up to t
	i, j := 0, 0
	least, worst := int64(math.MaxInt64), int64(math.MinInt64)
	for _, e := range w.calls { // of all t, and for each of the s before it with the least on its account
		for ; i < len(w.back) && w.back[i].at < e.at-ahead; i++ {
			before += w.back[i].tokens
		}
		for ; j < len(w.back) && w.back[j].at <= e.at; j++ {
			until += w.back[j].tokens
		}
		least = min(least, admitted-before-refill(e.at))
		admitted += e.tokens
		worst = max(worst, admitted-until-refill(e.at)-least)
	}
	return (worst - burst - refill(ahead)) / bucket.Milli
}

// refill returns what the limit refills within d, rounded up.
func refill(d time.Duration) int64 { return int64(math.Ceil(d.Seconds() * perSecond)) }

// loads are those of the simulation.
func loads() map[string]load {
	const ms = time.Millisecond
	return map[string]load{
		"spikes": {
			prefetch: 100 * ms, trip: 4 * ms, rates: []float64{200, 0, 0, 0, 800, 0, 0, 0},
		},
		"a trickle between spikes": {
			prefetch: 500 * ms, trip: 4 * ms, rates: []float64{200, 5, 5, 5, 800, 0, 0, 0},
		},
		"replies that stall": {
			prefetch: 100 * ms, trip: 4 * ms, stall: time.Second, rates: []float64{200, 0, 0, 0, 800, 0, 0, 0},
		},
		"replies to blocks that stall": {
			prefetch: 100 * ms, trip: 4 * ms, stall: 5 * time.Second, blocks: true,
			rates: []float64{800, 0, 0, 0, 200, 0, 0, 0, 0, 0},
		},
		"lost requests and replies": {
			prefetch: 100 * ms, trip: 4 * ms, lost: 0.2, rates: []float64{200, 20, 20, 800, 0, 0, 0, 0},
		},
		"settled at a tenth": {
			prefetch: 200 * ms, trip: 4 * ms, rates: []float64{200, 20, 20, 800, 0, 0, 0, 0}, lasts: 2700 * ms,
		},
	}
}

// TestBound has 16 processes: what they admit is within the bound, in all intervals.
func TestBound(t *testing.T) {
	for name, l := range loads() {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(6) {
				w := run(l, sound(), 16, 20*time.Second, seed)
				if n := w.excess(); n > 0 {
					t.Errorf("seed %d: %d tokens beyond the bound", seed, n)
				} else {
					t.Logf("%d admitted, %d writes, %d tokens below the bound, d %v", len(w.calls), w.writes, -n, w.waited)
				}
			}
		})
	}
}

// TestBoundIsSeen breaks each rule of blocks: TestBound would notice.
func TestBoundIsSeen(t *testing.T) {
	for name, c := range map[string]struct {
		load string
		rules
	}{
		"blocks do not end": {"spikes", rules{until: func(called, _, _ time.Duration) time.Duration {
			return called + time.Hour
		}}},
		"blocks end some time after the reply": {"replies to blocks that stall", rules{
			until: func(_, replied, prefetch time.Duration) time.Duration { return replied + prefetch },
		}},
		"a rest joins the next block": {"a trickle between spikes", rules{until: sound().until, joins: true}},
		"a block of unknown outcome is used": {"lost requests and replies", rules{
			until: sound().until, trusts: true,
		}},
		"the bound has no d": {"replies that stall", rules{until: sound().until, noWait: true}},
	} {
		t.Run(name, func(t *testing.T) {
			worst := int64(math.MinInt64)
			for seed := range uint64(6) {
				worst = max(worst, run(loads()[c.load], c.rules, 16, 20*time.Second, seed).excess())
			}
			t.Logf("%d tokens beyond the bound", worst)
			if worst <= 0 {
				t.Error("nobody noticed")
			}
		})
	}
}
