package region

import (
	"maps"
	"slices"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// book is what this region knows of one entry. The fields beside Entry are not published: a Sync that starts
// anew determines them again.
type book struct {
	Entry

	spec      *store.Spec
	whole     []bucket.Limit // by Entry.Limits: the limit of all regions together, as configured here
	stored    bool           // the table holds a quota or a tombstone
	doubt     bool           // the table may hold something else than Written
	tried     int64          // when a write last found an operator's override, ms; 0 if none did
	newLimits []string       // limits new to this book, of which other regions may have accounts already
	rev       store.Revision
	seen      *bucket.Image // the bucket as last read; nil if there is none

	highest map[string]int64 // by limit, the most tokens that all regions had together

	grants     []int64 // by limit, millitokens that raises have granted and the bucket has not got; nil for none
	grantUntil int64   // until then the bucket is certainly the one that was there at the raise, ms
}

// books is the books of a region, by entry.
type books struct {
	of     map[key]*book
	sorted []*book // by key; nil if they must be sorted again
}

func newBooks() *books { return &books{of: map[key]*book{}} }

// all returns the books, by entity and resource.
func (b *books) all() []*book {
	if b.sorted == nil {
		b.sorted = slices.SortedFunc(maps.Values(b.of), func(x, y *book) int {
			return compareKeys(x.key(), y.key())
		})
	}
	return b.sorted
}

// open returns the book of an entry, a new one if there is none. A new book holds the floor, as every region
// does.
func (b *books) open(spec *store.Spec, entity string, now int64) *book {
	k := key{spec.Resource, entity}
	if bk := b.of[k]; bk != nil {
		return bk
	}
	bk := &book{Entry: Entry{Entity: entity, Resource: spec.Resource, Born: now, Used: now}, spec: spec}
	b.of[k], b.sorted = bk, nil
	return bk
}

// quotas returns the number of limits in all books.
func (b *books) quotas() int {
	n := 0
	for _, bk := range b.of {
		n += len(bk.Limits)
	}
	return n
}

// close removes the book of an entry.
func (b *books) close(bk *book) {
	delete(b.of, bk.key())
	b.sorted = nil
}

// resetAccounts starts new accounts with a region that has begun a new epoch, or whose epoch has ended.
func (b *books) resetAccounts(region string) {
	for _, bk := range b.of {
		for i := range bk.Limits {
			delete(bk.Limits[i].Given, region)
			delete(bk.Limits[i].Taken, region)
		}
		bk.Fresh = false
	}
}

// restore reopens the books of a published snapshot. Quotas that it was about to raise may have been raised
// or not.
func (b *books) restore(entries []Entry, specs []*store.Spec) {
	for i := range entries {
		e := &entries[i]
		for _, spec := range specs {
			if spec.Resource != e.Resource {
				continue
			}
			bk := &book{Entry: *e, spec: spec, stored: true, doubt: e.Raising}
			for j := range bk.Limits {
				if h := &bk.Limits[j]; e.Raising {
					h.Written = h.Quota
				}
			}
			b.of[bk.key()], b.sorted = bk, nil
		}
	}
}

// configure sets the book's limits to whole, those that its kind has now for all regions together. It reports
// whether there are any.
func (bk *book) configure(whole []bucket.Limit) bool {
	if whole == nil {
		return false
	}
	names, whole := held(bk.spec, whole)
	if len(bk.Limits) == len(whole) && slices.Equal(bk.whole, whole) {
		return true
	}
	bk.Fresh = bk.Fresh && len(bk.Limits) == 0
	limits := make([]Holding, len(whole))
	for i, name := range names {
		keeps := bk.spec.Regions.Keeps(whole[i]).Capacity / bucket.Milli
		limits[i] = Holding{Limit: name, Held: keeps, Quota: keeps, Written: keeps}
		if h := bk.holding(name); h != nil {
			limits[i] = *h
		} else {
			bk.newLimits = append(bk.newLimits, name)
		}
		limits[i].Whole = whole[i].Capacity / bucket.Milli
		reserved, _ := reserve(whole[i].Capacity/bucket.Milli, bk.spec.Regions)
		limits[i].Held = max(limits[i].Held, reserved)
	}
	bk.Limits, bk.whole = limits, slices.Clone(whole)
	return true
}

// held returns those of a resource's limits that a bucket has, by their names.
func held(spec *store.Spec, all []bucket.Limit) (names []string, limits []bucket.Limit) {
	for i, l := range all {
		if !l.Absent() {
			names, limits = append(names, spec.Limits[i]), append(limits, l)
		}
	}
	return names, limits
}

// inOrder returns values, which are by bk.Limits, by the limits of the resource: zero for one that the bucket
// does not have.
func inOrder[T any](bk *book, values []T) []T {
	all := make([]T, len(bk.spec.Limits))
	for i, v := range values {
		all[slices.Index(bk.spec.Limits, bk.Limits[i].Limit)] = v
	}
	return all
}

// reserved returns the tokens of the i-th limit that are reserved for each region.
func (bk *book) reserved(i int) int64 {
	reserved, _ := reserve(bk.whole[i].Capacity/bucket.Milli, bk.spec.Regions)
	return reserved
}

// observe records the bucket as read at now; img is nil if there is none. ms is the time since the previous
// read, 0 if there was none.
func (bk *book) observe(img *bucket.Image, now, ms, window int64) {
	reborn := bk.seen == nil && bk.Expires*1000 <= now
	if img == nil {
		bk.seen = nil
		for i := range bk.Limits {
			h, l := &bk.Limits[i], bk.spec.Regions.Keeps(bk.whole[i])
			h.TK, h.TC, h.Rate = l.Burst, 0, 0
			h.CP, h.BX, h.RA, h.RP = l.Capacity, l.Burst, l.Refill, l.Period
		}
		return
	}
	if reborn {
		bk.Born = now
	}
	ms = spanned(bk.seen, img, ms)
	denied := !slices.ContainsFunc(img.Extra, func(n bucket.Named) bool { return n.Balance.Consumed != 0 })
	for i := range bk.Limits {
		h := &bk.Limits[i]
		at := slices.IndexFunc(img.Extra, func(n bucket.Named) bool { return n.Name == h.Limit })
		if at < 0 {
			h.Rate = 0
			continue
		}
		balance := img.Extra[at].Balance
		before := h.TC
		if balance.Consumed < before && bk.Expires*1000 <= now { // it was deleted and created again
			bk.Born, before = now, 0
		}
		if balance.Consumed != before {
			bk.Used = now
		}
		if ms > 0 {
			// settles may refund more than was charged
			h.Rate = averageRate(h.Rate, max(0, balance.Consumed-before), ms, window)
		}
		h.TC, h.TK = balance.Consumed, bucket.Available(balance, img.Refilled, now)
		// There were calls, and none had enough quota to be admitted, or the tokens were used up before the book
		// was opened. Nothing more can be consumed: count the smallest demand.
		if h.Rate == 0 && (denied || h.TC > 0 && h.TK < balance.Burst/50) {
			h.Rate = 1
		}
		h.CP, h.BX, h.RA, h.RP = balance.Capacity, balance.Burst, balance.Refill, balance.Period
	}
	bk.Expires, bk.seen = img.TTL, img
}

// spanned returns the time in which the consumption between two images came about, ms if it is not known
// better. Images from a stream are of the last write before the cycle: the time between two of them differs
// from that between two cycles.
func spanned(before, img *bucket.Image, ms int64) int64 {
	if before == nil || ms <= 0 {
		return ms
	}
	if span := img.Refilled - before.Refilled; 3*span >= 2*ms && 2*span <= 3*ms {
		return span
	}
	return ms
}

// averageRate returns the rate over the last window, in millitokens per second. Of the window, the last ms
// consumed consumed; before them the rate was rate. So a cycle soon after another, for example one run by
// hand, changes the rate little.
func averageRate(rate, consumed, ms, window int64) int64 {
	if ms >= window {
		return bucket.MulDiv(consumed, 1000, ms)
	}
	return bucket.Add(bucket.MulDiv(rate, window-ms, window), bucket.MulDiv(consumed, 1000, window))
}

// mature sets Quota to Written once no cache in this region can hold the older value. A raise that was
// planned but not even attempted is dropped.
func (bk *book) mature(now, window int64) {
	if !bk.doubt && now-bk.Wrote >= window {
		bk.Raising = false
		for i := range bk.Limits {
			bk.Limits[i].Quota = bk.Limits[i].Written
		}
	}
}

// maturing reports whether processes may still use more than was last written. Meanwhile the quota is not
// written again, since the wait would start anew.
func (bk *book) maturing() bool {
	return slices.ContainsFunc(bk.Limits, func(h Holding) bool { return h.Written < h.Quota })
}

// contradicts reports whether the bucket was used since the last write but has other parameters than written:
// then something else is stored.
func (bk *book) contradicts(window int64) bool {
	return bk.seen != nil && bk.Used > bk.Wrote+2*window && bk.contradicted()
}
