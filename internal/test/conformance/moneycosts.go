package conformance

import (
	"math/big"

	budgets "github.com/sluice-go/sluice/gen/testdata/golden/money/out"
	"github.com/sluice-go/sluice/runtime/money"
)

// costing is how usage becomes a cost: GPT4Usage.Cost, or a broken way that the suite has to notice.
type costing func(budgets.GPT4Usage) budgets.GPT4Cost

// inDollars returns a costing that charges an amount of a call's exact cost, in pico-units.
func inDollars(amount func(exact *big.Int) money.Amount) costing {
	return func(u budgets.GPT4Usage) budgets.GPT4Cost {
		sum := amount(exactly(u))
		return budgets.GPT4Cost{TPM: u.Input + u.Output, Day: sum, Month: sum}
	}
}

// prices are those of the usages of package budgets, in pico-units, in the order of parts.
var prices = [...]int64{2_500_001, 250_009, 10_000_007, 4_000_000_000}

// parts are the counts of a usage that have prices.
func parts(u budgets.GPT4Usage) [4]int64 { return [...]int64{u.Input, u.Cached, u.Output, u.Call} }

// exactly returns what u costs, in pico-units.
func exactly(u budgets.GPT4Usage) *big.Int {
	sum := new(big.Int)
	for i, count := range parts(u) {
		sum.Add(sum, new(big.Int).Mul(big.NewInt(count), big.NewInt(prices[i])))
	}
	return sum
}

// The broken ways: cents, and each part by itself.
func inCents(u budgets.GPT4Usage) budgets.GPT4Cost {
	return inDollars(func(exact *big.Int) money.Amount {
		cents := new(big.Int).Quo(exact, big.NewInt(10_000_000_000)).Int64()
		return money.Amount(cents) * money.Cent
	})(u)
}

func byPart(u budgets.GPT4Usage) budgets.GPT4Cost {
	return inDollars(func(*big.Int) (sum money.Amount) {
		for i, count := range parts(u) {
			sum += money.Total{}.Add(count, money.Price(prices[i])).Amount()
		}
		return sum
	})(u)
}

func inFloats(u budgets.GPT4Usage) budgets.GPT4Cost {
	return inDollars(func(*big.Int) money.Amount {
		sum := 0.0
		for i, count := range parts(u) {
			sum += float64(count) * (float64(prices[i]) / 1e12)
		}
		return money.Amount(sum * 1e9)
	})(u)
}
