package value_test

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

const (
	parameter = "One or more parameter values were invalid: "
	empty     = "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"
	twoTypes  = "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the " +
		"supported datatypes"
	null    = "The supplied Item contains a null AttributeValue"
	tooDeep = "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels " +
		"beyond supported limit"
)

func unmarshal[T any](t testing.TB, text string) T {
	t.Helper()
	var w T
	if err := json.Unmarshal([]byte(text), &w); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return w
}

func decode(t testing.TB, text string) value.Value {
	t.Helper()
	v, err := value.Decode(unmarshal[*value.Wire](t, text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func TestDecode(t *testing.T) {
	number := cmp.Comparer(func(a, b value.Number) bool { return a.Cmp(b) == 0 })
	for text, want := range map[string]value.Value{
		`{"S":"é"}`: value.String("é"), `{"S":""}`: value.String(""), `{"S":"x","X":"y"}`: value.String("x"),
		`{"S":null,"N":"1.50"}`: parse(t, "1.5"),
		`{"B":"AP9h"}`:          value.Binary("\x00\xffa"), `{"B":""}`: value.Binary(""),
		`{"BOOL":true}`: value.Bool(true), `{"BOOL":false}`: value.Bool(false), `{"NULL":true}`: value.Null{},
		`{"SS":["b","a",""]}`:             value.Strings{"", "a", "b"},
		`{"NS":["10","9.0","-1"]}`:        value.Numbers{value.NumberOf(-1), value.NumberOf(9), value.NumberOf(10)},
		`{"BS":["/w==","YQ==",""]}`:       value.Binaries{"", "a", "\xff"},
		`{"L":[]}`:                        value.List{},
		`{"M":{}}`:                        value.Map{},
		`{"L":[{"S":"a"},{"L":[]}]}`:      value.List{value.String("a"), value.List{}},
		`{"M":{"a":{"NULL":true}}}`:       value.Map{"a": value.Null{}},
		`{"M":{"` + long + `":{"S":""}}}`: value.Map{long: value.String("")},
	} {
		if diff := cmp.Diff(want, decode(t, text), number); diff != "" {
			t.Errorf("%.80s: -want +got\n%s", text, diff)
		}
	}
	if m, err := value.DecodeMap(nil); m != nil || err != nil {
		t.Errorf("no item: %v, %v", m, err)
	}
	if m, err := value.DecodeMap(map[string]*value.Wire{}); m == nil || err != nil {
		t.Errorf("an empty item: %v, %v", m, err)
	}
}

var long = strings.Repeat("x", 65535)

func TestDecodeErrors(t *testing.T) {
	for text, want := range map[string]string{
		`null`: null, `{}`: empty, `{"S":null}`: empty, `{"X":"a"}`: empty, `{"S":"a","N":"1"}`: twoTypes,
		`{"S":"a","N":"x"}`: notNumeric + ": x", `{"S":"x","SS":[]}`: parameter + "An string set  may not be empty",
		`{"N":""}`: notNumeric, `{"N":"1e126"}`: overflow,
		`{"NULL":false}`: parameter + "Null attribute value types must have the value of true",
		`{"SS":[]}`:      parameter + "An string set  may not be empty",
		`{"NS":[]}`:      parameter + "An number set  may not be empty",
		`{"BS":[]}`:      parameter + "Binary sets should not be empty",

		`{"SS":["b","a","b"]}`:       parameter + "Input collection [b, a, b] contains duplicates.",
		`{"NS":["1","2","1.0"]}`:     "Input collection contains duplicates",
		`{"BS":["Yg==","Yg=="]}`:     parameter + "Input collection [Yg==, Yg==]of type BS contains duplicates.",
		`{"SS":["a",null]}`:          parameter + "An string set may not have a null string as a member",
		`{"NS":["1",null]}`:          notNumeric,
		`{"NS":["1","x"]}`:           notNumeric + ": x",
		`{"BS":["YQ==",null]}`:       null,
		`{"L":[null]}`:               null,
		`{"L":[{}]}`:                 empty,
		`{"M":{"a":null}}`:           null + ": a is null",
		`{"M":{"a":{}}}`:             empty,
		`{"M":{"":{"S":"x"}}}`:       "Empty attribute name",
		`{"M":{"x` + long + `":{}}}`: "Attribute name is too large, must be less than 65536 bytes",

		`{"M":{"c":{"N":"c"},"b":{"N":"b"},"d":{"N":"d"},"a":{"N":"1"}}}`: notNumeric + ": b",
	} {
		for range 5 { // whatever the order of a map
			if _, err := value.Decode(unmarshal[*value.Wire](t, text)); message(t, err) != want {
				t.Errorf("%.80s: %v, want %s", text, err, want)
			}
		}
	}
}

func TestDecodeBase64Errors(t *testing.T) {
	const character = "Invalid last non-pad Base64 character dectected"
	for text, want := range map[string]string{
		"YQ":    "Base64 encoded length is expected a multiple of 4 bytes but found: 2",
		"23456": "Base64 encoded length is expected a multiple of 4 bytes but found: 5",
		"=+/=":  character, "+/+=": character, "YR==": character, "!!!!": character, "_-__": character,
		"YWF\nhYW\r": character,
	} {
		for _, w := range []*value.Wire{{B: &text}, {BS: &[]*string{&text}}, {L: &[]*value.Wire{{B: &text}}}} {
			for door, err := range map[string]error{
				"Decode":       second(value.Decode(w)),
				"DecodeMap":    second(value.DecodeMap(map[string]*value.Wire{"a": w})),
				"DecodeValues": second(value.DecodeValues(map[string]*value.Wire{":a": w})),
			} {
				e, ok := errors.AsType[*exception.Error](err)
				if !ok || e.Code != exception.Serialization || e.Message != want {
					t.Errorf("%s of %q: %v, want %s", door, text, err, want)
				}
			}
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestDecodeValues(t *testing.T) {
	values, err := value.DecodeValues(unmarshal[map[string]*value.Wire](t, `{":a":{"N":"1"},":b":{"S":"x"}}`))
	if err != nil || len(values) != 2 || !value.Equal(values[":a"], value.NumberOf(1)) ||
		!value.Equal(values[":b"], value.String("x")) {
		t.Errorf("%v, %v", values, err)
	}
	if values, err := value.DecodeValues(nil); values != nil || err != nil {
		t.Errorf("no values: %v, %v", values, err)
	}
	for text, want := range map[string]string{
		`{":b":{}}`:                      empty + " for key :b",
		`{":b":null}`:                    null + " for key :b",
		`{":b":{"NS":["1","1"]}}`:        "Input collection contains duplicates for key :b",
		`{":c":{},":b":{"N":""}}`:        notNumeric + " for key :b",
		`{":b":{"M":{"k":null}}}`:        null + ": k is null for key :b",
		`{":b":` + nested(33, "L") + `}`: tooDeep + " for key :b",
	} {
		_, err := value.DecodeValues(unmarshal[map[string]*value.Wire](t, text))
		if message(t, err) != "ExpressionAttributeValues contains invalid value: "+want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// nested is a string within that many lists or maps.
func nested(depth int, kind string) string {
	start, end := `{"L":[`, `]}`
	if kind == "M" {
		start, end = `{"M":{"a":`, `}}`
	}
	return strings.Repeat(start, depth) + `{"S":"x"}` + strings.Repeat(end, depth)
}

func TestDepth(t *testing.T) {
	for _, kind := range []string{"L", "M"} {
		for _, depth := range []int{0, 1, 31, 32, 33, 1000} {
			w := unmarshal[*value.Wire](t, nested(depth, kind))
			v, err := value.Decode(w)
			if depth > value.MaxDepth && message(t, err) != tooDeep ||
				depth <= value.MaxDepth && (err != nil || value.Depth(v) != depth) {
				t.Errorf("a value of %d levels of %s: %v", depth, kind, err)
			}
			m, err := value.DecodeMap(map[string]*value.Wire{"v": w})
			if depth >= value.MaxDepth && message(t, err) != tooDeep ||
				depth < value.MaxDepth && (err != nil || value.Depth(m) != depth+1) {
				t.Errorf("an item with %d levels of %s: %v", depth, kind, err)
			}
		}
	}
	if depth := value.Depth(decode(t, `{"M":{"a":{"L":[{"S":""},{"M":{}}]},"b":{"SS":["a"]}}}`)); depth != 3 {
		t.Errorf("depth is %d", depth)
	}
}

func TestAppend(t *testing.T) {
	for _, text := range []string{
		`{"S":"é \"quoted\" \\ <>&"}`, `{"S":""}`, `{"N":"-1.5"}`, `{"B":"AP9h"}`, `{"B":""}`, `{"BOOL":true}`,
		`{"BOOL":false}`,
		`{"NULL":true}`, `{"SS":["","a","b"]}`, `{"NS":["-1","9","10"]}`, `{"BS":["","YQ==","/w=="]}`, `{"L":[]}`,
		`{"M":{}}`,
		`{"L":[{"S":"a"},{"N":"1"}]}`, `{"M":{"A":{"L":[]},"a":{"S":"x"},"b":{"M":{"\"":{"NULL":true}}}}}`,
		`{"N":"1` + zeros(125) + `"}`,
	} {
		if got := string(value.Append([]byte("before"), decode(t, text))); got != "before"+text {
			t.Errorf("%s: %s", text, got)
		}
	}
}

func TestAppendString(t *testing.T) {
	texts := []string{"", "plain", "\xff", "a\xff\xfeb", "\xe2\x82", "\u2028\u2029", "😀", "\ufffd", `"\/`,
		"\x7f"}
	for c := range rune(0x20) {
		texts = append(texts, "a"+string(c)+"b"+string(c))
	}
	for _, text := range texts {
		got := value.AppendString([]byte("before"), text)[len("before"):]
		var back string
		if err := json.Unmarshal(got, &back); err != nil || back != string([]rune(text)) {
			t.Errorf("%q: %s, %v", text, got, err)
		}
	}
	if got := string(value.AppendString(nil, "<é>\n")); got != `"<é>\u000a"` {
		t.Error(got)
	}
}

func TestKindString(t *testing.T) {
	for i, want := range strings.Fields("? S N B BOOL NULL SS NS BS L M") {
		if got := value.Kind(i).String(); got != want {
			t.Errorf("%s: %s", strconv.Itoa(i), got)
		}
	}
}
