// Package codec is the seam between generated code and the DynamoDB store: what a generated resource offers
// the store. It knows item types only, no client, so that generated packages stay small to compile.
package codec

import (
	"math"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// Item is a DynamoDB item.
type Item = map[string]types.AttributeValue

// Resource is what a generated resource implements when limits.yaml lists store dynamodb. Each builder fills
// in the output fields of w for one write path; what the paths guard and why is in the documentation of
// package dynamo.
type Resource interface {
	store.Definition
	// Key returns the primary key of entity's bucket.
	Key(entity string) Item
	// Decode reads a bucket's item into dst, whose fields it overwrites. Limits missing in the item are marked
	// Missing; limits missing in the schema become Extra. A malformed attribute is an error that names it.
	// Slices of dst that are long enough are written to, which spares allocations: dst must not share them with
	// an image that is still read.
	Decode(dst *bucket.Image, item Item) error
	// DecodeBalances reads rf and the tokens of each limit into dst, an image that Decode filled. All else
	// stays: the reply is to a write whose condition held cv, so the parameters are known, Op and TTL are that
	// write's own, and Consumed is behind. A limit missing in the item is an error that names its attribute.
	DecodeBalances(dst *bucket.Image, item Item) error
	// Create puts a full bucket less Cost.
	Create(w *Write)
	// Normal claims Fill and takes Cost.
	Normal(w *Write)
	// Retry takes Cost and leaves the refill unclaimed.
	Retry(w *Write)
	// Adjust gives back: it takes a Cost that is nowhere positive, whatever the balance.
	Adjust(w *Write)
	// Reshape gives the bucket the parameters Limits, adds limits missing in it, and takes Cost.
	Reshape(w *Write)
}

// S encodes a string.
func S(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }

// N encodes an integer.
func N(v int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(v, 10)}
}

// PutBalance puts the six attributes of one limit into item, as Decoder.Balance reads them. A limit that its
// item did not have, which refills nothing, is left out; one that is closed, of capacity 0, is not.
func PutBalance(item Item, b *bucket.Balance, tk, cp, bx, ra, rp, tc string) {
	if b.Refill == 0 {
		return
	}
	item[tk], item[tc] = N(b.Tokens), N(b.Consumed)
	item[cp], item[bx] = N(b.Capacity), N(b.Burst)
	item[ra], item[rp] = N(b.Refill), N(b.Period)
}

// Sized returns a slice of length n in the memory of s, or in new memory if s is too short. Its elements are
// undefined.
func Sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// unbounded is the largest number that DynamoDB stores.
const unbounded = "99999999999999999999999999999999999999"

// Bound encodes a bound of a BETWEEN. math.MinInt64 and math.MaxInt64 become the ends of DynamoDB's numbers,
// so that a limit without a bound keeps its clause and the text stays a constant.
func Bound(v int64) types.AttributeValue {
	if n, ok := noBound(v); ok {
		return &types.AttributeValueMemberN{Value: n}
	}
	return N(v)
}

// noBound returns the number that DynamoDB is given for v if v stands for no bound.
func noBound(v int64) (string, bool) {
	switch v {
	case math.MinInt64:
		return "-" + unbounded, true
	case math.MaxInt64:
		return unbounded, true
	}
	return "", false
}
