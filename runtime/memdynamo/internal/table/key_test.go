package table

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// drawNumber returns any number: digits, a point among zeros, an exponent up to the ends.
func drawNumber(t *rapid.T) value.Number {
	text := rapid.StringMatching(`-?(0|[1-9][0-9]{0,3}|12[0-9]{30,36})`).Draw(t, "digits")
	exponent := rapid.OneOf(rapid.IntRange(-4, 4), rapid.IntRange(-130, 88)).Draw(t, "exponent")
	return number(fmt.Sprintf("%se%d", text, exponent))
}

// drawKey returns a key value out of few, so that prefixes and equal ones are frequent.
func drawKey(t *rapid.T) value.Value {
	switch rapid.IntRange(0, 2).Draw(t, "kind") {
	case 0:
		return drawNumber(t)
	case 1:
		return value.Binary(rapid.StringMatching("[\x00a\U0010ffff]{0,4}").Draw(t, "binary"))
	default:
		return value.String(rapid.StringMatching("[\x00aé]{0,4}").Draw(t, "string"))
	}
}

func TestKeyTextsAreOrderedAsValues(t *testing.T) {
	wrong := func(order func(a, b value.Value) int, a, b value.Value) bool {
		want, ok := value.Compare(a, b)
		return ok && order(a, b) != want
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawKey(t), drawKey(t)
		if wrong(func(a, b value.Value) int { return strings.Compare(ordered(a), ordered(b)) }, a, b) {
			t.Fatalf("%q %q", ordered(a), ordered(b))
		}
	})
	// Negative control: numbers are not ordered as their texts.
	if !wrong(func(a, b value.Value) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }, number("9"),
		number("10")) {
		t.Error("any order passes")
	}
}

func TestNumbersAtTheEnds(t *testing.T) {
	rising := []string{
		"-9.9999999999999999999999999999999999999e125", "-9.9e125", "-1e125", "-10", "-1.21", "-1.2", "-1",
		"-1.1e-130", "-1e-130", "0",
		"1e-130", "1.1e-130", "9.9e-130", "1e-129", "0.1", "1", "1.2", "1.21", "10", "1e125", "9.9e125",
		"9.9999999999999999999999999999999999999e125",
	}
	for i := range rising {
		for j := range rising {
			a, b := ordered(number(rising[i])), ordered(number(rising[j]))
			if strings.Compare(a, b) != cmp.Compare(i, j) {
				t.Errorf("%s and %s are %q and %q", rising[i], rising[j], a, b)
			}
		}
	}
}

func TestKeyOf(t *testing.T) {
	table := New(Def{Key: KeySchema{Attribute{"h", value.KindN}, Attribute{"r", value.KindS}}})
	key := table.KeyOf(value.Map{"h": number("1.0"), "r": value.String("x"), "v": value.Null{}})
	if same := table.KeyOf(value.Map{"h": number("10e-1"), "r": value.String("x")}); key != same {
		t.Errorf("%v, and with the number written otherwise %v", key, same)
	}
	for _, other := range []value.Map{
		{"h": number("1"), "r": value.String("y")},
		{"h": number("-1"), "r": value.String("x")},
	} {
		if key == table.KeyOf(other) {
			t.Errorf("%v has the same key", other)
		}
	}
}

func TestSpreadIsEven(t *testing.T) {
	for _, format := range []string{"%d", "user-%d", "%08d", "%d-abcdefghijklmnopqrstuvwxyz"} {
		const keys, parts = 8000, 16
		var counts [parts]int
		for i := range keys {
			counts[spread(fmt.Sprintf(format, i))>>60]++
		}
		for part, n := range counts {
			if n < keys/parts*3/4 || n > keys/parts*5/4 {
				t.Errorf("%s: part %d has %d of %d keys", format, part, n, keys)
			}
		}
	}
}
