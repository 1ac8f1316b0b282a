package regionsim

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// flow is what is consumed of one bucket of a region. It is brought up to date when somebody looks, or
// changes what is in force.
type flow struct {
	series  *series
	at      time.Duration
	exists  bool
	limits  []bucket.Limit // of the bucket: as who called last believed
	fresh   time.Duration  // until then they are believed
	tokens  []float64      // milli
	taken   []float64      // milli: tc
	served  []float64      // milli: taken since the world began, of buckets deleted since too
	version int64
	full    time.Duration // since when the bucket is full
	sampled []sampled
}

// sampled is what happened since the last sample, in millitokens.
type sampled struct{ asked, unmet, spare float64 }

func newFlow(s *series, limits int) *flow {
	return &flow{series: s, tokens: make([]float64, limits), taken: make([]float64, limits),
		served: make([]float64, limits), sampled: make([]sampled, limits)}
}

// pour brings every flow of h up to date.
func (w *world) pour(h *home) {
	for _, f := range h.flows {
		w.flow(h, f)
	}
}

// flow brings f up to date, in steps of at most half a window.
func (w *world) flow(h *home, f *flow) {
	for f.at < w.now {
		step := min(w.now-f.at, w.Window/2)
		w.step(h, f, step)
		f.at += step
	}
}

func (w *world) step(h *home, f *flow, step time.Duration) {
	part := w.demand(h, f.series, f.at+step/2)
	if part > 0 {
		w.call(h, f)
	} else if !f.exists {
		return
	}
	lapsed := true
	for i, l := range f.limits {
		whole := w.whole(f.series, i)
		ms := float64(step) / float64(time.Millisecond)
		asked := part * float64(whole.Refill) / float64(whole.Period) * ms
		has := f.tokens[i] + float64(l.Refill)/float64(l.Period)*ms
		if l.Closed() {
			has = min(has, f.tokens[i])
		}
		used := 0.0
		if !l.Closed() {
			used = min(asked, max(0, has))
		}
		left := min(has-used, float64(l.Burst))
		n := &f.sampled[i]
		n.asked, n.unmet, n.spare = n.asked+asked, n.unmet+asked-used, n.spare+has-used-left
		f.tokens[i], f.taken[i] = left, f.taken[i]+used
		f.served[i] += used
		// settled lower than was charged: what was consumed may fall
		if used > 0 && f.at < w.Calm && w.Settles > 0 && w.rng.IntN(100) < w.Settles {
			back := min(f.taken[i], 3*used*w.rng.Float64())
			f.taken[i], f.tokens[i] = f.taken[i]-back, min(left+back, float64(l.Burst))
			f.served[i] -= back
		}
		lapsed = lapsed && part == 0 && f.tokens[i] >= float64(l.Burst)
	}
	if !lapsed {
		f.full = f.at + step
	}
	if f.exists && f.at+step-f.full > w.expires(f) { // its ttl is over: what was consumed goes with it
		f.exists = false
		clear(f.taken)
	}
}

// demand is what is asked in h at an instant, as a part of what refills in all regions together.
func (w *world) demand(h *home, s *series, at time.Duration) float64 {
	part := s.load.demand(h.index, min(at, w.Calm))
	if s.load.Noise == 0 || at >= w.Calm {
		return part
	}
	rng := rand.New(rand.NewPCG(w.Seed^uint64(s.index*len(w.regions)+h.index+1)*0x9e3779b97f4a7c15,
		uint64(at/w.Window)))
	return part * (1 + float64(s.load.Noise)*(2*rng.Float64()-1)/1000)
}

// call has the bucket made, or brought to what a caller believes is in force, as the first of a window's
// does.
func (w *world) call(h *home, f *flow) {
	if f.exists && f.at < f.fresh {
		return
	}
	f.fresh = f.at + w.Window
	limits := make([]bucket.Limit, len(f.tokens))
	for i := range limits {
		limits[i] = h.table.inForce(f.series, i, w.millis(0))
	}
	if !f.exists {
		for i, l := range limits {
			f.tokens[i], f.taken[i] = float64(l.Burst), 0
		}
	}
	for i, l := range limits {
		f.tokens[i] = min(f.tokens[i], float64(l.Burst))
	}
	f.exists, f.limits, f.version = true, limits, h.table.entries[f.series.index].version
}

// expires is how long after it was full a bucket is deleted.
func (w *world) expires(f *flow) time.Duration {
	longest := 0.0
	for _, l := range f.limits {
		longest = max(longest, float64(l.Burst)/float64(max(l.Refill, 1))*float64(l.Period))
	}
	return time.Duration(2*longest) * time.Millisecond
}

// image is the bucket as it is stored: nil where there is none.
func (w *world) image(f *flow) *bucket.Image {
	if !f.exists {
		return nil
	}
	img := &bucket.Image{Refilled: begin.Add(f.at).UnixMilli(), Version: f.version, Op: "sim",
		TTL: begin.Add(f.full+w.expires(f)).Unix() + 1}
	for i, l := range w.Resources[f.series.resource].Limits {
		img.Extra = append(img.Extra, bucket.Named{Name: l.Name, Balance: bucket.Balance{
			Limit: f.limits[i], Tokens: int64(math.Floor(f.tokens[i])), Consumed: int64(math.Floor(f.taken[i])),
		}})
	}
	return img
}
