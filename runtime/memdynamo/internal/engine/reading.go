package engine

import (
	"slices"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/expr"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/table"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// Values of Select.
const (
	allAttributes      = "ALL_ATTRIBUTES"
	allProjected       = "ALL_PROJECTED_ATTRIBUTES"
	countOnly          = "COUNT"
	specificAttributes = "SPECIFIC_ATTRIBUTES"
)

// readInput is what Query and Scan have in common.
type readInput struct {
	TableName, IndexName, Select           *string
	Limit                                  *int
	ExclusiveStartKey                      map[string]*value.Wire
	ConsistentRead                         bool
	FilterExpression, ProjectionExpression *string
	ReturnConsumedCapacity                 *string
	expressionAttributes
	legacy
}

// selects reports whether Select is that.
func (in *readInput) selects(what string) bool { return in.Select != nil && *in.Select == what }

// constraints holds the parameters to the rules of each one alone.
func (in *readInput) constraints() *constraints {
	var c constraints
	c.enum("select", in.Select, specificAttributes, countOnly, allAttributes, allProjected)
	if in.IndexName != nil {
		c.name("indexName", *in.IndexName)
	}
	c.consumed(in.ReturnConsumedCapacity)
	c.table(in.TableName)
	c.between("limit", in.Limit, 1, 0)
	return &c
}

// reading is a Query or a Scan of its table. It is all there is to know for a page.
type reading struct {
	in         *readInput
	startKey   value.Map // nil: from the start
	filter     *expr.Condition
	projection *expr.Projection

	table *tableState
	index *table.IndexDef // nil: of the table
	keys  []table.Attribute
	fetch bool // reads whole items from the table, though of a local index
	rows  table.Range
}

// reading returns the request as far as it can be read without its table.
func (in *readInput) reading(scope *expr.Scope) (r *reading, err error) {
	r = &reading{in: in}
	if r.startKey, err = value.DecodeMap(in.ExclusiveStartKey); err != nil {
		return nil, err
	}
	if in.FilterExpression != nil {
		if r.filter, err = scope.Condition(expr.FilterExpression, *in.FilterExpression); err != nil {
			return nil, err
		}
	}
	if in.ProjectionExpression != nil {
		if r.projection, err = scope.Projection(*in.ProjectionExpression); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// aim finds the table and the index to read.
func (r *reading) aim(db *DB) error {
	t, err := db.lookup(*r.in.TableName)
	if err != nil {
		return err
	}
	r.table, r.keys = t, keyAttributes(t.Def.Key)
	if r.in.IndexName == nil {
		return nil
	}
	if r.index = t.index(*r.in.IndexName); r.index == nil {
		return exception.Invalid("The table does not have the specified index: %s", *r.in.IndexName)
	}
	for _, a := range keyAttributes(r.index.Key) {
		if !slices.Contains(r.keys, a) {
			r.keys = append(r.keys, a)
		}
	}
	return nil
}

// key returns the key by which to read: the index's, or the table's.
func (r *reading) key() table.KeySchema {
	if r.index != nil {
		return r.index.Key
	}
	return r.table.Def.Key
}

// checkConsistent errs if a global index is to be read consistently.
func (r *reading) checkConsistent() error {
	if r.in.ConsistentRead && r.index != nil && !r.index.Local {
		return exception.Invalid("Consistent reads are not supported on global secondary indexes")
	}
	return nil
}

// checkScalars errs if an expression of the read goes into an attribute that is of a key.
func (r *reading) checkScalars() error {
	if r.projection != nil {
		if err := r.table.checkScalars(r.projection); err != nil {
			return err
		}
	}
	if r.filter != nil {
		return r.table.checkScalars(r.filter)
	}
	return nil
}

// checkSelect errs if Select does not fit the other parameters, or wants attributes that the index cannot
// return. It also sets whether a local index has to fetch whole items from the table.
func (r *reading) checkSelect() error {
	in, projects := r.in, r.projection != nil
	switch {
	case in.selects(countOnly) && projects:
		return exception.Invalid("Cannot specify the ProjectionExpression when choosing to get only the Count")
	case projects && in.Select != nil && *in.Select != specificAttributes:
		return exception.Invalid("Cannot specify the ProjectionExpression when choosing to get %s", *in.Select)
	case in.selects(specificAttributes) && !projects:
		return exception.Invalid("Must specify the AttributesToGet or ProjectionExpression when choosing to get " +
			"SPECIFIC_ATTRIBUTES")
	case in.selects(allProjected) && r.index == nil:
		return exception.Invalid("ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName")
	case r.index == nil || r.index.Projection.Type == "ALL":
		return nil
	}
	var missing []string
	if projects {
		missing = r.missing(r.projection.Attributes())
	}
	all := in.selects(allAttributes)
	switch {
	case r.index.Local:
		r.fetch = all || len(missing) > 0
	case all:
		return invalidParameters("Select type ALL_ATTRIBUTES is not supported for global secondary index %s "+
			"because its projection type is not ALL", r.index.Name)
	case len(missing) > 0:
		return invalidParameters("Global secondary index %s does not project %s", r.index.Name, bracketed(missing))
	}
	return nil
}

// missing returns those of the attributes that the index does not hold.
func (r *reading) missing(attributes []string) []string {
	return slices.DeleteFunc(slices.Clone(attributes), func(name string) bool {
		return slices.Contains(r.index.Projection.NonKey, name) ||
			slices.ContainsFunc(r.keys, func(a table.Attribute) bool { return a.Name == name })
	})
}

// emptyText says that a value for an attribute of the key is of no bytes; what is what kind of value it is.
func (r *reading) emptyText(attribute, what string) string {
	if r.index != nil && isKeyOf(r.index.Key, attribute) {
		return emptyIndexKeyText(what, r.index.Name, attribute)
	}
	return emptyKeyText(what, attribute)
}

// checkStart errs unless the start key, if there is one, has the key attributes of what is read, and nothing
// else.
func (r *reading) checkStart() error {
	if r.startKey == nil {
		return nil
	}
	const invalid = "The provided starting key is invalid"
	mismatch := exception.Invalid(invalid + ": The provided key element does not match the schema")
	missing := exception.Invalid(invalid)
	scansTable := r.index == nil && r.rows.Hash == nil
	if scansTable { // where the service says more
		missing = mismatch
	}
	if len(r.startKey) != len(r.keys) {
		return missing
	}
	for _, a := range r.keys {
		v, ok := r.startKey[a.Name]
		switch {
		case !ok:
			return missing
		case v.Kind() != a.Kind && !scansTable && isKeyOf(r.key(), a.Name):
			return badKey()
		case v.Kind() != a.Kind:
			return mismatch
		}
		if what, empty := emptyKey(v); empty {
			return exception.Invalid(invalid+": %s", r.emptyText(a.Name, what))
		}
	}
	r.rows.After = r.startKey
	return nil
}
