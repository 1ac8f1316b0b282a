package dynamo

import (
	"fmt"
	"math"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/store"
)

// buildGeneric builds p from the image, for a bucket with other limits than the generated text names: this binary is
// older or newer than the one that shaped it (design section 6). It has the generated paths' meaning.
func buildGeneric(w *codec.Write, p *plan.Plan, spec *store.Spec) error {
	g := generic{write: w, plan: p}
	g.update = expression.Set(expression.Name("op"), expression.Value(w.Op)).
		Set(expression.Name("ttl"), expression.Value(w.TTL))
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
	}
	for i, name := range names(spec, p.Image) {
		unknown := i >= len(spec.Limits)
		switch {
		case p.Path == plan.Reshape && unknown:
			g.remove(name)
		case p.Path == plan.Reshape:
			g.reshape(name, i)
		case unknown && p.Path != plan.Normal: // no refill to claim for it
			if p.DebtGuarded {
				g.guard(name, i)
			}
		case p.Missing == nil || !p.Missing[i]:
			g.charge(name, i)
		}
	}
	if p.Reverses != "" { // as in the generated undo: while it is the last write
		g.condition = expression.Name("op").Equal(expression.Value(p.Reverses))
	}
	built, err := expression.NewBuilder().WithUpdate(g.update).WithCondition(g.condition).Build()
	if err != nil {
		return fmt.Errorf("expression for %s: %w", spec.Resource, err)
	}
	w.Update, w.Cond, w.Names, w.Values = *built.Update(), *built.Condition(), built.Names(), built.Values()
	return nil
}

type generic struct {
	write     *codec.Write
	plan      *plan.Plan
	update    expression.UpdateBuilder
	condition expression.ConditionBuilder
}

// charge adds one limit of a normal, retry or adjust.
func (g *generic) charge(name string, i int) {
	p, tk := g.plan, expression.Name("b_"+name+"_tk")
	g.update = g.update.Add(tk, expression.Value(bucket.Sub(p.Fill[i], p.Cost[i]))).
		Add(expression.Name("b_"+name+"_tc"), expression.Value(p.Cost[i]))
	if p.Path == plan.Adjust {
		g.condition = g.condition.And(tk.AttributeExists())
		return
	}
	g.guard(name, i)
}

// guard bounds one limit's balance.
func (g *generic) guard(name string, i int) {
	g.condition = g.condition.And(expression.Name("b_"+name+"_tk").Between(bound(g.plan.Lo[i]), bound(g.plan.Hi[i])))
}

// reshape adds one limit of a reshape.
func (g *generic) reshape(name string, i int) {
	p, limit := g.plan, g.write.Limits[i]
	attr := func(field string) expression.NameBuilder { return expression.Name("b_" + name + "_" + field) }
	sum := func(field string, start, change int64) expression.SetValueBuilder {
		return expression.Plus(expression.IfNotExists(attr(field), expression.Value(start)), expression.Value(change))
	}
	g.update = g.update.
		Set(attr("tk"), sum("tk", limit.Burst, bucket.Sub(p.Fill[i], p.Cost[i]))).
		Set(attr("tc"), sum("tc", 0, p.Cost[i])).
		Set(attr("cp"), expression.Value(limit.Capacity)).
		Set(attr("bx"), expression.Value(limit.Burst)).
		Set(attr("ra"), expression.Value(limit.Refill)).
		Set(attr("rp"), expression.Value(limit.Period))
	g.condition = g.condition.And(expression.Or(
		attr("tk").AttributeNotExists(), attr("tk").Between(bound(p.Lo[i]), bound(p.Hi[i]))))
}

// remove drops a limit that the schema no longer has.
func (g *generic) remove(name string) {
	for _, field := range [...]string{"tk", "cp", "bx", "ra", "rp", "tc"} {
		g.update = g.update.Remove(expression.Name("b_" + name + "_" + field))
	}
}

// names returns the schema's limits and those that img has besides, as a plan's vectors have them.
func names(spec *store.Spec, img *bucket.Image) []string {
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
