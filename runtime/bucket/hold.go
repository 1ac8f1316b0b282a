package bucket

import (
	"math"
	"slices"
	"time"
)

// A hold is tokens that an open lease keeps: slots of an in-flight limit, or what it reserved of a windowed
// limit with on_crash: release. Holds are counted by epoch, in two cells. An epoch is a minute of Unix time,
// the same for all processes. A hold is over at the end of its epoch, unless its process ends or extends it
// before. Tokens of epochs that are over come back to the balance: the first write of a minute sweeps them.

// EpochLength is the length of an epoch, in ms.
const EpochLength = minute

// Epoch returns the number of the epoch that ends next at now, in ms. Epochs below it are over.
func Epoch(now int64) int64 { return floor(now, EpochLength) + 1 }

// EpochEnd returns the instant at which an epoch is over, in ms.
func EpochEnd(epoch int64) int64 { return Mul(epoch, EpochLength) }

// Lost is the epoch of a hold whose epoch is over or not known. A sweep has given its tokens back, or will.
const Lost = -1

// NewRing is by how many epochs the cells that a Reshape adds, or that a reset clears, begin later. No hold
// from before has so late an epoch, so none counts in them.
const NewRing = 2

// inFlightPeriod is the Period of an in-flight limit, in ms. The shortest window is longer.
const inFlightPeriod = 1

// InFlight returns a limit of capacity slots, each a whole token. They come back when their lease ends. It
// saturates.
func InFlight(capacity int64) Limit {
	tokens := Mul(capacity, Milli)
	return Limit{Capacity: tokens, Burst: tokens, Period: inFlightPeriod}
}

// InFlight reports whether l's tokens come back when their lease ends.
func (l Limit) InFlight() bool { return l.Refill == 0 && l.Period == inFlightPeriod }

// Holds reports whether b counts what open leases hold.
func (b Balance) Holds() bool { return b.Epoch != 0 }

// Held returns what open leases hold of b, as far as b counts it: in epochs that are not over at now, in ms.
func (b Balance) Held(now int64) int64 {
	return Sub(Add(b.Cells[0], b.Cells[1]), b.expired(now))
}

// HeldIn returns the epoch that is counted in a cell.
func (b Balance) HeldIn(cell int) int64 { return b.Epoch + (b.Epoch+int64(cell))&1 }

// HeldUntil returns the instant at which no hold of b is left, in ms: 0 if there is none.
func (b Balance) HeldUntil() (at int64) {
	for cell, n := range b.Cells {
		if n != 0 {
			at = max(at, EpochEnd(b.HeldIn(cell)))
		}
	}
	return at
}

// expired returns what a sweep at now, in ms, would give back.
func (b Balance) expired(now int64) (n int64) {
	if !b.Holds() {
		return 0
	}
	for cell := range b.Cells {
		if b.HeldIn(cell) < Epoch(now) {
			n = Add(n, b.Cells[cell])
		}
	}
	return n
}

// cell returns the index of the cell in which an epoch is counted.
func cell(epoch int64) int { return int(epoch & 1) }

// Moves is what settles and extensions do to one limit's cells.
type Moves struct {
	Out, In [2]int64 // by cell: taken out of it, and put into it
	// First and Last bound the lowest epoch that the limit counts. Within them, the cells are those of the
	// epochs that Out and In are meant for.
	First, Last int64
}

// NoMoves changes no cell, whatever the epoch.
var NoMoves = Moves{First: math.MinInt64, Last: math.MaxInt64}

// And returns what m and n do together.
func (m Moves) And(n Moves) Moves {
	for i := range m.Out {
		m.Out[i], m.In[i] = Add(m.Out[i], n.Out[i]), Add(m.In[i], n.In[i])
	}
	m.First, m.Last = max(m.First, n.First), min(m.Last, n.Last)
	return m
}

// IsZero reports whether m changes no cell.
func (m Moves) IsZero() bool { return m.Out == [2]int64{} && m.In == [2]int64{} }

// Hold is what one write does to the cells of one limit. The zero Hold is of a limit that has none.
type Hold struct {
	Change      [2]int64 // added to the cells
	Lo, Hi      [2]int64 // bounds of each cell; math.MinInt64 and math.MaxInt64 for none
	First, Last int64    // bounds of the lowest epoch that the limit counts; for none as Lo and Hi
	Epoch       int64    // the lowest epoch that it counts after the write
	Until       int64    // the epoch of what the write takes or extends
}

// noHold returns a Hold of b that changes nothing. Its Until is the epoch of what is taken at now, in ms.
// A bucket may be ahead of its writer's clock.
func (b Balance) noHold(now int64) Hold {
	none, most := [2]int64{math.MinInt64, math.MinInt64}, [2]int64{math.MaxInt64, math.MaxInt64}
	return Hold{
		Lo: none, Hi: most, First: math.MinInt64, Last: math.MaxInt64,
		Epoch: b.Epoch, Until: max(Epoch(now)+1, b.Epoch),
	}
}

// Hold returns what a write at now, in ms, does to the cells of b if it takes tokens, makes moves and sweeps
// nothing. ok is false if the write has to sweep.
func (b Balance) Hold(take int64, m Moves, now int64) (h Hold, ok bool) {
	h = b.noHold(now)
	h.First, h.Last = m.First, m.Last
	if take > 0 {
		h.First, h.Last = max(h.First, h.Until-1), min(h.Last, h.Until)
	}
	m.In[cell(h.Until)] = Add(m.In[cell(h.Until)], take)
	for i := range h.Change {
		h.Change[i] = Sub(m.In[i], m.Out[i])
	}
	return h, b.Epoch >= h.First && b.Epoch <= h.Last
}

// Sweep returns what a write at now, in ms, does to the cells of b if it takes tokens, makes moves and sweeps
// epochs that are over. back is what the sweep gives back to the balance; moves give back beside that. all
// says that the write opens a window: it clears all cells, and nothing comes back.
func (b Balance) Sweep(take int64, m Moves, all bool, now int64) (h Hold, back int64) {
	h = b.noHold(now)
	h.First, h.Last, h.Epoch = b.Epoch, b.Epoch, max(b.Epoch, Epoch(now))
	m.In[cell(h.Until)] = Add(m.In[cell(h.Until)], take)
	for i, held := range b.Cells {
		switch {
		case all:
			m.Out[i] = held
		case b.HeldIn(i) < h.Epoch:
			back, m.Out[i] = Add(back, Sub(held, m.Out[i])), held
		default:
			h.Change[i] = Sub(m.In[i], m.Out[i])
			continue
		}
		h.Lo[i], h.Hi[i] = held, held
		h.Change[i] = Sub(m.In[i], held)
	}
	return h, back
}

// NewHold returns what a write at now, in ms, does to a limit that has no cells yet if it takes tokens of it.
// later is 0 for a new bucket, and NewRing for an existing one, where nothing counts that was taken before.
func NewHold(take, later, now int64) Hold {
	h := Balance{}.noHold(now)
	if later > 0 {
		later++ // NewRing is counted from the epoch of a hold that is taken now
	}
	h.Epoch = Epoch(now) + later
	h.Until = max(h.Until, h.Epoch)
	h.Change[cell(h.Until)] = take
	return h
}

// Apply returns b after h.
func (b Balance) Apply(h Hold) Balance {
	for i, n := range h.Change {
		b.Cells[i] = Add(b.Cells[i], n)
	}
	b.Epoch = h.Epoch
	return b
}

// EndOf returns what the settle of a lease does to a bucket as in img, beside the change in usage. cost is
// what it adds to the charge: negative where tokens come back. charges are what the lease took, oldest first,
// and the newest comes back first. now is in ms.
//
// lapsed is what is charged to the balance and not to usage, by limit. It is above 0 for tokens that come
// back in usage alone, since their window is over, and for a reservation that a sweep has given back. It is
// below 0 for slots that come back. moves ends the holds. Either is nil if it is all zero.
func EndOf(img *Image, cost []int64, charges []Charge, now int64) (lapsed []int64, moves []Moves) {
	if img == nil {
		return nil, nil
	}
	for i, b := range img.Balances {
		var beside int64
		switch {
		case b.Holds():
			if moves == nil {
				moves = noMoves(len(cost))
			}
			beside, moves[i] = b.end(cost[i], i, charges, now)
		case b.Windowed() && cost[i] < 0:
			beside = b.lapsed(-cost[i], i, charges, now)
		}
		if beside != 0 {
			if lapsed == nil {
				lapsed = make([]int64, len(cost))
			}
			lapsed[i] = beside
		}
	}
	return lapsed, moves
}

// noMoves returns moves of n limits that change nothing.
func noMoves(n int) []Moves { return slices.Repeat([]Moves{NoMoves}, n) }

// end is EndOf for the i-th limit, whose balance is b and counts holds.
func (b Balance) end(cost int64, i int, charges []Charge, now int64) (lapsed int64, m Moves) {
	m = NoMoves
	tokens := min(0, -cost) // by which the balance changes
	left := max(0, -cost)   // what is still to be given back
	for _, c := range slices.Backward(charges) {
		taken, epoch := c.Cost[i], c.epoch(i)
		part := min(left, taken)
		left -= part
		live, counts := epoch > 0 && b.Epoch <= epoch, epoch != 0
		switch {
		case taken <= 0, b.Windowed() && (c.ends(i) != b.Ends || b.Over(now)), b.InFlight() && !counts:
			continue
		case !counts: // the limit had no cells then
			tokens = Add(tokens, part)
		case live && b.InFlight():
			tokens = Add(tokens, taken)
		case live:
			tokens = Add(tokens, part)
		case b.Windowed(): // a sweep has given all of it back, or will
			tokens = Sub(tokens, Sub(taken, part))
		}
		if live {
			m.Out[cell(epoch)] = Add(m.Out[cell(epoch)], taken)
			m.Last = min(m.Last, epoch)
		}
	}
	return -Add(tokens, cost), m
}

// Extend returns the moves that extend what open leases hold of a bucket as in img, by limit. until has the
// epochs of these holds then: Lost for one that is over. now is in ms.
func Extend(img *Image, held Charge, now int64) (moves []Moves, until []int64) {
	moves, until = noMoves(len(held.Cost)), make([]int64, len(held.Cost))
	for i, n := range held.Cost {
		epoch := held.epoch(i)
		if n <= 0 || epoch == 0 {
			continue
		}
		if img == nil {
			until[i] = Lost
			continue
		}
		b := img.Balances[i]
		next := max(Epoch(now)+1, b.Epoch)
		switch until[i] = next; {
		case !b.Holds(), b.Windowed() && (held.ends(i) != b.Ends || b.Over(now)): // nothing is held any more
		case epoch < b.Epoch, next > epoch+1:
			until[i] = Lost
		case next <= epoch:
			until[i] = epoch
		default:
			moves[i].Out[cell(epoch)], moves[i].In[cell(next)] = n, n
			moves[i].First, moves[i].Last = next-1, epoch
		}
	}
	return moves, until
}

// epoch returns the epoch in which c holds tokens of the i-th limit, 0 if it holds none.
func (c *Charge) epoch(i int) int64 {
	if i >= len(c.Epochs) {
		return 0
	}
	return c.Epochs[i]
}

// ends returns the end of the window that c was taken from, 0 for none.
func (c *Charge) ends(i int) int64 {
	if i >= len(c.Ends) {
		return 0
	}
	return c.Ends[i]
}

// Holds reports whether c holds tokens of any limit, until its lease ends.
func (c *Charge) Holds() bool {
	return slices.ContainsFunc(c.Epochs, func(e int64) bool { return e != 0 })
}

// FullRetry is the RetryAfter of a denial by an in-flight limit. It is a hint: nobody knows when a call ends.
const FullRetry = time.Second
