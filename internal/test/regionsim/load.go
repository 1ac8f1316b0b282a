package regionsim

import (
	"math"
	"time"
)

// Shape is how demand changes.
type Shape string

// Shapes.
const (
	Stable Shape = "stable" // always the same
	Drift  Shape = "drift"  // each region's weight moves to the next one's, and back
	Sinus  Shape = "sinus"  // day and night, which come to one region after the other
	Bursts Shape = "bursts" // most of the demand is in one region, then in another
	Idle   Shape = "idle"   // nobody asks
	OnOff  Shape = "onoff"  // stable, and nothing, by turns
)

// Shapes are all of them.
func Shapes() []Shape { return []Shape{Stable, Drift, Sinus, Bursts, Idle, OnOff} }

// Load is what is asked of one bucket.
type Load struct {
	Shape   Shape
	Total   int64   // per mille of what refills in all regions together
	Weights []int64 // of the regions
	Period  time.Duration
	Noise   int64 // per mille by which each region's demand differs at the most, either way, anew in each window
}

// demand is what is asked in a region at an instant, as a part of what refills in all regions together.
func (l Load) demand(region int, at time.Duration) float64 {
	total, n := float64(l.Total)/1000, len(l.Weights)
	phase := float64(at) / float64(max(l.Period, 1))
	switch turn := int(phase); l.Shape {
	case Stable:
		return total * l.weight(region)
	case Drift:
		there := math.Abs(math.Mod(phase, 2) - 1)
		return total * (there*l.weight(region) + (1-there)*l.weight((region+1)%n))
	case Sinus:
		return total * (1 + math.Sin(2*math.Pi*(phase+float64(region)/float64(n)))) / float64(n)
	case Bursts:
		const most = 0.9
		if turn%n == region {
			return total * most
		}
		return total * (1 - most) / float64(max(n-1, 1))
	case OnOff:
		if turn%2 == 0 {
			return total * l.weight(region)
		}
	}
	return 0
}

// weight is a region's part of all.
func (l Load) weight(region int) float64 {
	var sum int64
	for _, w := range l.Weights {
		sum += w
	}
	return float64(l.Weights[region]) / float64(max(sum, 1))
}
