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

	"github.com/sluice-go/sluice/cmd/sluice/internal/tool/load"
	"github.com/sluice-go/sluice/internal/tool/chart"
	"github.com/sluice-go/sluice/internal/tool/texttable"
)

// summary is the report of a load.
type summary struct {
	Place    string  `json:"place"`
	Schema   string  `json:"schema"`
	Callers  int     `json:"concurrency"`
	Limiters int     `json:"limiters"`
	Rate     float64 `json:"rate"` // calls a second; 0 is unlimited
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

// settings are the rest of the flags. With the seed and the schema, they suffice to repeat the load.
type settings struct {
	Duration float64   `json:"duration_s"`
	Calls    int64     `json:"calls"` // 0 is no bound
	Units    int64     `json:"units"` // 0 is no bound
	Trip     float64   `json:"trip_ms"`
	Entities int       `json:"entities"`
	Children int       `json:"children"`
	Hot      string    `json:"hot"`  // the text of --hot
	Zipf     float64   `json:"zipf"` // 0 is none
	Mix      []portion `json:"mix"`  // in the order of Result.Mix
}

// portion is a portion of the mix. Costs are written as in --cost and --settle.
type portion struct {
	Weight float64           `json:"weight"`
	Cost   map[string]string `json:"cost"` // by limit
	// by limit, without those settled as acquired; null if calls are not settled
	Settle map[string]string `json:"settle"`
}

// costs are the costs of units, in dollars.
type costs struct {
	PriceRead  float64 `json:"price_read"` // per million units
	PriceWrite float64 `json:"price_write"`
	Dollars    float64 `json:"dollars"`
	PerMillion float64 `json:"per_million_acquires"`
	// per million admitted calls, which also pay for the others; 0 if none was admitted
	PerServed float64 `json:"per_million_admitted"`
}

// show prints the report.
func (r summary) show(p program.Env, asJSON bool) error {
	if asJSON {
		return p.JSON(r)
	}
	var s strings.Builder
	r.head(&s)
	for _, part := range []func(*strings.Builder) error{r.latencies, r.picture, r.mix, r.denials, r.failures,
		r.store} {
		if err := part(&s); err != nil {
			return err
		}
	}
	r.sums(&s)
	p.Say("%s", s.String())
	return nil
}

// head writes what was done and why it ended.
func (r summary) head(s *strings.Builder) {
	pace := "as fast as they were answered"
	if r.Rate > 0 {
		pace = number(r.Rate) + " a second"
	}
	fmt.Fprintf(s, "%s in %.1fs, %s, by %s", format.Quantity(r.Made, "call"), r.Seconds, pace,
		format.Quantity(r.Callers, "caller"))
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
		fmt.Fprintf(s, "%s of %s due calls found no caller and are missing in the latencies: raise "+
			"--concurrency, or lower --rate\n",
			texttable.Count(missed), texttable.Count(r.Due))
	}
	if r.inProcess {
		s.WriteString("no network: latencies are those of sluice and of the engine on this machine")
		if r.trip > 0 {
			fmt.Fprintf(s, ", and %v for each round trip", r.trip)
		}
		s.WriteString("\n")
	}
}

// latencies writes the latencies by outcome.
func (r summary) latencies(s *strings.Builder) error {
	rows := [][]string{{"", "CALLS", "PORTION", "PER SECOND", "P50", "P90", "P99", "P99.9", "MAX"}}
	add := func(name string, l load.Latency, portion string) {
		row := []string{name, texttable.Count(l.Calls), portion, texttable.Count(int64(l.PerSecond + 0.5))}
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

// picture draws the latencies of acquires, a panel for each outcome.
func (r summary) picture(s *strings.Builder) error {
	since := "since their begin"
	if r.Rate > 0 {
		since = "since they were due"
	}
	drawn := chart.Chart{Title: "Latency of acquires, " + since}
	for _, l := range r.Outcomes {
		panel := chart.Panel{Name: l.What,
			Unit: "calls up to this latency, and the portion of all calls up to it"}
		var sum int64
		for i, b := range l.Bars {
			sum += b.Calls
			if isEmptyRun(l.Bars, i) {
				continue
			}
			panel.Bars = append(panel.Bars, chart.Bar{
				Name: boundOf(b.UpTo), Tokens: float64(b.Calls),
				Text: fmt.Sprintf("%*s  %6s", len(texttable.Count(l.Calls)), texttable.Count(b.Calls),
					percentOf(sum, l.Calls)),
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

// isEmptyRun reports that nothing is in the i-th bar, nor in those beside it: the next that is drawn begins
func isEmptyRun(bars []load.Bar, i int) bool {
	return slices.IndexFunc(bars[max(0, i-1):min(len(bars), i+2)],
		func(b load.Bar) bool { return b.Calls > 0 }) < 0
}

// mix writes the outcomes of each portion of the mix. Rare outcomes have a column only if they occurred.
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

// denials writes the limits that denied calls.
func (r summary) denials(s *strings.Builder) error {
	if len(r.Denials) == 0 {
		return nil
	}
	by := "DENIED BY"
	if r.Outcomes[load.Shadowed].Calls > 0 {
		by = "DENIED, OR WOULD BE, BY"
	}
	rows := [][]string{{by, "OF", "ON", "CALLS", "PORTION"}}
	for _, d := range r.Denials {
		rows = append(rows, []string{d.Limit, d.Kind, d.Resource, texttable.Count(d.Calls),
			percentOf(d.Calls, r.All.Calls)})
	}
	s.WriteByte('\n')
	return texttable.Write(s, "", "lllrr", rows)
}

// failures writes the errors of calls.
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

// store writes the calls to the store.
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

// unanswered returns the number of calls to the store without a decision.
func unanswered(p load.Path) (n int64) {
	for _, outcome := range []string{"throttled", "unapplied", "unknown", "failed"} {
		n += p.Outcomes[outcome]
	}
	return n
}

// sums writes the cost of an acquire, and whether all calls were counted.
func (r summary) sums(s *strings.Builder) {
	s.WriteByte('\n')
	if r.Coalescing > 0 {
		fmt.Fprintf(s, "%s, of acquires and of settles, were sent in %s: %.2f each\n",
			format.Quantity(r.Coalesced, "charge"), format.Quantity(r.Coalescing, "write"),
			float64(r.Coalesced)/float64(r.Coalescing))
	}
	if r.Pooled > 0 {
		admitted := r.Outcomes[load.Admitted].Calls
		fmt.Fprintf(s, "%s of %s admitted calls (%s) made no request: their tokens had been prefetched\n",
			texttable.Count(r.Pooled), texttable.Count(admitted), percentOf(r.Pooled, admitted))
	}
	if !r.redis && r.All.Calls > 0 {
		n := float64(r.All.Calls)
		fmt.Fprintf(s, "%.3f capacity units per acquire: %.3f read, %.3f written\n", (r.Units.Read+r.Units.Write)/n,
			r.Units.Read/n, r.Units.Write/n)
		if n := r.unknownBills(); n > 0 {
			fmt.Fprintf(s, "%s without an answer may have been billed, too\n", format.Quantity(n, "call"))
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
		fmt.Fprintf(s, "%s failed, %s of them after Settle had returned\n",
			format.Quantity(r.Unsettled+r.Late, "settle"), texttable.Count(r.Late))
	}
	if r.Cleanup != nil {
		fmt.Fprintf(s, "%s deleted\n", format.Quantity(*r.Cleanup, "bucket"))
	}
	if r.Lost == 0 {
		fmt.Fprintf(s, "check: ok: each of %s had one outcome, and the observer got it\n",
			format.Quantity(r.Made, "call"))
	}
	if r.Billed != nil && r.misbilled() == 0 {
		s.WriteString("check: ok: the engine billed the counted units\n")
	}
}

// unknownBills returns how many calls to the store may have been billed, and nobody told how much.
func (r summary) unknownBills() (n int64) {
	for _, p := range r.Paths {
		n += p.Outcomes["unknown"] + p.Outcomes["failed"]
	}
	return n
}

// misbilled returns by how many units the bill of the engine differs from the count.
func (r summary) misbilled() float64 {
	const rounding = 1e-6
	off := math.Abs(r.Billed.Read-r.Units.Read) + math.Abs(r.Billed.Write-r.Units.Write)
	if off < rounding {
		return 0
	}
	return off
}

// wrong returns the error for a report that cannot be trusted.
func (r summary) wrong() error {
	var lost error
	if r.Lost != 0 {
		is := "are"
		if r.Lost == 1 {
			is = "is"
		}
		lost = fmt.Errorf("%s %s missing in the counts: do not trust this report", format.Quantity(r.Lost, "call"),
			is)
	}
	var unclosed error
	if r.Unclosed != nil {
		unclosed = fmt.Errorf("not everything was written in the end: %w", r.Unclosed)
	}
	var misbilled error
	if r.Billed != nil && r.misbilled() > 0 && r.unknownBills() == 0 {
		misbilled = fmt.Errorf("the engine billed %v read units and %v write units, other than in the report: "+
			"do not trust it", r.Billed.Read, r.Billed.Write)
	}
	return errors.Join(r.Setup, lost, unclosed, misbilled)
}
