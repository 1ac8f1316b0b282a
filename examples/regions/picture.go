package main

import (
	"fmt"
	"slices"

	"github.com/sluice-go/sluice/internal/tool/chart"
	"github.com/sluice-go/sluice/internal/tool/texttable"
)

// chart is what is drawn: the first bucket's quotas and what is asked of it, by region, and the writes of
// all. So many windows are a bar together: of quotas and demand, which are states, the last one.
func (p *play) chart(together int) chart.Chart {
	span := window
	for range together - 1 {
		span += window
	}
	names := p.names()
	quotas := chart.Panel{
		Name: "rpm of user-1 on model-1: quotas in force", Unit: "tokens a minute", Parts: names, Allowance: whole,
		Line: "G",
	}
	asked := chart.Panel{Name: "What is asked of it", Unit: "tokens a minute", Parts: names, Allowance: whole,
		Line: "G"}
	writes := chart.Panel{
		Name: "Quotas written, of all limits", Unit: "in one region and window", Allowance: float64(p.quotas()),
		Line: "every quota in every window",
	}
	at := 0
	for some := range slices.Chunk(p.samples, together) {
		start := chart.Zero().Add(some[0].At - window)
		last := at + len(some) - 1
		quotas.Bars = append(quotas.Bars, stack(parts(names, func(r int) float64 {
			return float64(p.samples[last].First[r])
		})))
		asked.Bars = append(asked.Bars, stack(parts(names, func(r int) float64 {
			return p.asked[last][r] * whole
		})))
		n := p.mean(some).writes
		writes.Bars = append(writes.Bars, chart.Bar{Tokens: n, Text: tenths(n)})
		for _, panel := range []*chart.Panel{&quotas, &asked, &writes} {
			panel.Bars[len(panel.Bars)-1].Start = start
		}
		at += len(some)
	}
	return chart.Chart{
		Title: fmt.Sprintf("%d regions share out %s limits, demand %s", p.regions,
			texttable.Count(int64(p.quotas())), p.shape),
		Span: span, Per: per(together), Elapsed: true, Panels: []chart.Panel{quotas, asked, writes},
	}
}

// parts are one for each region.
func parts(names []string, of func(region int) float64) []float64 {
	all := make([]float64, len(names))
	for r := range names {
		all[r] = of(r)
	}
	return all
}

// stack is a bar of parts.
func stack(parts []float64) chart.Bar {
	b := chart.Bar{Parts: parts}
	for _, part := range parts {
		b.Tokens += part
	}
	b.Text = texttable.Count(int64(b.Tokens + 0.5))
	return b
}

// per names the span of a bar.
func per(together int) string {
	if together == 1 {
		return "window"
	}
	return fmt.Sprintf("%d windows", together)
}
