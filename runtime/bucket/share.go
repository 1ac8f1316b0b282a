package bucket

// Share returns the part of l that whole tokens of its capacity are: burst and refill are scaled alike and rounded down, so that
// parts whose tokens add up to no more than the capacity hold and refill no more than l does. tokens is bounded by l's capacity.
//
// The part of 0 tokens is closed: it has Capacity 0 and otherwise what 1 token is, for a bucket has to be refilled in some time.
func (l Limit) Share(tokens int64) Limit {
	whole := l.Capacity / Milli
	tokens = min(max(tokens, 0), whole)
	if tokens == whole {
		return l
	}
	part := Limit{Capacity: tokens * Milli, Period: l.Period}
	scale := max(tokens, 1)
	part.Burst = max(Milli, MulDiv(l.Burst, scale, whole))
	if part.Refill = MulDiv(l.Refill, scale, whole); part.Refill == 0 {
		part.Refill, part.Period = 1, int64(ceiling(mul(uint64(l.Period), uint64(whole)), uint64(l.Refill*scale))) // the product is below whole
	}
	return part
}

// Closed reports that l is the part of nothing: who wants any of it waits until it is more.
func (l Limit) Closed() bool { return l.Capacity == 0 }

// Spendable returns what calls may take of b at now, in millitokens: nothing of a closed limit, else Available.
func Spendable(b Balance, rf, now int64) int64 {
	if b.Closed() {
		return 0
	}
	return Available(b, rf, now)
}

// Floor is the least that each of so many regions keeps of capacity whole tokens: percent of it, at least 1, where there is enough
// for all of them.
func Floor(capacity int64, regions int, percent int64) int64 {
	return min(capacity/int64(max(regions, 1)), max(1, MulDiv(capacity, percent, 100)))
}

// MulDiv returns floor(n * of / whole), for numbers that are not below 0 and a whole above.
func MulDiv(n, of, whole int64) int64 {
	return int64(quotient(mul(uint64(n), uint64(of)), uint64(whole)))
}
