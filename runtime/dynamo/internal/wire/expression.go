package wire

import (
	"fmt"
	"math"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// ResourcesOf returns the code of def for buckets of each kind, the zero Resource for one without bucket. It
// fails with a *store.SetupError if def was not generated for DynamoDB.
func ResourcesOf(def store.Definition) ([]Resource, error) {
	spec := def.Spec()
	all := make([]Resource, len(spec.Kinds))
	for kind := range spec.Kinds {
		if spec.Kinds[kind].Limits == nil {
			continue
		}
		generated, ok := codec.For(def, kind)
		if !ok {
			return all, &store.SetupError{
				What: fmt.Sprintf("resource %s was not generated for DynamoDB", spec.Resource),
				Do:   "add `stores: [dynamodb]` to limits.yaml and run `sluice generate`",
			}
		}
		all[kind] = Resource{
			Generated: generated, Spec: spec, Kind: kind, SortKey: item.KeyOf(generated.Key("")).SK,
		}
	}
	return all, nil
}

// Named returns r for the buckets of a name, whose Spec is spec. The template has generated the text.
func (r Resource) Named(spec *store.Spec) Resource {
	r.Spec, r.Name = spec, spec.ResourceOf(r.Kind)
	r.SortKey = item.BucketPrefix + r.Name
	return r
}

// imageWithTwo is an image with room for the balances of two limits, in one allocation.
type imageWithTwo struct {
	bucket.Image

	balances [2]bucket.Balance
}

// imageOf decodes the item that a write left or was refused by. An applied Normal or Retry leaves the shape
// that its plan was made for, so only the balances are decoded.
func (b *Bucket) imageOf(o Outcome, a *Attempt, stored codec.Item) (*bucket.Image, error) {
	p := a.Plan
	plain := p.Path == plan.Normal || p.Path == plan.Retry
	if o != Applied || p.Generic || !plain || len(p.Image.Extra) > 0 {
		return b.Decode(stored)
	}
	next := &imageWithTwo{Image: *p.Image}
	img := &next.Image
	img.TTL, img.Op = p.TTL, a.Op
	img.Balances = append(next.balances[:0], p.Image.Balances...)
	for i := range img.Balances {
		img.Balances[i].Consumed = bucket.Add(img.Balances[i].Consumed, p.Cost[i])
	}
	if err := b.Generated.DecodeBalances(img, stored); err != nil {
		return nil, Malformed(b.Entity, b.Spec.Resource, err)
	}
	return img, nil
}

// Build writes p as expressions and values into w: with the generated text, or with the generic one if the
// bucket has other limits than the generated text names.
func (b *Bucket) Build(w *codec.Write, p *plan.Plan, op string) error {
	w.Entity, w.Resource, w.Image, w.Limits = b.Entity, b.Name, p.Image, p.Limits
	w.Cost, w.Fill, w.Lo, w.Hi, w.Ends, w.Holds = p.Cost, p.Fill, p.Lo, p.Hi, p.Ends, p.Holds
	w.RF, w.CV, w.TTL, w.Op, w.PlanOf = p.Refilled, p.Version, p.TTL, op, p.PlanOf
	switch {
	case p.Generic:
		return buildGeneric(w, p, b.Spec)
	case p.Path == plan.Create:
		b.Generated.Create(w)
	case p.Path == plan.Normal:
		b.Generated.Normal(w)
	case p.Path == plan.Retry:
		b.Generated.Retry(w)
	case p.Path == plan.Adjust:
		b.Generated.Adjust(w)
		if p.Reverses != "" { // a charge of unknown outcome is given back only while it is the last write
			w.Cond += " AND op = :undo AND #ttl = :undone"
			w.S(":undo", p.Reverses)
			w.N(":undone", p.ReversesTTL)
			w.End()
		}
	case p.Path == plan.Reshape:
		b.Generated.Reshape(w)
		if b.Spec.Plans != nil {
			w.Cond += " AND (attribute_not_exists(po) OR po = :po0)"
			w.S(":po0", p.Image.PlanOf)
		}
	}
	if p.After != "" {
		w.Cond += " AND op = :op0"
		w.S(":op0", p.After)
	}
	return nil
}

// Reshape returns the write of p, a Reshape of an entity's bucket of a kind, for callers without generated
// code.
func Reshape(
	table string, spec *store.Spec, kind int, entity string, p *plan.Plan,
) (*dynamodb.UpdateItemInput, error) {
	w := &codec.Write{
		Entity: entity, Image: p.Image, Limits: p.Limits, Cost: p.Cost, Fill: p.Fill, Lo: p.Lo, Hi: p.Hi,
		Ends: p.Ends, Holds: p.Holds, RF: p.Refilled, CV: p.Version, TTL: p.TTL, Op: NewOp(),
		PlanOf: p.PlanOf,
	}
	if err := buildGeneric(w, p, spec); err != nil {
		return nil, err
	}
	return &dynamodb.UpdateItemInput{
		TableName: &table, Key: item.BucketKey(entity, spec.ResourceOf(kind)), UpdateExpression: &w.Update,
		ConditionExpression: &w.Cond, ExpressionAttributeNames: w.Names, ExpressionAttributeValues: w.Values,
	}, nil
}

// buildGeneric builds p from the image, for a bucket with other limits than the generated text names. This
// binary is older or newer than the one that gave the bucket its shape. The paths mean the same
// (docs/design.md, "Overrides and cv").
func buildGeneric(w *codec.Write, p *plan.Plan, spec *store.Spec) error {
	g := genericBuilder{write: w, plan: p}
	g.update = expression.Set(expression.Name("op"), expression.Value(w.Op)).
		Set(expression.Name(item.TTL), expression.Value(w.TTL))
	g.condition = expression.Name("op").NotEqual(expression.Value(w.Op))
	if p.Path != plan.Adjust {
		g.condition = g.condition.And(expression.Name("cv").Equal(expression.Value(p.Image.Version)))
	}
	if p.Path == plan.Normal || p.Path == plan.Reshape {
		g.update = g.update.Set(expression.Name("rf"), expression.Value(w.RF))
		g.condition = g.condition.And(expression.Name("rf").Equal(expression.Value(p.Image.Refilled)))
	}
	if p.Path == plan.Reshape {
		g.update = g.update.Set(expression.Name("cv"), expression.Value(w.CV))
		g.reshapePlan(spec)
	}
	for i, limit := range limitsOf(spec, p.Image) {
		unknown := i >= len(spec.Limits)
		switch {
		case p.Path == plan.Reshape && unknown:
			g.remove(limit, i)
		case p.Path == plan.Reshape && !w.Limits[i].Absent():
			g.reshape(limit, i)
		case unknown && p.Path != plan.Normal: // no refill to claim for it
			if p.DebtGuarded {
				g.guard(limit, i)
			}
			g.guardWindow(limit, i)
		case p.Path != plan.Reshape && (unknown || !p.Image.Balances[i].Absent()):
			g.addTo(limit, i)
		}
	}
	if p.Reverses != "" { // as in Build
		g.condition = expression.Name("op").Equal(expression.Value(p.Reverses)).
			And(expression.Name(item.TTL).Equal(expression.Value(p.ReversesTTL)))
	}
	if p.After != "" {
		g.condition = g.condition.And(expression.Name("op").Equal(expression.Value(p.After)))
	}
	built, err := expression.NewBuilder().WithUpdate(g.update).WithCondition(g.condition).Build()
	if err != nil {
		return fmt.Errorf("expression for %s: %w", spec.Resource, err)
	}
	w.Update, w.Cond, w.Names, w.Values = *built.Update(), *built.Condition(), built.Names(), built.Values()
	return nil
}

// genericBuilder collects the clauses of one generic write, limit by limit.
type genericBuilder struct {
	write     *codec.Write
	plan      *plan.Plan
	update    expression.UpdateBuilder
	condition expression.ConditionBuilder
}

// addTo adds the i-th limit of a Normal, Retry or Adjust.
func (g *genericBuilder) addTo(limit string, i int) {
	p, tk := g.plan, attribute(limit, "tk")
	g.update = g.update.Add(tk, expression.Value(bucket.Sub(p.Fill[i], p.Cost[i]))).
		Add(attribute(limit, "tc"), expression.Value(p.Cost[i]))
	if windowed := g.guardWindow(limit, i); windowed && p.Path == plan.Normal {
		g.update = g.update.Set(attribute(limit, item.WindowField), expression.Value(p.Ends[i]))
	}
	g.hold(limit, i)
	if p.Path == plan.Adjust {
		g.condition = g.condition.And(tk.AttributeExists())
		return
	}
	g.guard(limit, i)
}

// hold does to the i-th limit's cells what a Normal, Retry or Adjust does.
func (g *genericBuilder) hold(limit string, i int) {
	if i >= len(g.plan.Holds) || g.plan.Holds[i].Epoch == 0 {
		return
	}
	h, lowest := &g.plan.Holds[i], attribute(limit, item.EpochField)
	for k, n := range h.Change {
		cell := attribute(limit, item.HoldFields[k])
		g.update = g.update.Add(cell, expression.Value(n))
		if g.plan.Path == plan.Normal {
			g.condition = g.condition.And(cell.Between(bound(h.Lo[k]), bound(h.Hi[k])))
		}
	}
	if g.plan.Path == plan.Normal {
		g.update = g.update.Set(lowest, expression.Value(h.Epoch))
	}
	g.condition = g.condition.And(lowest.Between(bound(h.First), bound(h.Last)))
}

// reshapeHold does to the i-th limit's cells what a Reshape does. A limit that counts no holds any more loses
// them: what was held counts as charged.
func (g *genericBuilder) reshapeHold(limit string, i int) {
	seen, counts := g.plan.Image.Balances[i], i < len(g.plan.Holds) && g.plan.Holds[i].Epoch != 0
	for k, field := range item.HoldFields {
		attr := attribute(limit, field)
		switch {
		case !counts && seen.Holds():
			g.update = g.update.Remove(attr)
		case counts && field == item.EpochField:
			g.update = g.update.Set(attr, expression.Value(g.plan.Holds[i].Epoch))
		case counts:
			stored := expression.IfNotExists(attr, expression.Value(0))
			g.update = g.update.Set(attr, expression.Plus(stored, expression.Value(g.plan.Holds[i].Change[k])))
		}
	}
	if lowest := attribute(limit, item.EpochField); seen.Holds() || counts {
		g.condition = g.condition.And(expression.Or(
			lowest.AttributeNotExists(), lowest.Equal(expression.Value(seen.Epoch))))
	}
}

// guard bounds the i-th limit's balance.
func (g *genericBuilder) guard(limit string, i int) {
	g.condition = g.condition.And(attribute(limit, "tk").Between(bound(g.plan.Lo[i]), bound(g.plan.Hi[i])))
}

// guardWindow has the write apply only to the open window of the i-th limit in the image. It reports whether
// the limit has windows.
func (g *genericBuilder) guardWindow(limit string, i int) bool {
	b := plan.BalancesOf(g.plan.Image).All[i]
	if b.Windowed() {
		g.condition = g.condition.And(attribute(limit, item.WindowField).Equal(expression.Value(b.Ends)))
	}
	return b.Windowed()
}

// reshape adds the i-th limit of a Reshape.
func (g *genericBuilder) reshape(limit string, i int) {
	p, numbers := g.plan, g.write.Limits[i]
	attr := func(field string) expression.NameBuilder { return attribute(limit, field) }
	sum := func(field string, start, change int64) expression.SetValueBuilder {
		stored := expression.IfNotExists(attr(field), expression.Value(start))
		return expression.Plus(stored, expression.Value(change))
	}
	g.update = g.update.
		Set(attr("tk"), sum("tk", numbers.Burst, bucket.Sub(p.Fill[i], p.Cost[i]))).
		Set(attr("tc"), sum("tc", 0, p.Cost[i])).
		Set(attr("cp"), expression.Value(numbers.Capacity)).
		Set(attr("bx"), expression.Value(numbers.Burst)).
		Set(attr("ra"), expression.Value(numbers.Refill)).
		Set(attr("rp"), expression.Value(numbers.Period))
	g.condition = g.condition.And(expression.Or(
		attr("tk").AttributeNotExists(), attr("tk").Between(bound(p.Lo[i]), bound(p.Hi[i]))))
	g.reshapeHold(limit, i)
	if !numbers.Windowed() {
		return
	}
	we := attr(item.WindowField)
	g.update = g.update.Set(we, expression.Value(p.Ends[i]))
	g.condition = g.condition.And(expression.Or(
		we.AttributeNotExists(), we.Equal(expression.Value(p.Image.Balances[i].Ends))))
}

// reshapePlan stores whose plan the bucket gets, and has the write apply only while it has the one in the
// image: two entities' plans may have the same version.
func (g *genericBuilder) reshapePlan(spec *store.Spec) {
	po, seen := expression.Name(item.PlanOf), g.plan.Image.PlanOf
	switch {
	case spec.Plans != nil:
		g.update = g.update.Set(po, expression.Value(g.write.PlanOf))
	case seen != "":
		g.update = g.update.Remove(po)
	default:
		return
	}
	g.condition = g.condition.And(expression.Or(po.AttributeNotExists(), po.Equal(expression.Value(seen))))
}

// remove drops a limit that the schema no longer has.
func (g *genericBuilder) remove(limit string, i int) {
	for _, field := range item.LimitFields {
		g.update = g.update.Remove(attribute(limit, field))
	}
	if plan.BalancesOf(g.plan.Image).All[i].Holds() {
		for _, field := range item.HoldFields {
			g.update = g.update.Remove(attribute(limit, field))
		}
	}
	if g.guardWindow(limit, i) {
		g.update = g.update.Remove(attribute(limit, item.WindowField))
	}
}

func attribute(limit, field string) expression.NameBuilder {
	return expression.Name(item.LimitAttribute(limit, field))
}

// limitsOf returns the schema's limits and the extra ones of img, in the order of a plan's vectors.
func limitsOf(spec *store.Spec, img *bucket.Image) []string {
	all := append([]string(nil), spec.Limits...)
	for _, named := range img.Extra {
		all = append(all, named.Name)
	}
	return all
}

// bound is codec.Bound for the expression package.
func bound(v int64) expression.ValueBuilder {
	if v == math.MinInt64 || v == math.MaxInt64 {
		return expression.Value(attributevalue.Number(codec.Bound(v).(*types.AttributeValueMemberN).Value))
	}
	return expression.Value(v)
}
