package codec

import (
	"errors"
	"maps"
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/runtime/bucket"
)

func text(t *testing.T, v types.AttributeValue) string {
	t.Helper()
	n, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		t.Fatalf("a %T, want a number", v)
	}
	return n.Value
}

func TestN(t *testing.T) {
	for _, n := range []int64{0, 1, -1, math.MaxInt64, math.MinInt64} {
		oracle, err := attributevalue.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := text(t, N(n)), text(t, oracle); got != want {
			t.Errorf("N(%d) is %s, attributevalue has %s", n, got, want)
		}
	}
}

func TestS(t *testing.T) {
	for _, s := range []string{"", "user-1", "ä#\x00"} {
		if got, ok := S(s).(*types.AttributeValueMemberS); !ok || got.Value != s {
			t.Errorf("S(%q) is %+v", s, got)
		}
	}
}

func TestBound(t *testing.T) {
	end := new(big.Int).Sub(new(big.Int).Exp(big.NewInt(10), big.NewInt(38), nil), big.NewInt(1)).String()
	for n, want := range map[int64]string{
		0: "0", -7: "-7", math.MaxInt64 - 1: "9223372036854775806", math.MinInt64 + 1: "-9223372036854775807",
		math.MaxInt64: end, math.MinInt64: "-" + end,
	} {
		if got := text(t, Bound(n)); got != want {
			t.Errorf("Bound(%d) is %s, want %s", n, got, want)
		}
	}
}

func TestPutBalance(t *testing.T) {
	const tk, cp, bx, ra, rp, tc = "b_rpm_tk", "b_rpm_cp", "b_rpm_bx", "b_rpm_ra", "b_rpm_rp", "b_rpm_tc"
	for _, capacity := range []int64{5, 0} { // 0 is a closed limit
		want := bucket.Balance{Limit: bucket.Limit{Capacity: capacity, Burst: 6, Refill: 7, Period: 8}, Tokens: -4,
			Consumed: -9}
		put := Item{}
		PutBalance(put, &want, tk, cp, bx, ra, rp, tc)
		d := Decoder{Item: put}
		if b, missing := rpm(&d); b != want || missing || d.Err() != nil {
			t.Errorf("put %v, read %+v, missing %t, %v", put, b, missing, d.Err())
		}
	}
	none := Item{}
	PutBalance(none, &bucket.Balance{}, tk, cp, bx, ra, rp, tc)
	if len(none) > 0 {
		t.Errorf("a limit that was missing is put as %v", none)
	}
}

// TestCheck spoils a sound write.
func TestCheck(t *testing.T) {
	for want, spoil := range map[string]func(*Write){
		"":                           func(*Write) {},
		":b is used and not given":   func(w *Write) { delete(w.Values, ":b") },
		"#ttl is used and not given": func(w *Write) { delete(w.Names, "#ttl") },
		":c is given and not used":   func(w *Write) { w.Values[":c"] = N(1) },
		"#c is given and not used":   func(w *Write) { w.Names["#c"] = "c" },
		"an expression of 4097 bytes, more than DynamoDB's 4096": func(w *Write) {
			w.Update += strings.Repeat(" ", maxExpression+1-len(w.Update))
		},
	} {
		var w Write
		w.Begin("SET #ttl = :a", "(op = :b)")
		w.N(":a", 1)
		w.S(":b", "x")
		w.End()
		spoil(&w)
		got := ""
		if err := w.Check(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("Check returned %q, want %q", got, want)
		}
	}
}

// bucketItem has one sound limit, and what else a bucket has.
func bucketItem() Item {
	return Item{
		"PK": S("ENTITY#user-1"), "SK": S("#BUCKET#gpt-4"), "entity_id": S("user-1"), "resource": S("gpt-4"),
		"rf": N(1), "ttl": N(2), "op": S("x"), "cv": N(3), "GSI2PK": S("RESOURCE#gpt-4"),
		"GSI2SK":   S("BUCKET#user-1"),
		"b_rpm_tk": N(-4), "b_rpm_cp": N(5), "b_rpm_bx": N(6), "b_rpm_ra": N(7), "b_rpm_rp": N(8),
		"b_rpm_tc": N(-9),
	}
}

func rpm(d *Decoder) (b bucket.Balance, missing bool) {
	d.Balance(&b, &missing, "b_rpm_tk", "b_rpm_cp", "b_rpm_bx", "b_rpm_ra", "b_rpm_rp", "b_rpm_tc")
	return b, missing
}

func TestBalance(t *testing.T) {
	want := bucket.Balance{Limit: bucket.Limit{Capacity: 5, Burst: 6, Refill: 7, Period: 8}, Tokens: -4,
		Consumed: -9}
	d := Decoder{Item: bucketItem()}
	if b, missing := rpm(&d); b != want || missing || d.Err() != nil {
		t.Errorf("read %+v, missing %t, %v", b, missing, d.Err())
	}
	none := bucketItem()
	maps.DeleteFunc(none, func(name string, _ types.AttributeValue) bool { return len(name) == len("b_rpm_tk") })
	d = Decoder{Item: none}
	if b, missing := rpm(&d); b != (bucket.Balance{}) || !missing || d.Err() != nil {
		t.Errorf("of an item without it: read %+v, missing %t, %v", b, missing, d.Err())
	}
}

// TestMistakes holds the text of every mistake: the first one wins, and the value is 0.
func TestMistakes(t *testing.T) {
	const within = "from -9*10^18 to 9*10^18"
	number := func(n string) types.AttributeValue { return &types.AttributeValueMemberN{Value: n} }
	for _, test := range []struct {
		attr  string
		value types.AttributeValue // nil: the item does not have it
		err   string
	}{
		{"rf", nil, "attribute rf: missing, want an integer of 64 bits"},
		{"rf", S("1"), "attribute rf: of type S, want an integer of 64 bits"},
		{"rf", &types.AttributeValueMemberBOOL{Value: true},
			"attribute rf: of type BOOL, want an integer of 64 bits"},
		{"rf", &types.AttributeValueMemberNULL{Value: true},
			"attribute rf: of type NULL, want an integer of 64 bits"},
		{"rf", &types.AttributeValueMemberNS{Value: []string{"1"}},
			"attribute rf: of type NS, want an integer of 64 bits"},
		{"rf", number("1.5"), `attribute rf: "1.5", want an integer of 64 bits`},
		{"rf", number("9223372036854775808"), `attribute rf: "9223372036854775808", want an integer of 64 bits`},
		{"rf", number("1E+2"), `attribute rf: "1E+2", want an integer of 64 bits`},
		{"rf", number(""), `attribute rf: "", want an integer of 64 bits`},
		{"op", nil, "attribute op: missing, want a string"},
		{"op", N(1), "attribute op: of type N, want a string"},
		{"flag", nil, "attribute flag: missing, want a boolean"},
		{"flag", S("true"), "attribute flag: of type S, want a boolean"},
		{"b_rpm_tk", nil, "attribute b_rpm_tk: missing, want an integer, since the item has b_rpm_cp"},
		{"b_rpm_tk", S("1"), "attribute b_rpm_tk: of type S, want an integer of 64 bits"},
		{"b_rpm_tk", N(math.MaxInt64), "attribute b_rpm_tk: 9223372036854775807, want a number " + within},
		{"b_rpm_tk", N(leastStored - 1), "attribute b_rpm_tk: -9000000000000000001, want a number " + within},
		{"b_rpm_tc", N(mostStored + 1), "attribute b_rpm_tc: 9000000000000000001, want a number " + within},
		{"b_rpm_tc", nil, "attribute b_rpm_tc: missing, want an integer of 64 bits"},
		{"b_rpm_cp", nil, "attribute b_rpm_cp: missing, want an integer of 64 bits"},
		{"b_rpm_cp", N(-1), "attribute b_rpm_cp: -1, want a number that is not negative"},
		{"b_rpm_bx", N(-1), "attribute b_rpm_bx: -1, want a positive number"},
		{"b_rpm_ra", N(0), "attribute b_rpm_ra: 0, want a positive number"},
		{"b_rpm_rp", N(math.MinInt64), "attribute b_rpm_rp: -9223372036854775808, want a positive number"},
	} {
		spoiled := bucketItem()
		if test.value == nil {
			delete(spoiled, test.attr)
		} else {
			spoiled[test.attr] = test.value
		}
		d := Decoder{Item: spoiled}
		rf, op := d.Int("rf"), d.Text("op")
		flag := test.attr == "flag" && d.Bool("flag")
		rpm(&d)
		d.Int("no such attribute")
		mistake, ok := errors.AsType[*AttributeError](d.Err())
		if !ok || d.Err().Error() != test.err || mistake.Attr != test.attr {
			t.Errorf("got  %v\nwant %s", d.Err(), test.err)
		}
		if test.attr == "rf" && rf != 0 || test.attr == "op" && op != "" || flag {
			t.Errorf("%s: read %d, %q, %v in spite of it", test.err, rf, op, flag)
		}
	}
}

func TestExtra(t *testing.T) {
	const nobodys = "of no limit, want a name such as b_rpm_tk, with a-z, 0-9 and _"
	limit := func(it Item, name string, n int64) Item {
		for i, field := range []string{"tk", "cp", "bx", "ra", "rp", "tc"} {
			it["b_"+name+"_"+field] = N(n + int64(i))
		}
		return it
	}
	balance := func(n int64) bucket.Balance {
		return bucket.Balance{
			Limit:  bucket.Limit{Capacity: n + 1, Burst: n + 2, Refill: n + 3, Period: n + 4},
			Tokens: n, Consumed: n + 5,
		}
	}
	renamed := bucketItem() // as many attributes as if rpm were known
	for _, field := range []string{"tk", "cp", "bx", "ra", "rp", "tc"} {
		delete(renamed, "b_rpm_"+field)
	}
	short := limit(bucketItem(), "z", 10)
	delete(short, "GSI2PK")
	delete(short, "GSI2SK")
	later := bucketItem()
	for _, name := range []string{"region", "m_rpm", "b_", "b_tk", "b__tk2", "tk"} {
		later[name] = S("of a coming version")
	}
	torn := limit(bucketItem(), "ipm", 10)
	delete(torn, "b_ipm_rp")
	for name, test := range map[string]struct {
		item Item
		want []bucket.Named
		err  string
	}{
		"none": {item: bucketItem()},
		"two, sorted": {item: limit(limit(bucketItem(), "z", 10), "a_b_c", 20),
			want: []bucket.Named{{Name: "a_b_c", Balance: balance(20)}, {Name: "z", Balance: balance(10)}}},
		"instead of another": {item: limit(renamed, "z", 10),
			want: []bucket.Named{{Name: "z", Balance: balance(10)}}},
		"beside fewer keys":   {item: short, want: []bucket.Named{{Name: "z", Balance: balance(10)}}},
		"unknown attributes":  {item: later},
		"half an unknown one": {item: torn, err: "attribute b_ipm_rp: missing, want an integer of 64 bits"},
		"a path":              {item: limit(bucketItem(), "a.b", 10), err: "attribute b_a.b_tk: " + nobodys},
		"upper case":          {item: limit(bucketItem(), "Z", 10), err: "attribute b_Z_tk: " + nobodys},
		"nothing":             {item: limit(bucketItem(), "", 10), err: "attribute b__tk: " + nobodys},
		"an escape sequence":  {item: limit(bucketItem(), "\x1b", 10), err: `attribute "b_\x1b_tk": ` + nobodys},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decoder{Item: test.item}
			rpm(&d)
			got := d.Extra("rpm")
			if err := d.Err(); err != nil || test.err != "" {
				if _, ok := errors.AsType[*AttributeError](err); !ok || err.Error() != test.err {
					t.Errorf("got %v, want %s", err, test.err)
				}
				return
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("- wanted, + read:\n%s", diff)
			}
		})
	}
}

// TestDecodingAllocatesNothing is why attributes are named in full.
func TestDecodingAllocatesNothing(t *testing.T) {
	it := bucketItem()
	n := testing.AllocsPerRun(100, func() {
		d := Decoder{Item: it}
		rpm(&d)
		d.Extra("rpm")
	})
	if n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func TestSized(t *testing.T) {
	old := make([]int, 1, 3)
	if same := Sized(old, 3); len(same) != 3 || &same[0] != &old[0] {
		t.Errorf("%v is not in the memory that suffices", same)
	}
	if longer := Sized(old, 4); len(longer) != 4 {
		t.Errorf("%v has not 4 elements", longer)
	}
	if none := Sized[int](nil, 0); len(none) != 0 {
		t.Errorf("%v, of nothing", none)
	}
}

// FuzzParse holds our parser against the standard library's.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"", "-", "+", "0", "-0", "+7", "007", "--1", "1-", "1_0", " 1", "1e3", "0.5", "x", "-x", "1x", "/", ":",
		"999999999999999999", "-999999999999999999", "000000000000000000", "1000000000000000000",
		"9223372036854775807", "-9223372036854775808", "9223372036854775808", "-9223372036854775809",
		unbounded, "-" + unbounded,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want, wrong := strconv.ParseInt(s, 10, 64)
		got, err := parse(s)
		if (err == nil) != (wrong == nil) || err == nil && got != want {
			t.Errorf("%q is %d, %v; strconv has %d, %v", s, got, err, want, wrong)
		}
	})
}
