package load

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/internal/format"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"

	"github.com/sluice-go/sluice/internal/tool/chart"
	"github.com/sluice-go/sluice/internal/tool/load"
	"github.com/sluice-go/sluice/internal/tool/texttable"
)

// loadReport is what a load came to, and how it was.
type summary struct {
	Place    string  `json:"place"`
	Schema   string  `json:"schema"`
	Callers  int     `json:"concurrency"`
	Limiters int     `json:"limiters"`
	Rate     float64 `json:"rate"` // calls a second; 0 is as fast as they were answered
	Seed     uint64  `json:"seed"`
	*load.Result
	Settings settings    `json:"settings"`
	Cost     *costs      `json:"cost,omitempty"`
	Billed   *load.Units `json:"billed,omitempty"` // by the engine in this process
	Cleanup  *int        `json:"buckets_deleted,omitempty"`

	inProcess bool
	trip      time.Duration
	redis     bool
}

// loadSettings are what else was asked for: with the seed and the schema, enough to do it again.
type settings struct {
	Duration float64        `json:"duration_s"`
	Calls    int64          `json:"calls"` // 0 is no bound
	Units    int64          `json:"units"` // 0 is no bound
	Trip     float64        `json:"trip_ms"`
	Entities int            `json:"entities"`
	Children int            `json:"children"`
	Hot      string         `json:"hot"`  // as --hot has it
	Zipf     float64        `json:"zipf"` // 0 is none
	Mix      []shareOfCalls `json:"mix"`  // in the order of the report's mix
}

// loadShare is a share of the mix. Costs are as --cost and --settle have them.
type shareOfCalls struct {
	Weight float64           `json:"weight"`
	Cost   map[string]string `json:"cost"`   // by limit
	Settle map[string]string `json:"settle"` // by limit, of those that are not settled as acquired; null where calls are not settled
}

// loadCost is what units cost, in dollars.
type costs struct {
	PriceRead  float64 `json:"price_read"` // per million units
	PriceWrite float64 `json:"price_write"`
	Dollars    float64 `json:"dollars"`
	PerMillion float64 `json:"per_million_acquires"`
	PerServed  float64 `json:"per_million_admitted"` // in whatever way: whom all others are paid for, too; 0 where none was
}

// show prints it.
func (r summary) show(p program.Env, asJSON bool) error {
	if asJSON {
		return p.Json(r)
	}
	var s strings.Builder
	r.head(&s)
	for _, part := range []func(*strings.Builder) error{r.latencies, r.picture, r.mix, r.denials, r.failures, r.store} {
		if err := part(&s); err != nil {
			return err
		}
	}
	r.sums(&s)
	p.Say("%s", s.String())
	return nil
}

// head says what was done, and why it ended.
func (r summary) head(s *strings.Builder) {
	pace := "as fast as they were answered"
	if r.Rate > 0 {
		pace = number(r.Rate) + " a second"
	}
	fmt.Fprintf(s, "%s in %.1fs, %s, by %s", format.Quantity(r.Made, "call"), r.Seconds, pace, format.Quantity(r.Callers, "caller"))
	if r.Limiters > 1 {
		fmt.Fprintf(s, " with %s", format.Quantity(r.Limiters, "limiter"))
	}
	fmt.Fprintf(s, ", on %s\n", r.Place)
	switch r.Ended {
	case load.EndedUnits:
		s.WriteString("ended by --units\n")
	case load.EndedEarly:
		s.WriteString("ended early\n")
	case load.EndedSetup:
		s.WriteString("ended since no call can succeed\n")
	}
	if missed := r.Due - r.Made; missed > 0 {
		fmt.Fprintf(s, "%s of %s that came due found no caller, and latencies lack them: raise --concurrency, or lower --rate\n",
			texttable.Count(missed), texttable.Count(r.Due))
	}
	if r.inProcess {
		s.WriteString("no network: what sluice and the engine take on this machine, together")
		if r.trip > 0 {
			fmt.Fprintf(s, ", and %v for each round trip", r.trip)
		}
		s.WriteString("\n")
	}
}

// latencies writes how long calls took, by how they ended.
func (r summary) latencies(s *strings.Builder) error {
	rows := [][]string{{"", "CALLS", "SHARE", "PER SECOND", "P50", "P90", "P99", "P99.9", "MAX"}}
	add := func(name string, l load.Latency, share string) {
		row := []string{name, texttable.Count(l.Calls), share, texttable.Count(int64(l.PerSecond + 0.5))}
		for _, ms := range []float64{l.P50, l.P90, l.P99, l.P999, l.Max} {
			row = append(row, latencyOf(ms))
		}
		rows = append(rows, row)
	}
	for _, l := range r.Outcomes {
		if l.Calls > 0 {
			add(l.What, l, percentOf(l.Calls, r.All.Calls))
		}
	}
	if r.All.Calls > 0 {
		add("all acquires", r.All, "")
	}
	if r.Settles.Calls > 0 {
		add("settles", r.Settles, "")
	}
	if r.Waited.Calls > 0 {
		add("began late by", r.Waited, "")
	}
	if len(rows) == 1 {
		return nil
	}
	s.WriteByte('\n')
	return texttable.Write(s, "", "lrrrrrrrr", rows)
}

// picture draws how long acquires took, a panel for each outcome.
func (r summary) picture(s *strings.Builder) error {
	since := "since they began"
	if r.Rate > 0 {
		since = "since they were due"
	}
	drawn := chart.Chart{Title: "How long acquires took, " + since}
	for _, l := range r.Outcomes {
		panel := chart.Panel{Name: l.What, Unit: "calls that took up to so long, and the share of all that took no longer"}
		var sum int64
		for i, b := range l.Bars {
			sum += b.Calls
			if amidNothing(l.Bars, i) {
				continue
			}
			panel.Bars = append(panel.Bars, chart.Bar{
				Name: boundOf(b.UpTo), Tokens: float64(b.Calls),
				Text: fmt.Sprintf("%*s  %6s", len(texttable.Count(l.Calls)), texttable.Count(b.Calls), percentOf(sum, l.Calls)),
			})
		}
		if l.Calls > 0 {
			drawn.Panels = append(drawn.Panels, panel)
		}
	}
	if drawn.Panels == nil {
		return nil
	}
	s.WriteByte('\n')
	return drawn.Text(s)
}

// amidNothing reports that nothing is in the i-th bar, nor in those beside it: the next that is drawn begins where it does.
func amidNothing(bars []load.Bar, i int) bool {
	return slices.IndexFunc(bars[max(0, i-1):min(len(bars), i+2)], func(b load.Bar) bool { return b.Calls > 0 }) < 0
}

// mix writes what became of each share of the calls. Of what hardly ever happens there is a column where it did.
func (r summary) mix(s *strings.Builder) error {
	rows, align := [][]string{{"CALLS OF", "ON"}}, "ll"
	for _, d := range r.Mix {
		rows = append(rows, []string{d.Kind, d.Resource})
	}
	for _, column := range []struct {
		name   string
		always bool
		of     func(load.Drawn) int64
	}{
		{"ENTITIES", true, func(d load.Drawn) int64 { return int64(d.Entities) }},
		{"ADMITTED", true, func(d load.Drawn) int64 { return d.Admitted }},
		{"DENIED", true, func(d load.Drawn) int64 { return d.Denied }},
		{"DEGRADED", false, func(d load.Drawn) int64 { return d.Degraded }},
		{"SHADOWED", false, func(d load.Drawn) int64 { return d.Shadowed }},
		{"FAILED", true, func(d load.Drawn) int64 { return d.Failed }},
	} {
		if !column.always && !slices.ContainsFunc(r.Mix, func(d load.Drawn) bool { return column.of(d) > 0 }) {
			continue
		}
		align += "r"
		rows[0] = append(rows[0], column.name)
		for i, d := range r.Mix {
			rows[i+1] = append(rows[i+1], texttable.Count(column.of(d)))
		}
	}
	s.WriteByte('\n')
	return texttable.Write(s, "", align, rows)
}

// denials writes which limits refused.
func (r summary) denials(s *strings.Builder) error {
	if len(r.Denials) == 0 {
		return nil
	}
	by := "DENIED BY"
	if r.Outcomes[load.Shadowed].Calls > 0 {
		by = "DENIED, OR WOULD BE, BY"
	}
	rows := [][]string{{by, "OF", "ON", "CALLS", "SHARE"}}
	for _, d := range r.Denials {
		rows = append(rows, []string{d.Limit, d.Kind, d.Resource, texttable.Count(d.Calls), percentOf(d.Calls, r.All.Calls)})
	}
	s.WriteByte('\n')
	return texttable.Write(s, "", "lllrr", rows)
}

// failures writes what calls failed with.
func (r summary) failures(s *strings.Builder) error {
	if len(r.Failures) == 0 {
		return nil
	}
	rows := [][]string{{"FAILED", "CALLS", "THE FIRST"}}
	for _, f := range r.Failures {
		rows = append(rows, []string{f.What, texttable.Count(f.Calls), f.First})
	}
	s.WriteByte('\n')
	return texttable.Write(s, "", "lrl", rows)
}

// store writes what the store was asked for.
func (r summary) store(s *strings.Builder) error {
	heading, align := []string{"CALLS TO THE STORE", "CALLS", "REFUSED", "CONFLICT", "NO ANSWER"}, "lrrrr"
	if !r.redis {
		heading, align = append(heading, "READ UNITS", "WRITE UNITS"), align+"rr"
	}
	rows := [][]string{heading}
	for _, path := range r.Paths {
		row := []string{path.Path, texttable.Count(path.Calls)}
		for _, n := range []int64{path.Outcomes["refused"], path.Outcomes["conflict"], unanswered(path)} {
			row = append(row, texttable.Count(n))
		}
		if !r.redis {
			row = append(row, unitsOf(path.Read), unitsOf(path.Write))
		}
		rows = append(rows, row)
	}
	s.WriteByte('\n')
	return texttable.Write(s, "", align, rows)
}

// unanswered returns how many calls to the store came to nothing that it decided.
func unanswered(p load.Path) (n int64) {
	for _, outcome := range []string{"throttled", "unapplied", "unknown", "failed"} {
		n += p.Outcomes[outcome]
	}
	return n
}

// sums writes what an acquire comes to, and whether all of them were counted.
func (r summary) sums(s *strings.Builder) {
	s.WriteByte('\n')
	if r.Carrying > 0 {
		fmt.Fprintf(s, "%s, of acquires and of settles, went out with %s: %.2f each\n", format.Quantity(r.Carried, "charge"), format.Quantity(r.Carrying, "write"),
			float64(r.Carried)/float64(r.Carrying))
	}
	if !r.redis && r.All.Calls > 0 {
		n := float64(r.All.Calls)
		fmt.Fprintf(s, "%.3f capacity units per acquire: %.3f read, %.3f written\n", (r.Units.Read+r.Units.Write)/n, r.Units.Read/n, r.Units.Write/n)
		if n := r.untold(); n > 0 {
			fmt.Fprintf(s, "%s may have been billed besides: no answer came\n", format.Quantity(n, "call"))
		}
		if c := r.Cost; c != nil {
			fmt.Fprintf(s, "%s per million acquires, ", dollars(c.PerMillion))
			if c.PerServed > 0 {
				fmt.Fprintf(s, "%s per million admitted, ", dollars(c.PerServed))
			}
			fmt.Fprintf(s, "%s in all, at $%s per million read units and $%s per million write units\n",
				dollars(c.Dollars), number(c.PriceRead), number(c.PriceWrite))
		} else {
			s.WriteString("no dollars without prices: pass --price-read and --price-write\n")
		}
	}
	if r.Unsettled+r.Late > 0 {
		fmt.Fprintf(s, "%s failed, %s of them after Settle had returned\n", format.Quantity(r.Unsettled+r.Late, "settle"), texttable.Count(r.Late))
	}
	if r.Cleanup != nil {
		fmt.Fprintf(s, "%s deleted\n", format.Quantity(*r.Cleanup, "bucket"))
	}
	if r.Lost == 0 {
		fmt.Fprintf(s, "check: ok: each of %s ended one way, and the observer was told of it\n", format.Quantity(r.Made, "call"))
	}
	if r.Billed != nil && r.misbilled() == 0 {
		s.WriteString("check: ok: the engine billed as many units as were counted\n")
	}
}

// untold returns how many calls to the store may have been billed, and nobody told how much.
func (r summary) untold() (n int64) {
	for _, p := range r.Paths {
		n += p.Outcomes["unknown"] + p.Outcomes["failed"]
	}
	return n
}

// misbilled returns how many units more or less the engine billed than were counted.
func (r summary) misbilled() float64 {
	const rounding = 1e-6
	off := math.Abs(r.Billed.Read-r.Units.Read) + math.Abs(r.Billed.Write-r.Units.Write)
	if off < rounding {
		return 0
	}
	return off
}

// wrong is the error for what somebody has to do something about.
func (r summary) wrong() error {
	var lost error
	if r.Lost != 0 {
		is := "are"
		if r.Lost == 1 {
			is = "is"
		}
		lost = fmt.Errorf("%s %s missing in the counts: the report is wrong", format.Quantity(r.Lost, "call"), is)
	}
	var unclosed error
	if r.Unclosed != nil {
		unclosed = fmt.Errorf("not all was written in the end: %w", r.Unclosed)
	}
	var misbilled error
	if r.Billed != nil && r.misbilled() > 0 && r.untold() == 0 {
		misbilled = fmt.Errorf("the engine billed %v read units and %v write units, which are not those of the report: it is wrong", r.Billed.Read, r.Billed.Write)
	}
	return errors.Join(r.Setup, lost, unclosed, misbilled)
}
