package expr

import (
	"testing"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

func TestSize(t *testing.T) {
	tests := []struct {
		v    value.Value
		want int64 // -1: has none
	}{
		{value.String(""), 0},
		{value.String("abc"), 3},
		{value.String("é😀a"), 4}, // UTF-16 code units
		{value.Binary("\x00\xff"), 2},
		{value.Strings{"a", "b"}, 2},
		{value.Numbers{value.NumberOf(1)}, 1},
		{value.Binaries{"a", "b", "c"}, 3},
		{value.List{}, 0},
		{value.List{value.Null{}, value.Null{}}, 2},
		{value.Map{"a": value.Null{}}, 1},
		{value.NumberOf(3), -1},
		{value.Bool(true), -1},
		{value.Null{}, -1},
		{nil, -1},
	}
	for _, test := range tests {
		item := value.Map{}
		if test.v != nil {
			item["a"] = test.v
		}
		c, err := newScope(t, nil, value.Map{":n": number(test.want)}).Condition(FilterExpression, "size(a) = :n")
		if err != nil {
			t.Fatal(err)
		}
		if holds := c.Holds(item); holds != (test.want >= 0) {
			t.Errorf("size of %v = %d: %v", test.v, test.want, holds)
		}
	}
}

// Without an item, nothing is there; and still a condition may hold.
func TestHoldsOfNoItem(t *testing.T) {
	for text, want := range map[string]bool{
		"attribute_not_exists(a)":               true,
		"attribute_exists(a) OR a.b[0] = :n":    false,
		"a <> :n AND NOT a > :n AND :n IN (:n)": true,
		"size(a) < :n":                          false,
	} {
		c, err := newScope(t, nil, value.Map{":n": number(1)}).Condition(ConditionExpression, text)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Holds(nil); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
