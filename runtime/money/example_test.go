package money_test

import (
	"encoding/json"
	"fmt"
	"log"
	"os"

	"github.com/sluice-go/sluice/runtime/money"
)

// A call costs 0.00645, which is 1,200 tokens at 2.50/1M and 345 at 10/1M.
func Example() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// cost 0.00645 left 12.49355
}

func run() error {
	budget, err := money.Parse("12.50")
	if err != nil {
		return err
	}
	const input, output money.Price = 2_500_000, 10_000_000 // 2.50/1M and 10/1M
	cost := money.Total{}.Add(1_200, input).Add(345, output).Amount()
	fmt.Println("cost", cost, "left", budget-cost)
	return nil
}

// JSON carries amounts as strings, since numbers of JSON are floats to many readers.
func ExampleAmount_MarshalText() {
	bill := struct{ Spent, Left money.Amount }{4*money.Unit + 25*money.Cent, -money.Nano}
	if err := json.NewEncoder(os.Stdout).Encode(bill); err != nil {
		log.Fatal(err)
	}
	// Output: {"Spent":"4.25","Left":"-0.000000001"}
}

// Parse returns an error with its cure for a text that it cannot read exactly.
func ExampleParse() {
	for _, text := range []string{"1e3", "0.0000000001"} {
		_, err := money.Parse(text)
		fmt.Println(err)
	}
	// Output:
	// sluice: amount "1e3" has an exponent: write all digits, such as 1000
	// sluice: amount "0.0000000001" has 10 decimals, at most 9 fit: round it
}
