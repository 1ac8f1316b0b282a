package usage

import (
	"context"
	"encoding/csv"
	"io"
	"strconv"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/internal/format"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"

	"github.com/sluice-go/sluice/internal/tool/chart"
	"github.com/sluice-go/sluice/internal/tool/texttable"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/money"
	"github.com/sluice-go/sluice/runtime/usage"
)

// windowNone stands for the end of a window where there was none yet.
const windowNone = "no window"

// readWindows reads the windows of limits that end after the question's instant, and what no window had.
// Their ends are in its zone.
func (c Command) readWindows(ctx context.Context, items usage.Querier, q usage.Question) (
	all []usage.WindowUsage, err error) {
	every, err := collect(usage.ReadWindows(ctx, items, c.Table,
		usage.WindowQuestion{Entity: q.Entity, Resource: q.Resource}))
	for _, u := range every {
		if u.End.IsZero() && u.Millitokens == 0 || !u.End.IsZero() && !u.End.After(q.Since) {
			continue
		}
		if !u.End.IsZero() && !never(u) { // in another zone, that is in the year 10000, which JSON does not have
			u.End = u.End.In(q.Since.Location())
		}
		all = append(all, u)
	}
	return all, err
}

// showWindows prints windows of limits in the chosen form.
func (c Command) showWindows(p program.Env, s *schemafile.Schema, all []usage.WindowUsage, q usage.Question,
	now time.Time) error {
	switch {
	case len(all) == 0:
		p.Note("%s\n", c.none(q))
		return nil
	case c.JSON:
		return printWindowsJSON(p, s, all, now)
	case c.CSV:
		return printWindowsCSV(p.Stdout, s, all, now)
	case c.Plot:
		return c.windowChart(s, all, now).Text(p.Stdout)
	}
	return printWindows(p.Stdout, s, all, q.Since.Location(), now)
}

// open reports whether u's window has not ended at now.
func open(u usage.WindowUsage, now time.Time) bool { return now.Before(u.End) }

// never reports whether u is of a prepaid limit, whose window does not end.
func never(u usage.WindowUsage) bool { return u.End.UnixMilli() == bucket.NeverEnds }

// endOf writes the end of a window, in its zone, as finely as it needs. A window from the first use ends at
// any millisecond, and a reset moves an end by one.
func endOf(u usage.WindowUsage) string {
	layout := "2006-01-02 15:04:05.000"
	switch {
	case u.End.IsZero():
		return windowNone
	case never(u):
		return bucket.Never.String()
	case u.End.Equal(u.End.Truncate(time.Minute)):
		layout = "2006-01-02 15:04"
	case u.End.Equal(u.End.Truncate(time.Second)):
		layout = time.DateTime
	}
	return u.End.Format(layout)
}

// byLimits calls visit with the windows of each limit, which follow one another.
func byLimits(all []usage.WindowUsage, visit func(windows []usage.WindowUsage)) {
	for from := 0; from < len(all); {
		to := from + 1
		for to < len(all) && all[to].Resource == all[from].Resource && all[to].Limit == all[from].Limit {
			to++
		}
		visit(all[from:to])
		from = to
	}
}

// printWindows prints a line for each window, and then a total for each limit.
func printWindows(w io.Writer, s *schemafile.Schema, all []usage.WindowUsage, zone *time.Location,
	now time.Time) error {
	rows := [][]string{{column("END", zone), "RESOURCE", "LIMIT", "CONSUMED", "WRITES"}}
	add := func(end string, u usage.WindowUsage) {
		consumed := format.Number(u.Millitokens, s.Unit(u.Resource, u.Limit))
		row := []string{end, u.Resource, u.Limit, consumed, texttable.Count(u.Writes)}
		if open(u, now) {
			row = append(row, "still running")
		}
		rows = append(rows, row)
	}
	for _, u := range all {
		add(endOf(u), u)
	}
	byLimits(all, func(windows []usage.WindowUsage) {
		sum := usage.WindowUsage{Resource: windows[0].Resource, Limit: windows[0].Limit}
		for _, u := range windows {
			sum.Millitokens = bucket.Add(sum.Millitokens, u.Millitokens)
			sum.Writes = bucket.Add(sum.Writes, u.Writes)
		}
		add("total", sum)
	})
	return texttable.Write(w, "", "lllrrl", rows)
}

// printWindowsJSON prints an object per window. Its end is null where there was no window yet.
func printWindowsJSON(p program.Env, s *schemafile.Schema, all []usage.WindowUsage, now time.Time) error {
	for _, u := range all {
		end := &u.End
		if u.End.IsZero() {
			end = nil
		}
		millitokens, funds := map[string]int64{u.Limit: u.Millitokens}, map[string]amountJSON(nil)
		if unit := s.Unit(u.Resource, u.Limit); unit != "" {
			millitokens = map[string]int64{}
			funds = map[string]amountJSON{u.Limit: {unit, money.Amount(u.Millitokens)}}
		}
		if err := p.JSONLine(struct {
			Entity      string                `json:"entity"`
			Resource    string                `json:"resource"`
			By          usage.Span            `json:"by"`
			Limit       string                `json:"limit"`
			End         *time.Time            `json:"end"`
			Millitokens map[string]int64      `json:"millitokens"` // as hours and days have it
			Money       map[string]amountJSON `json:"money,omitempty"`
			Writes      int64                 `json:"writes"`
			Running     bool                  `json:"running"`
		}{u.Entity, u.Resource, usage.LimitWindow, u.Limit, end, millitokens, funds, u.Writes,
			open(u, now)}); err != nil {
			return err
		}
	}
	return nil
}

// printWindowsCSV prints a line per window, in exact tokens. The end is empty where there was no window yet.
func printWindowsCSV(w io.Writer, s *schemafile.Schema, all []usage.WindowUsage, now time.Time) error {
	out := csv.NewWriter(w)
	// Error returns a failure
	_ = out.Write([]string{"end", "resource", "limit", "tokens", "writes", "running"})
	for _, u := range all {
		end := ""
		if !u.End.IsZero() {
			end = u.End.Format(time.RFC3339Nano)
		}
		_ = out.Write([]string{end, term.Quote(u.Resource), term.Quote(u.Limit),
			exact(u.Millitokens, s.Unit(u.Resource, u.Limit)), strconv.FormatInt(u.Writes, 10),
			strconv.FormatBool(open(u, now))})
	}
	out.Flush()
	return out.Error()
}

// windowChart returns a panel for each limit. s is nil if there is no schema.
func (c Command) windowChart(s *schemafile.Schema, all []usage.WindowUsage, now time.Time) chart.Chart {
	drawn := chart.Chart{Title: "Consumption of " + term.Quote(c.Entity), Per: c.By}
	byLimits(all, func(windows []usage.WindowUsage) {
		of := windows[0]
		panel := chart.Panel{Name: term.Quote(of.Resource) + " " + term.Quote(of.Limit),
			Unit: panelUnit(s.Unit(of.Resource, of.Limit), c.By)}
		if l, ok := limitOf(s, c.Entity, of.Resource, of.Limit); ok && l.Windowed() {
			panel.Line = "the window's allowance"
			panel.Allowance = float64(l.Capacity) / perBar(s.Unit(of.Resource, of.Limit))
		}
		for _, u := range windows {
			panel.Bars = append(panel.Bars, chart.Bar{Name: endOf(u), Running: open(u, now),
				Tokens: float64(u.Millitokens) / perBar(s.Unit(u.Resource, u.Limit)),
				Text:   format.Number(u.Millitokens, s.Unit(u.Resource, u.Limit))})
		}
		drawn.Panels = append(drawn.Panels, panel)
	})
	return drawn
}
