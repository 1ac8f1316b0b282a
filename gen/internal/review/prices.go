package review

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/gen/internal/model"
	"github.com/sluice-go/sluice/gen/internal/words"
)

const (
	picoDigits = 12 // decimals of a pico-unit
	nanoDigits = 9  // decimals of a nano-unit, to which a bill is rounded

	// manyUnits is what the example bill has of a usage that costs less than a thousandth; of others it has one.
	manyUnits  = 1_234
	thousandth = 1_000_000_000 // in pico-units
)

// prices prints the price of each usage, and an example bill.
func prices(m *markdown, r *model.Resource) {
	if r.Usage == "" {
		return
	}
	m.heading(3, "Prices")
	m.print("\n`%s.Cost` adds up the usages of a call%s.\n", r.Usage, rounding(r))
	bill := new(big.Int)
	titles := []string{"usage", "counts in"}
	if r.Currency != "" {
		titles = append(titles, "price, "+r.Currency+":", "example:", "costs, "+r.Currency+":")
	}
	m.table(titles...)
	for _, u := range r.Consumes {
		cells := []string{"`" + u.Name + "`", countsIn(r, u)}
		if r.Currency != "" {
			cost, example := new(big.Int), "0"
			price := "none"
			if u.Price > 0 {
				n := int64(1)
				if u.Price < thousandth {
					n = manyUnits
				}
				price, example = words.Price(u.Price), words.Digits(n, ",")
				cost.Mul(big.NewInt(u.Price), big.NewInt(n))
			}
			bill.Add(bill, cost)
			cells = append(cells, price, example, exactly(cost, picoDigits))
		}
		m.row(cells...)
	}
	if r.Currency == "" {
		return
	}
	charged, rest := new(big.Int).QuoRem(bill, big.NewInt(1_000), new(big.Int))
	if rest.Sign() > 0 {
		charged.Add(charged, big.NewInt(1))
	}
	m.print("\nThe example costs %s %s. The charge to %s is %s %s.\n", exactly(bill, picoDigits), r.Currency,
		words.List(budgets(r), "and"), exactly(charged, nanoDigits), r.Currency)
}

// rounding says how a bill is rounded, if r has prices.
func rounding(r *model.Resource) string {
	if r.Currency == "" {
		return ""
	}
	return fmt.Sprintf(", and rounds its price in %s up once, to a billionth", r.Currency)
}

// budgets returns the names of r's limits of money.
func budgets(r *model.Resource) (names []string) {
	for _, l := range r.Limits {
		if l.Currency != "" {
			names = append(names, "`"+l.Name+"`")
		}
	}
	return names
}

// countsIn returns the limits that a usage counts in.
func countsIn(r *model.Resource, u *model.Usage) string {
	var names []string
	for _, l := range r.Limits {
		if slices.Contains(l.Counts, u) {
			names = append(names, "`"+l.Name+"`")
		}
	}
	if u.Price > 0 {
		names = append(names, budgets(r)...)
	}
	if names == nil {
		return "no limit"
	}
	return words.List(names, "and")
}

// exactly writes n, which has that many decimals, with those that it needs.
func exactly(n *big.Int, decimals int) string {
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil)
	text := new(big.Rat).SetFrac(n, scale).FloatString(decimals)
	return strings.TrimRight(strings.TrimRight(text, "0"), ".")
}
