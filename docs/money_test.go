package docs_test

import (
	"context"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	budget "github.com/sluice-go/sluice/examples/budget/limits"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
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

// TestMoneyCosts: money costs the write units of tokens: two for each bucket of a chain to take it, and one
// to settle. A bucket alone takes one. More is another take.
func TestMoneyCosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memdynamo.New()
		if _, err := operator.CreateTable(t.Context(), engine.Client(), usageTable); err != nil {
			t.Fatal(err)
		}
		lim, err := budget.New(dynamo.New(engine.Client(), usageTable))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = lim.Close(context.WithoutCancel(t.Context())) }()
		org := budget.Org{ID: "1"}
		all, alone := budget.GPT4Usage{Input: 10, Output: 5, Call: 1}.Cost(), budget.GPT4Usage{Call: 1}.Cost()
		for range 2 { // the first calls make the buckets
			engine.ResetConsumed()
			costs := func(what string, want float64, err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
				if got := engine.Consumed().Total().Total().Write; got != want {
					t.Errorf("%s: %v write units, want %v", what, got, want)
				}
				engine.ResetConsumed()
			}
			lease, err := lim.GPT4.Acquire(t.Context(), budget.Key{ID: "1", Org: org}, all)
			take := engine.Consumed().Total().Total().Write
			if err != nil || take < 4 {
				t.Fatalf("%v write units: %v", take, err)
			}
			engine.ResetConsumed()
			costs("more", 4, lease.More(t.Context(), budget.GPT4Usage{Output: 5}.Cost()))
			costs("the settle of a chain", 2, lease.Settle(t.Context(), all))
			lease, err = lim.GPT4.Acquire(t.Context(), org, alone)
			costs("a bucket alone", 1, err)
			costs("its settle", 1, lease.Settle(t.Context(), budget.GPT4Usage{}.Cost()))
		}
	})
}
