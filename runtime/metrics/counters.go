package metrics

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"slices"
	"sync/atomic"

	"github.com/sluice-go/sluice/runtime/internal/fewkeys"
)

// Counters is a Sink that keeps sums in this process, for health pages, expvar and tests. The zero Counters
// is at nothing, and safe for concurrent use; it must not be copied.
type Counters struct{ sums fewkeys.Map[series, *sum] }

type series struct {
	metric *Metric
	values Values
}

type sum struct {
	count atomic.Uint64
	bits  atomic.Uint64 // the float64
}

// Measure implements Sink. It allocates nothing for a series that there is.
func (c *Counters) Measure(_ context.Context, m *Metric, value float64, values Values) {
	s := c.sums.Get(series{m, values}, func(series) *sum { return &sum{} })
	s.count.Add(1)
	if m.Kind == Gauge {
		s.bits.Store(math.Float64bits(value))
		return
	}
	for {
		old := s.bits.Load()
		if s.bits.CompareAndSwap(old, math.Float64bits(math.Float64frombits(old)+value)) {
			return
		}
	}
}

// Snapshot is what was measured up to some instant, by metric in the order of All, and then by labels.
type Snapshot []Series

// Series is what was measured with the same values of all labels.
type Series struct {
	Metric *Metric
	Values Values
	Count  uint64  // how often
	Sum    float64 // of a Gauge, the last
}

// Snapshot returns what was measured so far. A measurement that is under way may be in Count and not yet in
// Sum.
func (c *Counters) Snapshot() Snapshot {
	known := c.sums.All()
	all := make(Snapshot, 0, len(known))
	for of, s := range known {
		all = append(all, Series{of.metric, of.values, s.count.Load(), math.Float64frombits(s.bits.Load())})
	}
	slices.SortFunc(all, func(a, b Series) int {
		place := func(s Series) int { return slices.Index(All(), s.Metric) }
		return cmp.Or(cmp.Compare(place(a), place(b)), slices.Compare(a.Values[:], b.Values[:]))
	})
	return all
}

// Sum adds up those of a metric that have these values of these labels, given in turn; all, without any:
//
//	snapshot.Sum(metrics.Decisions, metrics.Resource, "gpt-4", metrics.Outcome, "denied")
//
// A label that the metric does not have is of no series.
func (s Snapshot) Sum(m *Metric, labels ...string) (sum float64) {
	for _, one := range s {
		if one.Metric == m && one.has(labels) {
			sum += one.Sum
		}
	}
	return sum
}

func (s *Series) has(labels []string) bool {
	for pair := range slices.Chunk(labels, 2) {
		i := slices.Index(s.Metric.Labels, pair[0])
		if i < 0 || len(pair) < 2 || s.Values[i] != pair[1] {
			return false
		}
	}
	return true
}

// Labels returns the labels of s that are not "".
func (s *Series) Labels() map[string]string {
	labels := map[string]string{}
	for i, name := range s.Metric.Labels {
		if s.Values[i] != "" {
			labels[name] = s.Values[i]
		}
	}
	return labels
}

// MarshalJSON has the series by the name of their metric. Those of a histogram have a count and a sum, others
// a value.
func (s Snapshot) MarshalJSON() ([]byte, error) {
	type row struct {
		Labels map[string]string `json:"labels"`
		Value  *float64          `json:"value,omitempty"`
		Count  uint64            `json:"count,omitempty"`
		Sum    *float64          `json:"sum,omitempty"`
	}
	all := map[string][]row{}
	for _, one := range s {
		r := row{Labels: one.Labels(), Value: &one.Sum}
		if one.Metric.Kind == Histogram {
			r.Value, r.Count, r.Sum = nil, one.Count, &one.Sum
		}
		all[one.Metric.Name] = append(all[one.Metric.Name], r)
	}
	return json.Marshal(all)
}

// String returns the Snapshot as JSON, which makes Counters an expvar.Var.
func (c *Counters) String() string {
	text, err := json.Marshal(c.Snapshot())
	if err != nil {
		return "{}" // numbers and text are never refused but where somebody measures what is no number
	}
	return string(text)
}
