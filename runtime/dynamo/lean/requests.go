package lean

import (
	"reflect"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// known are the members of inputs that this package writes, or leaves to the SDK.
var known = map[reflect.Type]string{
	reflect.TypeFor[dynamodb.UpdateItemInput](): "AttributeUpdates ConditionExpression ConditionalOperator " +
		"Expected ExpressionAttributeNames ExpressionAttributeValues Key ReturnConsumedCapacity " +
		"ReturnItemCollectionMetrics ReturnValues ReturnValuesOnConditionCheckFailure TableName UpdateExpression",
	reflect.TypeFor[dynamodb.PutItemInput](): "ConditionExpression ConditionalOperator Expected " +
		"ExpressionAttributeNames ExpressionAttributeValues Item ReturnConsumedCapacity " +
		"ReturnItemCollectionMetrics ReturnValues ReturnValuesOnConditionCheckFailure TableName",
	reflect.TypeFor[dynamodb.GetItemInput](): "AttributesToGet ConsistentRead ExpressionAttributeNames Key " +
		"ProjectionExpression ReturnConsumedCapacity TableName",
	reflect.TypeFor[dynamodb.BatchGetItemInput](): "RequestItems ReturnConsumedCapacity",
	reflect.TypeFor[types.KeysAndAttributes](): "AttributesToGet ConsistentRead ExpressionAttributeNames Keys " +
		"ProjectionExpression",
	reflect.TypeFor[dynamodb.TransactWriteItemsInput](): "ClientRequestToken ReturnConsumedCapacity " +
		"ReturnItemCollectionMetrics TransactItems",
	reflect.TypeFor[types.TransactWriteItem](): "ConditionCheck Delete Put Update",
	reflect.TypeFor[types.Put]():               "Item TableName " + ofWrites,
	reflect.TypeFor[types.Update]():            "Key TableName UpdateExpression " + ofWrites,
	reflect.TypeFor[types.Delete]():            "Key TableName " + ofWrites,
	reflect.TypeFor[types.ConditionCheck]():    "Key TableName " + ofWrites,
}

const ofWrites = "ConditionExpression ExpressionAttributeNames ExpressionAttributeValues " +
	"ReturnValuesOnConditionCheckFailure"

// newMember returns a member of an input that is not in a list, "" if there is none.
func newMember(known map[reflect.Type]string) string {
	for input, names := range known {
		for field := range input.Fields() {
			if field.IsExported() && !slices.Contains(strings.Fields(names), field.Name) {
				return "the new " + input.Name() + "." + field.Name
			}
		}
	}
	return ""
}

// Each of these writes one input. It reports false if the SDK's client has to make the call: the input has a
// legacy member, or not all that the SDK requires. TestEveryMember compares the lists with the SDK.

func (x *exchange) updateItem(in *dynamodb.UpdateItemInput) bool {
	if in == nil {
		return false
	}
	x.operation = updateItem
	x.unless(in.Key != nil && in.AttributeUpdates == nil && in.Expected == nil && in.ConditionalOperator == "")
	x.tableName(in.TableName)
	x.item("Key", in.Key)
	x.text("UpdateExpression", in.UpdateExpression)
	x.condition(in.ConditionExpression, in.ExpressionAttributeNames, in.ExpressionAttributeValues,
		in.ReturnValuesOnConditionCheckFailure)
	enum(&x.encoder, "ReturnValues", in.ReturnValues)
	enum(&x.encoder, "ReturnConsumedCapacity", in.ReturnConsumedCapacity)
	enum(&x.encoder, "ReturnItemCollectionMetrics", in.ReturnItemCollectionMetrics)
	return x.finish()
}

func (x *exchange) putItem(in *dynamodb.PutItemInput) bool {
	if in == nil {
		return false
	}
	x.operation = putItem
	x.unless(in.Item != nil && in.Expected == nil && in.ConditionalOperator == "")
	x.tableName(in.TableName)
	x.item("Item", in.Item)
	x.condition(in.ConditionExpression, in.ExpressionAttributeNames, in.ExpressionAttributeValues,
		in.ReturnValuesOnConditionCheckFailure)
	enum(&x.encoder, "ReturnValues", in.ReturnValues)
	enum(&x.encoder, "ReturnConsumedCapacity", in.ReturnConsumedCapacity)
	enum(&x.encoder, "ReturnItemCollectionMetrics", in.ReturnItemCollectionMetrics)
	return x.finish()
}

func (x *exchange) getItem(in *dynamodb.GetItemInput) bool {
	if in == nil {
		return false
	}
	x.operation = getItem
	x.unless(in.Key != nil && in.AttributesToGet == nil)
	x.tableName(in.TableName)
	x.item("Key", in.Key)
	x.bool("ConsistentRead", in.ConsistentRead)
	x.text("ProjectionExpression", in.ProjectionExpression)
	x.names("ExpressionAttributeNames", in.ExpressionAttributeNames)
	enum(&x.encoder, "ReturnConsumedCapacity", in.ReturnConsumedCapacity)
	return x.finish()
}

func (x *exchange) batchGetItem(in *dynamodb.BatchGetItemInput) bool {
	if in == nil {
		return false
	}
	x.operation = batchGetItem
	x.unless(in.RequestItems != nil)
	x.name("RequestItems")
	x.body = append(x.body, '{')
	for table, read := range in.RequestItems {
		x.unless(read.Keys != nil && read.AttributesToGet == nil)
		if x.table == "" {
			x.table = table
		}
		x.comma()
		x.string(table)
		x.body = append(x.body, ":{"...)
		x.name("Keys")
		list(&x.encoder, read.Keys, x.attributes)
		x.bool("ConsistentRead", read.ConsistentRead)
		x.text("ProjectionExpression", read.ProjectionExpression)
		x.names("ExpressionAttributeNames", read.ExpressionAttributeNames)
		x.body = append(x.body, '}')
	}
	x.body = append(x.body, '}')
	enum(&x.encoder, "ReturnConsumedCapacity", in.ReturnConsumedCapacity)
	return x.finish()
}

// A transaction without a token gets one of the SDK's.
func (x *exchange) transactWriteItems(in *dynamodb.TransactWriteItemsInput) bool {
	if in == nil {
		return false
	}
	x.operation = transactWriteItems
	x.unless(in.TransactItems != nil && in.ClientRequestToken != nil)
	x.text("ClientRequestToken", in.ClientRequestToken)
	x.name("TransactItems")
	x.body = append(x.body, '[')
	for i := range in.TransactItems {
		x.comma()
		x.part(&in.TransactItems[i])
	}
	x.body = append(x.body, ']')
	enum(&x.encoder, "ReturnConsumedCapacity", in.ReturnConsumedCapacity)
	enum(&x.encoder, "ReturnItemCollectionMetrics", in.ReturnItemCollectionMetrics)
	return x.finish()
}

// part writes a part of a transaction.
func (e *encoder) part(part *types.TransactWriteItem) {
	e.body = append(e.body, '{')
	if check := part.ConditionCheck; check != nil {
		e.unless(check.Key != nil && check.ConditionExpression != nil)
		e.open("ConditionCheck", check.TableName)
		e.item("Key", check.Key)
		e.condition(check.ConditionExpression, check.ExpressionAttributeNames, check.ExpressionAttributeValues,
			check.ReturnValuesOnConditionCheckFailure)
		e.body = append(e.body, '}')
	}
	if put := part.Put; put != nil {
		e.unless(put.Item != nil)
		e.open("Put", put.TableName)
		e.item("Item", put.Item)
		e.condition(put.ConditionExpression, put.ExpressionAttributeNames, put.ExpressionAttributeValues,
			put.ReturnValuesOnConditionCheckFailure)
		e.body = append(e.body, '}')
	}
	if deletion := part.Delete; deletion != nil {
		e.unless(deletion.Key != nil)
		e.open("Delete", deletion.TableName)
		e.item("Key", deletion.Key)
		e.condition(deletion.ConditionExpression, deletion.ExpressionAttributeNames,
			deletion.ExpressionAttributeValues, deletion.ReturnValuesOnConditionCheckFailure)
		e.body = append(e.body, '}')
	}
	if update := part.Update; update != nil {
		e.unless(update.Key != nil && update.UpdateExpression != nil)
		e.open("Update", update.TableName)
		e.item("Key", update.Key)
		e.text("UpdateExpression", update.UpdateExpression)
		e.condition(update.ConditionExpression, update.ExpressionAttributeNames, update.ExpressionAttributeValues,
			update.ReturnValuesOnConditionCheckFailure)
		e.body = append(e.body, '}')
	}
	e.body = append(e.body, '}')
}

// open begins a write of a transaction.
func (e *encoder) open(name string, table *string) {
	e.name(name)
	e.body = append(e.body, '{')
	e.tableName(table)
}

// tableName writes the name of a table, which every request has.
func (e *encoder) tableName(table *string) {
	e.unless(table != nil)
	if table != nil && e.table == "" {
		e.table = *table
	}
	e.text("TableName", table)
}

// condition writes a condition, the names and values of all expressions, and what a refusal returns.
func (e *encoder) condition(
	condition *string, names map[string]string, values map[string]types.AttributeValue,
	refused types.ReturnValuesOnConditionCheckFailure,
) {
	e.text("ConditionExpression", condition)
	e.names("ExpressionAttributeNames", names)
	e.item("ExpressionAttributeValues", values)
	enum(e, "ReturnValuesOnConditionCheckFailure", refused)
}
