package codec

import (
	"math"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
)

// give gives w one operand of each kind, and a second number.
func give(w *Write, update string, n int64) {
	w.Begin(update, "op = :op")
	w.N(":a", n)
	w.S(":op", "x")
	w.Bound(":lo", math.MinInt64)
	w.Bound(":hi", n)
	w.End()
}

// given is what give's Values are.
func given(n int64) map[string]string {
	digits := strconv.FormatInt(n, 10)
	return map[string]string{":a": digits, ":op": "x", ":lo": "-" + unbounded, ":hi": digits}
}

// plain returns the values as text.
func plain(t *testing.T, values Item) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for name, v := range values {
		if s, ok := v.(*types.AttributeValueMemberS); ok {
			texts[name] = s.Value
		} else {
			texts[name] = text(t, v)
		}
	}
	return texts
}

func TestUpdate(t *testing.T) {
	w := Write{Item: Item{"PK": S("x")}}
	give(&w, "SET #ttl = :a", -12)
	if w.Item != nil || w.Update != "SET #ttl = :a" || w.Cond != "op = :op" {
		t.Errorf("built %+v", w)
	}
	if diff := cmp.Diff(map[string]string{"#ttl": "ttl"}, w.Names); diff != "" {
		t.Errorf("names: - wanted, + given:\n%s", diff)
	}
	if diff := cmp.Diff(given(-12), plain(t, w.Values)); diff != "" {
		t.Errorf("values: - wanted, + given:\n%s", diff)
	}
}

// TestUpdateAfter builds with a Write that something else was done with: nothing of it is left.
func TestUpdateAfter(t *testing.T) {
	const update = "SET #ttl = :a"
	for name, before := range map[string]func(*Write){
		"nothing":       func(*Write) {},
		"itself":        func(w *Write) { give(w, update, 1234567) },
		"other text":    func(w *Write) { give(w, "SET #ttl = :hi", 1) },
		"an undo":       func(w *Write) { give(w, update, 1); w.Cond = "op = :undo"; w.S(":undo", "x") },
		"a value put":   func(w *Write) { give(w, update, 1); w.Values[":b"] = N(1) },
		"a bound given": func(w *Write) { give(w, update, 1); w.Bound(":lo", math.MaxInt64) },
		"a put":         func(w *Write) { give(w, update, 1); w.Update, w.Names, w.Values = "", nil, nil },
		"other maps": func(w *Write) {
			give(w, update, 1)
			w.Update, w.Names, w.Values = "SET #0 = :0", map[string]string{"#0": "ttl"}, Item{":0": N(1)}
		},
		"a key": func(w *Write) { w.SetKey("ENTITY#user-1", "#BUCKET#gpt-4") },
		"no end": func(w *Write) {
			w.Begin(update, "op = :op")
			w.N(":a", 7)
		},
		"another order": func(w *Write) {
			w.Begin(update, "op = :op")
			w.S(":op", "y")
			w.Bound(":hi", math.MaxInt64)
			w.N(":a", 7)
			w.N(":lo", 8)
			w.End()
		},
	} {
		t.Run(name, func(t *testing.T) {
			var w Write
			before(&w)
			for range 2 {
				give(&w, update, 42)
				if diff := cmp.Diff(given(42), plain(t, w.Values)); diff != "" {
					t.Errorf("values: - wanted, + given:\n%s", diff)
				}
				if diff := cmp.Diff(map[string]string{"#ttl": "ttl"}, w.Names); diff != "" {
					t.Errorf("names: - wanted, + given:\n%s", diff)
				}
			}
		})
	}
}

// TestGivenLater gives one more operand after End, and another value for one.
func TestGivenLater(t *testing.T) {
	var w Write
	give(&w, "SET #ttl = :a", 5)
	w.S(":undo", "y")
	w.Bound(":hi", math.MaxInt64)
	want := given(5)
	want[":undo"], want[":hi"] = "y", unbounded
	if diff := cmp.Diff(want, plain(t, w.Values)); diff != "" {
		t.Errorf("- wanted, + given:\n%s", diff)
	}
}

func TestSetKey(t *testing.T) {
	var w Write
	w.SetKey("ENTITY#user-1", "#BUCKET#gpt-4")
	give(&w, "SET #ttl = :a", 1)
	if diff := cmp.Diff(map[string]string{"PK": "ENTITY#user-1", "SK": "#BUCKET#gpt-4"},
		plain(t, w.Key)); diff != "" {
		t.Errorf("- wanted, + set:\n%s", diff)
	}
	n := testing.AllocsPerRun(100, func() { w.SetKey("ENTITY#user-2", "#BUCKET#gpt-4") })
	if key := plain(t, w.Key); n != 0 || key["PK"] != "ENTITY#user-2" {
		t.Errorf("set %v with %v allocations, want none", key, n)
	}
}
