package money_test

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/runtime/money"
)

// decimal is the form that Parse reads.
var decimal = regexp.MustCompile(`^(0|[1-9][0-9]*)(\.[0-9]{1,9})?$`)

// FuzzParse: a text in the form of an amount is that number, if int64 has it. Every other text is an error
// that names it.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"", "0", "12.345678900", "-0.25", "-0", "1e3", ".5", "5.", "0.1234567890123", "٣", "1_000", "1,000.50",
		"+5", " 5", "5\n", "007", "9223372036.854775807", "9223372036.854775808", "-9223372036.854775808", "1.2.3",
		"NaN", "2.50/1M", "5\xff", strings.Repeat("9", 100),
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := money.Parse(text)
		if wrong := misread(text, text, got, err); wrong != "" {
			t.Errorf("Parse(%q): %s", text, wrong)
		}
		var a money.Amount
		err = a.UnmarshalText([]byte(text))
		if wrong := misread(text, strings.TrimPrefix(text, "-"), a, err); wrong != "" {
			t.Errorf("UnmarshalText(%q): %s", text, wrong)
		}
	})
}

// misread compares what was read from a text with the number that it has in math/big, and returns what is
// wrong. digits is the part that has to have the form of an amount.
func misread(text, digits string, got money.Amount, err error) string {
	var want *big.Int
	if decimal.MatchString(digits) {
		exact, _ := new(big.Rat).SetString(text)
		exact.Mul(exact, big.NewRat(int64(money.Unit), 1))
		if exact.IsInt() && exact.Num().IsInt64() {
			want = exact.Num()
		}
	}
	switch {
	case want == nil && err == nil:
		return fmt.Sprintf("read as %d", got)
	case want != nil && err != nil:
		return "refused: " + err.Error()
	case want != nil && want.Int64() != int64(got):
		return fmt.Sprintf("read as %d, not %v", got, want)
	case err != nil && got != 0:
		return fmt.Sprintf("%d beside an error", got)
	case err != nil && !named(err.Error(), text):
		return "unnamed in " + strconv.Quote(err.Error())
	}
	return ""
}

// named reports whether a message fits a line of a log, and has a text in quotes, or the 40 runes that it
// begins with.
func named(message, text string) bool {
	const longest = len("sluice: amount ") + 40*len(`\U0010ffff`) + 120
	shown, runes := text, 0
	for i := range text {
		if runes++; runes > 40 {
			shown = text[:i] + "..."
			break
		}
	}
	return len(message) <= longest && !strings.ContainsFunc(message, unprintable) &&
		strings.Contains(message, strconv.QuoteToASCII(shown))
}

// TestMisreadControl: the checker of FuzzParse finds readers that guess, round or refuse too much, and errors
// that do not name their text.
func TestMisreadControl(t *testing.T) {
	refused := errors.New(`sluice: amount "1\x1b" is wrong`)
	for _, test := range []struct {
		text string
		got  money.Amount
		err  error
		want string
	}{
		{"1\x1b", 0, refused, ""},
		{"0.5", 50 * money.Cent, nil, ""},
		{"1e3", 1000 * money.Unit, nil, "read as 1000000000000"},
		{".5", 50 * money.Cent, nil, "read as 500000000"},
		{"0.0000000001", 0, nil, "read as 0"},
		{"010", 10 * money.Unit, nil, "read as 10000000000"},
		{"9223372036.854775808", math.MaxInt64, nil, "read as 9223372036854775807"},
		{"0.8", 799_999_999, nil, "read as 799999999, not 800000000"},
		{"0.5", 0, refused, "refused: " + refused.Error()},
		{"1\x1b", 1, refused, "1 beside an error"},
		{"2\x1b", 0, refused, `unnamed in "sluice: amount \"1\\x1b\" is wrong"`},
		{"1\x1b", 0, errors.New("amount 1\x1b"), `unnamed in "amount 1\x1b"`},
	} {
		if got := misread(test.text, test.text, test.got, test.err); got != test.want {
			t.Errorf("%q: %q, want %q", test.text, got, test.want)
		}
	}
}

// unprintable reports whether r has no place in the line of a log.
func unprintable(r rune) bool { return r < ' ' || r >= math.MaxInt8 }

// FuzzTotal: whatever the numbers are, the sum is exact or refused, and nothing panics.
func FuzzTotal(f *testing.F) {
	edges := []int64{math.MinInt64, -1, 0, 1, 1000, int64(money.Unlimited), math.MaxInt64}
	for _, a := range edges {
		for _, b := range edges {
			f.Add(a, b, b, a, a, int64(1000))
			f.Add(int64(money.Unlimited), int64(1000), a, b, b, b)
		}
	}
	f.Fuzz(func(t *testing.T, c1, p1, c2, p2, c3, p3 int64) {
		parts := []part{{c1, p1}, {c2, p2}, {c3, p3}}
		if got, want := total(parts), oracle(parts); got != want {
			t.Errorf("%v: %d, want %d", parts, got, want)
		}
	})
}
