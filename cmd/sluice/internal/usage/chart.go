package usage

import (
	"slices"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/internal/format"
	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"

	"github.com/sluice-go/sluice/internal/tool/chart"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/money"
	"github.com/sluice-go/sluice/runtime/usage"
)

// chart returns a panel for each limit of each resource, by name. s is nil if there is no schema.
func (c Command) chart(s *schemafile.Schema, all []usage.Usage, now time.Time) chart.Chart {
	drawn := chart.Chart{
		Title: "Consumption of " + term.Quote(c.Entity), Per: c.By, Span: usage.Span(c.By).Length(),
	}
	allowed := drawn.Span
	if usage.Span(c.By) == month { // months differ in length
		allowed = 0
	}
	name := startOf
	if c.drawsTime() {
		name = func(usage.Usage) string { return "" }
	}
	for _, sum := range totals(all) {
		of := slices.DeleteFunc(slices.Clone(all), func(u usage.Usage) bool { return u.Resource != sum.Resource })
		for _, limit := range limitNames(of) {
			panel := chart.Panel{Name: term.Quote(sum.Resource) + " " + term.Quote(limit),
				Unit:      panelUnit(s.Unit(sum.Resource, limit), c.By),
				Allowance: refills(s, c.Entity, sum.Resource, limit, allowed)}
			for _, u := range of {
				if milli, ok := spent(u, limit); ok {
					panel.Bars = append(panel.Bars, chart.Bar{
						Start: u.Start, Name: name(u), Tokens: float64(milli) / perBar(s.Unit(u.Resource, limit)),
						Text: format.Number(milli, s.Unit(u.Resource, limit)), Running: running(u, now),
					})
				}
			}
			drawn.Panels = append(drawn.Panels, panel)
		}
	}
	return drawn
}

// perBar returns the stored millitokens in one unit of a bar's length: a token, or, with a currency as the
// unit, one of that. Bars are pictures: their texts have the exact amounts.
func perBar(unit string) float64 {
	if unit != "" {
		return float64(money.Unit)
	}
	return bucket.Milli
}

// panelUnit returns the unit of a limit's panel, such as USD per day. For tokens it is "", the default.
func panelUnit(currency, span string) string {
	if currency == "" {
		return ""
	}
	return currency + " per " + span
}

// drawsTime reports whether windows are hours or days in UTC. A chart has no axis for others, so their bars
// have names.
func (c Command) drawsTime() bool {
	span, inUTC := usage.Span(c.By), c.Zone == nil || *c.Zone == time.UTC.String()
	return inUTC && (span == usage.Hour || span == usage.Day)
}

// refills returns how many tokens of a limit refill during d, by the schema. It returns 0 if the schema,
// which may be nil, does not have the limit: usage outlives changes of the schema. A limit that does not
// refill has no such line: the capacity of one in flight bounds calls at the same time, not in an hour.
func refills(s *schemafile.Schema, entity, resource, limit string, d time.Duration) float64 {
	l, ok := limitOf(s, entity, resource, limit)
	if !ok || l.Windowed() || l.InFlight() {
		return 0
	}
	return float64(l.Refill) / bucket.Milli * float64(d.Milliseconds()) / float64(l.Period)
}

// limitOf returns a limit of an entity's kind by the schema. ok is false if the schema, which may be nil,
// does not have it.
func limitOf(s *schemafile.Schema, entity, resource, limit string) (l bucket.Limit, ok bool) {
	if s == nil {
		return l, false
	}
	of, err := s.Bucket(entity, resource)
	if err != nil {
		return l, false
	}
	i := slices.Index(of.Spec.Limits, limit)
	if i < 0 || !of.Own().Has(i) {
		return l, false
	}
	return of.Own().Limits[i], true
}
