package differential_test

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// some of the attributes, every other time.
func (a *author) projected() *string {
	if a.oneIn(2) {
		return nil
	}
	return aws.String(a.garble(a.projection()))
}

func (d dice) consistent() *bool { return pick(d, nil, aws.Bool(true), aws.Bool(false)) }

func (d dice) get() operation {
	table, name := d.tableOf()
	a := newAuthor(d, table)
	in := &dynamodb.GetItemInput{
		TableName: name, Key: d.primary(table), ProjectionExpression: a.projected(), ConsistentRead: d.consistent(),
		ReturnConsumedCapacity: d.capacity(),
	}
	in.ExpressionAttributeNames, _ = a.placeholders()
	return operation{input: in}
}

func (d dice) batchGet() operation {
	in := &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{},
		ReturnConsumedCapacity: d.capacity()}
	for range 1 + d.upTo(2) {
		table, name := d.tableOf()
		a := newAuthor(d, table)
		of := types.KeysAndAttributes{Keys: d.distinct(table, 10), ProjectionExpression: a.projected(),
			ConsistentRead: d.consistent()}
		if d.fault(60) {
			of.Keys = append(of.Keys, d.primary(table))
		}
		if d.fault(100) {
			of.Keys = many(table, 101)
		}
		of.ExpressionAttributeNames, _ = a.placeholders()
		in.RequestItems[*name] = of
	}
	return operation{input: in}
}

// from is the table or one of its indexes, and how an operation names it.
func (d dice) from(table schema) (index, *string) {
	x := pick(d, table.indexes...)
	switch {
	case d.fault(100):
		return x, aws.String(pick(d, "byNobody", "x"))
	case x.name == "":
		return x, nil
	}
	return x, aws.String(x.name)
}

// chosen is Select: mostly what goes with a projection expression, or with none.
func (d dice) chosen(projected *string) types.Select {
	switch {
	case d.fault(40):
		return pick(d, types.SelectAllAttributes, types.SelectAllProjectedAttributes,
			types.SelectSpecificAttributes, "SOME")
	case projected != nil:
		return pick(d, "", types.SelectSpecificAttributes)
	}
	return pick(d, "", "", types.SelectCount)
}

// limit is the size of a page.
func (d dice) limit() *int32 {
	if d.fault(150) {
		return aws.Int32(pick[int32](d, 0, -1))
	}
	return pick(d, nil, nil, aws.Int32(1), aws.Int32(2), aws.Int32(3), aws.Int32(100))
}

func (a *author) filter() *string {
	if !a.oneIn(3) {
		return nil
	}
	return aws.String(a.garble(a.condition(2)))
}

// start is a place in the index that a read of a partition may go on from. Items of an index with equal keys
// are in an order of the engine's own: there it is a place between items.
func (d dice) start(table schema, x index, partition types.AttributeValue) item {
	key := d.primary(table)
	key[x.hash.name] = partition
	if x.name != "" && x.sort.name != "" {
		key[x.sort.name] = map[string]types.AttributeValue{
			"n": numberValue("1.7"), "l": numberValue("1.7"), "s": textValue("aa"),
			"b": &types.AttributeValueMemberB{Value: []byte{1, 1}},
		}[x.sort.name]
	}
	if d.fault(8) {
		delete(key, pick(d, append(x.names(), table.key().hash.name)...))
	}
	if d.fault(8) {
		key[pick(d, "c", x.hash.name)] = d.value("", 1)
	}
	return key
}

func (d dice) query() operation {
	table, name := d.tableOf()
	x, indexName := d.from(table)
	a := newAuthor(d, table)
	in := &dynamodb.QueryInput{
		TableName: name, IndexName: indexName, KeyConditionExpression: aws.String(a.garble(a.keyCondition(x))),
		ProjectionExpression: a.projected(), FilterExpression: a.filter(), Limit: d.limit(),
		ScanIndexForward:       d.consistent(),
		ReturnConsumedCapacity: d.capacity(),
	}
	if indexName == nil || x.local || d.fault(20) {
		in.ConsistentRead = d.consistent()
	}
	in.Select = d.chosen(in.ProjectionExpression)
	hash := a.values[":v0"]
	in.ExpressionAttributeNames, in.ExpressionAttributeValues = a.placeholders()
	if x.name != "byN" && hash != nil && d.oneIn(5) {
		in.ExclusiveStartKey = d.start(table, x, hash)
	}
	return operation{input: in, pages: true}
}

func (d dice) scan() operation {
	table, name := d.tableOf()
	x, indexName := d.from(table)
	a := newAuthor(d, table)
	in := &dynamodb.ScanInput{
		TableName: name, IndexName: indexName, ProjectionExpression: a.projected(), FilterExpression: a.filter(),
		Limit:                  d.limit(),
		ReturnConsumedCapacity: d.capacity(),
	}
	if indexName == nil || x.local || d.fault(20) {
		in.ConsistentRead = d.consistent()
	}
	in.Select = d.chosen(in.ProjectionExpression)
	in.ExpressionAttributeNames, in.ExpressionAttributeValues = a.placeholders()
	o := operation{input: in, pages: true}
	switch {
	case d.fault(40):
		wrong := pick(d, [2]*int32{nil, aws.Int32(3)}, [2]*int32{aws.Int32(0), nil},
			[2]*int32{aws.Int32(3), aws.Int32(3)}, [2]*int32{aws.Int32(0), aws.Int32(0)})
		in.Segment, in.TotalSegments = wrong[0], wrong[1]
	case d.oneIn(4):
		o.segments = int32(1 + d.upTo(4))
	}
	return o
}
