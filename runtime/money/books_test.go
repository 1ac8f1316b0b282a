package money_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime/money"
)

// books adds up what calls were charged, and what they cost exactly, in pico-units.
type books struct {
	calls          int64
	exact, charged big.Int
}

// call adds one call that was charged a number of nano-units.
func (b *books) call(cost *big.Int, nanos int64) {
	b.calls++
	b.exact.Add(&b.exact, cost)
	b.charged.Add(&b.charged, picos(nanos))
}

// Sides on which books can be wrong.
const (
	less = "charged less than the exact sum"
	more = "charged a nano or more a call above the exact sum"
)

// wrong returns the side on which exact <= charged < exact + n nano is broken, or "".
func (b *books) wrong() string {
	above := new(big.Int).Sub(&b.charged, &b.exact)
	switch {
	case above.Sign() < 0:
		return less
	case b.calls > 0 && above.Cmp(picos(b.calls)) >= 0:
		return more
	}
	return ""
}

// picos returns n nano-units in pico-units.
func picos(n int64) *big.Int { return new(big.Int).Mul(big.NewInt(n), big.NewInt(1000)) }

// price returns a price of limits.yaml in pico-units: 2.50/1M. It fails the test unless that is a whole
// number.
func price(t testing.TB, written string) int64 {
	t.Helper()
	text, per, _ := strings.Cut(written, "/")
	exact, ok := new(big.Rat).SetString(text)
	units := map[string]int64{"": 1, "1k": 1_000, "1M": 1_000_000}[per]
	if !ok || !exact.Mul(exact, big.NewRat(1_000_000_000_000, units)).IsInt() {
		t.Fatalf("price %s is not whole in pico-units", written)
	}
	return exact.Num().Int64()
}

// one is a call that uses one unit at each price.
func one(t testing.TB, prices ...string) (parts []part) {
	t.Helper()
	for _, written := range prices {
		parts = append(parts, part{1, price(t, written)})
	}
	return parts
}

// rounding returns the nano-units that a call is charged.
type rounding func(call []part) int64

// once is the charge that the package makes.
func once(call []part) int64 { return int64(total(call)) }

// eachUp rounds every part up by itself.
func eachUp(call []part) (sum int64) {
	for _, p := range call {
		sum += once([]part{p})
	}
	return sum
}

// eachDown rounds every part down by itself.
func eachDown(call []part) (sum int64) {
	for _, p := range call {
		sum += p.count * p.price / 1000
	}
	return sum
}

// whole rounds the cost down to a whole number of units of that size.
func whole(call []part, size money.Amount) int64 { return once(call) / int64(size) * int64(size) }

// cents rounds the cost to the nearest cent.
func cents(call []part) int64 {
	return (once(call) + int64(money.Cent)/2) / int64(money.Cent) * int64(money.Cent)
}

// inFloats returns a rounding that adds parts as float64, and then rounds.
func inFloats(round func(float64) float64) rounding {
	return func(call []part) int64 {
		sum := 0.0
		for _, p := range call {
			sum += float64(p.count) * (float64(p.price) / 1e12)
		}
		return int64(round(sum * 1e9))
	}
}

// after returns what is wrong after one call that is charged like that.
func after(call []part, how rounding) string {
	var b books
	b.call(exact(call), how(call))
	return b.wrong()
}

// TestWholeBudget: 2,500 calls at 0.004 are 10.00, and one more is above it. Rounded to cents, they would be
// nothing.
func TestWholeBudget(t *testing.T) {
	call := one(t, "0.004")
	budget, err := money.Parse("10.00")
	if err != nil {
		t.Fatal(err)
	}
	calls, sum := 0, money.Amount(0)
	for ; sum+total(call) <= budget; calls++ {
		sum += total(call)
	}
	if calls != 2_500 || sum != budget || cents(call) != 0 {
		t.Errorf("%d calls cost %s, and one of them %d in cents", calls, sum, cents(call))
	}
}

// TestBooksControl: the checker finds each wrong way to round, and says on which side it is wrong.
func TestBooksControl(t *testing.T) {
	small := one(t, "0.0004/1M", "0.0004/1M") // 0.8 nano together
	for _, test := range []struct {
		name string
		call []part
		how  rounding
		want string
	}{
		{"each part up", small, eachUp, more},
		{"each part down", small, eachDown, less},
		{"cents, of 0.004", one(t, "0.004"), cents, less},
		{"cents, of 0.005", one(t, "0.005"), cents, more},
		{"float64, truncated: 0.7999999999999999", one(t, "0.1", "0.7"), inFloats(math.Trunc), less},
		{"float64, rounded up: 0.30000000000000004", one(t, "0.1", "0.2"), inFloats(math.Ceil), more},
		{"rounded to the nearest", one(t, "0.0004/1M"), inFloats(math.Round), less},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := after(test.call, test.how); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
			if got := after(test.call, once); got != "" {
				t.Errorf("rounded once: %q", got)
			}
		})
	}
}

// TestRandomCalls: over random calls, each settled for another usage, the charges stay within the bound. The
// wrong ways to round do not.
func TestRandomCalls(t *testing.T) {
	const seed, controlled = 3, 10_000 // calls that the controls see
	random, lists := rand.New(rand.NewPCG(seed, seed)), prices(t)
	controls := []struct {
		name string
		how  func(estimate, actual []part) int64
		want string
	}{
		{"each part up", func(_, actual []part) int64 { return eachUp(actual) }, more},
		{"each part down", func(_, actual []part) int64 { return eachDown(actual) }, less},
		{"cents", func(_, actual []part) int64 { return whole(actual, money.Cent) }, less},
		{"float64", func(_, actual []part) int64 { return inFloats(math.Trunc)(actual) }, less},
		{"the cost of a difference", func(estimate, actual []part) int64 {
			return once(estimate) - once(differences(estimate, actual))
		}, less},
	}
	var kept books
	wrong, found := make([]books, len(controls)), make([]string, len(controls))
	for i := range longform.Count(t, "calls", 1_000_000, controlled) {
		estimate, actual := randomCall(random, lists)
		cost, reserved := exact(actual), once(estimate)
		kept.call(cost, reserved+(once(actual)-reserved))
		if got := kept.wrong(); got != "" {
			t.Fatalf("call %d, %v: %s", i+1, actual, got)
		}
		for c := range controls {
			if i < controlled && found[c] == "" {
				wrong[c].call(cost, controls[c].how(estimate, actual))
				found[c] = wrong[c].wrong()
			}
		}
	}
	for c, control := range controls {
		if found[c] != control.want {
			t.Errorf("control, %s: %q, want %q", control.name, found[c], control.want)
		}
	}
}

// differences are the counts of an estimate above those of the actual usage.
func differences(estimate, actual []part) (parts []part) {
	for i, p := range estimate {
		parts = append(parts, part{p.count - actual[i].count, p.price})
	}
	return parts
}

// prices returns the prices that each of a call's usages may have.
func prices(t testing.TB) (lists [4][]int64) {
	t.Helper()
	for i, list := range [4][]string{
		{"2.50/1M", "2.500001/1M", "0.150003/1M", "0.003000007/1k"}, // input
		{"0.250009/1M", "0.0375/1M", "0.000001/1M"},                 // cached
		{"10/1M", "0.600011/1M", "0.012500013/1k"},                  // output
		{"0.01", "0.004", "0.000000000001", "0.000000000777", "0"},  // call
	} {
		for _, written := range list {
			lists[i] = append(lists[i], price(t, written))
		}
	}
	return lists
}

// randomCall returns an estimate of a call with four usages, and what it used: up to as much.
func randomCall(random *rand.Rand, lists [4][]int64) (estimate, actual []part) {
	for i, most := range []int64{200_000, 200_000, 64_000, 3} {
		rate, n := lists[i][random.IntN(len(lists[i]))], random.Int64N(most+1)
		estimate = append(estimate, part{n, rate})
		actual = append(actual, part{random.Int64N(n + 1), rate})
	}
	return estimate, actual
}
