package differential_test

import (
	"maps"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Few keys, so that operations meet.
var keyValues = map[string][]types.AttributeValue{
	"id": {numberValue("1"), numberValue("2"), numberValue("3.0"), numberValue("1e0")},
	"pk": {textValue("p"), textValue("q")},
	"sk": {textValue("a"), textValue("ab"), textValue("b"), textValue("é"), textValue("Z")},
	"g":  {textValue("g"), textValue("h")},
	"n":  {numberValue("1"), numberValue("2"), numberValue("-1.5"), numberValue("1e100")},
	"l":  {numberValue("1"), numberValue("2"), numberValue("10"), numberValue("-3")},
	"s":  {textValue("a"), textValue("ab"), textValue("b")},
	"b": {&types.AttributeValueMemberB{Value: []byte{1}}, &types.AttributeValueMemberB{Value: []byte{1, 2}},
		&types.AttributeValueMemberB{Value: []byte{0xff}}},
}

func textValue(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func numberValue(n string) types.AttributeValue { return &types.AttributeValueMemberN{Value: n} }

// keyValue is a value of a key attribute, rarely a wrong one.
func (d dice) keyValue(a attribute) types.AttributeValue {
	if !d.fault(100) {
		return pick(d, keyValues[a.name]...)
	}
	switch d.upTo(4) {
	case 0:
		return d.value("", 1)
	case 1:
		return textValue("")
	case 2:
		return textValue(strings.Repeat("k", pick(d, 1024, 1025, 2048, 2049)))
	default:
		return numberValue(pick(d, badNumbers...))
	}
}

// primary is the key of an item, rarely with an attribute too many or too few.
func (d dice) primary(table schema) item {
	key := item{table.key().hash.name: d.keyValue(table.key().hash)}
	if table.key().sort.name != "" {
		key[table.key().sort.name] = d.keyValue(table.key().sort)
	}
	if d.fault(150) {
		key["c"] = d.value("", 1)
	}
	if d.fault(150) {
		delete(key, pick(d, table.key().names()...))
	}
	return key
}

// distinct returns n different keys of the table, or fewer if it has no more.
func (d dice) distinct(table schema, n int) []item {
	hashes, sorts := keyValues[table.key().hash.name], keyValues[table.key().sort.name]
	if table.name == hashTable {
		hashes = hashes[:3] // the fourth is the first again
	}
	var keys []item
	for _, hash := range hashes {
		if len(sorts) == 0 {
			keys = append(keys, item{table.key().hash.name: hash})
		}
		for _, sort := range sorts {
			keys = append(keys, item{table.key().hash.name: hash, table.key().sort.name: sort})
		}
	}
	return some(d, n, keys)
}

// many returns n different keys of the table.
func many(table schema, n int) []item {
	var keys []item
	for i := range n {
		key := item{}
		for _, a := range []attribute{table.key().hash, table.key().sort} {
			switch a.kind {
			case "N":
				key[a.name] = numberValue(strconv.Itoa(i))
			case "S":
				key[a.name] = textValue(strconv.Itoa(i))
			}
		}
		keys = append(keys, key)
	}
	return keys
}

// item is a whole item with that key.
func (d dice) item(key item) item {
	whole := maps.Clone(key)
	for _, a := range attributes {
		if d.oneIn(3) {
			continue
		}
		if values := keyValues[a.name]; values != nil && !d.fault(30) {
			whole[a.name] = pick(d, values...)
		} else {
			whole[a.name] = d.value(a.kind, 3)
		}
	}
	if d.fault(120) {
		whole["fill"] = textValue(strings.Repeat("f", 400<<10-d.upTo(300)))
	}
	return whole
}
