package engine

import (
	"slices"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/table"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// Structures of the API, both as requests have them and as descriptions do.
type (
	attributeDefinition struct{ AttributeName, AttributeType *string }
	keySchemaElement    struct{ AttributeName, KeyType *string }

	projection struct {
		ProjectionType   *string   `json:",omitempty"`
		NonKeyAttributes *[]string `json:",omitempty"`
	}

	provisionedThroughput struct{ ReadCapacityUnits, WriteCapacityUnits *int64 }

	streamSpecification struct {
		StreamEnabled  *bool
		StreamViewType *string `json:",omitempty"`
	}

	secondaryIndex struct {
		IndexName             *string
		KeySchema             *[]keySchemaElement
		Projection            *projection
		ProvisionedThroughput *provisionedThroughput // of global ones
	}
)

// Most secondary indexes of a table.
const (
	maxLocalIndexes  = 5
	maxGlobalIndexes = 20
)

// maxProjected is how many attributes the indexes of a table may name between them; maxKeyName is how long a
// key attribute's name may be.
const (
	maxProjected = 100
	maxKeyName   = 255
)

// Billing modes.
const (
	onDemand    = "PAY_PER_REQUEST"
	provisioned = "PROVISIONED"
)

// invalidParameters is the exception of most rules that several parameters make together.
func invalidParameters(format string, args ...any) error {
	return exception.Invalid("One or more parameter values were invalid: "+format, args...)
}

// schema checks the rules that CreateTable's parameters make together, and returns the definition of the
// table.
func (r createTableInput) schema() (table.Def, error) {
	s := newSchema()
	if err := s.define(*r.AttributeDefinitions); err != nil {
		return table.Def{}, err
	}
	def := table.Def{Name: tableName(*r.TableName)}
	if len(*r.KeySchema) > len(s.names) {
		return def, undefinedKey()
	}
	var err error
	if def.Key, err = s.key(*r.KeySchema); err != nil {
		return def, err
	}
	if r.LocalSecondaryIndexes == nil && r.GlobalSecondaryIndexes == nil && len(*r.KeySchema) != len(s.names) {
		return def, invalidParameters("Number of attributes in KeySchema does not exactly match " +
			"number of attributes defined in AttributeDefinitions")
	}
	for _, list := range []struct {
		of    *[]secondaryIndex
		local bool
	}{{r.LocalSecondaryIndexes, true}, {r.GlobalSecondaryIndexes, false}} {
		if list.of == nil {
			continue
		}
		indexes, err := s.list(def.Key, *list.of, list.local)
		if err != nil {
			return def, err
		}
		def.Indexes = append(def.Indexes, indexes...)
	}
	return def, s.check()
}

// schema is what is known while a table's definition is read.
type schema struct {
	kinds     map[string]value.Kind // of the defined attributes
	names     []string              // of the defined attributes
	used      map[string]bool       // the attributes that are in keys
	indexes   map[string]bool       // by name
	projected int                   // attributes that indexes name
}

func newSchema() *schema {
	return &schema{kinds: map[string]value.Kind{}, used: map[string]bool{}, indexes: map[string]bool{}}
}

// define notes the types of attributes.
func (s *schema) define(definitions []attributeDefinition) error {
	for _, d := range definitions {
		if _, ok := s.kinds[*d.AttributeName]; ok {
			return exception.Invalid("Attribute Name is duplicated: %s", *d.AttributeName)
		}
		s.kinds[*d.AttributeName] = kindOf(*d.AttributeType)
		s.names = append(s.names, *d.AttributeName)
	}
	return nil
}

// undefinedKey is the answer to a key of more attributes than are defined.
func undefinedKey() error {
	return exception.Invalid("Invalid KeySchema: Some index key attribute have no definition")
}

// key returns the key that elements define.
func (s *schema) key(elements []keySchemaElement) (key table.KeySchema, err error) {
	var names []string
	for _, e := range elements {
		names = append(names, *e.AttributeName)
	}
	for _, name := range names {
		if _, ok := s.kinds[name]; !ok {
			return key, invalidParameters("Some index key attributes are not defined in AttributeDefinitions. "+
				"Keys: %s, AttributeDefinitions: %s", bracketed(names), bracketed(s.names))
		}
		s.used[name] = true
	}
	if len(names) == 2 && names[0] == names[1] {
		return key, exception.Invalid("Both the Hash Key and the Range Key element in the KeySchema have the " +
			"same name")
	}
	if *elements[0].KeyType != "HASH" {
		return key, exception.Invalid("Invalid KeySchema: The first KeySchemaElement is not a HASH key type")
	}
	key.Hash = table.Attribute{Name: names[0], Kind: s.kinds[names[0]]}
	if len(elements) == 2 {
		if *elements[1].KeyType != "RANGE" {
			return key, exception.Invalid("Invalid KeySchema: The second KeySchemaElement is not a RANGE key type")
		}
		key.Sort = table.Attribute{Name: names[1], Kind: s.kinds[names[1]]}
	}
	return key, nil
}

// list returns the definitions of a list of indexes, local ones or global ones, of a table with that key.
func (s *schema) list(key table.KeySchema, list []secondaryIndex, local bool) ([]table.IndexDef, error) {
	if len(list) == 0 {
		name := "GlobalSecondaryIndexes"
		if local {
			name = "LocalSecondaryIndexes"
		}
		return nil, invalidParameters("List of %s is empty", name)
	}
	if local && key.Sort.Name == "" {
		return nil, invalidParameters("Table KeySchema does not have a range key, " +
			"which is required when specifying a LocalSecondaryIndex")
	}
	var defs []table.IndexDef
	for _, index := range list {
		def, err := s.index(key, index, local)
		if err != nil {
			return nil, err
		}
		defs = append(defs, def)
	}
	if local && len(list) > maxLocalIndexes {
		return nil, invalidParameters("Number of LocalSecondaryIndexes exceeds per-table limit of %d",
			maxLocalIndexes)
	}
	if !local && len(list) > maxGlobalIndexes {
		return nil, invalidParameters("GlobalSecondaryIndex count exceeds the per-table limit of %d",
			maxGlobalIndexes)
	}
	return defs, nil
}

// index returns the definition of one index.
func (s *schema) index(of table.KeySchema, index secondaryIndex, local bool) (def table.IndexDef, err error) {
	def.Name, def.Local = *index.IndexName, local
	if def.Key, err = s.key(*index.KeySchema); err != nil {
		return def, err
	}
	if local && def.Key.Sort.Name == "" {
		return def, invalidParameters("Index KeySchema does not have a range key for index: %s", def.Name)
	}
	if local && def.Key.Hash.Name != of.Hash.Name {
		return def, invalidParameters(
			"Index KeySchema does not have the same leading hash key as table KeySchema for index: "+
				"%s. index hash key: %s, table hash key: %s", def.Name, def.Key.Hash.Name, of.Hash.Name)
	}
	if def.Projection, err = s.projection(*index.Projection); err != nil {
		return def, err
	}
	if s.indexes[def.Name] {
		return def, invalidParameters("Duplicate index name: %s", def.Name)
	}
	s.indexes[def.Name] = true
	return def, nil
}

// projection returns what p says an index holds.
func (s *schema) projection(p projection) (table.Projection, error) {
	if p.ProjectionType == nil {
		return table.Projection{}, invalidParameters("Unknown ProjectionType: null")
	}
	include := *p.ProjectionType == "INCLUDE"
	switch {
	case include && p.NonKeyAttributes == nil:
		return table.Projection{},
			invalidParameters("ProjectionType is INCLUDE, but NonKeyAttributes is not specified")
	case !include && p.NonKeyAttributes != nil:
		return table.Projection{}, invalidParameters("ProjectionType is %s, but NonKeyAttributes is specified",
			*p.ProjectionType)
	case !include:
		return table.Projection{Type: *p.ProjectionType}, nil
	}
	names := *p.NonKeyAttributes
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return table.Projection{}, invalidParameters("Duplicate element in NonKeyAttributes: %s", name)
		}
	}
	s.projected += len(names)
	return table.Projection{Type: "INCLUDE", NonKey: names}, nil
}

// check errs where attributes were defined for nothing, or indexes name too many attributes.
func (s *schema) check() error {
	if len(s.used) != len(s.names) {
		var used []string
		for _, name := range s.names {
			if s.used[name] {
				used = append(used, name)
			}
		}
		return invalidParameters("Some AttributeDefinitions are not used. AttributeDefinitions: %s, keys used: %s",
			bracketed(s.names), bracketed(used))
	}
	return s.checkProjected()
}

// checkProjected errs where indexes name too many attributes.
func (s *schema) checkProjected() error {
	if s.projected > maxProjected {
		return invalidParameters("Number of NonKeyAttributes exceeds per-table limit of %d", maxProjected)
	}
	return nil
}

// kindOf returns the kind that an AttributeType, which has been validated, names.
func kindOf(attributeType string) value.Kind {
	switch attributeType {
	case "S":
		return value.KindS
	case "N":
		return value.KindN
	default:
		return value.KindB
	}
}
