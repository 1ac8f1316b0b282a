package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// TestConsumed: a failed condition counts, as does a read.
func TestConsumed(t *testing.T) {
	w, callers, err := crowded(t.Context(), 1, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := callers[0](t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := w.consumed(), (bill{calls: 1, writeUnits: 1}); got != want {
		t.Errorf("an acquire: %+v, want %+v", got, want)
	}
	_, err = w.engine.Client().PutItem(t.Context(), &dynamodb.PutItemInput{
		TableName: aws.String(table), Item: codec.Item{"PK": codec.S("ENTITY#project-hot"),
			"SK": codec.S("#BUCKET#hot")},
		ConditionExpression: aws.String("attribute_not_exists(PK)"),
	})
	if got, want := w.consumed(), (bill{calls: 2, writeUnits: 2, refusedUnits: 1}); err == nil || got != want {
		t.Errorf("and a refused write: %v, %+v, want %+v", err, got, want)
	}
	fresh, err := w.process()
	if err != nil {
		t.Fatal(err)
	}
	w.engine.ResetConsumed()
	if err := on(fresh, "hot")(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.consumed(); got.reads != 1 || got.readUnits < 1 || got.writeUnits != 1 ||
		got.units() != got.readUnits+1 {
		t.Errorf("a first call: %+v", got)
	}
}

// TestClosedLoop counts by how calls end, and ends with the first that is none of those.
func TestClosedLoop(t *testing.T) {
	ends := []error{nil, &runtime.DeniedError{}, nil, &runtime.ContendedError{}, errors.New("the cable is cut")}
	n := 0
	call := func(context.Context) error { n++; return ends[n-1] }
	o, _, err := closedLoop(t.Context(), []caller{call}, time.Hour)
	if want := (outcome{admitted: 2, denied: 1, contended: 1}); o != want || !errors.Is(err, ends[4]) {
		t.Errorf("%+v, %v", o, err)
	}
	if _, _, err := closedLoop(t.Context(), nil, 0); err == nil {
		t.Error("nobody was admitted, which is no error")
	}
}
