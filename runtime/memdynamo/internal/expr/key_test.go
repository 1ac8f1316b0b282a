package expr

import (
	"fmt"
	"testing"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

func TestKeyCondition(t *testing.T) {
	const (
		unsupported = "Query key condition not supported"
		nested      = "KeyConditionExpressions cannot contain nested operations"
		path        = "KeyConditionExpressions cannot have conditions on nested attributes"
		twice       = "KeyConditionExpressions must only contain one condition per key"
		operator    = "Invalid operator used in KeyConditionExpression: "
		condition   = "Invalid condition in KeyConditionExpression: "
	)
	tests := []struct{ text, want string }{
		{"h = :s", "{hello 0 <nil> <nil>}"},
		{":s = h", "{hello 0 <nil> <nil>}"},
		{"#h = :s", "{hello 0 <nil> <nil>}"},
		{"h = :s AND r = :n", "{hello 1 5 <nil>}"},
		{"r = :n and h = :s", "{hello 1 5 <nil>}"},
		{"(h = :s AND r < :n)", "{hello 2 5 <nil>}"},
		{"(h = :s) AND (r <= :n)", "{hello 3 5 <nil>}"},
		{"h = :s AND r > :n", "{hello 4 5 <nil>}"},
		{"h = :s AND r >= :n", "{hello 5 5 <nil>}"},
		{"h = :s AND :n < r", "{hello 4 5 <nil>}"},
		{"h = :s AND :n <= r", "{hello 5 5 <nil>}"},
		{"h = :s AND :n > r", "{hello 2 5 <nil>}"},
		{"h = :s AND :n >= r", "{hello 3 5 <nil>}"},
		{"r BETWEEN :n AND :m AND h = :s", "{hello 6 5 7}"},
		{"h = :s AND begins_with(r, :s)", "{hello 7 hello <nil>}"},
		{"h = :n", "{5 0 <nil> <nil>}"}, // types are the table's to check

		{"h <> :s", operator + "<>"},
		{"h = :s AND r <> :n", operator + "<>"},
		{"h = :s OR r = :n", operator + "OR"},
		{"h > r AND size(r) > x OR h > x", operator + "OR"},
		{"NOT h = :s", operator + "NOT"},
		{"h = :s AND NOT r = :n", operator + "NOT"},
		{"h IN (:s)", operator + "IN"},
		{"h IN (r, size(x), x)", operator + "IN"},
		{"attribute_exists(h)", operator + "attribute_exists"},
		{"attribute_not_exists(h)", operator + "attribute_not_exists"},
		{"h = :s AND attribute_type(r, :S)", operator + "attribute_type"},
		{"contains(h.x, r)", operator + "contains"},

		{":s BETWEEN size(r) AND size(h) AND r > :n",
			condition + "BETWEEN operator must have the key attribute as its first operand"},
		{"begins_with(:s, r) AND h > :n",
			condition + "begins_with operator must have the key attribute as its first operand"},
		{"size(r) > h AND h.x > r", nested},
		{"h > size(r.x)", nested},
		{"h BETWEEN size(r) AND size(h)", nested},
		{"h = r", condition + "Multiple attribute names used in one condition"},
		{"r > h.x", condition + "Multiple attribute names used in one condition"},
		{"h BETWEEN r AND size(h)", condition + "Multiple attribute names used in one condition"},
		{"begins_with(h, r)", condition + "Multiple attribute names used in one condition"},
		{"h.x > r AND c.x > e.f", path},
		{"h = :s AND r[0] = :n", path},
		{":s = :s", condition + "No key attribute specified"},
		{":s > h AND :s < :n", condition + "No key attribute specified"},
		{"h = :s AND h = :s", twice},
		{"h = :s AND r > :n AND r < :m", twice},

		{"h = :s AND r = :n AND x = :n", "Conditions can be of length 1 or 2 only"},
		{"h = :s AND (r = :n AND x = :n)", "Conditions can be of length 1 or 2 only"},
		{"r = :n", "Query condition missed key schema element: h"},
		{"x = :n AND r = :n", "Query condition missed key schema element: h"},
		{"h = :s AND x = :n", "Query condition missed key schema element: r"},
		{"h < :s", unsupported},
		{"h > :s AND r = :n", unsupported},
		{"begins_with(h, :s)", unsupported},
		{"h BETWEEN :s AND :z", unsupported},

		{"", "Invalid KeyConditionExpression: The expression can not be empty;"},
		{"h =", `Invalid KeyConditionExpression: Syntax error; token: "<EOF>", near: "="`},
		{"name = :n",
			"Invalid KeyConditionExpression: Attribute name is a reserved keyword; reserved keyword: name"},
		{"h = :q", "Invalid KeyConditionExpression: An expression attribute value used in expression is not " +
			"defined; attribute value: :q"},
		{"h = :s AND r < :t", "Invalid KeyConditionExpression: Incorrect operand type for operator or function; " +
			"operator or function: <, operand type: BOOL"},
		{"h = :s AND begins_with(r, :n)",
			"Invalid KeyConditionExpression: Incorrect operand type for operator or function; " +
				"operator or function: begins_with, operand type: N"},
		{"h = :s AND size(r)",
			"Invalid KeyConditionExpression: The function is not allowed to be used this way in an expression; " +
				"function: size"},
	}
	r := readRequest(t)
	for _, test := range tests {
		if got := keyCondition(t, r.scope(t), test.text, "r"); got != test.want {
			t.Errorf("%q:\n got %s\nwant %s", test.text, got, test.want)
		}
	}
}

func TestKeyConditionWithoutSortKey(t *testing.T) {
	r := readRequest(t)
	for text, want := range map[string]string{
		"h = :s":            "{hello 0 <nil> <nil>}",
		"h = :s AND r = :n": "Query key condition not supported",
		"r = :n AND x = :n": "Query key condition not supported",
		"r = :n":            "Query condition missed key schema element: h",
		"h > :s":            "Query key condition not supported",
	} {
		if got := keyCondition(t, r.scope(t), text, ""); got != want {
			t.Errorf("%q:\n got %s\nwant %s", text, got, want)
		}
	}
}

// TestKeyConditionReadsBeforeItMeetsTheKey holds that unused names and values are reported before a condition
// that the key cannot answer.
func TestKeyConditionReadsBeforeItMeetsTheKey(t *testing.T) {
	s := newScope(t, nil, value.Map{":a": value.String("x"), ":b": value.String("y")})
	e, err := s.KeyCondition("h <> :a")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Unused(); err == nil {
		t.Error(":b is not unused")
	}
	if _, err := e.For("h", "r"); err == nil {
		t.Error("<> serves a key")
	}
}

func keyCondition(t *testing.T, s *Scope, text, sort string) string {
	t.Helper()
	e, err := s.KeyCondition(text)
	if err != nil {
		return invalid(t, err)
	}
	k, err := e.For("h", sort)
	if err != nil {
		return invalid(t, err)
	}
	return fmt.Sprintf("{%v %d %v %v}", k.Hash, k.Op, k.Sort, k.End)
}
