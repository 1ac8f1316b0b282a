package operator

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/override"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// configWrite is a write to a config item: an update, or a put that leaves a tombstone.
type configWrite struct {
	ver    int64
	op     string
	update *dynamodb.UpdateItemInput
	put    *dynamodb.PutItemInput
}

// write returns the write of s to its target, if condition holds. values are those of condition; write adds
// its own. managed becomes the attribute of that name; nil removes it. The version is above after, even if
// the clocks of the writers differ: docs/design.md, "Overrides and cv".
func (o *Overrides) write(
	spec *store.Spec, s store.Stored, managed *int64, after int64, condition string, values codec.Item,
) (*configWrite, error) {
	w := &configWrite{ver: max(o.now().UnixMilli(), after+1), op: wire.NewOp()}
	if w.ver > override.MaxVersion {
		return nil, &store.SetupError{
			What: fmt.Sprintf("the version of the override of %s at %s would be %d, beyond the year 3554",
				spec.Resource, s.At, w.ver),
			Do: "set this host's clock by NTP",
		}
	}
	key := item.OverrideKey(spec.Resource, s.At)
	if s.Overrides() || strings.Contains(condition, ":ver") {
		values[":ver"] = codec.N(w.ver)
	}
	if s.Overrides() {
		set, remove := assignments(spec, s, managed, values)
		values[":op"], values[":list"] = codec.S(w.op), codec.S(item.OverrideList(spec.Resource))
		values[":at"] = codec.S(s.At)
		expression := "SET ver = :ver, op = :op, GSI2PK = :list, GSI2SK = :at" + set
		if remove != "" {
			expression += " REMOVE " + remove
		}
		w.update = &dynamodb.UpdateItemInput{
			TableName: &o.retrier.Table, Key: key,
			UpdateExpression: &expression, ConditionExpression: &condition, ExpressionAttributeValues: values,
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}
		return w, nil
	}
	key["ver"], key["op"] = codec.N(w.ver), codec.S(w.op)
	if managed != nil {
		key[override.Managed] = codec.N(*managed)
	}
	w.put = &dynamodb.PutItemInput{
		TableName: &o.retrier.Table, Item: key, ConditionExpression: &condition,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if len(values) > 0 {
		w.put.ExpressionAttributeValues = values
	}
	return w, nil
}

// assignments returns the parts of an update expression that store the limits of s and managed. It adds their
// values to values. Limits that s does not override are removed.
func assignments(spec *store.Spec, s store.Stored, managed *int64, values codec.Item) (set, remove string) {
	var removed []string
	if managed != nil {
		set = ", " + override.Managed + " = :managed"
		values[":managed"] = codec.N(*managed)
	} else {
		removed = append(removed, override.Managed)
	}
	for i, l := range s.Limits {
		attrs := item.OverrideAttributes(spec.Limits[i])
		if l == nil {
			removed = append(removed, attrs[:]...)
			continue
		}
		for j, n := range [...]int64{l.Capacity, l.Burst, l.Refill, l.Period} {
			set += fmt.Sprintf(", %[1]s = :%[1]s", attrs[j])
			values[":"+attrs[j]] = codec.N(n)
		}
	}
	return set, strings.Join(removed, ", ")
}

// send sends w once. The error is DynamoDB's.
func (w *configWrite) send(ctx context.Context, api wire.API) (err error) {
	if w.put != nil {
		_, err = api.PutItem(ctx, w.put, wire.NoRetry)
	} else {
		_, err = api.UpdateItem(ctx, w.update, wire.NoRetry)
	}
	return err
}

// wrote reports whether w was the last write to an item.
func (w *configWrite) wrote(item codec.Item) bool {
	op, ok := item["op"].(*types.AttributeValueMemberS)
	return ok && op.Value == w.op
}
