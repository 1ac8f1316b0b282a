package decimal_test

import (
	"math"
	"math/big"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/gen/internal/decimal"
	"github.com/sluice-go/sluice/runtime/money"
)

// mistakes are texts that are no amount, each with its reason.
func mistakes() map[string]string {
	return map[string]string{
		"":            "is no number: write digits, such as 12.50",
		"1e3":         "has an exponent: write all digits, such as 1000",
		"1E3":         "has an exponent: write all digits, such as 1000",
		".5":          "has no digit before its point: write 0 there, such as 0.5",
		"5.":          "has no digit behind its point: remove the point",
		"1.2.3":       "has more than one point: write one, before the decimals",
		"-1":          "has a sign: remove it, and write a number that is not negative",
		"+1":          "has a sign: remove it, and write a number that is not negative",
		"1,5":         "has a comma: write a point before the decimals, and '_' between thousands",
		"1 000":       "has white space: remove it",
		"٣":           "has digits of another script: write them as 0 to 9",
		"$5":          "has more than digits and a point: write the number alone, such as 12.50",
		"0x10":        "has more than digits and a point: write the number alone, such as 12.50",
		"e3":          "has more than digits and a point: write the number alone, such as 12.50",
		"007":         "starts with 0, which is octal to some readers of YAML: remove the 0",
		"0_1":         "starts with 0, which is octal to some readers of YAML: remove the 0",
		"1_":          "has a '_' that is not between two digits before the point",
		"1__0":        "has a '_' that is not between two digits before the point",
		"1.0_1":       "has a '_' that is not between two digits before the point",
		"0.1234567":   "has 7 decimals, at most 6 are possible: round it",
		"0.000000000": "has 9 decimals, at most 6 are possible: round it",
	}
}

func TestAmount(t *testing.T) {
	for text, want := range mistakes() {
		if n, why := decimal.Amount(text); why != want || n != 0 {
			t.Errorf("%q: %d, %s\nwant %s", text, n, why, want)
		}
	}
	for text, want := range map[string]int64{
		"0": 0, "500": 500e9, "0.50": 5e8, "12.345678": 12_345_678_000, "10_000.5": 10_000_500_000_000,
		"9223372036.854775": 9_223_372_036_854_775_000, "9223372036.854776": math.MaxInt64,
		strings.Repeat("9", 80): math.MaxInt64,
	} {
		if n, why := decimal.Amount(text); why != "" || n != want {
			t.Errorf("%q: %d, %s, want %d", text, n, why, want)
		}
	}
}

func TestPrice(t *testing.T) {
	for text, want := range map[string]string{
		"2.5/M": "is not per 1k or 1M: write it like 2.50/1M, or without / for the price " +
			"of one",
		"2.5/1": "is not per 1k or 1M: write it like 2.50/1M, or without / for the price " +
			"of one",
		"2.5/1m": "is not per 1k or 1M: write it like 2.50/1M, or without / for the price " +
			"of one",
		"2.5/1M/1k": "is not per 1k or 1M: write it like 2.50/1M, or without / for the price " +
			"of one",
		"2.5 /1M":                      "has white space: remove it",
		"/1M":                          "is no number: write digits, such as 12.50",
		"1e3/1M":                       "has an exponent: write all digits, such as 1000",
		"٣/1k":                         "has digits of another script: write them as 0 to 9",
		"0.0000001/1M":                 "is no whole number of trillionths a unit: write at most 6 decimals",
		"0.0000000001/1k":              "is no whole number of trillionths a unit: write at most 9 decimals",
		"0.1234567890123":              "is no whole number of trillionths a unit: write at most 12 decimals",
		"1." + strings.Repeat("0", 60): "has more than 48 characters: write fewer digits",
	} {
		n, fraction, why := decimal.Price(text)
		if why != want || n != 0 || fraction != strings.HasPrefix(want, "is no whole") {
			t.Errorf("%q: %d, %t, %s\nwant %s", text, n, fraction, why, want)
		}
	}
	for text, want := range map[string]int64{
		"2.50/1M": 2_500_000, "10/1k": 10_000_000_000, "0.01": 10_000_000_000, "0/1M": 0,
		"0.000001/1M": 1, "2.5000000/1M": 2_500_000, "0.000000000001": 1, "9223372.036854775807": math.MaxInt64,
		"9_223_373": math.MaxInt64,
	} {
		if n, fraction, why := decimal.Price(text); why != "" || n != want || fraction {
			t.Errorf("%q: %d, %t, %s, want %d", text, n, fraction, why, want)
		}
	}
}

// texts draws decimals, and texts that are nearly one.
func texts() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringMatching(`[0-9]{1,10}(\.[0-9]{0,14})?(/(1k|1M|1|M|k))?`),
		rapid.StringMatching(`[0-9_.]{0,8}(/1[kM])?`),
		rapid.StringMatching(`[-+]?[0-9_.,eExX ٣]{0,6}(/1M)?`),
		rapid.String(),
	)
}

var form = regexp.MustCompile(`^(0|[1-9][0-9]*(_[0-9]+)*)(\.[0-9]+)?$`)

// FuzzDecimals: a text is read as what math/big has it for, or not at all.
func FuzzDecimals(f *testing.F) {
	for text := range mistakes() {
		f.Add(text)
	}
	for _, text := range []string{"2.50/1M", "10/1k", "2.5/M", "12.345678", "10_000", "0.1234567890123"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { check(t, text) })
}

func TestDrawnDecimals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { check(t, texts().Draw(t, "text")) })
}

type tester interface {
	Errorf(format string, args ...any)
	Helper()
}

// check reads text as an amount, and as a price.
func check(t tester, text string) {
	t.Helper()
	n, why := decimal.Amount(text)
	same(t, text, n, why, text, 1_000_000_000, form.MatchString(text) && decimals(text) <= decimal.Decimals)
	if why == "" && n < math.MaxInt64 {
		if got, err := money.Parse(strings.ReplaceAll(text, "_", "")); err != nil || int64(got) != n {
			t.Errorf("%q is %d, and money.Parse has %v, %v", text, n, got, err)
		}
		if got := decimal.Text(n, ""); got != money.Amount(n).String() {
			t.Errorf("%q is written as %s, and by package money as %v", text, got, money.Amount(n))
		}
	}

	n, fraction, why := decimal.Price(text)
	number, per, suffixed := strings.Cut(text, "/")
	units := map[string]int64{"1k": 1_000_000_000, "1M": 1_000_000, "": 1_000_000_000_000}
	scale, known := units[per]
	good := form.MatchString(number) && known && (per != "" || !suffixed) && len(text) <= 48
	if fraction {
		exact, _ := new(big.Rat).SetString(strings.ReplaceAll(number, "_", ""))
		if !good || exact == nil || exact.Mul(exact, big.NewRat(scale, 1)).IsInt() {
			t.Errorf("%q: %s", text, why)
		}
		return
	}
	same(t, text, n, why, number, scale, good)
	if why == "" && n < math.MaxInt64 {
		if again, _, _ := decimal.Price(decimal.TextOfPrice(n)); again != n {
			t.Errorf("%q is %d, written as %s, which is %d", text, n, decimal.TextOfPrice(n), again)
		}
	}
}

// decimals returns the number of digits behind the point.
func decimals(text string) int {
	_, part, _ := strings.Cut(text, ".")
	return len(part)
}

// same compares n, which was read from text, with the number in units of a scale.
func same(t tester, text string, n int64, why, number string, scale int64, good bool) {
	t.Helper()
	if good != (why == "") {
		t.Errorf("%q: its form is right: %t, but: %q", text, good, why)
		return
	}
	if why != "" {
		if n != 0 {
			t.Errorf("%q is wrong, and %d", text, n)
		}
		return
	}
	exact, _ := new(big.Rat).SetString(strings.ReplaceAll(number, "_", ""))
	want := exact.Mul(exact, big.NewRat(scale, 1))
	if !want.IsInt() || !want.Num().IsInt64() {
		want.SetInt64(math.MaxInt64)
	}
	if want.Num().Int64() != n {
		t.Errorf("%q is %d, want %v", text, n, want)
	}
}

// TestTextOfPrice: prices read as price lists have them.
func TestTextOfPrice(t *testing.T) {
	for want, picos := range map[string]int64{
		"2.5/1M": 2_500_000, "10/1M": 10_000_000, "0.01": 10_000_000_000, "0.000001/1M": 1, "1_500": 1500e12,
		"300/1M": 300_000_000, "0.15/1M": 150_000, "0.001": 1e9,
	} {
		if got := decimal.TextOfPrice(picos); got != want {
			t.Errorf("%d is %s, want %s", picos, got, want)
		}
	}
}
