package expr

import (
	"strings"
	"testing"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

func TestNewScopeChecksKeys(t *testing.T) {
	x := value.String("x")
	const names, values = "ExpressionAttributeNames ", "ExpressionAttributeValues "
	const syntax = "contains invalid key: Syntax error; key: "
	long := strings.Repeat("a", 255)
	tests := []struct {
		names  map[string]string
		values value.Map
		want   string
	}{
		{nil, nil, ""},
		{map[string]string{"#a": "x", "#_": "y", "#9": "z", "#aZ_9": "w"}, value.Map{":a": x, ":_": x, ":9": x},
			""},
		{map[string]string{"#" + long[1:]: "x"}, value.Map{":" + long[1:]: x}, ""},
		{map[string]string{"#a": strings.Repeat("x", 65535)}, nil, ""},

		{map[string]string{}, nil, names + "must not be empty"},
		{nil, value.Map{}, values + "must not be empty"},
		{map[string]string{}, value.Map{}, names + "must not be empty"},
		{map[string]string{"a": "x"}, nil, names + syntax + `"a"`},
		{map[string]string{"#": "x"}, nil, names + syntax + `"#"`},
		{map[string]string{":a": "x"}, nil, names + syntax + `":a"`},
		{map[string]string{"#a-b": "x"}, nil, names + syntax + `"#a-b"`},
		{map[string]string{"#a b": "x", "a": "y"}, nil, names + syntax + `"#a b"`},
		{map[string]string{"#é": "x"}, nil, names + syntax + `"#é"`},
		{map[string]string{"": "x"}, nil,
			names + "contains invalid key: The expression attribute map contains an empty key;"},
		{map[string]string{"#" + long: "x"}, nil,
			names + "contains invalid key: The expression attribute map contains a key that is too long; size of " +
				"key: 256"},
		{nil, value.Map{":" + long: x},
			values + "contains invalid key: The expression attribute map contains a key that is too long;"},
		{nil, value.Map{"a": x}, values + syntax + `"a"`},
		{nil, value.Map{":": x}, values + syntax + `":"`},
		{nil, value.Map{"#a": x}, values + syntax + `"#a"`},
		{map[string]string{"b": "x"}, value.Map{"a": x}, names + syntax + `"b"`},
		{map[string]string{"#a": ""}, nil, names + "contains invalid value: Empty attribute name for key #a"},
		{map[string]string{"#a": strings.Repeat("x", 65536)}, nil,
			names + "contains invalid value: Attribute name is too large, must be less than 65536 bytes for key #a"},
	}
	for _, test := range tests {
		got := ""
		if _, err := NewScope(test.names, test.values); err != nil {
			got = invalid(t, err)
		}
		if got != test.want {
			t.Errorf("%.80v %.80v:\n got %s\nwant %s", test.names, test.values, got, test.want)
		}
	}
}

func TestUnused(t *testing.T) {
	names := map[string]string{"#a": "a", "#b": "b"}
	values := value.Map{":a": value.String("x"), ":b": value.String("y")}
	tests := []struct{ condition, want string }{
		{"#a = :a AND #b = :b", ""},
		{"x.#a = :a AND x[0].#b IN (:a, :b)", ""},
		{"x = y", "Value provided in ExpressionAttributeNames unused in expressions: keys: {#a, #b}"},
		{"#b = :a AND x = :b", "Value provided in ExpressionAttributeNames unused in expressions: keys: {#a}"},
		{"#a = #b", "Value provided in ExpressionAttributeValues unused in expressions: keys: {:a, :b}"},
		{"#a = #b.#a AND x = :a", "Value provided in ExpressionAttributeValues unused in expressions: keys: {:b}"},
	}
	for _, test := range tests {
		s := newScope(t, names, values)
		if _, err := s.Condition(ConditionExpression, test.condition); err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := s.Unused(); err != nil {
			got = invalid(t, err)
		}
		if got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.condition, got, test.want)
		}
	}
}

func TestUnusedIsOfAllExpressions(t *testing.T) {
	s := newScope(t, map[string]string{"#a": "a", "#b": "b"}, value.Map{":a": value.String("x"),
		":b": value.String("y")})
	if _, err := s.Update("SET #a = if_not_exists(x, :a)"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Condition(ConditionExpression, "z = :b"); err != nil {
		t.Fatal(err)
	}
	if err := s.Unused(); err == nil {
		t.Error("#b is used by nothing")
	}
	if _, err := s.Projection("x.#b"); err != nil {
		t.Fatal(err)
	}
	if err := s.Unused(); err != nil {
		t.Error(err)
	}
}

func TestUnusedOfNothing(t *testing.T) {
	if err := newScope(t, nil, nil).Unused(); err != nil {
		t.Error(err)
	}
}
