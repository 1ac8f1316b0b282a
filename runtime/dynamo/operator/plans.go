package operator

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// buildPlan returns an operator's write of s, a kind on a plan, to raw, the item of all plans, which has the
// version old. The item stays without numbers of any plan, and is not listed then.
func (o *Overrides) buildPlan(
	spec *store.Spec, s store.Stored, raw codec.Item, old int64,
) (*configWrite, error) {
	ver, err := o.nextVersion(spec, s.At, old)
	if err != nil {
		return nil, err
	}
	w := &configWrite{ver: ver, op: wire.NewOp()}
	prefix, listed := item.LimitsPrefix(s.At), s.Overrides()
	update := expression.Set(expression.Name("ver"), expression.Value(ver)).
		Set(expression.Name("op"), expression.Value(w.op))
	for i, l := range s.Limits {
		for j, attr := range item.OverrideAttributes(s.At, spec.Limits[i]) {
			switch {
			case l != nil:
				n := [...]int64{l.Capacity, l.Burst, l.Refill, l.Period}[j]
				update = update.Set(expression.NameNoDotSplit(attr), expression.Value(n))
			case raw[attr] != nil && listed:
				update = update.Remove(expression.NameNoDotSplit(attr))
			}
		}
	}
	for _, attr := range slices.Sorted(maps.Keys(raw)) {
		switch ofThis := strings.HasPrefix(attr, prefix); {
		case ofThis && !s.Overrides(): // also what another binary has written
			update = update.Remove(expression.NameNoDotSplit(attr))
		case !ofThis && strings.HasPrefix(attr, item.LimitsPrefix("")):
			listed = true
		}
	}
	list, at := expression.Name("GSI2PK"), expression.Name("GSI2SK")
	if listed {
		update = update.Set(list, expression.Value(item.OverrideList(spec.Resource))).
			Set(at, expression.Value(item.PlansListed))
	} else {
		update = update.Remove(list).Remove(at)
	}
	condition := expression.Name(item.PK).AttributeNotExists()
	if old != 0 {
		condition = expression.Name("ver").Equal(expression.Value(old))
	}
	built, err := expression.NewBuilder().WithUpdate(update).WithCondition(condition).Build()
	if err != nil {
		return nil, fmt.Errorf("expression for the plans of %s: %w", spec.Resource, err)
	}
	w.update = &dynamodb.UpdateItemInput{
		TableName: &o.retrier.Table, Key: item.PlansKey(spec.Resource),
		UpdateExpression: built.Update(), ConditionExpression: built.Condition(),
		ExpressionAttributeNames: built.Names(), ExpressionAttributeValues: built.Values(),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	return w, nil
}

// withPlans returns targets with each kind on each plan in place of the entry that stands for all of these.
func withPlans(spec *store.Spec, targets []string) []string {
	i := slices.Index(targets, item.PlansListed)
	if i < 0 {
		return targets
	}
	var all []string
	if spec.Plans != nil { // else it had plans once
		for _, plan := range spec.Plans.Names {
			for kind := range spec.Kinds {
				at := store.PlanAt(plan, spec.Kinds[kind].Name)
				if spec.Kinds[kind].Limits != nil && spec.OnPlans(kind) && !slices.Contains(all, at) {
					all = append(all, at)
				}
			}
		}
	}
	return slices.Replace(slices.Clone(targets), i, i+1, all...)
}

// onPlan finds by which plan an acquire would have an entity's bucket. If the end of its chain does not say
// whose plan that is, stored parents do, and without these the bucket has recorded it, as planOf.
func (o *Overrides) onPlan(
	ctx context.Context, spec *store.Spec, kind int, entity, root, planOf string,
) (on store.OnPlan, err error) {
	members := Members{api: o.api, retrier: o.retrier, now: o.now}
	kind = spec.EntityKind(kind)
	on.Of = entity
	if above, err := store.KindOf(spec.Kinds, root); err == nil && above == spec.Plans.Kind {
		on.Of, kind = root, above
	}
	for kind != spec.Plans.Kind {
		m, _, err := members.Get(ctx, on.Of)
		if err != nil {
			return on, err
		}
		if kind = spec.Kinds[kind].Parent; m.Parent == "" || kind == store.NoParent {
			on.Of = planOf
			break
		}
		on.Of = m.Parent
	}
	if on.Of == "" {
		return on, nil
	}
	m, _, err := members.Get(ctx, on.Of)
	on.Name, on.Version = m.Plan, m.PlanVersion
	return on, err
}
