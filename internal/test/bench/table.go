package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/internal/tool/texttable"
)

// printTable writes a line for each row, and under which conditions it was measured.
func printTable(out io.Writer, rows []row, repeats int, c conditions) error {
	table := [][]string{{"WHAT", "TO REACH", fmt.Sprintf("MEASURED (median, min-max of %d)", repeats)}}
	falling := 0
	for _, r := range rows {
		outcome := r.outcome()
		if outcome == short {
			falling++
		}
		table = append(table, []string{r.what, r.goal(), r.measured(), outcome})
	}
	if err := texttable.Write(out, "", "llll", table); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, `
%d of %d rows fall short. Rows about CPU are CPU time, measured in turns with their counterpart.
Units are capacity units as the DynamoDB in the process bills them: a write is 1, one whose condition failed
is 1 too, a consistent read is 1. A request travels %v and its reply as long. The read of a bucket that a
process meets first is not counted. A read-then-write that lost its race reads again; with the seeds' Retry it
takes stored tokens instead. The price of denials is that of all reads and of all failed writes; a call
that lost every race counts as one. Denials in a flood share what the first of each millisecond allocates.
Rows from "open" to "throttled" are in virtual time, by processes x calls/s, or x callers who call again once
answered. Each run has other arrivals and has to reach the goals. There, a read is 0.2 units.
A region's calls are simulated, in each run the same.
`, falling, len(rows), c.oneWay)
	return err
}

// outcome is whether all figures of r reach their goals; "-" if there is none.
func (r *row) outcome() string {
	outcome := "-"
	for _, f := range r.figures {
		switch {
		case !f.reached():
			return short
		case f.want.op != "":
			outcome = "ok"
		}
	}
	return outcome
}

// short is the outcome of a row that does not reach its goal.
const short = "short"

// goal is what r is to reach, as text.
func (r *row) goal() string {
	var goals []string
	for _, f := range r.figures {
		if f.want.op != "" {
			goals = append(goals, f.want.op+" "+fmt.Sprintf("%v"+f.unit(), f.want.value))
		}
	}
	if len(goals) == 0 {
		return "state it"
	}
	return strings.Join(goals, ", ")
}

// measured is what r has reached, as text.
func (r *row) measured() string {
	parts := make([]string, len(r.figures))
	for i, f := range r.figures {
		parts[i] = f.measured()
	}
	return strings.Join(parts, ", ")
}

// measured is the median with its unit, and the spread where there is any.
func (f *figure) measured() string {
	middle := fmt.Sprintf(f.format, median(f.runs))
	least, most := f.number(slices.Min(f.runs)), f.number(slices.Max(f.runs))
	if least == most {
		return middle
	}
	return fmt.Sprintf("%s (%s-%s)", middle, least, most)
}

// unit is what follows the number in f's format.
func (f *figure) unit() string { return f.format[f.verb():] }

// number writes v without the unit.
func (f *figure) number(v float64) string { return fmt.Sprintf(f.format[:f.verb()], v) }

// verb is how long the verb is that f's format starts with: %.2f.
func (f *figure) verb() int { return strings.IndexByte(f.format, 'f') + 1 }

// result is a row in JSON.
type result struct {
	What    string         `json:"what"`
	Outcome string         `json:"outcome"`
	Figures []figureResult `json:"figures"`
}

type figureResult struct {
	Name   string    `json:"name"`
	Want   string    `json:"want,omitempty"`
	Median float64   `json:"median"`
	Runs   []float64 `json:"runs"`
}

// results returns rows as JSON has them.
func results(rows []row) []result {
	all := make([]result, len(rows))
	for i, r := range rows {
		all[i] = result{What: r.what, Outcome: r.outcome()}
		for _, f := range r.figures {
			made := figureResult{Name: f.name, Median: median(f.runs), Runs: f.runs}
			if f.want.op != "" {
				made.Want = fmt.Sprintf("%s %v", f.want.op, f.want.value)
			}
			all[i].Figures = append(all[i].Figures, made)
		}
	}
	return all
}
