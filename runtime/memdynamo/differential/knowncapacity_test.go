package differential_test

import (
	"maps"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// This file holds known differences in what Local and the service bill.

// amendUnasked drops what a delete that found nothing tells of its capacity without having been asked.
func amendUnasked(o operation, truth, _ []reply) {
	in, ok := o.input.(*dynamodb.DeleteItemInput)
	if ok && (in.ReturnConsumedCapacity == "" || in.ReturnConsumedCapacity == types.ReturnConsumedCapacityNone) {
		delete(truth[0].Body, "ConsumedCapacity")
	}
}

// amendEmptyReads takes our units where Local says that to find nothing is free, if ours are the least that a
// read costs.
func amendEmptyReads(o operation, truth, ours []reply) {
	var consistent bool
	switch in := o.input.(type) {
	case *dynamodb.QueryInput:
		consistent = aws.ToBool(in.ConsistentRead)
	case *dynamodb.ScanInput:
		consistent = aws.ToBool(in.ConsistentRead)
	default:
		return
	}
	for i := range min(len(truth), len(ours)) {
		free, paid := capacityOf(truth[i]), capacityOf(ours[i])
		if truth[i].Body["ScannedCount"] == 0.0 && free["CapacityUnits"] == 0.0 &&
			paid["CapacityUnits"] == readUnits(consistent) {
			truth[i].Body["ConsumedCapacity"] = paid
		}
	}
}

// amendMissing adds the least that a read costs for each key of a batch that has no item.
func amendMissing(o operation, truth, _ []reply) {
	in, ok := o.input.(*dynamodb.BatchGetItemInput)
	if !ok {
		return
	}
	tables, _ := truth[0].Body["Responses"].(map[string]any)
	for _, consumed := range capacities(truth[0]) {
		name, _ := consumed["TableName"].(string)
		items, _ := tables[name].([]any)
		of := in.RequestItems[name]
		missing := float64(len(of.Keys)-len(items)) * readUnits(aws.ToBool(of.ConsistentRead))
		add(consumed, missing)
		if part, ok := consumed["Table"].(map[string]any); ok {
			add(part, missing)
		}
	}
}

// amendBatchDeletes takes our units where Local's are more by at most one for each delete: it bills a delete
// that finds nothing twice.
func amendBatchDeletes(o operation, truth, ours []reply) {
	in, ok := o.input.(*dynamodb.BatchWriteItemInput)
	if !ok {
		return
	}
	for _, theirs := range capacities(truth[0]) {
		name, _ := theirs["TableName"].(string)
		deletes := 0.0
		for _, request := range in.RequestItems[name] {
			if request.DeleteRequest != nil {
				deletes++
			}
		}
		for _, mine := range capacities(ours[0]) {
			if mine["TableName"] != name {
				continue
			}
			if over := units(theirs) - units(mine); 0 < over && over <= deletes {
				add(theirs, -over)
				if part, ok := theirs["Table"].(map[string]any); ok {
					add(part, -over)
				}
			}
		}
	}
}

// amendHalfKeys takes our units where Local bills an index for an item that has only one half of the index's
// key, if the item before had the other half. Neither item is in the index.
func amendHalfKeys(o operation, truth, ours []reply) {
	halves := halfKeys(o)
	theirs, mine := []map[string]any{capacityOf(truth[0])}, []map[string]any{capacityOf(ours[0])}
	if _, batch := o.input.(*dynamodb.BatchWriteItemInput); batch {
		sortByTable(truth[0].Body["ConsumedCapacity"])
		sortByTable(ours[0].Body["ConsumedCapacity"])
		theirs, mine = capacities(truth[0]), capacities(ours[0])
	}
	if len(halves) == 0 || len(theirs) != len(mine) {
		return
	}
	for i := range theirs {
		indexes, _ := theirs[i]["GlobalSecondaryIndexes"].(map[string]any)
		billed, _ := mine[i]["GlobalSecondaryIndexes"].(map[string]any)
		over := units(theirs[i]) - units(mine[i])
		switch {
		case over <= 0 || theirs[i]["TableName"] != mine[i]["TableName"] || theirs[i]["TableName"] != sortedTable:
		case theirs[i]["Table"] != nil:
			for name := range halves {
				theirUnits, _ := indexes[name].(map[string]any)
				ourUnits, _ := billed[name].(map[string]any)
				if less := units(theirUnits) - units(ourUnits); less > 0 {
					add(theirs[i], -less)
					add(theirUnits, -less)
					if ourUnits == nil {
						delete(indexes, name)
					}
				}
			}
			if len(indexes) == 0 {
				delete(theirs[i], "GlobalSecondaryIndexes")
			}
		default:
			add(theirs[i], -over)
		}
	}
}

// halfKeys are the indexes of which the operation puts half a key, or, in an update, may leave one.
func halfKeys(o operation) map[string]bool {
	var items []item
	switch in := o.input.(type) {
	case *dynamodb.PutItemInput:
		items = append(items, in.Item)
	case *dynamodb.UpdateItemInput:
		items = append(items, item{"g": nil}, item{"n": nil}, item{"b": nil})
	case *dynamodb.BatchWriteItemInput:
		for _, request := range in.RequestItems[sortedTable] {
			if request.PutRequest != nil {
				items = append(items, request.PutRequest.Item)
			}
		}
	}
	halves := map[string]bool{}
	for _, of := range items {
		for _, x := range schemas[1].indexes {
			_, hash := of[x.hash.name]
			_, sort := of[x.sort.name]
			if x.name != "" && !x.local && x.sort.name != "" && hash != sort {
				halves[x.name] = true
			}
		}
	}
	return halves
}

// amendIndexReads takes our units of a read of an index that does not hold everything.
func amendIndexReads(o operation, truth, ours []reply) {
	var x index
	switch in := o.input.(type) {
	case *dynamodb.ScanInput:
		x = indexOf(in.TableName, in.IndexName)
	case *dynamodb.QueryInput:
		x = indexOf(in.TableName, in.IndexName)
	}
	if x.name == "" || x.projection.ProjectionType == types.ProjectionTypeAll {
		return
	}
	for i := range min(len(truth), len(ours)) {
		scanned, _ := truth[i].Body["ScannedCount"].(float64)
		if mine := capacityOf(ours[i]); mine != nil && capacityOf(truth[i]) != nil && scanned > 0 {
			truth[i].Body["ConsumedCapacity"] = mine
		}
	}
}

// amendTransaction takes our units where Local's may mean the same. Local doubles most writes of a
// transaction twice, a delete that finds nothing just once, and bills a check as a read of 4 KB units. Of
// actions in one table with equal bills it counts one, so that of n actions it may bill a 2n-th of ours. In
// the table with indexes, half keys add up to twice our units for an index of whole items, and four for one
// of keys.
func amendTransaction(o operation, truth, ours []reply) {
	in, ok := o.input.(*dynamodb.TransactWriteItemsInput)
	if !ok {
		return
	}
	sortByTable(truth[0].Body["ConsumedCapacity"])
	sortByTable(ours[0].Body["ConsumedCapacity"])
	theirs, mine := capacities(truth[0]), capacities(ours[0])
	for i := range min(len(theirs), len(mine)) {
		table := mine[i]["TableName"]
		most := 3 * units(mine[i])
		if table == sortedTable {
			most = 4*units(mine[i]) + 4
		}
		least := units(mine[i]) / (2 * actionsOn(in, table))
		if theirs[i]["TableName"] == table && least <= units(theirs[i]) && units(theirs[i]) <= most {
			clear(theirs[i])
			maps.Copy(theirs[i], mine[i])
		}
	}
}

// actionsOn counts the actions of a transaction on that table.
func actionsOn(in *dynamodb.TransactWriteItemsInput, table any) float64 {
	n := 0.0
	for _, a := range in.TransactItems {
		var name *string
		switch {
		case a.Put != nil:
			name = a.Put.TableName
		case a.Update != nil:
			name = a.Update.TableName
		case a.Delete != nil:
			name = a.Delete.TableName
		case a.ConditionCheck != nil:
			name = a.ConditionCheck.TableName
		}
		if aws.ToString(name) == table {
			n++
		}
	}
	return n
}

func readUnits(consistent bool) float64 {
	if consistent {
		return 1
	}
	return 0.5
}

func capacityOf(r reply) map[string]any {
	consumed, _ := r.Body["ConsumedCapacity"].(map[string]any)
	return consumed
}

// capacities are the tables' of an operation on several.
func capacities(r reply) []map[string]any {
	list, _ := r.Body["ConsumedCapacity"].([]any)
	var each []map[string]any
	for _, element := range list {
		if consumed, ok := element.(map[string]any); ok {
			each = append(each, consumed)
		}
	}
	return each
}

func units(consumed map[string]any) float64 {
	n, _ := consumed["CapacityUnits"].(float64)
	return n
}

func add(consumed map[string]any, more float64) {
	if _, ok := consumed["CapacityUnits"]; ok {
		consumed["CapacityUnits"] = units(consumed) + more
	}
}
