package review

import (
	"strconv"
	"strings"

	"github.com/sluice-go/sluice/gen/internal/model"
	"github.com/sluice-go/sluice/gen/internal/schema"
)

// Size is the bytes of a bucket's item by DynamoDB's rules, which count the names and the values of
// attributes.
type Size struct {
	New  int // as created, full
	Most int // with every number as long as the schema's numbers allow
}

// The bytes of what a limit has consumed.
const (
	usedNew  = 1     // a zero
	usedMost = 1 + 9 // 19 digits of millitokens, the last three of them zeros
)

// timeBytes is the bytes of milliseconds since 1970, which have 13 digits until the year 2286.
const timeBytes = 1 + 13/2 + 1

// epochBytes is the bytes of minutes since 1970, which have 8 digits until the year 2160.
const epochBytes = 1 + 8/2

// Limits of DynamoDB and of sluice.
const (
	unitBytes = 1 << 10 // of an item that a write unit pays for
	mostID    = 256     // bytes of an id
	milli     = 1000    // millitokens of a token
)

// sizeOf returns the size of a bucket of r, for an entity of kind c whose id has that many bytes.
func sizeOf(r *model.Resource, c *model.Charged, id int) Size {
	stored := len(c.Kind.Prefix) + id
	s := Size{}
	add := func(name string, fresh, most int) {
		s.New += len(name) + fresh
		s.Most += len(name) + most
	}
	for _, a := range r.Attributes() {
		switch {
		case a.Field != nil && a.Field.ID:
			add(a.Name, 0, stored)
		case a.Field != nil:
			add(a.Name, a.Field.New, a.Field.Most)
		case a.Entity:
			add(a.Name, len(a.Text)+stored, len(a.Text)+stored)
		default:
			add(a.Name, len(a.Text), len(a.Text))
		}
	}
	if r.Template != nil && !c.AllNames { // sort key, index key and resource have the name
		s.New, s.Most = s.New+3*(len("/")+typicalName), s.Most+3*(len("/")+typicalName)
	}
	for i, l := range r.Limits {
		if c.Has(l) {
			fresh, most := balances(l.Attrs, c.All(i))
			s.New, s.Most = s.New+fresh, s.Most+most
		}
	}
	return s
}

// balances returns the bytes of the attributes of one limit, with the first of numbers as created, and the
// most with any of them.
func balances(a model.Attrs, numbers []schema.Numbers) (fresh, most int) {
	for i, n := range numbers {
		bytes := 0
		balance(a, n, func(name string, created, longest int) {
			if i == 0 {
				fresh += len(name) + created
			}
			bytes += len(name) + longest
		})
		most = max(most, bytes)
	}
	return fresh, most
}

// balance adds the attributes of one limit.
func balance(a model.Attrs, n schema.Numbers, add func(name string, fresh, most int)) {
	for _, p := range []struct {
		name  string
		value int64
	}{{a.Capacity, n.Stored(n.Capacity)}, {a.Burst, n.Stored(n.Burst)}, {a.Refill, n.Stored(n.Refill)},
		{a.Period, n.Period.Milliseconds()}} {
		add(p.name, numberBytes(p.value), numberBytes(p.value))
	}
	full := n.Stored(n.Burst)
	if a.Ends != "" {
		add(a.Ends, timeBytes, timeBytes)
	}
	if a.Epoch != "" {
		for _, cell := range a.Cells {
			add(cell, numberBytes(0), 1+pairs(len(strconv.FormatInt(full, 10))))
		}
		add(a.Epoch, epochBytes, epochBytes)
	}
	// any digits up to the burst, and a sign for debt
	add(a.Tokens, numberBytes(full), 1+pairs(len(strconv.FormatInt(full, 10)))+1)
	add(a.Consumed, usedNew, usedMost)
}

// numberBytes returns the bytes of a number that is not negative: one, and one for each pair of digits. Pairs
// count from the decimal point, and only from the first to the last that is not zero.
func numberBytes(n int64) int {
	if n == 0 {
		return 1
	}
	digits := strconv.FormatInt(n, 10)
	zeros := len(digits) - len(strings.TrimRight(digits, "0"))
	return 1 + pairs(len(digits)) - zeros/2
}

// pairs returns the number of pairs that hold so many digits.
func pairs(digits int) int { return (digits + 1) / 2 }

// idTimes returns how many attributes of an item of r have its id: PK, for example. The id of the entity
// whose plan it has counts as one as long.
func idTimes(r *model.Resource) int {
	n := 0
	for _, a := range r.Attributes() {
		if a.Entity || a.Field != nil && a.Field.ID {
			n++
		}
	}
	return n
}

// idPassing returns the bytes of the shortest id with which the item is larger than a write unit. ok is false
// if no id is that long.
func idPassing(r *model.Resource, c *model.Charged) (bytes int, ok bool) {
	left := unitBytes - sizeOf(r, c, 0).Most
	bytes = max(1, left/idTimes(r)+1)
	return bytes, bytes <= mostID
}

// limitsPassing returns how many more limits, as large as the largest, make the item larger than a write
// unit: 0 if it is that large already.
func limitsPassing(r *model.Resource, c *model.Charged) int {
	largest := 0
	for i, l := range r.Limits {
		if !c.Has(l) {
			continue
		}
		_, most := balances(l.Attrs, c.All(i))
		largest = max(largest, most)
	}
	left := unitBytes - sizeOf(r, c, typicalID).Most
	if left < 0 {
		return 0
	}
	return left/largest + 1
}
