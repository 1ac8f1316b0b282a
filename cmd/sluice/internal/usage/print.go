package usage

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/internal/format"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"

	"github.com/sluice-go/sluice/internal/tool/texttable"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/money"
	"github.com/sluice-go/sluice/runtime/usage"
)

// limitNames returns the sorted names of all limits with consumption.
func limitNames(all []usage.Usage) (names []string) {
	for _, u := range all {
		for _, l := range u.Limits {
			names = append(names, l.Limit)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// spent returns the consumption of a limit in a window. ok is false if the window does not have the limit.
func spent(u usage.Usage, limit string) (milli int64, ok bool) {
	i := slices.IndexFunc(u.Limits, func(l usage.Spent) bool { return l.Limit == limit })
	if i < 0 {
		return 0, false
	}
	return u.Limits[i].Millitokens, true
}

// running reports whether u's window has not ended at now. Its consumption may still grow.
func running(u usage.Usage, now time.Time) bool { return now.Before(windowEnd(u.Span, u.Start)) }

// startOf writes the start of a window, in its zone.
func startOf(u usage.Usage) string {
	switch u.Span {
	case usage.Hour:
		return u.Start.Format("2006-01-02 15:04")
	case month:
		return u.Start.Format("2006-01")
	}
	return u.Start.Format(time.DateOnly)
}

// byStart orders windows by start, then by resource.
func byStart(a, b usage.Usage) int {
	return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.Resource, b.Resource))
}

// byLimit orders what limits consumed by their names.
func byLimit(a, b usage.Spent) int { return cmp.Compare(a.Limit, b.Limit) }

// column returns the name of a column of times, with the zone that they are in.
func column(name string, zone *time.Location) string {
	if zone == time.UTC {
		return name
	}
	return name + ", " + zone.String()
}

// printTable prints all windows as a table. There is a total for each resource, since tokens of two
// resources do not add up.
func printTable(w io.Writer, s *schemafile.Schema, all []usage.Usage, now time.Time) error {
	names := limitNames(all)
	start := column("START", all[0].Start.Location())
	rows := [][]string{append(append([]string{start, "RESOURCE"}, names...), "WRITES")}
	add := func(start string, u usage.Usage) {
		row := []string{start, u.Resource}
		for _, name := range names {
			text := "-"
			if milli, ok := spent(u, name); ok {
				text = format.Number(milli, s.Unit(u.Resource, name))
			}
			row = append(row, text)
		}
		rows = append(rows, append(row, texttable.Count(u.Writes)))
	}
	for _, u := range all {
		add(startOf(u), u)
		if last := len(rows) - 1; running(u, now) {
			rows[last] = append(rows[last], "still running")
		}
	}
	for _, sum := range totals(all) {
		add("total", sum)
	}
	return texttable.Write(w, "", "ll"+strings.Repeat("r", len(names)+1)+"l", rows)
}

// totals returns the sums by resource, sorted.
func totals(all []usage.Usage) (sums []usage.Usage) {
	for _, u := range all {
		i, found := slices.BinarySearchFunc(sums, u.Resource,
			func(s usage.Usage, resource string) int { return strings.Compare(s.Resource, resource) })
		if !found {
			sums = slices.Insert(sums, i, usage.Usage{Window: usage.Window{Resource: u.Resource}})
		}
		addTo(&sums[i], u)
	}
	return sums
}

// amountJSON is what was consumed of a limit of money. The amount is a string, since numbers of JSON are
// floats to many readers.
type amountJSON struct {
	Currency string       `json:"currency"`
	Consumed money.Amount `json:"consumed"`
}

// budgets returns usage without limits of tokens, and without windows that have no others.
func budgets(s *schemafile.Schema, all []usage.Usage) (left []usage.Usage) {
	for _, u := range all {
		u.Limits = slices.DeleteFunc(slices.Clone(u.Limits), func(l usage.Spent) bool {
			return s.Unit(u.Resource, l.Limit) == ""
		})
		if len(u.Limits) > 0 {
			left = append(left, u)
		}
	}
	return left
}

// printJSON prints an object per window.
func printJSON(p program.Env, s *schemafile.Schema, all []usage.Usage, now time.Time) error {
	for _, u := range all {
		limits := make(map[string]int64, len(u.Limits)) // encoding/json sorts the keys
		var funds map[string]amountJSON
		for _, l := range u.Limits {
			unit := s.Unit(u.Resource, l.Limit)
			if unit == "" {
				limits[l.Limit] = l.Millitokens
				continue
			}
			if funds == nil {
				funds = map[string]amountJSON{}
			}
			funds[l.Limit] = amountJSON{unit, money.Amount(l.Millitokens)}
		}
		if err := p.JSONLine(struct {
			Entity      string                `json:"entity"`
			Resource    string                `json:"resource"`
			By          usage.Span            `json:"by"`
			Start       time.Time             `json:"start"`
			Millitokens map[string]int64      `json:"millitokens"`
			Money       map[string]amountJSON `json:"money,omitempty"`
			Writes      int64                 `json:"writes"`
			Running     bool                  `json:"running"`
		}{u.Entity, u.Resource, u.Span, u.Start, limits, funds, u.Writes, running(u, now)}); err != nil {
			return err
		}
	}
	return nil
}

// printCSV prints a line per window, in exact tokens and amounts of money. A cell is empty if the window does
// not have the limit.
func printCSV(w io.Writer, s *schemafile.Schema, all []usage.Usage, now time.Time) error {
	names := limitNames(all)
	out := csv.NewWriter(w)
	// Error returns a failure
	_ = out.Write(append(append([]string{"start", "resource"}, columns(names)...), "writes", "running"))
	for _, u := range all {
		row := []string{u.Start.Format(time.RFC3339), term.Quote(u.Resource)}
		for _, name := range names {
			text := ""
			if milli, ok := spent(u, name); ok {
				text = exact(milli, s.Unit(u.Resource, name))
			}
			row = append(row, text)
		}
		_ = out.Write(append(row, strconv.FormatInt(u.Writes, 10), strconv.FormatBool(running(u, now))))
	}
	out.Flush()
	return out.Error()
}

// columns returns the names of the limits' columns: theirs, as term.Quote writes them. A name that another
// column has is written "limit NAME".
func columns(limits []string) []string {
	all := make([]string, len(limits))
	taken := map[string]bool{"start": true, "resource": true, "writes": true, "running": true}
	for i, name := range limits {
		for all[i] = term.Quote(name); taken[all[i]]; {
			all[i] = "limit " + all[i]
		}
		taken[all[i]] = true
	}
	return all
}

// exact writes millitokens as tokens, for programs, or, with a currency as the unit, nano-units as an amount.
func exact(milli int64, unit string) string {
	if unit != "" {
		return money.Amount(milli).String()
	}
	sign, whole, part := "", milli/bucket.Milli, milli%bucket.Milli
	if milli < 0 {
		sign, whole, part = "-", -whole, -part
	}
	if part == 0 {
		return fmt.Sprintf("%s%d", sign, whole)
	}
	return strings.TrimRight(fmt.Sprintf("%s%d.%03d", sign, whole, part), "0")
}
