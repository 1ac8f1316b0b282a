package lean

import (
	"net/http"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// The outputs, each with the memory of what most replies have.
type (
	updateItemReply struct {
		dynamodb.UpdateItemOutput

		used capacity
	}
	putItemReply struct {
		dynamodb.PutItemOutput

		used capacity
	}
	getItemReply struct {
		dynamodb.GetItemOutput

		used capacity
	}
	batchGetItemReply       struct{ dynamodb.BatchGetItemOutput }
	transactWriteItemsReply struct {
		dynamodb.TransactWriteItemsOutput
	}
)

func (r *updateItemReply) reset()         { *r = updateItemReply{} }
func (r *putItemReply) reset()            { *r = putItemReply{} }
func (r *getItemReply) reset()            { *r = getItemReply{} }
func (r *batchGetItemReply) reset()       { *r = batchGetItemReply{} }
func (r *transactWriteItemsReply) reset() { *r = transactWriteItemsReply{} }

func (r *updateItemReply) decode(d *decoder) bool {
	return d.itemReply("Attributes", &r.Attributes, &r.ConsumedCapacity, &r.used)
}

func (r *putItemReply) decode(d *decoder) bool {
	return d.itemReply("Attributes", &r.Attributes, &r.ConsumedCapacity, &r.used)
}

func (r *getItemReply) decode(d *decoder) bool {
	return d.itemReply("Item", &r.Item, &r.ConsumedCapacity, &r.used)
}

// itemReply reads an output with an item, and with the capacity that it consumed.
func (d *decoder) itemReply(
	name string, item *map[string]types.AttributeValue, consumed **types.ConsumedCapacity, used *capacity,
) bool {
	return d.object(func(member []byte) (ok bool) {
		switch {
		case string(member) == name && *item == nil:
			*item, ok = d.item()
			return ok
		case string(member) == "ConsumedCapacity" && *consumed == nil:
			*consumed = &used.ConsumedCapacity
			return d.capacity(used)
		}
		return false
	}) && d.ended()
}

func (r *batchGetItemReply) decode(d *decoder) bool {
	return d.object(func(member []byte) (ok bool) {
		switch {
		case string(member) == "Responses" && r.Responses == nil:
			r.Responses = map[string][]map[string]types.AttributeValue{}
			return d.object(func(table []byte) (ok bool) {
				r.Responses[string(table)], ok = elements(d, d.item)
				return ok
			})
		case string(member) == "UnprocessedKeys" && r.UnprocessedKeys == nil:
			r.UnprocessedKeys = map[string]types.KeysAndAttributes{}
			return d.take('{') && d.take('}') // that all were read is usual
		case string(member) == "ConsumedCapacity" && r.ConsumedCapacity == nil:
			r.ConsumedCapacity, ok = d.capacities()
			return ok
		}
		return false
	}) && d.ended()
}

func (r *transactWriteItemsReply) decode(d *decoder) bool {
	return d.object(func(member []byte) (ok bool) {
		if string(member) == "ConsumedCapacity" && r.ConsumedCapacity == nil {
			r.ConsumedCapacity, ok = d.capacities()
		}
		return ok
	}) && d.ended()
}

// capacity is consumed capacity with the memory of its members. That of indexes is unusual.
type capacity struct {
	types.ConsumedCapacity

	table              string
	total, read, wrote float64
}

// capacity reads into a zero capacity.
func (d *decoder) capacity(used *capacity) bool {
	return d.object(func(name []byte) (ok bool) {
		switch {
		case string(name) == "TableName" && used.TableName == nil:
			used.TableName = &used.table
			used.table, ok = d.string()
		case string(name) == "CapacityUnits" && used.CapacityUnits == nil:
			used.CapacityUnits = &used.total
			used.total, ok = d.float()
		case string(name) == "ReadCapacityUnits" && used.ReadCapacityUnits == nil:
			used.ReadCapacityUnits = &used.read
			used.read, ok = d.float()
		case string(name) == "WriteCapacityUnits" && used.WriteCapacityUnits == nil:
			used.WriteCapacityUnits = &used.wrote
			used.wrote, ok = d.float()
		}
		return ok
	})
}

// capacities reads what was consumed of several tables.
func (d *decoder) capacities() ([]types.ConsumedCapacity, bool) {
	return elements(d, func() (types.ConsumedCapacity, bool) {
		used := &capacity{}
		ok := d.capacity(used)
		return used.ConsumedCapacity, ok
	})
}

// refusedType is the type of a failed condition.
const refusedType = "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException"

// refusal reads the error of a failed condition, which contention makes common. It returns nil if the reply
// is another one, or an unusual one.
func (d *decoder) refusal(r *smithyhttp.Response) error {
	refused := &types.ConditionalCheckFailedException{}
	if r.StatusCode != http.StatusBadRequest || r.Header.Get("X-Amzn-Errortype") != "" {
		return nil
	}
	typed := false
	if !d.object(func(name []byte) (ok bool) {
		switch string(name) {
		case "__type":
			var kind []byte
			kind, ok = d.raw()
			ok = ok && !typed && string(kind) == refusedType
			typed = ok
		case "message", "Message":
			var message string
			message, ok = d.string()
			ok = ok && refused.Message == nil
			refused.Message = &message
		case "Item":
			ok = refused.Item == nil
			if ok {
				refused.Item, ok = d.item()
			}
		}
		return ok
	}) || !typed || !d.ended() {
		return nil
	}
	return refused
}
