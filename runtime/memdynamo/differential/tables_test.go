package differential_test

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Tables as operations name them. An engine may have them under other names: see [side].
const (
	hashTable   = "diff.Hash"
	sortedTable = "diff.Sorted"
	noTable     = "diff.None" // does not exist
)

// attribute is a name, and the type it has where nothing is wrong; "" is any type.
type attribute struct{ name, kind string }

// index is a secondary index, or with an empty name the table itself. sort is zero if there is no sort key.
type index struct {
	name       string
	hash, sort attribute
	projection types.Projection
	local      bool
}

// schema is a table: its own key first, then its indexes.
type schema struct {
	name    string
	indexes []index
}

func (s schema) key() index { return s.indexes[0] }

var (
	keysOnly = types.Projection{ProjectionType: types.ProjectionTypeKeysOnly}
	all      = types.Projection{ProjectionType: types.ProjectionTypeAll}
	include  = types.Projection{ProjectionType: types.ProjectionTypeInclude,
		NonKeyAttributes: []string{"c", "m"}}
)

// schemas are the two tables: one with a numeric hash key and nothing else, and one with every sort of index.
var schemas = []schema{
	{hashTable, []index{{hash: attribute{"id", "N"}, projection: all}}},
	{sortedTable, []index{
		{hash: attribute{"pk", "S"}, sort: attribute{"sk", "S"}, projection: all},
		{name: "byGN", hash: attribute{"g", "S"}, sort: attribute{"n", "N"}, projection: keysOnly},
		{name: "byN", hash: attribute{"n", "N"}, projection: include},
		{name: "byGB", hash: attribute{"g", "S"}, sort: attribute{"b", "B"}, projection: all},
		{name: "byL", hash: attribute{"pk", "S"}, sort: attribute{"l", "N"}, projection: include, local: true},
		{name: "bySL", hash: attribute{"pk", "S"}, sort: attribute{"s", "S"}, projection: all, local: true},
	}},
}

// input is the request that creates the table.
func (s schema) input(name string) *dynamodb.CreateTableInput {
	in := &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest, KeySchema: s.key().schema(),
	}
	kinds := map[string]string{}
	for _, x := range s.indexes {
		for _, a := range []attribute{x.hash, x.sort} {
			if a.name == "" || kinds[a.name] != "" {
				continue
			}
			kinds[a.name] = a.kind
			in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{
				AttributeName: aws.String(a.name), AttributeType: types.ScalarAttributeType(a.kind),
			})
		}
		switch {
		case x.name == "":
		case x.local:
			in.LocalSecondaryIndexes = append(in.LocalSecondaryIndexes, types.LocalSecondaryIndex{
				IndexName: aws.String(x.name), KeySchema: x.schema(), Projection: &x.projection,
			})
		default:
			in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
				IndexName: aws.String(x.name), KeySchema: x.schema(), Projection: &x.projection,
			})
		}
	}
	return in
}

func (x index) schema() []types.KeySchemaElement {
	elements := []types.KeySchemaElement{{AttributeName: aws.String(x.hash.name), KeyType: types.KeyTypeHash}}
	if x.sort.name != "" {
		elements = append(elements, types.KeySchemaElement{AttributeName: aws.String(x.sort.name),
			KeyType: types.KeyTypeRange})
	}
	return elements
}

// names are the key attributes of the index.
func (x index) names() []string {
	if x.sort.name == "" {
		return []string{x.hash.name}
	}
	return []string{x.hash.name, x.sort.name}
}
