package region

import (
	"math/bits"
	"time"
)

// exhausted reports that what is left, in millitokens, does not last for two windows at rate, in millitokens per second.
func exhausted(left, rate int64, window time.Duration) bool {
	if rate <= 0 {
		return false
	}
	if left <= 0 {
		return true
	}
	lh, ll := bits.Mul64(uint64(left), 1000)
	rh, rl := bits.Mul64(uint64(rate), uint64(2*window.Milliseconds()))
	return lh < rh || lh == rh && ll < rl
}

// drifted reports that due differs from what is configured by more than percent of that.
func drifted(configured, due, percent int64) bool {
	d := due - configured
	return max(d, -d)*100 > configured*percent // both are below 10^12
}

// fires returns the trigger by which a share is to become due, or "".
func fires(h *Holding, due int64, window time.Duration, drift int64) Trigger {
	switch {
	case due == h.Share:
		return ""
	case exhausted(h.TK, h.Rate, window):
		return Exhaustion
	case drifted(h.Share, due, drift):
		return Drift
	}
	return ""
}
