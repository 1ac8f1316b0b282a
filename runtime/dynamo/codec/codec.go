// Package codec is the seam between generated code and the DynamoDB store: what a generated resource offers the store.
// It knows item types only, no client, so that generated packages stay small to compile.
package codec

import (
	"math"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
)

// Item is a DynamoDB item.
type Item = map[string]types.AttributeValue

// Write carries one write of one bucket: the store puts numbers in, a generated builder puts text and values in. All
// vectors are in schema order, in millitokens. The store owns it; a builder keeps nothing of it.
type Write struct {
	Entity string         // as stored: user-123
	Image  *bucket.Image  // what the condition was computed from; nil for Create and Adjust
	Limits []bucket.Limit // parameters to store, for Create and Reshape
	Cost   []int64        // what is taken; negative for what is given back
	Fill   []int64        // refill claimed, for Normal and Reshape
	Lo, Hi []int64        // bounds of each balance; math.MinInt64 and math.MaxInt64 stand for none
	RF     int64          // rf to store, ms
	CV     int64          // cv to store, for Create and Reshape
	TTL    int64          // ttl to store, s
	Op     string         // id of this write

	Item         Item // Create's item
	Update, Cond string
	Names        map[string]string
	Values       Item
}

// Begin starts an update: it sets Update and Cond to its text, Names to what all updates name, clears Item, and returns
// Values, emptied, for the builder to fill in. The maps of an earlier update are used again.
func (w *Write) Begin(update, cond string) Item {
	w.Item, w.Update, w.Cond = nil, update, cond
	if w.Names == nil {
		w.Names = make(map[string]string, 1)
	}
	clear(w.Names)
	w.Names["#ttl"] = "ttl" // a reserved word
	if w.Values == nil {
		w.Values = make(Item, 5+4*len(w.Cost)) // what Normal has, the most common update
	}
	clear(w.Values)
	return w.Values
}

// Resource is what a generated resource implements when limits.yaml lists store dynamodb. Each builder fills in the
// output fields of w for one write path; what the paths guard and why is in the documentation of package dynamo.
type Resource interface {
	runtime.Definition
	// Key returns the primary key of entity's bucket.
	Key(entity string) Item
	// Decode reads a bucket's item into dst, whose fields it overwrites: limits that the item lacks are marked Missing,
	// limits that the schema lacks become Extra. A malformed attribute is an error that names it.
	Decode(dst *bucket.Image, item Item) error
	// Create puts a full bucket less Cost.
	Create(w *Write)
	// Normal claims Fill and takes Cost.
	Normal(w *Write)
	// Retry takes Cost and leaves the refill unclaimed.
	Retry(w *Write)
	// Adjust gives back: it takes a Cost that is nowhere positive, whatever the balance.
	Adjust(w *Write)
	// Reshape gives the bucket the parameters Limits, adds limits that it lacks, and takes Cost.
	Reshape(w *Write)
}

// S encodes a string.
func S(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }

// N encodes an integer.
func N(v int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(v, 10)}
}

// PutBalance puts the six attributes of one limit into item, as Decoder.Balance reads them. A limit whose Capacity is 0 is
// one that its item lacked, and is left out.
func PutBalance(item Item, b *bucket.Balance, tk, cp, bx, ra, rp, tc string) {
	if b.Capacity == 0 {
		return
	}
	item[tk], item[tc] = N(b.Tokens), N(b.Consumed)
	item[cp], item[bx] = N(b.Capacity), N(b.Burst)
	item[ra], item[rp] = N(b.Refill), N(b.Period)
}

// unbounded is the largest number that DynamoDB stores.
const unbounded = "99999999999999999999999999999999999999"

// Bound encodes a bound of a BETWEEN. math.MinInt64 and math.MaxInt64 become the ends of DynamoDB's numbers, so that a
// limit without a bound keeps its clause and the text stays a constant.
func Bound(v int64) types.AttributeValue {
	switch v {
	case math.MinInt64:
		return &types.AttributeValueMemberN{Value: "-" + unbounded}
	case math.MaxInt64:
		return &types.AttributeValueMemberN{Value: unbounded}
	}
	return N(v)
}
