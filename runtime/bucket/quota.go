package bucket

// Quota returns the part of l with a capacity of whole tokens, at most l's. Burst and refill are scaled alike
// and rounded down. So parts whose tokens add up to at most the capacity hold and refill at most what l does.
//
// The part of 0 tokens is closed: its Capacity is 0. Otherwise it is the part of 1 token, since a bucket must
// refill in finite time.
func (l Limit) Quota(tokens int64) Limit {
	whole := l.Capacity / Milli
	tokens = min(max(tokens, 0), whole)
	if tokens == whole {
		return l
	}
	part := Limit{Capacity: tokens * Milli, Period: l.Period}
	scale := max(tokens, 1)
	part.Burst = max(Milli, MulDiv(l.Burst, scale, whole))
	if part.Refill = MulDiv(l.Refill, scale, whole); part.Refill == 0 {
		// The product l.Refill*scale is below whole.
		part.Refill, part.Period = 1, int64(ceiling(mul(uint64(l.Period), uint64(whole)), uint64(l.Refill*scale)))
	}
	return part
}

// Closed reports that l is the part of 0 tokens: a call that wants any of it waits until the part is raised.
// A prepaid limit that begins with nothing is none.
func (l Limit) Closed() bool { return l.Capacity == 0 && !l.Prepaid() }

// Spendable returns what calls may take of b at now, in millitokens: nothing of a closed limit, else
// Available.
func Spendable(b Balance, rf, now int64) int64 {
	if b.Closed() {
		return 0
	}
	return Available(b, rf, now)
}

// Floor is the least that each of so many regions keeps of capacity whole tokens: percent of it, and at least
// 1 if there is enough for all regions.
func Floor(capacity int64, regions int, percent int64) int64 {
	return min(capacity/int64(max(regions, 1)), max(1, MulDiv(capacity, percent, 100)))
}

// MulDiv returns floor(n * of / whole), for n and of that are not negative, and a positive whole.
func MulDiv(n, of, whole int64) int64 {
	return int64(quotient(mul(uint64(n), uint64(of)), uint64(whole)))
}
