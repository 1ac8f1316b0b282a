package expr

import (
	"testing"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

const (
	sixTerms   = "attribute_exists(pk) AND a = :a AND b <> :b AND (c < :c OR #d >= :c) AND begins_with(e, :e)"
	fourParts  = "SET a = a + :c, m.b = if_not_exists(m.b, :b), l[1] = :a REMOVE c, l[0] ADD n :c DELETE s :s"
	threePaths = "pk, m.b, l[1].x"
)

var (
	benchNames  = map[string]string{"#d": "d"}
	benchValues = value.Map{
		":a": value.NumberOf(1), ":b": value.String("x"), ":c": value.NumberOf(7), ":e": value.String("he"),
		":s": value.Strings{"u"},
	}
	benchItem = value.Map{
		"pk": value.String("k"), "a": value.NumberOf(1), "b": value.String("y"), "c": value.NumberOf(9),
		"d": value.NumberOf(9), "e": value.String("hello"), "n": value.NumberOf(3), "s": value.Strings{"u", "v"},
		"m": value.Map{"b": value.String("z")}, "l": value.List{value.NumberOf(1),
			value.Map{"x": value.NumberOf(2)}},
	}
)

func BenchmarkScope(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		newScope(b, benchNames, benchValues)
	}
}

func BenchmarkParseCondition(b *testing.B) {
	s := newScope(b, benchNames, benchValues)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Condition(ConditionExpression, sixTerms); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkHolds(b *testing.B) {
	c, err := newScope(b, benchNames, benchValues).Condition(ConditionExpression, sixTerms)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if !c.Holds(benchItem) {
			b.Fatal("it does not hold")
		}
	}
}

func BenchmarkParseUpdate(b *testing.B) {
	s := newScope(b, benchNames, benchValues)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Update(fourParts); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkApply(b *testing.B) {
	u, err := newScope(b, benchNames, benchValues).Update(fourParts)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := u.Apply(benchItem); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseProjection(b *testing.B) {
	s := newScope(b, benchNames, benchValues)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Projection(threePaths); err != nil {
			b.Fatal(err)
		}
	}
}
