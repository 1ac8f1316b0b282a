// Package codec is the seam between generated code and the DynamoDB store: what a generated resource offers
// the store. Not for import: generated code and readers of the table's stream import it.
//
// It knows item types only, no client, so that generated packages stay small to compile.
package codec

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// Item is a DynamoDB item.
type Item = map[string]types.AttributeValue

// Resource is what a generated resource implements when limits.yaml lists store dynamodb. Each builder fills
// in the output fields of w for one write path (docs/design.md, "Write paths" and "Guards").
type Resource interface {
	store.Definition
	// Key returns the primary key of entity's bucket.
	Key(entity string) Item
	// Decode reads a bucket's item into dst, whose fields it overwrites. Limits missing in the item are marked
	// Missing; limits missing in the schema become Extra. A malformed attribute is an error that names it.
	// Slices of dst that are long enough are written to: dst must not share them with an image that is read.
	Decode(dst *bucket.Image, item Item) error
	// DecodeBalances reads rf, and the tokens and the window of each limit, into dst, an image that Decode
	// filled. It leaves other fields as they are: the write's condition held cv, so the parameters did not
	// change, and the caller sets Op, TTL and Consumed. A missing limit is an error that names its attribute.
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

// ByKind is what a generated resource implements instead of Resource if its kinds differ in their limits.
type ByKind interface {
	store.Definition
	// Of returns the Resource for buckets of a kind, by its index in Spec.Kinds; nil if the kind has none. Its
	// vectors have all limits. Its text has those of the kind alone: others are 0 in an image, and Extra in one
	// of an item that holds them from before.
	Of(kind int) Resource
}

// For returns the Resource of def for buckets of a kind. ok is false if def was not generated for DynamoDB,
// or if it is a ByKind and the kind has no bucket.
func For(def store.Definition, kind int) (r Resource, ok bool) {
	if by, is := def.(ByKind); is {
		r = by.Of(kind)
		return r, r != nil
	}
	r, ok = def.(Resource)
	return r, ok
}

// S encodes a string.
func S(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }

// N encodes an integer.
func N(v int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(v, 10)}
}

// Key returns the primary key of the bucket of an entity, as stored, on a resource. It is not inlined, since
// generated code would have a copy for each resource.
//
//go:noinline
func Key(entity, resource string) Item { return item.BucketKey(entity, resource) }

// Marshal returns a bucket as it is stored: img of an entity on a resource. limits names img's balances by
// index; "" is a limit that buckets of the entity's kind do not have. Balances that are zero are left out.
func Marshal(entity, resource string, img *bucket.Image, limits ...string) Item {
	stored := item.BucketIdentity(entity, resource)
	stored["rf"], stored["cv"] = N(img.Refilled), N(img.Version)
	stored["op"], stored["ttl"] = S(img.Op), N(img.TTL)
	for i, name := range limits {
		if name != "" {
			of := func(field string) string { return item.LimitAttribute(name, field) }
			PutBalance(stored, &img.Balances[i], of("tk"), of("cp"), of("bx"), of("ra"), of("rp"), of("tc"))
			if img.Balances[i].Windowed() {
				stored[of(item.WindowField)] = N(img.Balances[i].Ends)
			}
			if b := &img.Balances[i]; b.Holds() {
				for k, n := range [...]int64{b.Cells[0], b.Cells[1], b.Epoch} {
					stored[of(item.HoldFields[k])] = N(n)
				}
			}
		}
	}
	return stored
}

// MarshalOnPlan is Marshal for a resource with plans, whose buckets record whose plan they have.
func MarshalOnPlan(entity, resource string, img *bucket.Image, limits ...string) Item {
	stored := Marshal(entity, resource, img, limits...)
	stored[item.PlanOf] = S(img.PlanOf)
	return stored
}

// PutBalance puts the six attributes of one limit into item, as Decoder.Balance reads them. A limit that its
// item did not have is left out; one that is closed, of capacity 0, is not.
func PutBalance(item Item, b *bucket.Balance, tk, cp, bx, ra, rp, tc string) {
	if b.Absent() {
		return
	}
	item[tk], item[tc] = N(b.Tokens), N(b.Consumed)
	item[cp], item[bx] = N(b.Capacity), N(b.Burst)
	item[ra], item[rp] = N(b.Refill), N(b.Period)
}

// notOfALimit says which attributes are a limit's.
const notOfALimit = "a name such as b_rpm_tk, with a-z, 0-9 and _"

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

// Write carries one write of one bucket: the store puts numbers in, a generated builder puts text and values
// in. All vectors are in schema order, in millitokens. The store owns it; a builder keeps nothing of it.
//
// A Write is used again, for any bucket of any resource: the maps, and what their values point to, are then
// those of the write before. So they are the reader's until the next use only, and a Write is not copied.
type Write struct {
	Entity string // as stored: user-123
	// Resource is what Create stores for a name of a template; "" for the generated resource.
	Resource string
	Image    *bucket.Image  // what the condition was computed from; nil for Create and Adjust
	Limits   []bucket.Limit // parameters to store, for Create and Reshape
	Cost     []int64        // what is taken; negative for what is given back
	Fill     []int64        // refill claimed, for Normal and Reshape
	Lo, Hi   []int64        // bounds of each balance; math.MinInt64 and math.MaxInt64 stand for none
	Ends     []int64        // ends of windows to store, ms; 0 for a limit without windows; nil if none has any
	Holds    []bucket.Hold  // what is done to cells; the zero Hold for a limit without; nil if none has any
	RF       int64          // rf to store, ms
	CV       int64          // cv to store, for Create and Reshape
	TTL      int64          // ttl to store, s
	PlanOf   string         // po to store, for Create and Reshape of a resource with plans
	Op       string         // id of this write

	Key          Item // set by SetKey; builders leave it alone
	Item         Item // Create's item
	Update, Cond string
	Names        map[string]string
	Values       Item // entries are replaced by N, S and Bound only

	hash, sort types.AttributeValueMemberS // what Key holds
	operands   []*operand                  // in the order in which they were given
	given      int                         // how many of them this update has
	digits     []byte                      // of all numbers
}

// operand is an entry of Values: a text or a number.
type operand struct {
	name   string // "" for one that is not in Values
	text   types.AttributeValueMemberS
	number types.AttributeValueMemberN
	end    int // of its digits, which start where those of the operand before end
}

// SetKey makes Key the primary key of hash and sort.
func (w *Write) SetKey(hash, sort string) {
	if w.Key == nil {
		w.Key = Item{item.PK: &w.hash, item.SK: &w.sort}
	}
	w.hash.Value, w.sort.Value = hash, sort
}

// Begin starts an update: it sets Update and Cond to its text, Names to what all updates name, and clears
// Item. N, S and Bound follow, for each placeholder of the text, and End.
//
// An update of the same text has the same placeholders. Their entries are then in Values already, and only
// the values they hold are set anew: filling the map would be most of the work.
func (w *Write) Begin(update, cond string) {
	w.Item = nil
	if w.Update != update || w.Cond != cond || len(w.Values) != w.given {
		empty(w)
	}
	w.Update, w.Cond = update, cond
	w.given, w.digits = 0, w.digits[:0]
}

// empty empties w's maps, except for what all updates name.
func empty(w *Write) {
	if w.Names == nil {
		w.Names = make(map[string]string, 1)
	}
	clear(w.Names)
	w.Names["#ttl"] = "ttl" // a reserved word
	if w.Values == nil {
		w.Values = make(Item, 5+4*len(w.Cost)) // what Normal has, the most common update
	}
	clear(w.Values)
	for _, o := range w.operands {
		o.name = ""
	}
}

// N gives a placeholder an integer.
func (w *Write) N(name string, v int64) {
	w.digits = strconv.AppendInt(w.digits, v, 10)
	number(w, name)
}

// Bound gives a placeholder a bound of a BETWEEN, as the function Bound encodes it.
func (w *Write) Bound(name string, v int64) {
	if n, ok := noBound(v); ok {
		number(w, name).number.Value = n
		return
	}
	w.N(name, v)
}

// S gives a placeholder a string.
func (w *Write) S(name, v string) {
	o := next(w)
	o.text.Value = v
	if o.name != name {
		o.name, w.Values[name] = name, &o.text
	}
}

// End ends an update: the digits of all numbers become one string, the one allocation of a build.
func (w *Write) End() {
	digits, start := string(w.digits), 0
	for _, o := range w.operands[:w.given] {
		if start < o.end { // else a text, or no bound
			o.number.Value = digits[start:o.end]
			start = o.end
		}
	}
}

// number gives a placeholder a number, whose digits End fills in.
func number(w *Write, name string) *operand {
	o := next(w)
	if o.name != name {
		o.name, w.Values[name] = name, &o.number
	}
	return o
}

// next returns an operand to fill in.
func next(w *Write) *operand {
	if w.given == len(w.operands) {
		w.operands = append(w.operands, new(operand))
	}
	o := w.operands[w.given]
	o.end = len(w.digits)
	w.given++
	return o
}

// maxExpression is the longest expression that DynamoDB takes, in bytes.
const maxExpression = 4096

// Check compares the expressions of a builder with its names and values, for the tests of generated code. No
// expression may be longer than DynamoDB takes. Every placeholder needs a name or a value, and every name
// and value a placeholder. It returns the first mistake.
func (w *Write) Check() error {
	if n := max(len(w.Update), len(w.Cond)); n > maxExpression {
		return fmt.Errorf("an expression of %d bytes, more than DynamoDB's %d", n, maxExpression)
	}
	const letters = ":#_abcdefghijklmnopqrstuvwxyz0123456789"
	used := strings.FieldsFunc(w.Update+" "+w.Cond, func(c rune) bool {
		return !strings.ContainsRune(letters, c)
	})
	for _, word := range used {
		_, named := w.Names[word]
		_, valued := w.Values[word]
		if strings.ContainsAny(word, ":#") && !named && !valued {
			return fmt.Errorf("%s is used and not given", word)
		}
	}
	given := slices.Concat(slices.Collect(maps.Keys(w.Names)), slices.Collect(maps.Keys(w.Values)))
	slices.Sort(given)
	for _, word := range given {
		if !slices.Contains(used, word) {
			return fmt.Errorf("%s is given and not used", word)
		}
	}
	return nil
}
