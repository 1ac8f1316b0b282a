package region

import (
	"maps"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// book is an entry with what is not published of it: a Sync that has lost that finds it out again.
type book struct {
	Entry

	spec   *store.Spec
	whole  []bucket.Limit // by Entry.Limits: what all regions have, as this one's configuration says
	stored bool           // there is something to delete
	doubt  bool           // it is not certain that what is stored is what was written
	tried  int64          // when an operator's was last found there, ms; 0 if none was
	lacked []string       // limits that are new here, but maybe not to others: they may have accounts of them
	rev    store.Revision
	seen   *bucket.Image // the bucket, as it was last read; nil if there is none
}

// books are a region's, by entry.
type books struct {
	of     map[key]*book
	sorted []*book // by key; nil if they have to be sorted again
}

func newBooks() *books { return &books{of: map[key]*book{}} }

// all returns the books, by resource and entity.
func (b *books) all() []*book {
	if b.sorted == nil {
		b.sorted = slices.SortedFunc(maps.Values(b.of), func(x, y *book) int {
			if c := strings.Compare(x.Resource, y.Resource); c != 0 {
				return c
			}
			return strings.Compare(x.Entity, y.Entity)
		})
	}
	return b.sorted
}

// open returns the book of an entry, a new one if there is none: it holds what every region does.
func (b *books) open(spec *store.Spec, entity string, now int64) *book {
	k := key{spec.Resource, entity}
	if bk := b.of[k]; bk != nil {
		return bk
	}
	bk := &book{Entry: Entry{Entity: entity, Resource: spec.Resource, Born: now, Used: now}, spec: spec}
	b.of[k], b.sorted = bk, nil
	return bk
}

// shares is how many limits there are books of.
func (b *books) shares() int {
	n := 0
	for _, bk := range b.of {
		n += len(bk.Limits)
	}
	return n
}

// close ends the book of an entry.
func (b *books) close(bk *book) {
	delete(b.of, bk.key())
	b.sorted = nil
}

// forget begins a new account with a region, which has begun a new epoch or has none any longer.
func (b *books) forget(region string) {
	for _, bk := range b.of {
		for i := range bk.Limits {
			delete(bk.Limits[i].Given, region)
			delete(bk.Limits[i].Taken, region)
		}
	}
}

// restore takes up what was published. What was to be raised then may have been or not.
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
					h.Written = h.Share
				}
			}
			b.of[bk.key()], b.sorted = bk, nil
		}
	}
}

// configure gives the book the limits that its kind has by now, those that are for all regions together. It reports whether it
// has any.
func (bk *book) configure(whole []bucket.Limit) bool {
	if whole == nil {
		return false
	}
	if len(bk.Limits) == len(whole) && slices.Equal(bk.whole, whole) {
		return true
	}
	limits := make([]Holding, len(whole))
	for i, name := range bk.spec.Limits {
		keeps := bk.spec.Regions.Keeps(whole[i]).Capacity / bucket.Milli
		limits[i] = Holding{Limit: name, Held: keeps, Share: keeps, Written: keeps}
		if h := bk.holding(name); h != nil {
			limits[i] = *h
		} else {
			bk.lacked = append(bk.lacked, name)
		}
		limits[i].Whole = whole[i].Capacity / bucket.Milli
		reserved, _ := reserve(whole[i].Capacity/bucket.Milli, bk.spec.Regions)
		limits[i].Held = max(limits[i].Held, reserved)
	}
	bk.Limits, bk.whole = limits, slices.Clone(whole)
	return true
}

// reserved is what is reserved for each region of the i-th limit, in tokens.
func (bk *book) reserved(i int) int64 {
	reserved, _ := reserve(bk.whole[i].Capacity/bucket.Milli, bk.spec.Regions)
	return reserved
}

// observe takes note of the bucket, which was read at an instant, ms after it was read before; nil where there is none. ms of 0 says
// that it was not read before.
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
		if balance.Consumed < before && bk.Expires*1000 <= now { // it was deleted, and came back
			bk.Born, before = now, 0
		}
		if balance.Consumed != before {
			bk.Used = now
		}
		if ms > 0 {
			h.Rate = over(h.Rate, max(0, balance.Consumed-before), ms, window) // settles may give back more than was charged
		}
		if h.Rate == 0 && denied { // somebody has called, and nobody ever had enough of a share to be served: the least demand that there is
			h.Rate = 1
		}
		h.TC, h.TK = balance.Consumed, bucket.Available(balance, img.Refilled, now)
		h.CP, h.BX, h.RA, h.RP = balance.Capacity, balance.Burst, balance.Refill, balance.Period
	}
	bk.Expires, bk.seen = img.TTL, img
}

// over is a rate, in millitokens per second, over the last window: consumed is of the last ms of it, and before them it was rate. A
// cycle soon after another, as by hand, so changes little.
func over(rate, consumed, ms, window int64) int64 {
	if ms >= window {
		return bucket.MulDiv(consumed, 1000, ms)
	}
	return bucket.Add(bucket.MulDiv(rate, window-ms, window), bucket.MulDiv(consumed, 1000, window))
}

// mature has Share follow what was written, once nobody in this region can still use what was there before. What was to be raised
// and was not even tried is not raised.
func (bk *book) mature(now, window int64) {
	if !bk.doubt && now-bk.Wrote >= window {
		bk.Raising = false
		for i := range bk.Limits {
			bk.Limits[i].Share = bk.Limits[i].Written
		}
	}
}

// maturing reports that less was written than processes may still use. It is not written again meanwhile: that would take as long
// again.
func (bk *book) maturing() bool {
	return slices.ContainsFunc(bk.Limits, func(h Holding) bool { return h.Written < h.Share })
}

// contradicts reports that the bucket, used since, is not as what was written says: something else is stored.
func (bk *book) contradicts(window int64) bool {
	if bk.seen == nil || bk.Used <= bk.Wrote+2*window {
		return false
	}
	for i := range bk.Limits {
		h, l := &bk.Limits[i], bk.whole[i].Share(bk.Limits[i].Written)
		if h.CP != l.Capacity || h.BX != l.Burst || h.RA != l.Refill || h.RP != l.Period {
			return true
		}
	}
	return false
}
