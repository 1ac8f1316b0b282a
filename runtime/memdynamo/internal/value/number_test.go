package value_test

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/apd/v3"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

const (
	notNumeric = "The parameter cannot be converted to a numeric value"
	precision  = "Attempting to store more than 38 significant digits in a Number"
	overflow   = "Number overflow. Attempting to store a number with magnitude larger than supported range"
	underflow  = "Number underflow. Attempting to store a number with magnitude smaller than supported range"
)

// message returns what a client sees of err, which is a ValidationException or nothing.
func message(t testing.TB, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	e, ok := err.(*exception.Error) //nolint:errorlint // the doors promise this type, unwrapped
	if !ok || e.Code != exception.Validation {
		t.Fatalf("%v is not a ValidationException", err)
	}
	return e.Message
}

func parse(t testing.TB, text string) value.Number {
	t.Helper()
	n, err := value.ParseNumber(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return n
}

func zeros(n int) string { return strings.Repeat("0", n) }

func TestParseNumber(t *testing.T) {
	nines := strings.Repeat("9", 38)
	for text, want := range map[string]string{
		"0": "0", "-0": "0", "+0.00": "0", "0e500": "0", "0e-500": "0", "0e999999999": "0",
		"1": "1", "+1": "1", "-1": "-1", "007": "7", "1.50": "1.5", "100": "100", "-1.50e3": "-1500",
		".5": "0.5", "-.5": "-0.5", "5.": "5", "1.e3": "1000", "+.5e+3": "500", "1E5": "100000",
		"1e09": "1000000000",
		"1e20": "100000000000000000000", "1E-7": "0.0000001", "123456e-10": "0.0000123456",
		"1e0000000000000000000000001": "10",
		"9223372036854775807":         "9223372036854775807", "9223372036854775808": "9223372036854775808",
		"-9223372036854775808": "-9223372036854775808", "-9223372036854775809": "-9223372036854775809",
		"123456789012345678": "123456789012345678", "1234567890123456789": "1234567890123456789",
		"1e125": "1" + zeros(125), "0.1e126": "1" + zeros(125), "-1e125": "-1" + zeros(125),
		nines + "e88": nines + zeros(88),
		"1e-130":      "0." + zeros(129) + "1", "10e-131": "0." + zeros(129) + "1", "12.3e-131": "0." + zeros(129) +
			"123",
		nines: nines, "0." + nines: "0." + nines, nines + "0.0": nines + "0",
		strings.Repeat("1", 37) + ".5":    strings.Repeat("1", 37) + ".5",
		"1" + zeros(100_000) + "e-100000": "1", zeros(1<<20) + "1": "1", "1." + zeros(1<<20): "1",
	} {
		if n, err := value.ParseNumber(text); err != nil || n.String() != want {
			t.Errorf("%.50s: %s, %v; want %s", text, n, err, want)
		}
	}
}

func TestParseNumberErrors(t *testing.T) {
	for text, want := range map[string]string{
		"": notNumeric, "１": notNumeric + ": １", // Local reads any of Unicode's digits
		"1e126": overflow, "-1e126": overflow, "10e125": overflow, "1e999999999": overflow,
		"1" + zeros(1<<20): overflow,
		"1e-131":           underflow, "-1e-131": underflow, "0.9e-130": underflow, "1e-999999999": underflow,
		"0." + zeros(1<<20) + "1": underflow,
		strings.Repeat("1", 39):   precision, "0." + strings.Repeat("1", 39): precision,
		"1" + zeros(37) + "1":            precision,
		strings.Repeat("1", 39) + "e200": precision, strings.Repeat("1", 1<<20): precision,
	} {
		if _, err := value.ParseNumber(text); message(t, err) != want {
			t.Errorf("%.50s: %v, want %s", text, err, want)
		}
	}
	for _, text := range []string{
		" 1", "1 ", "\t1", "1\n", "1_0", ".", "-.", "e5", ".e5", "-e5", "1e", "1e+", "1e++5", "1e+-5", "1e5.5",
		"1e_5", "0x10",
		"NaN", "Infinity", "-inf", "-", "+", "--1", "1,000", "1.2.3", "..1", "1f", "1d", "'1'", "null", "\x00",
		"1e2147483648", "0e99999999999", "1e-2147483648", zeros(1<<20) + "x", "1e" + strings.Repeat("9", 1<<20),
	} {
		if _, err := value.ParseNumber(text); message(t, err) != notNumeric+": "+text {
			t.Errorf("%.50s: %.100v, want %s", text, err, notNumeric)
		}
	}
}

func TestAddSub(t *testing.T) {
	nines := strings.Repeat("9", 38)
	for _, c := range []struct{ a, b, sum, diff string }{
		{"1", "2", "3", "-1"},
		{"0.1", "0.2", "0.3", "-0.1"},
		{"1e22", "1", "10000000000000000000001", "9999999999999999999999"},
		{nines, "1", "1" + zeros(38), strings.Repeat("9", 37) + "8"},
		{"1e38", "0.1", overflow, overflow}, // AWS says overflow of an imprecise result; Local names the digits
		{"1e50", "1", overflow, overflow},
		{"1e125", "1e-130", overflow, overflow},
		{"9e125", "1e125", overflow, "8" + zeros(125)},
		{"-9e125", "1e125", "-8" + zeros(125), overflow},
		{"1e-130", "1e-130", "0." + zeros(129) + "2", "0"},
		{"1.05e-129", "1e-129", "0." + zeros(128) + "205", underflow},
		{"9223372036854775807", "1", "9223372036854775808", "9223372036854775806"},
		{"-9223372036854775808", "1", "-9223372036854775807", "-9223372036854775809"},
		{"0", "-9223372036854775808", "-9223372036854775808", "9223372036854775808"},
		{"9223372036854775808", "-1", "9223372036854775807", "9223372036854775809"},
		{"1.5", "0.5", "2", "1"},
	} {
		for _, op := range []struct {
			sign string
			do   func(a, b value.Number) (value.Number, error)
			want string
		}{{"+", value.Number.Add, c.sum}, {"-", value.Number.Sub, c.diff}} {
			got, err := op.do(parse(t, c.a), parse(t, c.b))
			if err == nil && got.String() != op.want || err != nil && message(t, err) != op.want {
				t.Errorf("%s %s %s = %s, %v; want %s", c.a, op.sign, c.b, got, err, op.want)
			}
		}
	}
}

func TestWhole(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1.0": 1, "1e18": 1e18, "9223372036854775807": math.MaxInt64, "-9223372036854775808": math.MinInt64,
	} {
		if i, ok := whole(parse(t, text)); !ok || i != want {
			t.Errorf("%s: %d, %t", text, i, ok)
		}
		if text := value.NumberOf(want).String(); text != strconv.FormatInt(want, 10) {
			t.Errorf("NumberOf(%d) is %s", want, text)
		}
	}
	for _, text := range []string{"0.5", "9223372036854775808", "-9223372036854775809", "1e19"} {
		if i, ok := whole(parse(t, text)); ok {
			t.Errorf("%s: %d", text, i)
		}
	}
}

// texts are numbers within the bounds: small and wide integers, ends of the range, neighbours that cancel
// out.
func texts() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		if rapid.IntRange(0, 2).Draw(t, "form") == 0 {
			return strconv.FormatInt(rapid.Int64().Draw(t, "integer"), 10)
		}
		digits := rapid.OneOf(rapid.StringMatching(`[1-9][0-9]{0,37}`),
			rapid.StringMatching(`9{36,38}|10{35,36}1`)).Draw(t, "digits")
		lowest, highest := -130-len(digits)+1, 125-len(digits)+1
		exponent := rapid.OneOf(
			rapid.IntRange(-len(digits)-2, 2), rapid.IntRange(lowest, highest),
			rapid.SampledFrom([]int{lowest, highest}),
		).Draw(t, "exponent")
		return fmt.Sprintf("%s%se%d", rapid.SampledFrom([]string{"", "-", "+"}).Draw(t, "sign"), digits, exponent)
	})
}

func rational(t testing.TB, text string) *big.Rat {
	t.Helper()
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		t.Fatalf("math/big does not read %s", text)
	}
	return r
}

// expected is the text of r and an empty message, or the message of the error that r is as the result of an
// update.
func expected(r *big.Rat) (text, message string) {
	const shift = 300 // more than any exponent of an operand
	i := new(big.Int).Exp(big.NewInt(10), big.NewInt(shift), nil)
	scaled := new(big.Rat).Mul(r, new(big.Rat).SetInt(i))
	if !scaled.IsInt() {
		panic("more decimals than any operand has")
	}
	all := strings.TrimPrefix(scaled.Num().String(), "-")
	magnitude := len(all) - 1 - shift
	switch digits := len(strings.TrimRight(all, "0")); {
	case digits == 0:
		return "0", ""
	case magnitude < -130:
		return "", underflow
	case magnitude > 125, digits > 38:
		return "", overflow
	}
	text = r.FloatString(shift)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), "."), ""
}

type arithmetic struct {
	parse    func(string) (value.Number, error)
	add, sub func(a, b value.Number) (value.Number, error)
	cmp      func(a, b value.Number) int
}

// check holds arithmetic on two numbers against math/big.
func (op arithmetic) check(t testing.TB, textA, textB string) (wrong []string) {
	t.Helper()
	a, errA := op.parse(textA)
	b, errB := op.parse(textB)
	if errA != nil || errB != nil {
		return []string{fmt.Sprintf("parse: %v, %v", errA, errB)}
	}
	ratA, ratB := rational(t, textA), rational(t, textB)
	verify := func(what string, got value.Number, err error, want *big.Rat) {
		text, mess := expected(want)
		if message(t, err) != mess || err == nil && got.String() != text {
			wrong = append(wrong, fmt.Sprintf("%s %s %s is %s, %v; want %s%s", textA, what, textB, got, err, text,
				mess))
		}
		if again, e := value.ParseNumber(text); err == nil && mess == "" && (e != nil || again.Cmp(got) != 0) {
			wrong = append(wrong, fmt.Sprintf("%s does not parse back: %s, %v", text, again, e))
		}
	}
	verify("parsed before", a, nil, ratA)
	sum, err := op.add(a, b)
	verify("+", sum, err, new(big.Rat).Add(ratA, ratB))
	diff, err := op.sub(a, b)
	verify("-", diff, err, new(big.Rat).Sub(ratA, ratB))
	if got := op.cmp(a, b); got != ratA.Cmp(ratB) {
		wrong = append(wrong, fmt.Sprintf("%s compared to %s is %d", textA, textB, got))
	}
	verify("and before", a, nil, ratA) // nothing changed it
	return wrong
}

func exact() arithmetic {
	return arithmetic{value.ParseNumber, value.Number.Add, value.Number.Sub, value.Number.Cmp}
}

func TestArithmeticAgainstMathBig(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		if wrong := exact().check(t, texts().Draw(rt, "a"), texts().Draw(rt, "b")); wrong != nil {
			rt.Fatal(strings.Join(wrong, "\n"))
		}
	})
}

func TestOracleCatchesInexactArithmetic(t *testing.T) {
	rounding := exact()
	rounding.add = func(a, b value.Number) (value.Number, error) {
		var sum apd.Decimal
		x, _, _ := apd.NewFromString(a.String())
		y, _, _ := apd.NewFromString(b.String())
		if _, err := apd.BaseContext.WithPrecision(38).Add(&sum, x, y); err != nil {
			return value.Number{}, exception.Invalid(overflow)
		}
		return value.ParseNumber(sum.Text('f'))
	}
	floats := exact()
	floats.parse = func(text string) (value.Number, error) {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return value.Number{}, err
		}
		return value.ParseNumber(strconv.FormatFloat(f, 'e', -1, 64))
	}
	wrapping := exact()
	wrapping.sub = func(a, b value.Number) (value.Number, error) {
		i, okA := whole(a)
		j, okB := whole(b)
		if okA && okB {
			return value.NumberOf(i - j), nil
		}
		return a.Sub(b)
	}
	textual := exact()
	textual.cmp = func(a, b value.Number) int { return strings.Compare(a.String(), b.String()) }

	for name, variant := range map[string]arithmetic{
		"rounds to 38 digits": rounding, "float64": floats, "int64 wraps": wrapping, "compares texts": textual,
	} {
		caught := false
		for seed := 0; seed < 1000 && !caught; seed += 2 {
			caught = variant.check(t, texts().Example(seed), texts().Example(seed+1)) != nil
		}
		if !caught {
			t.Errorf("%s: not caught", name)
		}
	}
}

func TestSmallNumbersDoNotAllocate(t *testing.T) {
	b := make([]byte, 0, 64)
	allocations := testing.AllocsPerRun(100, func() {
		n, _ := value.ParseNumber("-1234567")
		n, _ = n.Add(value.NumberOf(99))
		n, _ = n.Sub(value.NumberOf(1))
		if n.Cmp(value.NumberOf(0)) != -1 {
			t.Error(n)
		}
	})
	var boxed value.Value = value.NumberOf(-1234567)
	allocations += testing.AllocsPerRun(100, func() { b = value.Append(b[:0], boxed) })
	if allocations != 0 {
		t.Errorf("%v allocations", allocations)
	}
}

// whole returns n if it is an integer that fits an int64.
func whole(n value.Number) (int64, bool) {
	i, err := strconv.ParseInt(n.String(), 10, 64)
	return i, err == nil
}
