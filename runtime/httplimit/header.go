package httplimit

import (
	"math"
	"math/bits"
	"net/http"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/internal/edge"
	"github.com/sluice-go/sluice/runtime/store"
)

// style writes what is shown of limits into an answer's header.
type style func(h http.Header, limits []edge.Standing)

func (o *options) show(h http.Header, limits []edge.Standing) {
	for _, write := range o.styles {
		if len(limits) > 0 {
			write(h, limits)
		}
	}
}

// ietf is the style of Headers.
func ietf(h http.Header, limits []edge.Standing) {
	policy, level := edge.Fields(limits)
	set(h, "RateLimit-Policy", policy)
	set(h, "RateLimit", level)
}

// triple is the style of XHeaders.
func triple(h http.Header, limits []edge.Standing) {
	scarcest := &limits[0]
	for i := range limits {
		if scarcer(&limits[i], scarcest) {
			scarcest = &limits[i]
		}
	}
	if quota, _, ok := scarcest.Policy(); ok {
		h.Set("X-RateLimit-Limit", scarcest.Number(quota))
	}
	h.Set("X-RateLimit-Remaining", scarcest.Number(scarcest.Available))
	if scarcest.Wait != store.UntilGrant {
		h.Set("X-RateLimit-Reset", edge.Integer(edge.Seconds(scarcest.Wait)))
	}
}

// scarcer reports that s has refused, for longer than o, or has less of its burst left.
func scarcer(s, o *edge.Standing) bool {
	if s.Refused || o.Refused {
		return s.Refused && (!o.Refused || s.Wait > o.Wait)
	}
	// s.Available / s.Params.Burst < o.Available / o.Params.Burst, in 128 bits
	high, low := bits.Mul64(stored(s), uint64(max(0, o.Params.Burst)))
	otherHigh, otherLow := bits.Mul64(stored(o), uint64(max(0, s.Params.Burst)))
	return high < otherHigh || high == otherHigh && low < otherLow
}

// stored returns what is available in the unit of Params: millitokens, or nano-units of money.
func stored(s *edge.Standing) uint64 {
	n := max(0, s.Available)
	if s.Unit == "" {
		n = min(n, math.MaxInt64/bucket.Milli) * bucket.Milli
	}
	return uint64(n)
}

// pair is one half of the style of OpenAIHeaders: what limit stands for is called what. limit may be nil.
func pair(what string, limit store.LimitName) style {
	return func(h http.Header, limits []edge.Standing) {
		if limit == nil {
			return
		}
		s := edge.Find(limits, limit.Resource(), limit.String())
		if s == nil {
			return
		}
		if quota, _, ok := s.Policy(); ok {
			h.Set("X-Ratelimit-Limit-"+what, s.Number(quota))
		}
		h.Set("X-Ratelimit-Remaining-"+what, s.Number(s.Available))
		if s.Wait != store.UntilGrant {
			h.Set("X-Ratelimit-Reset-"+what, duration(edge.Seconds(s.Wait)))
		}
	}
}

// duration writes whole seconds as 1m30s, saturated.
func duration(seconds int64) string {
	return (time.Duration(min(seconds, math.MaxInt64/int64(time.Second))) * time.Second).String()
}

// set leaves out what would be empty.
func set(h http.Header, field, value string) {
	if value != "" {
		h.Set(field, value)
	}
}
