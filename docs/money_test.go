package docs_test

import (
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/runtime/money"
)

// itemised matches a row of the bill in money.md: count, price and cost.
var itemised = regexp.MustCompile(`(?m)^\| \w+ \| ([0-9,]+) \| ([0-9.]+)(/1M)? \| ([0-9.]+) \|$`)

// TestBill adds up the bill in money.md, in whole numbers and with package money.
func TestBill(t *testing.T) {
	page := read(t, "docs/money.md")
	rows := itemised.FindAllStringSubmatch(page, -1)
	if len(rows) != 4 {
		t.Fatalf("%d rows, want 4", len(rows))
	}
	sum, total := new(big.Rat), money.Total{}
	for _, row := range rows {
		count, err := strconv.ParseInt(strings.ReplaceAll(row[1], ",", ""), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		price, _ := new(big.Rat).SetString(row[2])
		if row[3] != "" {
			price.Quo(price, big.NewRat(1_000_000, 1))
		}
		cost := new(big.Rat).Mul(price, big.NewRat(count, 1))
		if want, _ := new(big.Rat).SetString(row[4]); cost.Cmp(want) != 0 {
			t.Errorf("%s cost %s", row[0], cost.FloatString(12))
		}
		sum.Add(sum, cost)
		picos := new(big.Rat).Mul(price, big.NewRat(1_000_000_000_000, 1))
		if !picos.IsInt() {
			t.Fatalf("%s is no price", row[2])
		}
		total = total.Add(count, money.Price(picos.Num().Int64()))
	}
	for _, want := range []string{
		"The sum is " + strings.TrimRight(sum.FloatString(12), "0") + " USD.",
		"The charge is " + total.Amount().String() + " USD,",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say: %s", want)
		}
	}
}
