package codec

import "github.com/sluice-go/sluice/runtime/bucket"

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

// Bounds gives the placeholders of the bounds of limit i's balance.
func (w *Write) Bounds(i int, lo, hi string) {
	w.Bound(lo, w.Lo[i])
	w.Bound(hi, w.Hi[i])
}

// Numbers gives the placeholders of the parameters of limit i: capacity, burst, refill amount and refill
// period.
func (w *Write) Numbers(i int, cp, bx, ra, rp string) {
	limit := &w.Limits[i]
	w.N(cp, limit.Capacity)
	w.N(bx, limit.Burst)
	w.N(ra, limit.Refill)
	w.N(rp, limit.Period)
}

// Full returns the balance of limit i in a new bucket: the burst less the cost.
func (w *Write) Full(i int) bucket.Balance {
	return bucket.Balance{
		Limit: w.Limits[i], Tokens: bucket.Sub(w.Limits[i].Burst, w.Cost[i]), Consumed: w.Cost[i],
	}
}

// Put makes w the put of a whole item, on a condition without placeholders.
func (w *Write) Put(item Item, cond string) {
	w.Item, w.Update, w.Cond = item, "", cond
	w.Names, w.Values = nil, nil
}

// Image reads the attributes of the bucket itself into dst, and makes room for the balances of so many
// limits. It overwrites dst, but keeps the memory of its slices.
func (d *Decoder) Image(dst *bucket.Image, limits int) {
	*dst = bucket.Image{
		Refilled: d.Int("rf"),
		Version:  d.Int("cv"),
		TTL:      d.Int("ttl"),
		Op:       d.Text("op"),
		Balances: Sized(dst.Balances, limits),
		Missing:  Sized(dst.Missing, limits),
	}
}
