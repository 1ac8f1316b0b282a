package regionsim

import (
	"math"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// Sample is how a world stands, and what happened since the one before. Parts are of what all regions have together.
type Sample struct {
	At       time.Duration
	Cycles   int // of all regions
	Writes   int // shares, by all regions
	Puts     int
	Gets     int
	Beats    int
	Active   int       // limits of buckets of which something is asked
	Sum      float64   // the largest sum of shares in force, of any limit
	Mean     float64   // the mean of those that are active
	Unheld   float64   // of the active ones, in nobody's hands and not on its way, in the mean
	Distance float64   // of the shares in force from what demand would have them, in the mean
	Starved  float64   // asked and refused while it was left over elsewhere
	Shares   []float64 // by region, the mean of what is in force
	First    []int64   // by region, what is in force of the first bucket's first limit, in tokens
	Demand   []float64 // by region, the mean of what is asked
}

// sample takes a Sample.
func (j *judge) sample() {
	w := j.world
	now := Sample{
		At: w.now, Cycles: j.Cycles - j.sampled.Cycles, Writes: j.Writes - j.sampled.Writes, Puts: j.Puts - j.sampled.Puts,
		Gets: j.Gets - j.sampled.Gets, Beats: j.Beats - j.sampled.Beats,
		Shares: make([]float64, len(w.regions)), Demand: make([]float64, len(w.regions)),
	}
	for _, h := range w.regions {
		w.pour(h)
		now.First = append(now.First, h.table.inForce(w.series[0], 0, w.millis(0)).Capacity/bucket.Milli)
	}
	if w.Books {
		j.read()
	}
	for _, s := range w.series {
		for i := range w.Resources[s.resource].Limits {
			j.sampleOf(s, i, &now)
		}
	}
	if n := float64(now.Active); n > 0 {
		now.Mean, now.Unheld, now.Distance, now.Starved = now.Mean/n, now.Unheld/n, now.Distance/n, now.Starved/n
		for r := range w.regions {
			now.Shares[r], now.Demand[r] = now.Shares[r]/n, now.Demand[r]/n
		}
	}
	j.Last, j.sampled = now, j.Result
	if w.Watch != nil {
		w.Watch(now)
	}
}

// sampleOf adds what there is to say of one limit of s.
func (j *judge) sampleOf(s *series, limit int, to *Sample) {
	w := j.world
	most, _ := w.wholes(s, limit)
	whole := float64(most)
	sum, _ := j.sum(s, limit)
	to.Sum = max(to.Sum, float64(sum)/whole)
	demand, all := make([]float64, len(w.regions)), 0.0
	var unmet, spare float64
	for r, h := range w.regions {
		n := &h.flows[s.index].sampled[limit]
		unmet, spare = unmet+n.unmet, spare+n.spare
		*n = sampled{}
		demand[r] = s.load.demand(r, min(w.now, w.Calm))
		all += demand[r]
	}
	if all == 0 {
		return
	}
	to.Active++
	l := w.whole(s, limit)
	refills := float64(l.Refill) * float64(w.Window.Milliseconds()) / float64(l.Period)
	to.Starved += min(unmet, spare) / refills
	floor := float64(w.keeps(bucket.Limit{Capacity: most * bucket.Milli, Burst: bucket.Milli, Refill: 1, Period: 1}))
	for r, h := range w.regions {
		share := float64(h.table.inForce(s, limit, w.millis(0)).Capacity / bucket.Milli)
		to.Shares[r] += share / whole
		to.Demand[r] += demand[r]
		to.Mean += share / whole
		target := floor + (whole-floor*float64(len(w.regions)))*demand[r]/all
		to.Distance += math.Abs(share-target) / whole / float64(len(w.regions))
	}
	if w.Books {
		to.Unheld += 1 - float64(j.held(s, limit))/whole
	}
}
