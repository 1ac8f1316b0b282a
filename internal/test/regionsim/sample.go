package regionsim

import (
	"math"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/region"
)

// Sample is how a world stands, and what happened since the one before, a window ago. A figure that is not a
// count is a part of 1: of what all regions have together of a limit.
type Sample struct {
	At time.Duration

	Cycles     int                    // of all regions, as what follows
	Writes     int                    // quotas
	Triggers   map[region.Trigger]int // of these, by the first of their limits
	Beats      int
	Buckets    int // read from tables
	Gets, Puts int // of snapshots

	Active int // limits of buckets of which something is asked now; the means below are of these
	// of the quotas that processes may use, the worst taken, the largest of any limit; never above 1
	Sum  float64
	Mean float64 // of the sums of the quotas in force
	// what is in nobody's hands and not on its way, in the mean: 0 once all has been found again. This, and
	// Unbegun, are of samples that are watched, and of the last one.
	Unheld   float64
	Unbegun  float64 // of Unheld, what is of limits of which not all regions have begun accounts
	Distance float64 // of a region's quota in force from what demand would have it, in the mean
	// what was asked and refused while as much was left over elsewhere, in the mean, of what refills
	Starved float64
	Quotas  []float64 // by region, the part of the whole in force, in the mean
	Demand  []float64 // by region, what is asked, in the mean
	First   []int64   // by region, what is in force of the first resource's first limit for user-1, in tokens
	Served  float64   // of that, by all regions since the world began, in tokens
}

// sample takes a Sample.
func (j *judge) sample() {
	w := j.world
	now := Sample{
		At: w.now, Cycles: j.Cycles - j.sampled.Cycles, Writes: j.Writes - j.sampled.Writes,
		Puts:    j.Puts - j.sampled.Puts,
		Buckets: j.Buckets - j.sampled.Buckets,
		Gets:    j.Gets - j.sampled.Gets, Beats: j.Beats - j.sampled.Beats, Triggers: j.triggers,
		Quotas: make([]float64, len(w.regions)), Demand: make([]float64, len(w.regions)),
	}
	for _, h := range w.regions {
		w.pour(h)
		now.First = append(now.First, h.table.inForce(w.series[0], 0, w.millis(0)).Capacity/bucket.Milli)
		now.Served += h.flows[0].served[0] / bucket.Milli
	}
	if j.readsBooks() {
		j.read()
	}
	for _, s := range w.series {
		for i := range w.Resources[s.resource].Limits {
			j.served(s, i)
			j.sampleOf(s, i, &now)
		}
	}
	if n := float64(now.Active); n > 0 {
		now.Mean, now.Distance, now.Starved = now.Mean/n, now.Distance/n, now.Starved/n
		now.Unheld, now.Unbegun = now.Unheld/n, now.Unbegun/n
		for r := range w.regions {
			now.Quotas[r], now.Demand[r] = now.Quotas[r]/n, now.Demand[r]/n
		}
	}
	j.Last, j.sampled, j.triggers = now, j.Result, map[region.Trigger]int{}
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
	floor := float64(w.keeps(bucket.Limit{Capacity: most * bucket.Milli, Burst: bucket.Milli, Refill: 1,
		Period: 1}))
	for r, h := range w.regions {
		quota := float64(h.table.inForce(s, limit, w.millis(0)).Capacity / bucket.Milli)
		to.Quotas[r] += quota / whole
		to.Demand[r] += demand[r]
		to.Mean += quota / whole
		target := floor + (whole-floor*float64(len(w.regions)))*demand[r]/all
		to.Distance += math.Abs(quota-target) / whole / float64(len(w.regions))
	}
	if j.readsBooks() {
		unheld := 1 - float64(j.held(s, limit))/whole
		if to.Unheld += unheld; !j.begun(s, limit) {
			to.Unbegun += unheld
		}
	}
}
