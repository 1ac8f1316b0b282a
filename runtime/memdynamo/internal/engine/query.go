package engine

import (
	"context"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/expr"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/table"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// queryInput is the input of Query.
type queryInput struct {
	readInput
	KeyConditionExpression *string
	ScanIndexForward       *bool
}

// query reads rows of one partition, in the order of their sort keys.
func query(_ context.Context, db *DB, input []byte) ([]byte, error) {
	in, err := decode[queryInput](input)
	if err != nil {
		return nil, err
	}
	if err := in.constraints().err(); err != nil {
		return nil, err
	}
	if err := in.refuse(); err != nil {
		return nil, err
	}
	scope, err := in.scope(
		expression{expr.ProjectionExpression, in.ProjectionExpression},
		expression{expr.FilterExpression, in.FilterExpression},
		expression{expr.KeyConditionExpression, in.KeyConditionExpression})
	if err != nil {
		return nil, err
	}
	if in.KeyConditionExpression == nil {
		return nil, exception.Invalid("Either the KeyConditions or KeyConditionExpression parameter must be " +
			"specified in the request.")
	}
	r, err := in.reading(scope)
	if err != nil {
		return nil, err
	}
	condition, err := scope.KeyCondition(*in.KeyConditionExpression)
	if err != nil {
		return nil, err
	}
	if err := scope.Unused(); err != nil {
		return nil, err
	}
	m := db.enter()
	defer db.mu.Unlock()
	if err := r.aim(db); err != nil {
		return nil, err
	}
	if err := r.narrow(condition); err != nil {
		return nil, err
	}
	r.rows.Reverse = in.ScanIndexForward != nil && !*in.ScanIndexForward
	return r.answer(db, m, "Query")
}

// narrow sets the rows to read to those of the condition. It errs where parameters do not fit the table or
// each other.
func (r *reading) narrow(to *expr.KeyExpression) error {
	condition, err := to.For(r.key().Hash.Name, r.key().Sort.Name)
	if err != nil {
		return err
	}
	if err := r.checkConsistent(); err != nil {
		return err
	}
	if err := r.checkCondition(condition); err != nil {
		return err
	}
	r.rows.Hash = condition.Hash
	r.rows.From, r.rows.To = bounds(condition)
	if err := r.checkStart(); err != nil {
		return err
	}
	if err := r.checkStartWithin(condition); err != nil {
		return err
	}
	if err := r.checkScalars(); err != nil {
		return err
	}
	if err := r.checkFilter(); err != nil {
		return err
	}
	return r.checkSelect()
}

// checkCondition errs if the condition's values are none that the key can have.
func (r *reading) checkCondition(condition *expr.KeyCondition) error {
	key := r.key()
	values := []struct {
		of table.Attribute
		v  value.Value
	}{{key.Hash, condition.Hash}, {key.Sort, condition.Sort}, {key.Sort, condition.End}}
	for _, c := range values {
		if c.v != nil && c.v.Kind() != c.of.Kind {
			return invalidParameters("Condition parameter type does not match schema type")
		}
	}
	for _, c := range values {
		if c.v == nil {
			continue
		}
		if what, empty := emptyKey(c.v); empty {
			return exception.Invalid("%s", r.emptyText(c.of.Name, what))
		}
		if c.of == key.Sort {
			if err := checkKeySizes(key, value.Map{key.Sort.Name: c.v}); err != nil {
				return err
			}
		}
	}
	return nil
}

// bounds returns the range of sort keys that the condition wants.
func bounds(c *expr.KeyCondition) (from, to *table.Bound) {
	switch at := (&table.Bound{Value: c.Sort}); c.Op {
	case expr.EQ:
		return at, at
	case expr.LT:
		return nil, &table.Bound{Value: c.Sort, Exclusive: true}
	case expr.LE:
		return nil, at
	case expr.GT:
		return &table.Bound{Value: c.Sort, Exclusive: true}, nil
	case expr.GE:
		return at, nil
	case expr.Between:
		return at, &table.Bound{Value: c.End}
	case expr.BeginsWith:
		return table.Prefix(c.Sort)
	default:
		return nil, nil
	}
}

// checkStartWithin errs if the start key, whose attributes have been checked, is not of the rows to read.
func (r *reading) checkStartWithin(condition *expr.KeyCondition) error {
	if r.startKey == nil {
		return nil
	}
	key := r.key()
	same := value.Equal(r.startKey[key.Hash.Name], condition.Hash)
	switch {
	case condition.Op == expr.All && !same:
		return exception.Invalid("The provided starting key is outside query boundaries based on provided " +
			"conditions")
	case condition.Op != expr.All && !within(r.startKey[key.Sort.Name], r.rows.From, r.rows.To):
		return exception.Invalid("The provided starting key does not match the range key predicate")
	case !same:
		return exception.Invalid("The query can return at most one row and cannot be restarted")
	}
	return nil
}

// within reports whether v, of the bounds' type, is in their range.
func within(v value.Value, from, to *table.Bound) bool {
	if from != nil {
		if order, _ := value.Compare(v, from.Value); order < 0 || order == 0 && from.Exclusive {
			return false
		}
	}
	if to != nil {
		if order, _ := value.Compare(v, to.Value); order > 0 || order == 0 && to.Exclusive {
			return false
		}
	}
	return true
}

// checkFilter errs if the filter asks for what the key condition is for, or for what the index does not have.
func (r *reading) checkFilter() error {
	if r.filter == nil {
		return nil
	}
	attributes := r.filter.Attributes()
	for _, a := range keyAttributes(r.key()) {
		for _, name := range attributes {
			if name == a.Name {
				return exception.Invalid("Filter Expression can only contain non-primary key attributes: Primary key "+
					"attribute: %s", name)
			}
		}
	}
	if r.index == nil || r.index.Projection.Type == "ALL" {
		return nil
	}
	if missing := r.missing(attributes); len(missing) > 0 {
		return invalidParameters("Secondary index %s does not project one or more filter attributes: %s",
			r.index.Name, bracketed(missing))
	}
	return nil
}
