package usage

import (
	"slices"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/internal/format"
	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"

	"github.com/sluice-go/sluice/internal/tool/chart"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
	"github.com/sluice-go/sluice/runtime/usage"
)

// chart returns a panel for each limit of each resource, by name. s is nil if there is no schema.
func (c Command) chart(s *schemafile.Schema, all []usage.Usage, now time.Time) chart.Chart {
	drawn := chart.Chart{
		Title: "Consumption of " + term.Quote(c.Entity), Per: c.By, Span: usage.Span(c.By).Length(),
	}
	for _, sum := range totals(all) {
		of := slices.DeleteFunc(slices.Clone(all), func(u usage.Usage) bool { return u.Resource != sum.Resource })
		for _, name := range limitNames(of) {
			panel := chart.Panel{Name: term.Quote(sum.Resource) + " " + term.Quote(name),
				Allowance: refills(s, c.Entity, sum.Resource, name, drawn.Span)}
			for _, u := range of {
				if milli, ok := spent(u, name); ok {
					panel.Bars = append(panel.Bars, chart.Bar{
						Start: u.Start, Tokens: float64(milli) / bucket.Milli, Text: format.Tokens(milli), Running: running(u,
							now),
					})
				}
			}
			drawn.Panels = append(drawn.Panels, panel)
		}
	}
	return drawn
}

// refills returns how many tokens of a limit refill during d, by the schema. It returns 0 if the schema,
// which may be nil, does not have the limit: usage outlives changes of the schema.
func refills(s *schemafile.Schema, entity, resource, limit string, d time.Duration) float64 {
	if s == nil {
		return 0
	}
	at, kind := slices.IndexFunc(s.Specs,
		func(spec *store.Spec) bool { return spec.Resource == resource }), s.KindOf(entity)
	if at < 0 || kind < 0 {
		return 0
	}
	spec := s.Specs[at]
	i := slices.Index(spec.Limits, limit)
	if i < 0 || !spec.Kinds[kind].Has(i) {
		return 0
	}
	l := spec.Kinds[kind].Limits[i]
	return float64(l.Refill) / bucket.Milli * float64(d.Milliseconds()) / float64(l.Period)
}
