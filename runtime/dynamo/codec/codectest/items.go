package codectest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// shape is what a limit stores beside its six numbers.
type shape struct{ windowed, inFlight, held bool }

// shapeOf returns the shape of the i-th limit, also if k does not have it.
func shapeOf(spec *store.Spec, k store.Kind, i int) shape {
	if k.Has(i) {
		return shape{k.Limits[i].Windowed(), k.Limits[i].InFlight(), spec.Held != nil && spec.Held[i]}
	}
	windowed, held := k.Windows != nil && k.Windows[i] != nil, spec.Held != nil && spec.Held[i]
	return shape{windowed, held && !windowed, held}
}

// attributes of a limit, in the order of the runtime's table. The end of the window comes after the six, and
// what counts holds comes last.
func attributes(limit string, s shape) []string {
	var names []string
	add := func(field string) { names = append(names, item.LimitAttribute(limit, field)) }
	for _, field := range item.LimitFields {
		add(field)
	}
	if s.windowed {
		add(item.WindowField)
	}
	if s.held {
		for _, field := range item.HoldFields {
			add(field)
		}
	}
	return names
}

// attributesOf are those of the n-th of the kind's limits.
func (c *testCase) attributesOf(n int) []string { return attributes(c.limits[n], c.shapes[n]) }

// balance is the one that stored has for limit i. All its numbers differ, and differ from those of other
// limits; a limit with windows, or in flight, refills nothing, and the period of one in flight is fixed.
func balance(i int, s shape) bucket.Balance {
	n := 20 * int64(i+1)
	b := bucket.Balance{
		Limit:    bucket.Limit{Capacity: n, Burst: n + 1, Refill: n + 2, Period: n + 3},
		Tokens:   -n,
		Consumed: n + 4,
	}
	if s.windowed {
		b.Refill, b.Ends = 0, n+5
	}
	if s.inFlight {
		b.Limit = bucket.InFlight(n)
	}
	if s.held {
		b.Cells, b.Epoch = [2]int64{n + 6, n + 7}, n+8
	}
	return b
}

// stored is the item of a bucket, by the runtime's table of attributes: generated code has a table of its
// own.
func (c *testCase) stored() codec.Item {
	entity := c.Spec().Kinds[c.kind].Prefix + "1"
	values := item.BucketIdentity(entity, c.name)
	maps.Copy(values, codec.Item{
		"rf": codec.N(1), "cv": codec.N(2), "op": codec.S("op"), item.TTL: codec.N(3),
	})
	if c.onPlans() {
		values[item.PlanOf] = codec.S(planOf)
	}
	for i, limit := range c.limits {
		put(values, limit, balance(i, c.shapes[i]), c.shapes[i])
	}
	return values
}

// put stores a limit's balance in an item.
func put(into codec.Item, limit string, b bucket.Balance, s shape) {
	numbers := []int64{b.Tokens, b.Capacity, b.Burst, b.Refill, b.Period, b.Consumed}
	if s.windowed {
		numbers = append(numbers, b.Ends)
	}
	if s.held {
		numbers = append(numbers, b.Cells[0], b.Cells[1], b.Epoch)
	}
	for k, attr := range attributes(limit, s) {
		into[attr] = codec.N(numbers[k])
	}
}

// same compares two items.
func same(got, want codec.Item) []error {
	var errs []error
	for attr, value := range want {
		if text(got[attr]) != text(value) {
			errs = append(errs, fmt.Errorf("%s is %s, want %s", attr, text(got[attr]), text(value)))
		}
	}
	for _, attr := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[attr]; !ok {
			errs = append(errs, fmt.Errorf("%s is %s, want none", attr, text(got[attr])))
		}
	}
	return errs
}

// text shows a value with its type.
func text(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return "S " + v.Value
	case *types.AttributeValueMemberN:
		return "N " + v.Value
	}
	return fmt.Sprintf("%T", v)
}

// sample returns a write that every path can build. Its vectors differ from limit to limit.
func sample(r codec.Resource, kind int) *codec.Write {
	spec := r.Spec()
	k := spec.Kinds[kind]
	w := &codec.Write{
		Entity: k.Prefix + "1",
		Image:  &bucket.Image{Refilled: 1, Version: 2},
		Limits: k.Limits,
		RF:     1, CV: 2, TTL: 3, Op: "op",
	}
	w.Image.Balances = make([]bucket.Balance, len(k.Limits))
	if spec.Plans != nil {
		w.PlanOf = planOf
	}
	if k.Windows != nil {
		w.Ends = make([]int64, len(k.Limits))
	}
	if spec.HasHolds(kind) {
		w.Holds = make([]bucket.Hold, len(k.Limits))
	}
	for i := range k.Limits {
		if k.Has(i) && spec.Held != nil && spec.Held[i] {
			w.Holds[i], w.Image.Balances[i].Epoch = hold(int64(i)), int64(i)+10
		}
		if k.Limits[i].Windowed() {
			w.Ends[i], w.Image.Balances[i].Ends = int64(i)+5, int64(i)+6
		}
		n := int64(i)
		if !k.Has(i) {
			n = 0
		}
		w.Cost, w.Fill = append(w.Cost, n), append(w.Fill, n+1)
		w.Lo, w.Hi = append(w.Lo, n), append(w.Hi, n+1)
	}
	return w
}

// hold is what sample does to the cells of a limit. All its numbers differ.
func hold(n int64) bucket.Hold {
	return bucket.Hold{
		Change: [2]int64{n + 20, n + 30}, Lo: [2]int64{n + 40, n + 50}, Hi: [2]int64{n + 60, n + 70},
		First: n + 80, Last: n + 90, Epoch: n + 100,
	}
}

// holds compares each path with what it must say of each limit that counts holds: every update moves tokens
// between cells, and names the epochs that they are of. Normal and Reshape store the lowest epoch that is
// counted from then on.
func (c *testCase) holds() []error {
	var errs []error
	w := sample(c, c.kind)
	for _, p := range builders(c)[1:] { // Create puts the item: see image
		p.build(w)
		cond, update := unbroken(w.Cond), unbroken(w.Update)
		for n, limit := range c.limits {
			if !c.shapes[n].held {
				continue
			}
			at := c.at[n]
			h, want := w.Holds[at], required(p.name, limit)
			for _, clause := range want.clauses {
				if !names(cond, clause) {
					errs = append(errs, fmt.Errorf("%s does not hold on to what %s counts: want %s", p.name, limit, clause))
				}
			}
			for _, action := range want.actions {
				if !names(update, action) {
					errs = append(errs, fmt.Errorf("%s does not count what it takes of %s: want %s", p.name, limit, action))
				}
			}
			if set := fmt.Sprintf("b_%s_e = :%s_e", limit, limit); want.sweeps != names(update, set) {
				errs = append(errs, fmt.Errorf("%s is to store the epoch of %s: %v", p.name, limit, want.sweeps))
			}
			for suffix, v := range want.values(h, w.Image.Balances[at].Epoch, w.Fill[at]-w.Cost[at]) {
				placeholder := ":" + limit + "_" + suffix
				if got := text(w.Values[placeholder]); got != text(codec.N(v)) {
					errs = append(errs, fmt.Errorf("%s gives %s %s, want %d", p.name, placeholder, got, v))
				}
			}
		}
	}
	return errs
}

// unbroken returns an expression on one line.
func unbroken(expression string) string { return strings.Join(strings.Fields(expression), " ") }

// requirement is what a path must say of a limit that counts holds.
type requirement struct {
	clauses, actions []string
	sweeps           bool // it stores the lowest epoch that is counted
	bounds           bool // it has bounds of the cells
}

// required returns the requirement of a path for a limit.
func required(path, limit string) requirement {
	of := func(text string) string { return strings.ReplaceAll(text, "<limit>", limit) }
	r := requirement{actions: []string{of("b_<limit>_h0 :<limit>_d0"), of("b_<limit>_h1 :<limit>_d1")}}
	switch path {
	case "Normal":
		r.sweeps, r.bounds = true, true
		r.clauses = []string{
			of("b_<limit>_e = :<limit>_e0"),
			of("b_<limit>_h0 BETWEEN :<limit>_h0lo AND :<limit>_h0hi"),
			of("b_<limit>_h1 BETWEEN :<limit>_h1lo AND :<limit>_h1hi"),
		}
	case "Reshape":
		r.sweeps = true
		r.clauses = []string{of("(attribute_not_exists(b_<limit>_e) OR b_<limit>_e = :<limit>_e0)")}
	default:
		r.clauses = []string{of("b_<limit>_e BETWEEN :<limit>_e0 AND :<limit>_e1")}
	}
	return r
}

// values returns the values of a limit's placeholders, by suffix. seen is the epoch of the image, and net is
// what the balance changes by.
func (r requirement) values(h bucket.Hold, seen, net int64) map[string]int64 {
	values := map[string]int64{"net": net, "d0": h.Change[0], "d1": h.Change[1], "e0": h.First, "e1": h.Last}
	if r.sweeps {
		delete(values, "e1")
		values["e"], values["e0"] = h.Epoch, seen
	}
	if r.bounds {
		values["h0lo"], values["h0hi"] = h.Lo[0], h.Hi[0]
		values["h1lo"], values["h1hi"] = h.Lo[1], h.Hi[1]
	}
	return values
}

// planOf is the entity whose plan a bucket has, in samples of resources with plans.
const planOf = "org-1"

// onPlans reports whether the resource has plans.
func (c *testCase) onPlans() bool { return c.Spec().Plans != nil }

// plan holds each path against what it says of whose plan the bucket has: Create and Reshape of a resource
// with plans store it, and nothing else names it. A reader takes an item from before for one of no plan.
func (c *testCase) plan() []error {
	var errs []error
	w := sample(c, c.kind)
	for _, p := range builders(c) {
		p.build(w)
		stores := c.onPlans() && (p.name == "Create" || p.name == "Reshape")
		value, set := w.Item[item.PlanOf], p.name == "Create"
		if p.name != "Create" {
			value, set = w.Values[":"+item.PlanOf], names(w.Update, item.PlanOf+" = :"+item.PlanOf)
		}
		if stores != (value != nil) || stores && (!set || text(value) != text(codec.S(planOf))) {
			errs = append(errs, fmt.Errorf("%s stores another po: it is to store one: %v", p.name, stores))
		}
	}
	if !c.onPlans() {
		return errs
	}
	before, malformed := c.stored(), c.stored()
	delete(before, item.PlanOf)
	i := bucket.Image{PlanOf: "org-2"}
	if err := c.Decode(&i, before); err != nil || i.PlanOf != "" || i.Extra != nil {
		errs = append(errs, fmt.Errorf("without po, a bucket is read as %+v", i), err)
	}
	if err := c.Decode(&i, c.stored()); err != nil || i.PlanOf != planOf {
		errs = append(errs, fmt.Errorf("po is read as %q, want %q", i.PlanOf, planOf), err)
	}
	malformed[item.PlanOf] = codec.N(1)
	return append(errs, named("Decode", item.PlanOf, c.Decode(&i, malformed))...)
}
