package codec

import (
	"cmp"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/internal/item"
)

// The methods and functions here are for generated code. Each fills in what one limit, or the bucket itself,
// has in an expression or in an item.

// Charge gives the placeholders of limit i's change of tokens, the refill less the cost, and of its cost.
func (w *Write) Charge(i int, net, use string) {
	w.N(net, bucket.Sub(w.Fill[i], w.Cost[i]))
	w.N(use, w.Cost[i])
}

// Take is Charge without a refill.
func (w *Write) Take(i int, net, use string) {
	w.N(net, -w.Cost[i])
	w.N(use, w.Cost[i])
}

// Window gives the placeholder of the end of limit i's window after the write.
func (w *Write) Window(i int, we string) { w.N(we, w.Ends[i]) }

// WindowSeen gives that of the end in Image.
func (w *Write) WindowSeen(i int, we0 string) { w.N(we0, w.Image.Balances[i].Ends) }

// Cells gives the placeholders of what is added to limit i's cells.
func (w *Write) Cells(i int, d0, d1 string) {
	w.N(d0, w.Holds[i].Change[0])
	w.N(d1, w.Holds[i].Change[1])
}

// Epochs gives those of the bounds of the lowest epoch that limit i counts.
func (w *Write) Epochs(i int, e0, e1 string) {
	w.Bound(e0, w.Holds[i].First)
	w.Bound(e1, w.Holds[i].Last)
}

// Epoch gives those of the lowest epoch that limit i counts after the write, and of the one in Image.
func (w *Write) Epoch(i int, e, e0 string) {
	w.N(e, w.Holds[i].Epoch)
	w.N(e0, w.Image.Balances[i].Epoch)
}

// CellBounds gives those of the bounds of limit i's cells.
func (w *Write) CellBounds(i int, h0lo, h0hi, h1lo, h1hi string) {
	h := &w.Holds[i]
	w.Bound(h0lo, h.Lo[0])
	w.Bound(h0hi, h.Hi[0])
	w.Bound(h1lo, h.Lo[1])
	w.Bound(h1hi, h.Hi[1])
}

// Bounds gives the placeholders of the bounds of limit i's balance.
func (w *Write) Bounds(i int, lo, hi string) {
	w.Bound(lo, w.Lo[i])
	w.Bound(hi, w.Hi[i])
}

// Full returns the balance of limit i in a new bucket: the burst less the cost.
func (w *Write) Full(i int) bucket.Balance {
	tokens := bucket.Sub(w.Limits[i].Burst, w.Cost[i])
	b := bucket.Balance{Limit: w.Limits[i], Tokens: tokens, Consumed: w.Cost[i]}
	if w.Ends != nil {
		b.Ends = w.Ends[i]
	}
	if w.Holds != nil {
		b = b.Apply(w.Holds[i])
	}
	return b
}

// Create makes w the put of a full bucket less Cost, on a condition without placeholders. limits are as
// Marshal has them.
func (w *Write) Create(resource, cond string, limits ...string) {
	img := bucket.Image{
		Refilled: w.RF, Version: w.CV, Op: w.Op, TTL: w.TTL, Balances: make([]bucket.Balance, len(limits)),
	}
	for i, name := range limits {
		if name != "" {
			img.Balances[i] = w.Full(i)
		}
	}
	w.Put(Marshal(w.Entity, cmp.Or(w.Resource, resource), &img, limits...), cond)
}

// CreateOnPlan is w.Create for a resource with plans: it puts PlanOf, too.
func CreateOnPlan(w *Write, resource, cond string, limits ...string) {
	w.Create(resource, cond, limits...)
	w.Item[item.PlanOf] = S(w.PlanOf)
}

// Reshape makes w the update that stores Limits and takes Cost. Its text has the placeholders of package
// gen/internal/expr: those of the bucket, then :<limit>_<suffix> for each of limits, which are as Marshal has
// them.
func (w *Write) Reshape(update, cond string, limits ...string) {
	w.Begin(update, cond)
	w.N(":rf", w.RF)
	w.N(":cv1", w.CV)
	w.S(":op", w.Op)
	w.N(":ttl", w.TTL)
	w.N(":rf0", w.Image.Refilled)
	w.N(":cv", w.Image.Version)
	for i, name := range limits {
		if name == "" {
			continue
		}
		of := func(suffix string) string { return ":" + name + "_" + suffix }
		w.Charge(i, of("net"), of("use"))
		limit := &w.Limits[i]
		w.N(of("cp"), limit.Capacity)
		w.N(of("bx"), limit.Burst)
		w.N(of("ra"), limit.Refill)
		w.N(of("rp"), limit.Period)
		w.Bounds(i, of("lo"), of("hi"))
		if w.Ends != nil && w.Limits[i].Windowed() {
			w.Window(i, of("we"))
			w.WindowSeen(i, of("we0"))
		}
		if w.Holds != nil && w.Holds[i].Epoch != 0 {
			w.Cells(i, of("d0"), of("d1"))
			w.Epoch(i, of("e"), of("e0"))
		}
	}
	w.End()
}

// ReshapeOnPlan is w.Reshape for a resource with plans, whose text stores :po too.
func ReshapeOnPlan(w *Write, update, cond string, limits ...string) {
	w.Reshape(update, cond, limits...)
	w.S(":"+item.PlanOf, w.PlanOf)
}

// Put makes w the put of a whole item, on a condition without placeholders.
func (w *Write) Put(item Item, cond string) {
	w.Item, w.Update, w.Cond = item, "", cond
	w.Names, w.Values = nil, nil
}
