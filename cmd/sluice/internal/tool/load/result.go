package load

import (
	"cmp"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Units are capacity units of DynamoDB.
type Units struct {
	Read  float64 `json:"read"`
	Write float64 `json:"write"`
}

func (u Units) sum() float64 { return u.Read + u.Write }

// Result is what a load came to.
type Result struct {
	Seconds float64 `json:"seconds"`
	Ended   string  `json:"ended"`
	Due     int64   `json:"due"`  // calls that should have begun
	Made    int64   `json:"made"` // and those that did
	Lost    int64   `json:"lost"` // of them, those of which no end is known: 0, or the count is wrong
	// how long after they were due calls began; of no calls where no rate was to be kept
	Waited    Latency   `json:"began"`
	All       Latency   `json:"acquires"`
	Outcomes  []Latency `json:"outcomes"`
	Pooled    int64     `json:"admitted_without_request"` // of tokens that had been prefetched
	Settles   Latency   `json:"settles"`
	Unsettled int64     `json:"settles_failed"`
	Late      int64     `json:"lazy_settles_failed"` // of those whose Settle had returned
	Mix       []Drawn   `json:"mix"`
	Denials   []Denial  `json:"denials"`
	Failures  []Failure `json:"failures"`
	Paths     []Path    `json:"store"`
	Units     Units     `json:"units"`
	// what 99% of the waits of this process's goroutines for a CPU are not above
	Starved    float64 `json:"cpu_wait_p99_ms"`
	Coalesced  int64   `json:"carried"`  // acquires and settles that writes have served
	Coalescing int64   `json:"carrying"` // the writes that were applied and served them
	Unclosed   error   `json:"-"`        // what kept the limiters from writing all in the end
	Setup      error   `json:"-"`        // why calls cannot succeed
	Touched    [][]int `json:"-"`        // by portion of the mix, the entities that called
}

// Latency is how long calls took.
type Latency struct {
	What      string  `json:"what"`
	Calls     int64   `json:"calls"`
	PerSecond float64 `json:"per_second"`
	Mean      float64 `json:"mean_ms"`
	P50       float64 `json:"p50_ms"`
	P90       float64 `json:"p90_ms"`
	P99       float64 `json:"p99_ms"`
	P999      float64 `json:"p999_ms"`
	Max       float64 `json:"max_ms"`
	Bars      []Bar   `json:"histogram"`
}

// Bar is how many calls took longer than the bar before and not longer than UpTo.
type Bar struct {
	UpTo  float64 `json:"up_to_ms"`
	Calls int64   `json:"calls"`
}

// Drawn is what became of one portion of the mix.
type Drawn struct {
	Resource string `json:"resource"`
	Kind     string `json:"kind"`
	Entities int    `json:"entities"` // that called
	Admitted int64  `json:"admitted"`
	Denied   int64  `json:"denied"`
	Degraded int64  `json:"degraded"`
	Shadowed int64  `json:"shadowed"`
	Failed   int64  `json:"failed"`
}

// Denial is how often a limit refused longest, of buckets of a kind: in shadow mode, would have.
type Denial struct {
	Resource string `json:"resource"`
	Kind     string `json:"kind"`
	Limit    string `json:"limit"`
	Calls    int64  `json:"calls"`
}

// Failure is how often something failed in one way.
type Failure struct {
	What  string `json:"what"`
	Calls int64  `json:"calls"`
	First string `json:"first"` // the first error
}

// Path is what calls to the store came to, by the path of runtime.StoreEvent.
type Path struct {
	Path       string           `json:"path"`
	Calls      int64            `json:"calls"`
	Outcomes   map[string]int64 `json:"outcomes"`
	Read       float64          `json:"read_units"`
	Write      float64          `json:"write_units"`
	Coalesced  int64            `json:"carried"`
	Coalescing int64            `json:"carrying"`
}

// Progress is how far a load is.
type Progress struct {
	Elapsed time.Duration
	Began   int64 // calls
	Ended   [outcomes]int64
	P99     time.Duration
	Units   Units
}

// progress returns how far r is.
func (r *Run) progress() Progress {
	b := r.book
	b.mu.Lock()
	defer b.mu.Unlock()
	p := Progress{Elapsed: r.Clock.Now().Sub(r.began), Began: r.begun.Load(), P99: percentile(b.all, 99),
		Units: b.units}
	for o, h := range b.latency {
		p.Ended[o] = h.TotalCount()
	}
	return p
}

// result adds up what was counted in the time that calls were made in.
func (r *Run) result(took time.Duration) *Result {
	b := r.book
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &Result{
		Seconds: took.Seconds(), Ended: *r.ended.Load(), Units: b.units, Unsettled: b.unsettle, Setup: b.setup,
		Pooled: b.pooled,
		All:    latency("acquires", b.all, took), Settles: latency("settles", b.settle, took),
		Waited:   latency("began", b.waited, took),
		Outcomes: []Latency{}, Denials: []Denial{}, Failures: []Failure{}, Paths: []Path{},
	}
	var reported int64
	for o, h := range b.latency {
		s.Outcomes = append(s.Outcomes, latency(Outcome(o).String(), h, took))
		reported += b.reported[o]
	}
	s.Made = r.begun.Load()
	s.Due = max(s.Made, r.dueWithin(took, s.Ended))
	s.Late = b.reportedLater - b.unsettle
	s.Lost = max(s.Made-s.All.Calls, s.Made-reported)
	for i, portion := range r.Plan.Mix {
		spec, n := r.Plan.spec(i), b.portions[i]
		s.Mix = append(s.Mix, Drawn{
			Resource: spec.Resource, Kind: spec.Kinds[portion.Kind].Name, Entities: len(b.drawn[i]),
			Admitted: n[Admitted], Denied: n[Denied], Degraded: n[Degraded], Shadowed: n[Shadowed], Failed: n[Failed],
		})
		touched := make([]int, 0, len(b.drawn[i]))
		for index := range b.drawn[i] {
			touched = append(touched, index)
		}
		slices.Sort(touched)
		s.Touched = append(s.Touched, touched)
	}
	for d, n := range b.denials {
		s.Denials = append(s.Denials, Denial{Resource: r.Plan.Specs[d.resource].Resource, Kind: d.kind,
			Limit: d.limit, Calls: n})
	}
	slices.SortFunc(s.Denials, func(a, b Denial) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Resource, b.Resource),
			cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Limit, b.Limit))
	})
	for _, f := range b.failures {
		s.Failures = append(s.Failures, *f)
	}
	slices.SortFunc(s.Failures, func(a, b Failure) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.What, b.What))
	})
	for _, p := range b.paths {
		s.Paths = append(s.Paths, *p)
		s.Coalesced += p.Coalesced
		s.Coalescing += p.Coalescing
	}
	slices.SortFunc(s.Paths, func(a, b Path) int { return cmp.Compare(a.Path, b.Path) })
	return s
}

// dueWithin returns how many calls came due while calls were made, 0 where no rate was to be kept. After an
// early end, none is due.
func (r *Run) dueWithin(took time.Duration, ended string) int64 {
	if r.Rate == 0 {
		return 0
	}
	span := r.Duration
	if ended != EndedDuration {
		span = min(span, took)
	}
	n := int64(span.Seconds() * r.Rate)
	for ; n > 0 && r.due(n-1) >= span; n-- {
	}
	for ; r.due(n) < span; n++ {
	}
	if r.Calls > 0 {
		n = min(n, r.Calls)
	}
	return n
}

// latency sums up a histogram of calls made within took.
func latency(what string, h *hdrhistogram.Histogram, took time.Duration) Latency {
	l := Latency{What: what, Calls: h.TotalCount(), Bars: []Bar{}}
	if l.Calls == 0 {
		return l
	}
	ms := func(percent float64) float64 { return milliseconds(percentile(h, percent)) }
	l.Mean, l.Max = h.Mean()/1e6, milliseconds(time.Duration(h.Max()))
	l.P50, l.P90, l.P99, l.P999 = ms(50), ms(90), ms(99), ms(99.9)
	if took > 0 {
		l.PerSecond = float64(l.Calls) / took.Seconds()
	}
	l.Bars = bars(h)
	return l
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
