package memdynamo

import (
	"math"
	"time"
)

// Distribution draws a duration from r, which returns numbers in [0, 1). One below 0 counts as 0.
type Distribution func(r func() float64) time.Duration

// Constant is always d.
func Constant(d time.Duration) Distribution {
	return func(func() float64) time.Duration { return d }
}

// Uniform lies between least and most, anywhere alike.
func Uniform(least, most time.Duration) Distribution {
	return func(r func() float64) time.Duration { return least + duration(r()*float64(most-least)) }
}

// LogNormal is the usual latency of networks and services. Half of it is below median, and the tail grows
// with sigma: one in a hundred takes 3.2 times the median with 0.5, ten times with 1.
func LogNormal(median time.Duration, sigma float64) Distribution {
	return func(r func() float64) time.Duration {
		// Box and Muller: two uniform numbers make a normal one.
		normal := math.Sqrt(-2*math.Log(1-r())) * math.Cos(2*math.Pi*r())
		return duration(float64(median) * math.Exp(sigma*normal))
	}
}

// duration returns ns as a Duration: a year where it is more or no number.
func duration(ns float64) time.Duration {
	const year = 365 * 24 * time.Hour
	if !(ns < float64(year)) {
		return year
	}
	return time.Duration(max(ns, -float64(year)))
}
