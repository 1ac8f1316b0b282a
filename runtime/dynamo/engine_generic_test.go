package dynamo

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/internal/test/definitions"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/known"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"

	kinds "github.com/sluice-go/sluice/gen/testdata/golden/kinds/out"
	removed "github.com/sluice-go/sluice/gen/testdata/golden/removed/out"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/store"
)

// propertyTB is a test or one of its rapid checks.
type propertyTB interface {
	rapid.TB
	Context() context.Context
}

// written is what became of an item by one write.
type written struct {
	Applied bool
	Item    map[string]string
}

// write sends w to the item at key, and returns what the reply says.
func (e *engine) write(t propertyTB, key codec.Item, w *codec.Write) written {
	t.Helper()
	out, err := e.client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: &e.table, Key: key, UpdateExpression: &w.Update, ConditionExpression: &w.Cond,
		ExpressionAttributeNames: w.Names, ExpressionAttributeValues: w.Values,
		ReturnValues:                        types.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		return written{false, plain(failed.Item)}
	}
	if err != nil {
		t.Fatalf("%v\nupdate %s\ncondition %s\nvalues %v", err, w.Update, w.Cond, plain(w.Values))
	}
	return written{true, plain(out.Attributes)}
}

// evaluate is write by the simulation's evaluator.
func evaluate(item codec.Item, w *codec.Write) written {
	texts := evaluators{}
	if !texts.of(w.Cond, w.Names, w.Values, item).or() {
		return written{false, plain(item)}
	}
	return written{true, plain(texts.of(w.Update, w.Names, w.Values, item).update())}
}

// scene is a bucket as it is, as a process remembers it, and what that wants to write.
type scene struct {
	shape      *plan.Shape
	at         wire.Bucket
	remembered *bucket.Image
	stored     codec.Item
	want       *plan.Demand
	now        int64
}

// bucketOf names a bucket of r.
func bucketOf(r *known.Resource) wire.Bucket {
	kind := slices.IndexFunc(r.Spec.Kinds, func(k store.Kind) bool { return k.Limits != nil })
	var b known.Bucket
	b.Init(r, kind, "user-1")
	return b.At
}

// schemaShape is the shape of a bucket of r's first kind that nothing overrides.
func schemaShape(r *known.Resource) *plan.Shape {
	return &plan.Shape{
		Limits:  r.Spec.Kinds[0].Limits,
		Removed: r.Spec.RemovedOf(0),
		Version: r.Spec.Revision * bucket.RevisionUnit,
	}
}

// drawScene draws a bucket of r in any state, of which a process may remember another one.
func drawScene(t *rapid.T, r *known.Resource) scene {
	shape := schemaShape(r)
	s := scene{shape: shape, at: bucketOf(r)}
	img := &bucket.Image{
		Refilled: t0 + rapid.Int64Range(0, 100_000).Draw(t, "rf"), TTL: t0 / 1000, Op: "before",
		Version: rapid.SampledFrom([]int64{shape.Version, shape.Version, shape.Version - bucket.RevisionUnit,
			shape.Version + bucket.RevisionUnit}).
			Draw(t, "cv"),
		Balances: bucket.Full(shape.Limits), Missing: make([]bool, len(shape.Limits)),
	}
	s.now = img.Refilled + rapid.Int64Range(-1000, 60_000).Draw(t, "elapsed")
	s.want = &plan.Demand{Shape: shape, Called: s.now - rapid.Int64Range(0, 500).Draw(t, "since called")}
	costs := func() []int64 {
		all := make([]int64, len(shape.Limits))
		for i, l := range shape.Limits {
			all[i] = rapid.SampledFrom([]int64{0, 1000, l.Burst / 3, l.Burst}).Draw(t, "cost")
		}
		return all
	}
	settles := rapid.IntRange(0, 2).Draw(t, "settles") // none, beside an acquire, alone
	if settles < 2 {
		s.want.Take = costs()
	}
	if settles > 0 {
		s.want.Change = costs()
		for i := range s.want.Change {
			if rapid.Bool().Draw(t, "back") {
				s.want.Change[i] *= -1
			}
		}
	}
	drifted := *img
	drifted.Balances = bucket.Full(shape.Limits)
	for i, l := range shape.Limits {
		if l.Absent() {
			continue
		}
		b := &img.Balances[i]
		b.Tokens = rapid.Int64Range(-l.Burst/2, l.Burst+l.Burst/4).Draw(t, "tk")
		b.Consumed = rapid.Int64Range(0, 1<<40).Draw(t, "tc")
		b.Burst = rapid.SampledFrom([]int64{l.Burst, 2 * l.Burst, l.Burst / 2}).Draw(t, "bx")
		drifted.Balances[i] = *b
		if rapid.Bool().Draw(t, "drift") {
			drifted.Balances[i].Tokens += rapid.Int64Range(-l.Burst, l.Burst).Draw(t, "by")
		}
	}
	if rapid.IntRange(0, 5).Draw(t, "rf drift") == 0 {
		drifted.Refilled += rapid.Int64Range(0, 10).Draw(t, "rf by")
	}
	if rapid.IntRange(0, 5).Draw(t, "cv drift") == 0 {
		drifted.Version++
	}
	if rapid.IntRange(0, 5).Draw(t, "repeated") == 0 {
		drifted.Op = "this write"
	}
	if rapid.IntRange(0, 3).Draw(t, "incomplete") == 0 {
		img.Missing[s.first()] = true
		img.Balances[s.first()] = bucket.Balance{}
	}
	for _, name := range shape.Removed {
		if rapid.Bool().Draw(t, name) {
			img.Extra = append(
				img.Extra,
				bucket.Named{Name: name, Balance: bucket.Balance{Limit: userRPM, Tokens: 1, Consumed: 2}},
			)
		}
	}
	s.remembered = img
	missing := img.Missing[s.first()]
	if rapid.IntRange(0, 5).Draw(t, "limit drift") == 0 {
		missing = !missing
	}
	s.stored = s.item(&drifted, missing)
	return s
}

// first is the index of the first limit that the bucket's kind has.
func (s *scene) first() int {
	return slices.IndexFunc(s.shape.Limits, func(l bucket.Limit) bool { return !l.Absent() })
}

// item is what holds img, without its first limit if that is missing.
func (s *scene) item(img *bucket.Image, missing bool) codec.Item {
	item := s.at.Generated.Key("user-1")
	item["rf"], item["cv"], item["ttl"], item["op"] = codec.N(
		img.Refilled,
	), codec.N(
		img.Version,
	), codec.N(
		img.TTL,
	), codec.S(
		img.Op,
	)
	put := func(name string, b bucket.Balance) {
		for field, n := range map[string]int64{"tk": b.Tokens, "cp": b.Capacity, "bx": b.Burst, "ra": b.Refill,
			"rp": b.Period, "tc": b.Consumed} {
			item["b_"+name+"_"+field] = codec.N(n)
		}
	}
	for i, b := range img.Balances {
		if (i != s.first() || !missing) && s.at.Spec.Kinds[0].Has(i) {
			put(s.at.Spec.Limits[i], b)
		}
	}
	for _, named := range img.Extra {
		put(named.Name, named.Balance)
	}
	return item
}

// plans returns the writes that the scene may come to, by path; not all could be chosen as things are.
func (s *scene) plans() map[plan.Path]plan.Plan {
	b := plan.BalancesOf(s.remembered)
	f := b.Net(s.want)
	all := map[plan.Path]plan.Plan{}
	if p, ok := plan.NewRetry(s.want, b, f, s.now); ok {
		all[plan.Retry] = p
	}
	if p, ok := plan.NewNormal(s.want, plan.State{Image: s.remembered}, b, f, s.now); ok {
		all[plan.Normal] = p
	}
	taken := make([]int64, len(s.want.Shape.Limits))
	copy(taken, s.want.Take)
	back := &plan.Demand{Change: bucket.Negated(taken), Shape: s.shape}
	if p, ok := plan.NewAdjust(back, s.remembered, s.now); ok && p.Decision == plan.Write {
		all[plan.Adjust] = p
	}
	if p := plan.NewReshape(taken, s.remembered, s.shape, nil, s.now); p.Decision == plan.Write {
		all[plan.Reshape] = p
	}
	return all
}

// comparison writes to copies of one item.
type comparison struct {
	*engine
	resources []*known.Resource
}

func newComparison(t *testing.T) *comparison {
	t.Helper()
	e := newEngine(t)
	next, err := definitions.Of(removed.New)
	if err != nil {
		t.Fatal(err)
	}
	apart, err := definitions.Of(kinds.New) // its first kind has not all limits
	if err != nil {
		t.Fatal(err)
	}
	gpt4, _ := generated(t)
	c := &comparison{engine: e}
	for _, def := range []store.Definition{withNumbers(gpt4, 5, userRPM, userTPM), next[0], apart[0]} {
		r, err := known.NewResource(def, 1)
		if err != nil {
			t.Fatal(err)
		}
		c.resources = append(c.resources, r)
	}
	return c
}

// build builds p by the generated code or from the image.
func (s *scene) build(t propertyTB, p plan.Plan, generic bool) *codec.Write {
	t.Helper()
	p.Generic = generic
	w := &codec.Write{}
	err := s.at.Build(w, &p, "this write")
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// try sends w to a copy of the scene's item.
func (c *comparison) try(t propertyTB, s *scene, w *codec.Write, copied string) written {
	t.Helper()
	item := maps.Clone(s.stored)
	item["PK"] = codec.S(copied)
	if _, err := c.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &c.engine.table,
		Item: item}); err != nil {
		t.Fatal(err)
	}
	got := c.write(t, codec.Item{"PK": item["PK"], "SK": item["SK"]}, w)
	got.Item["PK"] = plain(s.stored)["PK"]
	return got
}

// TestGenericMeansTheSame applies the generated and the generic expressions of each path to copies of one
// item, on the engine: they apply to the same states and leave the same item. The simulation decides both
// alike.
func TestGenericMeansTheSame(t *testing.T) {
	c := newComparison(t)
	type seen struct {
		path    plan.Path
		applied bool
	}
	tally := map[seen]int{}
	for _, r := range c.resources {
		t.Run(r.Spec.Resource, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				s := drawScene(t, r)
				for _, way := range []plan.Path{plan.Retry, plan.Normal, plan.Adjust, plan.Reshape} {
					p, ok := s.plans()[way]
					if !ok || p.Generic { // not to be written, or not by generated text
						continue
					}
					one := c.try(t, &s, s.build(t, p, false), "generated")
					tally[seen{way, one.Applied}]++
					for name, other := range map[string]written{
						"generic on the engine":       c.try(t, &s, s.build(t, p, true), "generic"),
						"generated in the simulation": evaluate(s.stored, s.build(t, p, false)),
						"generic in the simulation":   evaluate(s.stored, s.build(t, p, true)),
					} {
						if diff := cmp.Diff(one, other); diff != "" {
							t.Fatalf("%v: - generated on the engine, + %s\n%s", way, name, diff)
						}
					}
				}
			})
		})
	}
	if testing.Short() { // rapid makes a fifth of its checks then: too few to ask for all
		return
	}
	for _, way := range []plan.Path{plan.Retry, plan.Normal, plan.Adjust, plan.Reshape} {
		if tally[seen{way, true}] == 0 || tally[seen{way, false}] == 0 {
			t.Errorf(
				"%v: %d applied and %d refused, want some of both",
				way,
				tally[seen{way, true}],
				tally[seen{way, false}],
			)
		}
	}
}

// TestComparisonSees leaves a guard, and a millitoken, out of the generic expression: the comparison above
// shows it.
func TestComparisonSees(t *testing.T) {
	c := newComparison(t)
	r := c.resources[0]
	s := scene{
		shape: schemaShape(r), at: bucketOf(r),
		now: t0 + 1000,
	}
	img := &bucket.Image{
		Refilled: t0, Version: s.shape.Version, Op: "before", Missing: make([]bool, 2),
		Balances: []bucket.Balance{{Limit: userRPM, Tokens: 50_000}, {Limit: userTPM, Tokens: 5_000_000}},
	}
	s.want = &plan.Demand{Take: []int64{10_000, 0}, Called: s.now, Shape: s.shape}
	spent := *img
	spent.Balances = slices.Clone(img.Balances)
	spent.Balances[0].Tokens = 5000
	for _, way := range []plan.Path{plan.Retry, plan.Normal, plan.Reshape} {
		s.remembered = img
		p := s.plans()[way]
		s.stored = s.item(img, false)
		off := p
		off.Cost = []int64{p.Cost[0] + 1, 0}
		good := c.try(t, &s, s.build(t, p, false), "generated")
		if !good.Applied || cmp.Equal(good, c.try(t, &s, s.build(t, off, true), "generic")) {
			t.Errorf("%v: a millitoken makes no difference to %+v", way, good)
		}
		s.stored = s.item(&spent, false)
		open := p
		open.Lo, open.Hi = slices.Repeat([]int64{math.MinInt64}, 2), slices.Repeat([]int64{math.MaxInt64}, 2)
		good = c.try(t, &s, s.build(t, p, false), "generated")
		if good.Applied || cmp.Equal(good, c.try(t, &s, s.build(t, open, true), "generic")) {
			t.Errorf("%v: a guard makes no difference to %+v", way, good)
		}
	}
}

// TestDroppedByAnEarlierTry: limits missing when a Wait last tried may be there now.
func TestDroppedByAnEarlierTry(t *testing.T) {
	_, embeddings := generated(t)
	e := newEngine(t)
	def := withNumbers(embeddings, 1, *per(200))
	opened, err := New(
		e.client,
		e.table,
	).Open(&store.Env{Clock: &e.clock, Observer: &store.Observer{}, CacheTTL: e.ttl,
		Answered: func() {}}, def)
	if err != nil {
		t.Fatal(err)
	}
	call := &store.Call{Called: e.clock.Now(), Parts: []store.Part{{
		Def: def, Cost: []int64{bucket.Milli}, Buckets: []store.Bucket{{Entity: "user-1", Dropped: []bool{true}}},
	}}}
	if err := opened.Acquire(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	if dropped := call.Parts[0].Buckets[0].Dropped; dropped != nil {
		t.Errorf("dropped %v, of a bucket that was charged", dropped)
	}
}
