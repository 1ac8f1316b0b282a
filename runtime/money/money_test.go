package money_test

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/runtime/money"
)

// TestString: all forms of an amount's text, in each of the places that write it.
func TestString(t *testing.T) {
	for a, want := range map[money.Amount]string{
		0:                              "0",
		money.Nano:                     "0.000000001",
		-money.Nano:                    "-0.000000001",
		12 * money.Micro:               "0.000012",
		money.Cent:                     "0.01",
		5*money.Unit + 25*money.Cent:   "5.25",
		800 * money.Unit:               "800",
		-money.Unit - 500*money.Micro:  "-1.0005",
		12_345_678_900:                 "12.3456789",
		money.Unlimited:                "100000000",
		money.Unlimited - money.Nano:   "99999999.999999999",
		math.MaxInt64:                  "9223372036.854775807",
		math.MinInt64:                  "-9223372036.854775808",
		10*money.Unit + 10*money.Micro: "10.00001",
	} {
		if got := a.String(); got != want {
			t.Errorf("%d: %q, want %q", int64(a), got, want)
		}
		if got, err := a.AppendText([]byte("USD ")); string(got) != "USD "+want || err != nil {
			t.Errorf("%d appended: %q, %v", int64(a), got, err)
		}
		if got, err := json.Marshal(map[money.Amount]money.Amount{a: a}); err != nil ||
			string(got) != `{"`+want+`":"`+want+`"}` {
			t.Errorf("%d in JSON: %s, %v", int64(a), got, err)
		}
	}
}

// TestParse: each text is that number, or the error of that name, never another number.
func TestParse(t *testing.T) {
	for text, want := range map[string]money.Amount{
		"0": 0, "0.0": 0, "0.000000001": money.Nano, "0.01": money.Cent, "500": 500 * money.Unit,
		"0.50": 50 * money.Cent, "12.345678": 12_345_678 * money.Micro, "12.345678900": 12_345_678_900,
		"9223372036.854775807": math.MaxInt64,
	} {
		if got, err := money.Parse(text); got != want || err != nil {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
}

// TestParseErrors has the wording of each mistake.
func TestParseErrors(t *testing.T) {
	const sign = "has a sign: remove it, and write an amount that is not negative"
	const exponent = "has an exponent: write all digits, such as 1000"
	const space = "has white space: remove it"
	const script = "has digits of another script: write them as 0 to 9"
	const other = "has more than digits and a point: write the number alone, such as 12.50"
	const comma = "has a comma: write a point before the decimals, and nothing between thousands"
	const zero = "starts with 0, which is octal to some readers: remove the 0"
	const above = "is above 9223372036.854775807, the largest amount: lower it"
	const before = "has no digit before its point: write 0 there, such as 0.5"
	for text, want := range map[string]string{
		"":                         `"" is no number: write digits, such as 12.50`,
		"1e3":                      `"1e3" ` + exponent,
		"1E-3":                     `"1E-3" ` + exponent,
		".5":                       `".5" ` + before,
		".":                        `"." ` + before,
		"5.":                       `"5." has no digit behind its point: remove the point`,
		"1.2.3":                    `"1.2.3" has more than one point: write one, before the decimals`,
		"0.1234567890123":          `"0.1234567890123" has 13 decimals, at most 9 fit: round it`,
		"1.0000000000":             `"1.0000000000" has 10 decimals, at most 9 fit: round it`,
		"٣":                        `"\u0663" ` + script,
		"1٣":                       `"1\u0663" ` + script,
		"1_000":                    `"1_000" has a '_': remove it`,
		"1,000.50":                 `"1,000.50" ` + comma,
		"-5":                       `"-5" ` + sign,
		"+5":                       `"+5" ` + sign,
		"--5":                      `"--5" ` + sign,
		"−5":                       `"\u22125" ` + other,
		" 5":                       `" 5" ` + space,
		"5 ":                       `"5 " ` + space,
		"5\n":                      `"5\n" ` + space,
		"5\u00a0USD":               `"5\u00a0USD" ` + space,
		"$5":                       `"$5" ` + other,
		"0x10":                     `"0x10" ` + other,
		"NaN":                      `"NaN" ` + other,
		"Inf":                      `"Inf" ` + other,
		"e3":                       `"e3" ` + other,
		"2.50/1M":                  `"2.50/1M" ` + other,
		"5\xff":                    `"5\xff" ` + other,
		"5\x1b[31m":                `"5\x1b[31m" ` + other,
		"007":                      `"007" ` + zero,
		"00.5":                     `"00.5" ` + zero,
		"9223372036.854775808":     `"9223372036.854775808" ` + above,
		"99999999999999999999":     `"99999999999999999999" ` + above,
		strings.Repeat("9", 1000):  `"` + strings.Repeat("9", 40) + `..." ` + above,
		strings.Repeat("é", 1_000): `"` + strings.Repeat(`\u00e9`, 40) + `..." ` + other,
	} {
		got, err := money.Parse(text)
		e, ok := errors.AsType[*money.ParseError](err)
		if !ok || got != 0 || err.Error() != "sluice: amount "+want {
			t.Errorf("%.50q: %d, %v\nwant %s", text, got, err, want)
		} else if e.Text != text || !strings.HasSuffix(want, " "+e.Reason) {
			t.Errorf("%.50q: %+v", text, e)
		}
	}
}

// TestUnmarshalText: it reads what Parse reads and debts, and changes nothing when it fails. Numbers of JSON
// are refused.
func TestUnmarshalText(t *testing.T) {
	const before = 7 * money.Unit
	for text, want := range map[string]money.Amount{
		`"12.345678900"`: 12_345_678_900, `"-0.25"`: -25 * money.Cent, `"-9223372036.854775808"`: math.MinInt64,
		`"1e3"`: before, `"-"`: before, `"--1"`: before, `"+1"`: before, `"- 1"`: before, `""`: before,
		`"-9223372036.854775809"`: before, `12.5`: before, `7e9`: before,
	} {
		got := before
		err := json.Unmarshal([]byte(text), &got)
		if got != want || (err != nil) != (want == before) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	var a money.Amount
	const low = `sluice: amount "-9223372036.854775809" is below -9223372036.854775808, the least amount: ` +
		`raise it`
	if err := a.UnmarshalText([]byte("-9223372036.854775809")); err == nil || err.Error() != low {
		t.Error(err)
	}
}

// TestRoundTrip: Parse and UnmarshalText return the amount whose text they get, Parse if it is not negative.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := amounts().Draw(t, "amount")
		var got money.Amount
		text, _ := want.MarshalText()
		if err := got.UnmarshalText(text); got != want || err != nil {
			t.Errorf("UnmarshalText(%s) = %d, %v", text, got, err)
		}
		got, err := money.Parse(want.String())
		switch {
		case want < 0 && err == nil:
			t.Errorf("Parse(%s) = %d", want, got)
		case want >= 0 && (got != want || err != nil):
			t.Errorf("Parse(%s) = %d, %v", want, got, err)
		}
	})
}

// TestDecimals holds the text against the digits of the nano-units.
func TestDecimals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := amounts().Draw(t, "amount")
		digits := strings.TrimPrefix(strconv.FormatInt(int64(a), 10), "-")
		digits = strings.Repeat("0", max(0, 10-len(digits))) + digits
		want := digits[:len(digits)-9] + "." + digits[len(digits)-9:]
		want = strings.TrimRight(strings.TrimRight(want, "0"), ".")
		if a < 0 {
			want = "-" + want
		}
		if diff := cmp.Diff(want, a.String()); diff != "" {
			t.Errorf("%d (-want +got):\n%s", int64(a), diff)
		}
	})
}

// amounts are any, small ones, and round ones.
func amounts() *rapid.Generator[money.Amount] {
	return rapid.Custom(func(t *rapid.T) money.Amount {
		n := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-2e9, 2e9),
			rapid.SampledFrom([]int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, math.MaxInt64})).Draw(t, "n")
		unit := rapid.SampledFrom([]money.Amount{money.Nano, money.Micro, money.Cent, money.Unit}).Draw(t, "unit")
		return money.Amount(n) / unit * unit
	})
}
