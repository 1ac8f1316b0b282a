// Package codectest has the body of the tests that sluice generates for a resource's DynamoDB code. Not for
// import: generated tests import it.
//
// A generated test is a call with the resource's bucket and its limits.
package codectest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/internal/item"
)

// Bucket is a pointer to the generated bucket of a resource.
type Bucket interface {
	MarshalItem() map[string]types.AttributeValue
	UnmarshalItem(item map[string]types.AttributeValue) error
}

// Test checks the builders and readers of r against an item that this package spells out. kind is the index
// of a kind that has a bucket of r, and b points to a bucket. balances point to those of its limits that the
// kind has, in schema order. Test overwrites the bucket.
func Test(t *testing.T, r codec.Resource, kind int, b Bucket, balances ...*bucket.Balance) {
	t.Helper()
	c := newCase(r, kind, b, balances)
	for _, check := range c.checks() {
		t.Run(check.name, func(t *testing.T) {
			t.Helper()
			if err := errors.Join(check.run()...); err != nil {
				t.Error(err)
			}
		})
	}
}

// Benchmark measures one write of r, and the decoding of one image. kind is as in Test.
func Benchmark(b *testing.B, r codec.Resource, kind int) {
	b.Helper()
	w := sample(r, kind)
	b.Run("Normal", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.Normal(w)
		}
	})
	r.Create(w)
	var i bucket.Image
	for _, reader := range []struct {
		name   string
		decode func(*bucket.Image, codec.Item) error
	}{
		{"Decode", r.Decode},
		{"DecodeBalances", r.DecodeBalances},
	} {
		b.Run(reader.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := reader.decode(&i, w.Item); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// testCase is a resource under test. Its methods return the faults that they find.
type testCase struct {
	codec.Resource
	kind     int
	name     string   // of the resource
	limits   []string // that the kind has, in schema order
	at       []int    // of each of limits, its index in vectors
	shapes   []shape  // of each of limits
	absent   []other  // the other limits of the resource
	bucket   Bucket
	balances []*bucket.Balance // of bucket
}

// other is a limit that the kind does not have.
type other struct {
	name string
	shape
}

func newCase(r codec.Resource, kind int, b Bucket, balances []*bucket.Balance) *testCase {
	spec := r.Spec()
	c := &testCase{Resource: r, kind: kind, name: spec.Resource, bucket: b, balances: balances}
	for i, limit := range spec.Limits {
		if spec.Kinds[kind].Has(i) {
			c.limits, c.at = append(c.limits, limit), append(c.at, i)
			c.shapes = append(c.shapes, shapeOf(spec, spec.Kinds[kind], i))
		} else {
			c.absent = append(c.absent, other{limit, shapeOf(spec, spec.Kinds[kind], i)})
		}
	}
	return c
}

// check is a sub-test.
type check struct {
	name string
	run  func() []error
}

func (c *testCase) checks() []check {
	return []check{
		{"table", c.table},
		{"item", c.item},
		{"malformed", c.malformed},
		{"image", c.image},
		{"other kinds' limits", c.others},
		{"balances", c.decodeBalances},
		{"expressions", c.expressions},
		{"windows", c.windows},
		{"holds", c.holds},
		{"plan", c.plan},
		{"allocations", c.allocations},
	}
}

// table holds the number of attributes against the runtime's table, by which readers tell unknown limits.
func (c *testCase) table() []error {
	var errs []error
	got := c.stored()
	for _, attr := range item.BucketAttributes {
		if got[attr] == nil {
			errs = append(errs, fmt.Errorf("%s is in the runtime's table, and this package does not store it", attr))
		}
	}
	want := len(item.BucketAttributes) + len(item.LimitFields)*len(c.limits)
	if c.onPlans() {
		want++
	}
	for _, s := range c.shapes {
		if s.windowed {
			want++
		}
		if s.held {
			want += len(item.HoldFields)
		}
	}
	if len(got) != want {
		errs = append(errs, fmt.Errorf("a bucket has %d attributes, want %d", len(got), want))
	}
	return errs
}

// item reads the stored item and writes it back: with an attribute of a later version, and without the first
// limit.
func (c *testCase) item() []error {
	var errs []error
	later := c.stored()
	later["later"] = codec.S("of a later version")
	if err := c.bucket.UnmarshalItem(later); err != nil {
		return []error{err}
	}
	for i, limit := range c.limits {
		if want := balance(i, c.shapes[i]); *c.balances[i] != want {
			errs = append(errs, fmt.Errorf("limit %s is read as %+v, want %+v", limit, *c.balances[i], want))
		}
	}
	errs = append(errs, same(c.bucket.MarshalItem(), c.stored())...)

	without := c.stored()
	for _, attr := range c.attributesOf(0) {
		delete(without, attr)
	}
	if err := c.bucket.UnmarshalItem(without); err != nil || *c.balances[0] != (bucket.Balance{}) {
		errs = append(errs, fmt.Errorf("without %s, it is read as %+v", c.limits[0], *c.balances[0]), err)
	}
	return append(errs, same(c.bucket.MarshalItem(), without)...)
}

// named holds the error of a reader against the attribute that it should name.
func named(reader, attr string, err error) []error {
	if e, ok := errors.AsType[*codec.AttributeError](err); ok && e.Attr == attr {
		return nil
	}
	return []error{fmt.Errorf("%s does not name %s, which is malformed", reader, attr), err}
}

// malformed spoils each number, for both readers.
func (c *testCase) malformed() []error {
	attrs := []string{"rf", "cv", "ttl"}
	for n := range c.limits {
		attrs = append(attrs, c.attributesOf(n)...)
	}
	var errs []error
	for _, attr := range attrs {
		spoiled := c.stored()
		spoiled[attr] = codec.Bound(math.MaxInt64) // 38 digits
		errs = append(errs, named("UnmarshalItem", attr, c.bucket.UnmarshalItem(spoiled))...)
		errs = append(errs, named("Decode", attr, c.Decode(new(bucket.Image), spoiled))...)
	}
	return errs
}

// image decodes the item of Create, whole and without its first limit.
func (c *testCase) image() []error {
	w := sample(c, c.kind)
	c.Create(w)
	var i bucket.Image
	if err := c.Decode(&i, w.Item); err != nil || slices.Contains(i.Missing, true) || i.Extra != nil {
		return []error{fmt.Errorf("the item of Create is read as %+v", i), err}
	}
	var errs []error
	if i.Refilled != w.RF || i.Version != w.CV || i.TTL != w.TTL || i.Op != w.Op || i.PlanOf != w.PlanOf {
		errs = append(errs, fmt.Errorf("Create of %+v is read as %+v", w, i))
	}
	for n, b := range i.Balances {
		want := bucket.Balance{Limit: w.Limits[n], Tokens: w.Limits[n].Burst - w.Cost[n], Consumed: w.Cost[n]}
		if w.Ends != nil {
			want.Ends = w.Ends[n]
		}
		if w.Holds != nil {
			want.Cells, want.Epoch = w.Holds[n].Change, w.Holds[n].Epoch
		}
		if b != want {
			errs = append(errs, fmt.Errorf("limit %d was put as %+v, want %+v", n, b, want))
		}
	}
	for _, attr := range c.attributesOf(0) {
		delete(w.Item, attr)
	}
	if err := c.Decode(&i, w.Item); err != nil || !i.Missing[c.at[0]] {
		errs = append(errs, fmt.Errorf("without %s, Create's item is read as %+v", c.limits[0], i), err)
	}
	return errs
}

// others decodes an item that still holds limits which its kind does not have: each is extra, and has no
// balance.
func (c *testCase) others() []error {
	full := c.stored()
	var want []bucket.Named
	for n, limit := range c.absent {
		b := balance(n, limit.shape)
		put(full, limit.name, b, limit.shape)
		want = append(want, bucket.Named{Name: limit.name, Balance: b})
	}
	slices.SortFunc(want, func(a, b bucket.Named) int { return strings.Compare(a.Name, b.Name) })
	i := bucket.Image{ // in whose memory another bucket was read
		Balances: slices.Repeat([]bucket.Balance{balance(9, shape{windowed: true, held: true})},
			len(c.limits)+len(c.absent)),
		Missing: slices.Repeat([]bool{true}, len(c.limits)+len(c.absent)),
	}
	balances := make([]bucket.Balance, len(i.Balances))
	for n, at := range c.at {
		balances[at] = balance(n, c.shapes[n])
	}
	if err := c.Decode(&i, full); err != nil || !slices.Equal(i.Extra, want) ||
		slices.Contains(i.Missing, true) || !slices.Equal(i.Balances, balances) {
		return []error{fmt.Errorf("an item with %v is read as %+v, want these extra", c.absent, i), err}
	}
	return nil
}

// decodeBalances decodes the balances of an item: these alone, and each of them is required.
func (c *testCase) decodeBalances() []error {
	want := make([]bucket.Balance, len(c.limits)+len(c.absent))
	attrs := []string{"rf"}
	for n, limit := range c.limits {
		b := balance(n, c.shapes[n])
		want[c.at[n]] = bucket.Balance{Tokens: b.Tokens, Ends: b.Ends, Cells: b.Cells, Epoch: b.Epoch}
		changing := c.attributesOf(n)[len(item.LimitFields):] // beside the balance, what a charge changes
		attrs = append(append(attrs, item.LimitAttribute(limit, item.LimitFields[0])), changing...)
	}
	var errs []error
	i := bucket.Image{Balances: make([]bucket.Balance, len(want))}
	if err := c.DecodeBalances(&i, c.stored()); err != nil || i.Refilled != 1 || !slices.Equal(i.Balances,
		want) {
		errs = append(errs, fmt.Errorf("the balances are read as %+v, want %+v", i, want), err)
	}
	for _, attr := range attrs {
		less := c.stored()
		delete(less, attr)
		errs = append(errs, named("DecodeBalances", attr, c.DecodeBalances(&i, less))...)
	}
	return errs
}

// builders are the write paths.
func builders(r codec.Resource) []struct {
	name  string
	build func(*codec.Write)
} {
	return []struct {
		name  string
		build func(*codec.Write)
	}{
		{"Create", r.Create},
		{"Normal", r.Normal},
		{"Retry", r.Retry},
		{"Adjust", r.Adjust},
		{"Reshape", r.Reshape},
	}
}

// expressions holds the text of each path against its values. One Write serves all paths, as in a store.
func (c *testCase) expressions() []error {
	var errs []error
	w := sample(c, c.kind)
	for _, p := range builders(c) {
		p.build(w)
		if err := w.Check(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", p.name, err))
		}
	}
	return errs
}

// allocations bounds the allocations of a hot path and of a reader whose Write or image is used again.
func (c *testCase) allocations() []error {
	var errs []error
	most := func(name string, most float64, use func()) {
		if n := testing.AllocsPerRun(100, use); n > most {
			errs = append(errs, fmt.Errorf("%s: %v allocations, want no more than %v", name, n, most))
		}
	}
	w := sample(c, c.kind)
	for _, p := range builders(c)[1:4] { // Create and Reshape are rare
		most(p.name, 1, func() { p.build(w) })
	}
	stored := c.stored()
	var i bucket.Image
	most("Decode", 0, func() { _ = c.Decode(&i, stored) })
	most("DecodeBalances", 0, func() { _ = c.DecodeBalances(&i, stored) })
	return errs
}

// windows holds each path against what it must say of each limit with windows: every update names the window
// of the image, and Normal and Reshape store a window's end.
func (c *testCase) windows() []error {
	var errs []error
	w := sample(c, c.kind)
	for _, p := range builders(c)[1:] { // Create puts the item: see image
		p.build(w)
		for n, limit := range c.limits {
			if !c.shapes[n].windowed {
				continue
			}
			attr := item.LimitAttribute(limit, item.WindowField)
			at := c.at[n]
			guard, set := fmt.Sprintf("%s = :%s_we0", attr, limit), fmt.Sprintf("%s = :%s_we", attr, limit)
			if !names(w.Cond, guard) ||
				text(w.Values[":"+limit+"_we0"]) != text(codec.N(w.Image.Balances[at].Ends)) {
				errs = append(errs, fmt.Errorf("%s does not hold on to the window of %s: want %s", p.name, limit, guard))
			}
			stores := p.name == "Normal" || p.name == "Reshape"
			if stores != names(w.Update, set) ||
				stores && text(w.Values[":"+limit+"_we"]) != text(codec.N(w.Ends[at])) {
				errs = append(errs, fmt.Errorf("%s has another end of %s's window: it is to store one: %v", p.name, limit,
					stores))
			}
		}
	}
	return errs
}

// names reports whether an expression has that clause or action as a whole.
func names(expression, clause string) bool {
	for rest := expression; ; {
		at := strings.Index(rest, clause)
		if at < 0 {
			return false
		}
		before, after := rest[:at], rest[at+len(clause):]
		if (before == "" || strings.ContainsAny(before[at-1:], " \n(")) &&
			(after == "" || strings.ContainsAny(after[:1], " \n,)")) {
			return true
		}
		rest = after
	}
}
