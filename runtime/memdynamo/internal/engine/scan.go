package engine

import (
	"context"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/expr"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/table"
)

// scanInput is the input of Scan.
type scanInput struct {
	readInput
	Segment, TotalSegments *int
}

// maxSegments is how many parts a parallel scan has at most.
const maxSegments = 1_000_000

// scan reads the rows of all partitions, or of a segment's share of them.
func scan(_ context.Context, db *DB, input []byte) ([]byte, error) {
	in, err := decode[scanInput](input)
	if err != nil {
		return nil, err
	}
	if err := in.validate(); err != nil {
		return nil, err
	}
	scope, err := in.scope(
		expression{expr.ProjectionExpression, in.ProjectionExpression},
		expression{expr.FilterExpression, in.FilterExpression})
	if err != nil {
		return nil, err
	}
	if err := in.checkSegments(); err != nil {
		return nil, err
	}
	r, err := in.reading(scope)
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
	if err := r.checkConsistent(); err != nil {
		return nil, err
	}
	if err := r.checkStart(); err != nil {
		return nil, err
	}
	if in.TotalSegments != nil {
		r.rows.Segment, r.rows.Segments = *in.Segment, *in.TotalSegments
		if err := r.checkStartSegment(m); err != nil {
			return nil, err
		}
	}
	if err := r.checkScalars(); err != nil {
		return nil, err
	}
	if err := r.checkSelect(); err != nil {
		return nil, err
	}
	return r.answer(db, m, "Scan")
}

// validate holds the parameters to the rules of each one alone.
func (in *scanInput) validate() error {
	c := in.constraints()
	c.between("segment", in.Segment, 0, maxSegments-1)
	c.between("totalSegments", in.TotalSegments, 1, maxSegments)
	if err := c.err(); err != nil {
		return err
	}
	return in.refuse()
}

// checkSegments errs unless both parameters of a parallel scan are there, or none is.
func (in *scanInput) checkSegments() error {
	switch {
	case in.Segment == nil && in.TotalSegments == nil:
		return nil
	case in.TotalSegments == nil:
		return exception.Invalid("The TotalSegments parameter is required but was not present in the request " +
			"when Segment parameter is present")
	case in.Segment == nil:
		return exception.Invalid("The Segment parameter is required but was not present in the request " +
			"when parameter TotalSegments is present")
	case *in.Segment >= *in.TotalSegments:
		return exception.Invalid(
			"The Segment parameter is zero-based and must be less than parameter TotalSegments: "+
				"Segment: %d is not less than TotalSegments: %d", *in.Segment, *in.TotalSegments)
	}
	return nil
}

// checkStartSegment errs if the start key is of another segment.
func (r *reading) checkStartSegment(m moment) error {
	if r.startKey == nil {
		return nil
	}
	rows, _ := r.view(m)
	if rows.Holds(table.Range{Segment: r.rows.Segment, Segments: r.rows.Segments}, r.startKey) {
		return nil
	}
	return exception.Invalid("The provided starting key is invalid: Invalid ExclusiveStartKey. "+
		"Please use ExclusiveStartKey with correct Segment. TotalSegments: %d Segment: %d", r.rows.Segments,
		r.rows.Segment)
}
