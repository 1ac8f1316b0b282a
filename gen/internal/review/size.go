package review

import (
	"strconv"
	"strings"

	"github.com/sluice-go/sluice/gen/internal/model"
	"github.com/sluice-go/sluice/gen/internal/schema"
)

// Size is how many bytes a bucket's item takes, by DynamoDB's rules: the names of its attributes count, and what they hold.
type Size struct {
	New  int // as created, full
	Most int // with every number as long as it gets, by the numbers of the schema
}

// What an attribute's value takes where it depends on no schema.
const (
	opBytes  = 12           // 72 bits in base64
	rfBytes  = 1 + 13/2 + 1 // milliseconds since 1970: 13 digits until the year 2286
	cvNew    = 1 + 3        // revision, of five digits, in front of 14 zeros
	cvMost   = 1 + 10       // 19 digits: with the versions of overrides
	ttlNew   = 1 + 5        // seconds since 1970: 10 digits
	ttlMost  = 1 + 6        // 12 digits: the year 9999
	usedNew  = 1            // a zero
	usedMost = 1 + 9        // 19 digits of millitokens, the last three of them zeros
)

// Limits of DynamoDB's and ours.
const (
	unitBytes = 1 << 10 // of an item that a write unit pays for
	mostID    = 256     // bytes of an id
	idTimes   = 3       // that an item has it: in PK, in GSI2SK and in entity_id
	milli     = 1000    // millitokens of a token
)

// sizeOf returns the size of the item that an entity of kind c has for r, whose id has so many bytes.
func sizeOf(r *model.Resource, c *model.Charged, id int) Size {
	stored := len(c.Kind.Prefix) + id
	s := Size{}
	add := func(name string, fresh, most int) {
		s.New += len(name) + fresh
		s.Most += len(name) + most
	}
	text := func(name string, bytes int) { add(name, bytes, bytes) }
	text("PK", len("ENTITY#")+stored)
	text("SK", len(r.SortKey))
	text("GSI2PK", len(r.IndexKey))
	text("GSI2SK", len("BUCKET#")+stored)
	text("entity_id", stored)
	text("resource", len(r.Name))
	text("op", opBytes)
	text("rf", rfBytes)
	add("cv", cvNew, cvMost)
	add("ttl", ttlNew, ttlMost)
	for i, l := range r.Limits {
		balance(l.Attrs, c.Numbers[i], add)
	}
	return s
}

// balance adds the attributes of one limit.
func balance(a model.Attrs, n schema.Numbers, add func(name string, fresh, most int)) {
	for _, p := range []struct {
		name  string
		value int64
	}{{a.Capacity, n.Capacity * milli}, {a.Burst, n.Burst * milli}, {a.Refill, n.Refill * milli}, {a.Period, n.Period.Milliseconds()}} {
		add(p.name, numberBytes(p.value), numberBytes(p.value))
	}
	full := n.Burst * milli
	add(a.Tokens, numberBytes(full), 1+pairs(len(strconv.FormatInt(full, 10)))+1) // any digits up to the burst, and a sign for debt
	add(a.Consumed, usedNew, usedMost)
}

// numberBytes is what a positive number takes: a byte, and one for each pair of digits, counted from the point, from the first
// to the last that is not zero.
func numberBytes(n int64) int {
	digits := strconv.FormatInt(n, 10)
	zeros := len(digits) - len(strings.TrimRight(digits, "0"))
	return 1 + pairs(len(digits)) - zeros/2
}

// pairs is how many pairs of digits hold so many.
func pairs(digits int) int { return (digits + 1) / 2 }

// idPassing returns from how many bytes of an id on the item takes more than one write unit pays for; ok is false if no id is
// that long.
func idPassing(r *model.Resource, c *model.Charged) (bytes int, ok bool) {
	left := unitBytes - sizeOf(r, c, 0).Most
	bytes = max(1, left/idTimes+1)
	return bytes, bytes <= mostID
}

// limitsPassing returns how many more limits, as large as the largest, make the item take more than one write unit pays for: 0 if
// it does.
func limitsPassing(r *model.Resource, c *model.Charged) int {
	largest := 0
	for i, l := range r.Limits {
		bytes := 0
		balance(l.Attrs, c.Numbers[i], func(name string, _, most int) { bytes += len(name) + most })
		largest = max(largest, bytes)
	}
	left := unitBytes - sizeOf(r, c, typicalID).Most
	if left < 0 {
		return 0
	}
	return left/largest + 1
}
