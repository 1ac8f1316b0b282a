package docs_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestDollars computes the dollars of docs/costs.md and of README from units and prices. The units are those
// of generated/EXPRESSIONS.md, the prices those that `sluice region status` has built in.
func TestDollars(t *testing.T) {
	p := prices(t, read(t, "cmd/sluice/internal/region/cost.go"))
	costs, readme := read(t, "docs/costs.md"), read(t, "README.md")
	for _, wrong := range slices.Concat(
		checkDollars(p, read(t, "generated/EXPRESSIONS.md"), costs),
		checkMonth(p, costs, readme),
	) {
		t.Error(wrong)
	}
}

// TestDollarsControl changes a price, a unit and an amount.
func TestDollarsControl(t *testing.T) {
	source := read(t, "cmd/sluice/internal/region/cost.go")
	units, costs, readme := read(t, "generated/EXPRESSIONS.md"), read(t, "docs/costs.md"), read(t, "README.md")
	p := prices(t, source)
	replace := func(text, old, with string) string {
		t.Helper()
		if !strings.Contains(text, old) {
			t.Fatalf("there is no %q", old)
		}
		return strings.Replace(text, old, with, 1)
	}
	dearer := prices(t, replace(source, `default:"0.625"`, `default:"0.75"`))
	for name, found := range map[string]int{
		"a price":               len(checkDollars(dearer, units, costs)),
		"units of EXPRESSIONS":  len(checkDollars(p, replace(units, "| admit | 4 WCU", "| admit | 5 WCU"), costs)),
		"dollars of a million":  len(checkDollars(p, units, replace(costs, "| 0 | $3.75 |", "| 0 | $3.50 |"))),
		"dollars of a month":    len(checkMonth(p, costs, replace(readme, "| 6 | $37.50 |", "| 6 | $36.50 |"))),
		"a price that is named": len(checkMonth(p, costs, replace(readme, "$0.625", "$0.62"))),
	} {
		if found == 0 {
			t.Errorf("%s is changed, and nothing is found", name)
		}
	}
}

// price is what a million units cost, in dollars.
type price struct{ read, write float64 }

// prices returns the prices that the command has built in.
func prices(t *testing.T, source string) price {
	t.Helper()
	of := func(flag string) float64 {
		m := regexp.MustCompile(`name:"` + flag + `" default:"([0-9.]+)"`).FindStringSubmatch(source)
		if m == nil {
			t.Fatalf("the command has no default of --%s", flag)
		}
		x, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	return price{read: of("price-read"), write: of("price-write")}
}

// dollars writes an amount, with a fraction of a cent if it has one.
func dollars(x float64) string {
	if s := strconv.FormatFloat(x, 'f', 3, 64); !strings.HasSuffix(s, "0") {
		return "$" + s
	}
	return fmt.Sprintf("$%.2f", x)
}

// checkDollars returns what is wrong with the table of a million calls in docs/costs.md.
func checkDollars(p price, expressions, costs string) (wrong []string) {
	chain := func(row string) int { // of gpt-4, the first resource, for user and project
		m := regexp.MustCompile(`(?m)^\| ` + row + ` \| ([0-9]+) [RW]CU`).FindStringSubmatch(expressions)
		if m == nil {
			wrong = append(wrong, "generated/EXPRESSIONS.md has no row "+row)
			return 0
		}
		n, _ := strconv.Atoi(m[1])
		return n
	}
	admit, settle, deny := chain("admit"), chain("settle"), chain("deny")
	for _, want := range []struct {
		row         string
		write, read int
	}{
		{"acquires of one bucket, cost known before the call", admit / 4, 0}, // two buckets, billed twice
		{"acquires of one bucket, each settled", admit/4 + settle/2, 0},
		{"acquires of user and project, each settled, `compensated`", admit/2 + settle, 0},
		{"acquires of user and project, each settled, `atomic`", admit + settle, 0},
		{"denials by what was seen within a second", 0, 0},
		{"denials otherwise, user and project", 0, deny},
		{
			"first calls of new entities, such as new IP addresses, on one bucket",
			admit/4 + chain("besides: new buckets")/4, chain("besides: cold") / 2,
		},
	} {
		line := fmt.Sprintf("| %s | %d | %d | %s |", want.row, want.write, want.read,
			dollars(float64(want.write)*p.write+float64(want.read)*p.read))
		if !strings.Contains(costs, line+"\n") {
			wrong = append(wrong, "docs/costs.md has no row "+line)
		}
	}
	return wrong
}

// checkMonth returns what is wrong with the worked example of 10 million calls a month.
func checkMonth(p price, costs, readme string) (wrong []string) {
	const million = 10
	want := func(name, page, text string) {
		if !strings.Contains(strings.Join(strings.Fields(page), " "), text) {
			wrong = append(wrong, name+" does not say "+text)
		}
	}
	for row, units := range map[string]int{
		"| `atomic` (the default): both buckets or none, in a transaction | ": 6,
		"| `compensated`: one after the other | ":                             4,
		"| `none`: the user's bucket alone | ":                                2,
	} {
		want("README.md", readme, fmt.Sprintf("%s%d | %s |", row, units, dollars(million*float64(units)*p.write)))
	}
	prices := dollars(p.write) + " for a million write units"
	want("README.md", readme, prices+", "+dollars(p.read)+" for a million read units")
	want("README.md", readme, "at most "+dollars(million*2*p.read)+" here")
	want("docs/costs.md", costs, prices+" and "+dollars(p.read)+" for a million read units")
	want("docs/costs.md", costs, fmt.Sprintf("cost 60 million write units with `atomic`, which is %s, and %s "+
		"with `compensated`", dollars(60*p.write), dollars(40*p.write)))
	want("docs/costs.md", costs, "20 million read units, or "+dollars(20*p.read))
	return wrong
}
