package engine

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
)

// validate holds what CreateTable's parameters have to be each by itself.
func (r createTableInput) validate() error {
	if r.TableName == nil {
		return missingParameter("TableName")
	}
	var c constraints
	c.required("attributeDefinitions", r.AttributeDefinitions != nil)
	c.definitions(orNone(r.AttributeDefinitions))
	c.table(r.TableName)
	c.enum("billingMode", r.BillingMode, provisioned, onDemand)
	c.throughput("provisionedThroughput", r.ProvisionedThroughput)
	c.keySchema("keySchema", r.KeySchema)
	for i, index := range orNone(r.LocalSecondaryIndexes) {
		c.index(member("localSecondaryIndexes", i), index)
	}
	for i, index := range orNone(r.GlobalSecondaryIndexes) {
		c.index(member("globalSecondaryIndexes", i), index)
	}
	c.stream(r.StreamSpecification)
	return c.err()
}

// definitions holds what is true of each attribute definition.
func (c *constraints) definitions(list []attributeDefinition) {
	for i, d := range list {
		at := member("attributeDefinitions", i)
		c.keyName(at+".attributeName", d.AttributeName)
		c.required(at+".attributeType", d.AttributeType != nil)
		c.enum(at+".attributeType", d.AttributeType, "B", "N", "S")
	}
}

// missingParameter is the exception for a parameter that some operations cannot go without.
func missingParameter(name string) error {
	return exception.Invalid("The parameter '%s' is required but was not present in the request", name)
}

// member returns the path of an element of a list.
func member(list string, i int) string { return list + "." + strconv.Itoa(i+1) + ".member" }

// keyName holds that the name of a key attribute is there, and of a fit length.
func (c *constraints) keyName(at string, name *string) {
	c.required(at, name != nil)
	if name != nil {
		c.length(at, *name, len(*name), 1, maxKeyName)
	}
}

// keySchema holds that a key schema is there, and has one or two elements.
func (c *constraints) keySchema(at string, elements *[]keySchemaElement) {
	c.required(at, elements != nil)
	if elements == nil {
		return
	}
	c.length(at, showKeySchema(*elements), len(*elements), 1, 2)
	for i, e := range *elements {
		c.keyName(member(at, i)+".attributeName", e.AttributeName)
		c.required(member(at, i)+".keyType", e.KeyType != nil)
		c.enum(member(at, i)+".keyType", e.KeyType, "HASH", "RANGE")
	}
}

// index holds what is true of an index by itself.
func (c *constraints) index(at string, index secondaryIndex) {
	c.indexName(at+".indexName", index.IndexName)
	c.keySchema(at+".keySchema", index.KeySchema)
	c.required(at+".projection", index.Projection != nil)
	if p := index.Projection; p != nil {
		c.enum(at+".projection.projectionType", p.ProjectionType, "ALL", "INCLUDE", "KEYS_ONLY")
		if p.NonKeyAttributes != nil {
			at := at + ".projection.nonKeyAttributes"
			c.length(at, bracketed(*p.NonKeyAttributes), len(*p.NonKeyAttributes), 1, 20)
			for i, name := range *p.NonKeyAttributes {
				c.length(member(at, i), name, len(name), 1, maxKeyName)
			}
		}
	}
	c.throughput(at+".provisionedThroughput", index.ProvisionedThroughput)
}

// indexName holds that the name of an index is there, and one that an index may have.
func (c *constraints) indexName(at string, name *string) {
	c.required(at, name != nil)
	if name != nil {
		c.name(at, *name)
	}
}

// throughput holds that throughput, if it is there, is of at least one unit each.
func (c *constraints) throughput(at string, p *provisionedThroughput) {
	if p == nil {
		return
	}
	for _, units := range []struct {
		at string
		n  *int64
	}{{at + ".writeCapacityUnits", p.WriteCapacityUnits}, {at + ".readCapacityUnits", p.ReadCapacityUnits}} {
		c.required(units.at, units.n != nil)
		if units.n != nil && *units.n < 1 {
			c.breaks(units.at, quote(fmt.Sprint(*units.n)), "Member must have value greater than or equal to 1")
		}
	}
}

// stream holds that a stream, if it is there, says whether it is enabled and has a known view type.
func (c *constraints) stream(s *streamSpecification) {
	if s != nil {
		c.required("streamSpecification.streamEnabled", s.StreamEnabled != nil)
		c.enum("streamSpecification.streamViewType", s.StreamViewType,
			"NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES", "KEYS_ONLY")
	}
}

// showKeySchema returns a key schema as messages show it.
func showKeySchema(elements []keySchemaElement) string {
	var shown []string
	for _, e := range elements {
		shown = append(shown, "KeySchemaElement(attributeName="+orNull(e.AttributeName)+", keyType="+
			orNull(e.KeyType)+")")
	}
	return bracketed(shown)
}

// bracketed returns a list as messages show it.
func bracketed(list []string) string { return "[" + strings.Join(list, ", ") + "]" }

// orNull returns what messages show of a string that may not be there.
func orNull(s *string) string {
	if s == nil {
		return "null"
	}
	return *s
}
