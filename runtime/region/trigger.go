package region

import (
	"math/bits"
	"time"
)

// exhausted reports whether the balance left, in millitokens, does not last for horizon at rate, in
// millitokens per second.
func exhausted(left, rate int64, horizon time.Duration) bool {
	if rate <= 0 {
		return false
	}
	if left <= 0 {
		return true
	}
	lh, ll := bits.Mul64(uint64(left), 1000)
	rh, rl := bits.Mul64(uint64(rate), uint64(horizon.Milliseconds()))
	return lh < rh || lh == rh && ll < rl
}

// drifted reports whether target differs from the configured quota by more than percent of it.
func drifted(configured, target, percent int64) bool {
	d := target - configured
	return max(d, -d)*100 > configured*percent // both are below 10^12
}

// fires returns the trigger for which a quota should become target, or "".
func fires(h *Holding, target int64, c *Config, window time.Duration) Trigger {
	switch {
	case target == h.Quota:
		return ""
	case exhausted(h.TK, h.Rate, time.Duration(c.Horizon)*window):
		return Exhaustion
	case drifted(h.Quota, target, c.Drift):
		return Drift
	}
	return ""
}
