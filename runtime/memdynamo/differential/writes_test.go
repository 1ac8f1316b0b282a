package differential_test

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// tableOf is one of the two tables, and how an operation names it.
func (d dice) tableOf() (schema, *string) {
	table := pick(d, schemas...)
	if d.fault(150) {
		return table, aws.String(pick(d, noTable, "x", "no table"))
	}
	return table, aws.String(table.name)
}

func (d dice) capacity() types.ReturnConsumedCapacity {
	if d.fault(150) {
		return "ALL"
	}
	return pick(d, "", types.ReturnConsumedCapacityTotal, types.ReturnConsumedCapacityIndexes,
		types.ReturnConsumedCapacityNone)
}

func (d dice) onFailure() types.ReturnValuesOnConditionCheckFailure {
	return pick(d, "", types.ReturnValuesOnConditionCheckFailureAllOld,
		types.ReturnValuesOnConditionCheckFailureNone)
}

// returned is what a write of a whole item may return; what an update may, now and then.
func (d dice) returned() types.ReturnValue {
	if d.fault(60) {
		return pick(d, types.ReturnValueUpdatedNew, types.ReturnValueAllNew, "SOME")
	}
	return pick(d, "", types.ReturnValueAllOld, types.ReturnValueNone)
}

// maybe is a condition, every other time.
func (a *author) maybe() *string {
	if a.oneIn(2) {
		return nil
	}
	return aws.String(a.garble(a.condition(2)))
}

func (d dice) put() operation {
	table, name := d.tableOf()
	a := newAuthor(d, table)
	in := &dynamodb.PutItemInput{
		TableName: name, Item: d.item(d.primary(table)), ConditionExpression: a.maybe(), ReturnValues: d.returned(),
		ReturnConsumedCapacity: d.capacity(), ReturnValuesOnConditionCheckFailure: d.onFailure(),
	}
	in.ExpressionAttributeNames, in.ExpressionAttributeValues = a.placeholders()
	return operation{input: in}
}

func (d dice) update() operation {
	table, name := d.tableOf()
	a := newAuthor(d, table)
	in := &dynamodb.UpdateItemInput{
		TableName: name, Key: d.primary(table), UpdateExpression: aws.String(a.garble(a.update())),
		ConditionExpression:    a.maybe(),
		ReturnConsumedCapacity: d.capacity(), ReturnValuesOnConditionCheckFailure: d.onFailure(),
		ReturnValues: pick(d, "", types.ReturnValueAllNew, types.ReturnValueAllOld, types.ReturnValueUpdatedNew,
			types.ReturnValueUpdatedOld, types.ReturnValueNone),
	}
	if d.oneIn(30) {
		in.UpdateExpression = nil
	}
	in.ExpressionAttributeNames, in.ExpressionAttributeValues = a.placeholders()
	return operation{input: in}
}

func (d dice) remove() operation {
	table, name := d.tableOf()
	a := newAuthor(d, table)
	in := &dynamodb.DeleteItemInput{
		TableName: name, Key: d.primary(table), ConditionExpression: a.maybe(), ReturnValues: d.returned(),
		ReturnConsumedCapacity: d.capacity(), ReturnValuesOnConditionCheckFailure: d.onFailure(),
	}
	in.ExpressionAttributeNames, in.ExpressionAttributeValues = a.placeholders()
	return operation{input: in}
}

// batchWrite writes to both tables, mostly to different keys.
func (d dice) batchWrite() operation {
	in := &dynamodb.BatchWriteItemInput{
		RequestItems: map[string][]types.WriteRequest{}, ReturnConsumedCapacity: d.capacity(),
	}
	for range 1 + d.upTo(2) {
		table, name := d.tableOf()
		if in.RequestItems[*name] != nil {
			continue
		}
		var requests []types.WriteRequest
		for _, key := range d.distinct(table, 10) {
			if d.fault(100) {
				key = d.primary(table)
			}
			request := types.WriteRequest{PutRequest: &types.PutRequest{Item: d.item(key)}}
			if d.oneIn(4) {
				request = types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: key}}
			}
			requests = append(requests, request)
		}
		if d.fault(100) {
			for len(requests) < 26 {
				requests = append(requests, requests[0])
			}
		}
		in.RequestItems[*name] = requests
	}
	return operation{input: in}
}

// transactWrite is of one to four actions, mostly on different items.
func (d dice) transactWrite() operation {
	in := &dynamodb.TransactWriteItemsInput{ReturnConsumedCapacity: d.capacity()}
	if d.oneIn(3) {
		in.ClientRequestToken = aws.String(pick(d, "t1", "t2"))
	}
	keys := map[string][]item{}
	for _, table := range schemas {
		keys[table.name] = d.distinct(table, 4)
	}
	for range 1 + d.upTo(4) {
		table, name := d.tableOf()
		key := d.primary(table)
		if left := keys[table.name]; len(left) > 0 && !d.fault(40) {
			key, keys[table.name] = left[0], left[1:]
		}
		in.TransactItems = append(in.TransactItems, d.action(table, name, key))
	}
	if d.fault(200) {
		for len(in.TransactItems) < 101 {
			in.TransactItems = append(in.TransactItems, in.TransactItems[0])
		}
	}
	return operation{input: in}
}

func (d dice) action(table schema, name *string, key item) types.TransactWriteItem {
	a := newAuthor(d, table)
	// Most conditions are to hold: one that fails cancels all.
	var condition *string
	switch {
	case d.oneIn(8):
		condition = aws.String(a.garble(a.condition(1)))
	case d.oneIn(4):
		condition = aws.String("attribute_not_exists(nowhere)")
	}
	switch d.upTo(5) {
	case 0:
		put := &types.Put{TableName: name, Item: d.item(key), ConditionExpression: condition,
			ReturnValuesOnConditionCheckFailure: d.onFailure()}
		put.ExpressionAttributeNames, put.ExpressionAttributeValues = a.placeholders()
		return types.TransactWriteItem{Put: put}
	case 1, 2:
		text := a.garble(a.simple())
		update := &types.Update{
			TableName: name, Key: key, UpdateExpression: &text, ConditionExpression: condition,
			ReturnValuesOnConditionCheckFailure: d.onFailure(),
		}
		update.ExpressionAttributeNames, update.ExpressionAttributeValues = a.placeholders()
		return types.TransactWriteItem{Update: update}
	case 3:
		del := &types.Delete{TableName: name, Key: key, ConditionExpression: condition,
			ReturnValuesOnConditionCheckFailure: d.onFailure()}
		del.ExpressionAttributeNames, del.ExpressionAttributeValues = a.placeholders()
		return types.TransactWriteItem{Delete: del}
	default:
		if condition == nil {
			condition = aws.String(a.garble(a.condition(1)))
		}
		check := &types.ConditionCheck{TableName: name, Key: key, ConditionExpression: condition,
			ReturnValuesOnConditionCheckFailure: d.onFailure()}
		check.ExpressionAttributeNames, check.ExpressionAttributeValues = a.placeholders()
		return types.TransactWriteItem{ConditionCheck: check}
	}
}

// simple is an update that mostly succeeds.
func (a *author) simple() string {
	if a.oneIn(4) {
		return a.update()
	}
	set := a.word("SET") + " c = " + a.hold(numberValue("1"))
	switch a.upTo(4) {
	case 0:
		return set
	case 1:
		return set + ", flag = " + a.hold(a.value("BOOL", 1))
	case 2:
		return set + " REMOVE li"
	default:
		return set + " ADD l " + a.hold(numberValue("1"))
	}
}
