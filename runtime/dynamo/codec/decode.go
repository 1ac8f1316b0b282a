package codec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// Decoder reads attributes of Item and keeps the first mistake, so that generated code reads straight down. A
// Decoder belongs to one goroutine.
type Decoder struct {
	Item Item
	err  error
	seen int // attributes of limits found
}

// AttributeError reports an attribute that is not what a bucket holds there.
type AttributeError struct {
	Attr string // its name
	Got  string // what the item has
	Want string // what belongs there
}

// Error names the attribute, what it holds and what belongs there.
func (e *AttributeError) Error() string {
	return fmt.Sprintf("attribute %s: %s, want %s", store.Quote(e.Attr), e.Got, e.Want)
}

// Err returns the first mistake, an *AttributeError, or nil.
func (d *Decoder) Err() error { return d.err }

// Int reads an integer; 0 after a mistake.
func (d *Decoder) Int(attr string) int64 { return d.integer(attr, d.Item[attr]) }

// integer reads v, which is attr's.
func (d *Decoder) integer(attr string, v types.AttributeValue) int64 {
	const want = "an integer of 64 bits"
	switch v := v.(type) {
	case *types.AttributeValueMemberN:
		n, err := parse(v.Value)
		if err != nil {
			d.fail(attr, strconv.Quote(v.Value), want)
			return 0
		}
		return n
	case nil:
		d.fail(attr, "missing", want)
	default:
		d.fail(attr, kind(v), want)
	}
	return 0
}

// parse is strconv.ParseInt, in less than half the time for numbers of up to 18 digits, which cannot
// overflow. Parsing is a third of what decoding takes.
func parse(s string) (n int64, err error) {
	digits, negative := strings.CutPrefix(s, "-")
	if digits == "" || len(digits) > 18 {
		return strconv.ParseInt(s, 10, 64)
	}
	for i := range len(digits) {
		digit := digits[i] - '0'
		if digit > 9 {
			return strconv.ParseInt(s, 10, 64)
		}
		n = 10*n + int64(digit)
	}
	if negative {
		n = -n
	}
	return n, nil
}

// Text reads a string; empty after a mistake.
func (d *Decoder) Text(attr string) string {
	switch v := d.Item[attr].(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case nil:
		d.fail(attr, "missing", "a string")
	default:
		d.fail(attr, kind(v), "a string")
	}
	return ""
}

// Bool reads a boolean; false after a mistake.
func (d *Decoder) Bool(attr string) bool {
	switch v := d.Item[attr].(type) {
	case *types.AttributeValueMemberBOOL:
		return v.Value
	case nil:
		d.fail(attr, "missing", "a boolean")
	default:
		d.fail(attr, kind(v), "a boolean")
	}
	return false
}

// kind names an attribute's type as DynamoDB does: S, N, BOOL.
func kind(v types.AttributeValue) string {
	return "of type " + strings.TrimPrefix(fmt.Sprintf("%T", v), "*types.AttributeValueMember")
}

// Image reads the attributes of the bucket itself into dst, and makes room for the balances of so many
// limits. It overwrites dst, but keeps the memory of its slices.
func (d *Decoder) Image(dst *bucket.Image, limits int) {
	*dst = bucket.Image{
		Refilled: d.Int("rf"),
		Version:  d.Int("cv"),
		TTL:      d.Int(item.TTL),
		Op:       d.Text("op"),
		Balances: Sized(dst.Balances, limits),
		Missing:  Sized(dst.Missing, limits),
	}
}

// PlanOf reads into dst whose plan the bucket has, for a resource with plans. Call it after Image. A bucket
// from before its resource had plans does not say: that is read as "", which is also that of an entity that
// never was on one.
func (d *Decoder) PlanOf(dst *bucket.Image) {
	if _, ok := d.Item[item.PlanOf]; ok {
		d.seen++
		dst.PlanOf = d.Text(item.PlanOf)
	}
}

// Balance reads the six attributes of one limit into b, and sets missing if the item has none of it. The
// names are given in full (b_rpm_tk), as constants, so that reading allocates nothing.
func (d *Decoder) Balance(b *bucket.Balance, missing *bool, tk, cp, bx, ra, rp, tc string) {
	if d.balance(b, missing, tk, cp, bx, ra, rp, tc) {
		b.Refill = d.Positive(ra)
	}
}

// Window is Balance of a windowed limit, which also has the end of its window.
func (d *Decoder) Window(b *bucket.Balance, missing *bool, tk, cp, bx, ra, rp, tc, we string) {
	if !d.balance(b, missing, tk, cp, bx, ra, rp, tc) {
		return
	}
	d.seen++
	b.Ends = d.atLeast(0, we, "a time in ms")
	if b.Refill = d.Int(ra); b.Refill != 0 {
		d.fail(ra, strconv.FormatInt(b.Refill, 10), "0, as the limit has windows")
	}
}

// InFlight is Balance of an in-flight limit, which counts holds.
func (d *Decoder) InFlight(b *bucket.Balance, missing *bool, tk, cp, bx, ra, rp, tc, h0, h1, e string) {
	if !d.balance(b, missing, tk, cp, bx, ra, rp, tc) {
		return
	}
	if b.Refill = d.Int(ra); !b.Limit.InFlight() {
		d.fail(rp, strconv.FormatInt(b.Period, 10), "1, and 0 in "+ra+", as the limit is of calls in flight")
	}
	d.cells(b, h0, h1, e)
}

// Holds reads the attributes that a windowed limit also has if it counts holds. Call it after Window. An
// item from before may have none of them.
func (d *Decoder) Holds(b *bucket.Balance, missing *bool, h0, h1, e string) {
	for _, attr := range [...]string{h0, h1, e} {
		if _, ok := d.Item[attr]; ok && !*missing {
			d.cells(b, h0, h1, e)
			return
		}
	}
}

// cells reads the attributes that count holds.
func (d *Decoder) cells(b *bucket.Balance, h0, h1, e string) {
	d.seen += len(item.HoldFields)
	b.Cells = [2]int64{d.bounded(h0, d.Int(h0)), d.bounded(h1, d.Int(h1))}
	b.Epoch = d.atLeast(1, e, "the number of a minute")
}

// balance reads what limits with and without windows have in common. It reports whether the item has the
// limit.
func (d *Decoder) balance(b *bucket.Balance, missing *bool, tk, cp, bx, ra, rp, tc string) bool {
	*b, *missing = bucket.Balance{}, false
	tokens, ok := d.Item[tk]
	if !ok {
		*missing = true
		for _, attr := range [...]string{cp, bx, ra, rp, tc} {
			if _, ok := d.Item[attr]; ok { // half a limit: no limit was removed like this
				d.fail(tk, "missing", "an integer, since the item has "+attr)
				break
			}
		}
		return false
	}
	d.seen += len(item.LimitFields)
	b.Tokens, b.Consumed = d.bounded(tk, d.integer(tk, tokens)), d.bounded(tc, d.Int(tc))
	const whole = "a number that is not negative"
	b.Period = d.Positive(rp)
	b.Capacity = d.atLeast(0, cp, whole) // a closed limit has capacity 0
	if b.Prepaid() {                     // only grants may fill it
		b.Burst = d.atLeast(0, bx, whole)
	} else {
		b.Burst = d.Positive(bx)
	}
	return true
}

// Bounds of tokens and of what was consumed. Both keep 2*10^17 from the bounds of 64 bits, twice the largest
// cost of money, and some 200 times that of tokens. At a bound of 64 bits a guard would stand for no bound,
// so no write would pass it, and a sum would not fit (docs/design.md, "Arithmetic").
const (
	mostStored  = 9_000_000_000_000_000_000
	leastStored = -mostStored
)

// bounded returns n, the value of attr. It is a mistake if n is not within bounds.
func (d *Decoder) bounded(attr string, n int64) int64 {
	if (n < leastStored || n > mostStored) && d.err == nil {
		d.fail(attr, strconv.FormatInt(n, 10), "a number from -9*10^18 to 9*10^18")
	}
	return n
}

// Positive reads an integer above 0; undefined after a mistake.
func (d *Decoder) Positive(attr string) int64 { return d.atLeast(1, attr, "a positive number") }

func (d *Decoder) atLeast(least int64, attr, want string) int64 {
	n := d.Int(attr)
	if n < least && d.err == nil {
		d.fail(attr, strconv.FormatInt(n, 10), want)
	}
	return n
}

// DecodeBucket decodes a bucket's item without a schema: its limits are Extra. The error is an
// *AttributeError.
func DecodeBucket(stored Item) (*bucket.Image, error) {
	d := Decoder{Item: stored}
	img := &bucket.Image{
		Refilled: d.Int("rf"), Version: d.Int("cv"), TTL: d.Int(item.TTL), Op: d.Text("op"), Extra: d.Extra(),
	}
	d.PlanOf(img)
	return img, d.Err()
}

// Extra returns the limits of the item that known does not name, sorted by name. The usual item has none,
// which its number of attributes tells; only a longer one is searched. An attribute that no limit can have is
// a mistake. Call it after Balance.
func (d *Decoder) Extra(known ...string) []bucket.Named {
	if len(d.Item) <= len(item.BucketAttributes)+d.seen {
		return nil
	}
	var extra []bucket.Named
	for attr := range d.Item {
		name, ok := item.LimitOf(attr, "tk")
		if !ok || slices.Contains(known, name) {
			continue
		}
		if !item.IsLimitName(name) {
			d.fail(attr, "of no limit", notOfALimit)
			return nil
		}
		var missing bool
		named := bucket.Named{Name: name}
		of := func(field string) string { return item.LimitAttribute(name, field) }
		_, windowed := d.Item[of(item.WindowField)]
		_, holds := d.Item[of(item.EpochField)]
		switch {
		case windowed:
			d.Window(&named.Balance, &missing,
				of("tk"), of("cp"), of("bx"), of("ra"), of("rp"), of("tc"), of(item.WindowField))
			d.Holds(&named.Balance, &missing, of("h0"), of("h1"), of(item.EpochField))
		case holds:
			d.InFlight(&named.Balance, &missing,
				of("tk"), of("cp"), of("bx"), of("ra"), of("rp"), of("tc"), of("h0"), of("h1"), of(item.EpochField))
		default:
			d.Balance(&named.Balance, &missing, of("tk"), of("cp"), of("bx"), of("ra"), of("rp"), of("tc"))
		}
		extra = append(extra, named)
	}
	slices.SortFunc(extra, func(a, b bucket.Named) int { return strings.Compare(a.Name, b.Name) })
	return extra
}

func (d *Decoder) fail(attr, got, want string) {
	if d.err == nil {
		d.err = &AttributeError{Attr: attr, Got: got, Want: want}
	}
}
