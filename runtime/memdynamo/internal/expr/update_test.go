package expr

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// TestApplyCopiesOnlyTheWay holds that an update copies the maps and lists it changes, and keeps all others.
func TestApplyCopiesOnlyTheWay(t *testing.T) {
	shared := value.Map{"deep": value.List{number(1)}}
	item := value.Map{
		"m": value.Map{"a": value.Map{"x": number(1)}, "b": shared},
		"l": value.List{value.Map{"x": number(1)}, shared},
		"z": shared,
	}
	u, err := newScope(t, nil, value.Map{":n": number(2)}).Update("SET m.a.x = :n, l[0].x = :n REMOVE m.a.y")
	if err != nil {
		t.Fatal(err)
	}
	after, err := u.Apply(item)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"l":{"L":[{"M":{"x":{"N":"2"}}},{"M":{"deep":{"L":[{"N":"1"}]}}}]},` +
		`"m":{"M":{"a":{"M":{"x":{"N":"2"}}},"b":{"M":{"deep":{"L":[{"N":"1"}]}}}}},` +
		`"z":{"M":{"deep":{"L":[{"N":"1"}]}}}}`
	if got := string(value.AppendMap(nil, after)); got != want {
		t.Errorf(" got %s\nwant %s", got, want)
	}
	for _, path := range []string{"m.b", "l[1]", "z"} {
		if !same(at(t, item, path), at(t, after, path)) {
			t.Errorf("%s was copied", path)
		}
	}
	for _, path := range []string{"m", "m.a", "l", "l[0]"} {
		if same(at(t, item, path), at(t, after, path)) {
			t.Errorf("%s was not copied", path)
		}
	}
}

// at returns what is at the path written in text.
func at(t *testing.T, item value.Map, text string) value.Value {
	t.Helper()
	paths, err := parseProjection(text)
	if err != nil {
		t.Fatal(err)
	}
	return paths[0].in(item)
}

// same reports whether a and b are the same map or list, not merely equal ones.
func same(a, b value.Value) bool { return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() }

func TestApplyToNothing(t *testing.T) {
	u, err := newScope(t, nil, value.Map{":n": number(2)}).Update(
		"SET a = if_not_exists(a, :n) ADD c :n REMOVE d")
	if err != nil {
		t.Fatal(err)
	}
	after, err := u.Apply(nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(value.AppendMap(nil, after)), `{"a":{"N":"2"},"c":{"N":"2"}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Arithmetic is exact over all of a number's 38 digits, and errs past them.
func TestApplyIsExact(t *testing.T) {
	nines := strings.Repeat("9", 38)
	tests := []struct{ have, operand, update, want string }{
		{nines, "1", "SET n = n - :n", strings.Repeat("9", 37) + "8"},
		{"-" + nines, nines, "ADD n :n", "0"},
		{"0.1", "0.2", "ADD n :n", "0.3"},
		{"9223372036854775807", "1", "SET n = n + :n", "9223372036854775808"},
		{"1", nines, "SET n = n - :n", "-" + strings.Repeat("9", 37) + "8"},
		{nines, "1", "SET n = :n + n", "1" + strings.Repeat("0", 38)},
		{nines, "2", "SET n = n + :n", ""},
		{nines, "2", "ADD n :n", ""},
		{nines, "0.1", "ADD n :n", ""},
		{"1e125", "1", "SET n = n - :n", ""},
		{"9.9e125", "9.9e125", "ADD n :n", ""},
	}
	for _, test := range tests {
		u, err := newScope(t, nil, value.Map{":n": parse(t, test.operand)}).Update(test.update)
		if err != nil {
			t.Fatal(err)
		}
		after, err := u.Apply(value.Map{"n": parse(t, test.have)})
		switch {
		case err != nil && test.want == "":
			invalid(t, err)
		case err != nil:
			t.Errorf("%s and %s, %s: %v", test.have, test.operand, test.update, err)
		case test.want == "" || !value.Equal(after["n"], parse(t, test.want)):
			t.Errorf("%s and %s, %s: got %v, want %q", test.have, test.operand, test.update, after["n"], test.want)
		}
	}
}

func parse(t *testing.T, text string) value.Number {
	t.Helper()
	n, err := value.ParseNumber(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// UPDATED_OLD and UPDATED_NEW are the paths of the update, as far as they are there.
func TestUpdated(t *testing.T) {
	tests := []struct{ update, before, after string }{
		{"SET n = :m", `{"n":{"N":"5"}}`, `{"n":{"N":"7"}}`},
		{"SET m.a = :m, m.b.c = :s", `{"m":{"M":{"a":{"N":"1"},"b":{"M":{"c":{"S":"d"}}}}}}`,
			`{"m":{"M":{"a":{"N":"7"},"b":{"M":{"c":{"S":"hello"}}}}}}`},
		{"SET l[1] = :m, l[0] = :s", `{"l":{"L":[{"N":"1"},{"S":"two"}]}}`,
			`{"l":{"L":[{"S":"hello"},{"N":"7"}]}}`},
		{"SET l[9] = :m", `{}`, `{}`},
		{"SET x = :n REMOVE n", `{"n":{"N":"5"}}`, `{"x":{"N":"5"}}`},
		{"REMOVE n, x", `{"n":{"N":"5"}}`, `{}`},
		{"ADD n :n DELETE ss :ss", `{"n":{"N":"5"},"ss":{"SS":["a","b"]}}`, `{"n":{"N":"10"}}`},
	}
	r := readRequest(t)
	for _, test := range tests {
		u, err := r.scope(t).Update(test.update)
		if err != nil {
			t.Fatal(err)
		}
		after, err := u.Apply(r.item)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(value.AppendMap(nil, u.Updated(r.item))); got != test.before {
			t.Errorf("%s, before: got %s, want %s", test.update, got, test.before)
		}
		if got := string(value.AppendMap(nil, u.Updated(after))); got != test.after {
			t.Errorf("%s, after: got %s, want %s", test.update, got, test.after)
		}
	}
}

func TestAttributes(t *testing.T) {
	r := readRequest(t)
	type refers interface {
		Attributes() []string
		Nested() []string
	}
	condition := func(text string) (refers, error) { return r.scope(t).Condition(FilterExpression, text) }
	update := func(text string) (refers, error) { return r.scope(t).Update(text) }
	projection := func(text string) (refers, error) { return r.scope(t).Projection(text) }
	tests := []struct {
		of                 func(text string) (refers, error)
		text               string
		attributes, nested []string
	}{
		{condition, ":n = :n", nil, nil},
		{condition, "n = :n OR NOT (size(s) > :n AND n IN (:m, #m.a))", []string{"m", "n", "s"}, []string{"m"}},
		{condition, "l[0] BETWEEN m AND b.#a", []string{"b", "l", "m"}, []string{"b", "l"}},
		{update, "SET z.a = y.b, c1 = d1 REMOVE z.b ADD a1 :n", []string{"a1", "c1", "z"}, []string{"y", "z"}},
		{update, "SET z = if_not_exists(y[0], q) + :n", []string{"z"}, []string{"y"}},
		{projection, "z.a, z.b, c1, #h", []string{"c1", "h", "z"}, []string{"z"}},
	}
	for _, test := range tests {
		x, err := test.of(test.text)
		if err != nil {
			t.Fatal(err)
		}
		if got := x.Attributes(); !slices.Equal(got, test.attributes) {
			t.Errorf("%s: attributes %q, want %q", test.text, got, test.attributes)
		}
		if got := x.Nested(); !slices.Equal(got, test.nested) {
			t.Errorf("%s: nested %q, want %q", test.text, got, test.nested)
		}
	}
}

// TestMessagesOfOurOwn holds messages in which AWS is recorded to differ from DynamoDB Local, or whose order
// is known of neither. The order is then that of names, so that the same request always has the same answer.
func TestMessagesOfOurOwn(t *testing.T) {
	const (
		overlap = "Invalid UpdateExpression: Two document paths overlap with each other; must remove or rewrite " +
			"one of these paths; "
		missing = "The provided expression refers to an attribute that does not exist in the item"
		typed   = "An operand in the update expression has an incorrect data type"
	)
	tests := []struct{ parameter, text, want string }{
		{ConditionExpression, "attribute_type(n, s)",
			"Invalid ConditionExpression: Incorrect operand type for operator or " +
				"function; operator or function: attribute_type, operand type: {NS,SS,L,BS,N,M,B,BOOL,NULL,S}"},
		{ConditionExpression, "size = :n",
			"Invalid ConditionExpression: Attribute name is a reserved keyword; reserved keyword: size"},
		{UpdateExpression, "REMOVE a1, b1, c1, a1", overlap + "path one: [a1], path two: [a1]"},
		{UpdateExpression, "REMOVE x, m, m.c, m.b", overlap + "path one: [m], path two: [m, b]"},
		{UpdateExpression, "SET x = q, y = s + :n", missing},
		{UpdateExpression, "SET y = q, x = s + :n", typed},
	}
	r := readRequest(t)
	for _, test := range tests {
		s := r.scope(t)
		err := read(s, test.parameter, test.text)
		if u, invalidText := s.Update(test.text); invalidText == nil {
			_, err = u.Apply(r.item)
		}
		if got := invalid(t, err); got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.text, got, test.want)
		}
	}
}
