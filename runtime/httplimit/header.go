package httplimit

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
)

// style writes what is shown of limits into an answer's header.
type style func(h http.Header, limits []shown)

// shown is what an answer says of one limit.
type shown struct {
	limit     string
	params    bucket.Limit // zero where they are not known
	available int64        // whole tokens
	wait      time.Duration
	refused   bool
}

func (o *options) show(h http.Header, limits []shown) {
	for _, write := range o.styles {
		if len(limits) > 0 {
			write(h, limits)
		}
	}
}

// admitted shows of each limit the bucket that has least of it; of equals the nearest.
func admitted(levels []runtime.Level) []shown {
	var limits []shown
	for _, l := range levels {
		one := shown{limit: l.Limit, params: l.Params, available: l.Available, wait: l.Full}
		if at := find(limits, l.Limit); at == nil {
			limits = append(limits, one)
		} else if one.available < at.available {
			*at = one
		}
	}
	return limits
}

// refused shows levels as they led to err: nothing, unless it is the limits that refused.
func refused(err error, levels []runtime.Level) []shown {
	if _, ok := errors.AsType[*runtime.CostExceedsBurstError](err); ok {
		return admitted(levels)
	}
	denied, ok := errors.AsType[*runtime.DeniedError](err)
	if !ok {
		return nil
	}
	limits := admitted(levels)
	for i := range limits {
		limits[i].wait = min(limits[i].wait, denied.RetryAfter)
	}
	for _, r := range longest(denied.Refusals) {
		at := find(limits, r.Limit)
		if at == nil {
			limits = append(limits, shown{limit: r.Limit})
			at = &limits[len(limits)-1]
		}
		*at = shown{r.Limit, paramsOf(levels, r.Entity, r.Limit), r.Available, r.RetryAfter, true}
	}
	return limits
}

func paramsOf(levels []runtime.Level, entity, limit string) (params bucket.Limit) {
	for _, l := range levels {
		if l.Entity == entity && l.Limit == limit {
			return l.Params
		}
	}
	return params
}

func find(limits []shown, limit string) *shown {
	for i := range limits {
		if limits[i].limit == limit {
			return &limits[i]
		}
	}
	return nil
}

// policy returns what s is limited to: so many whole tokens in so many seconds. That is the capacity and the time in which it comes,
// where this is whole seconds; else the seconds are rounded up, and the tokens are what comes in them.
func (s *shown) policy() (quota, window int64, ok bool) {
	l := s.params
	if l.Refill <= 0 || l.Period <= 0 {
		return 0, 0, false
	}
	if l.Closed() {
		return 0, max(1, ceilSeconds(l.Period)), true
	}
	window = max(1, ceilSeconds(bucket.MulDiv(l.Period, l.Capacity, l.Refill)))
	return bucket.MulDiv(l.Refill, bucket.Mul(window, 1000), l.Period) / bucket.Milli, window, true
}

func ceilSeconds(ms int64) int64 { return ms/1000 + min(1, ms%1000) }

// ietf is the style of Headers.
func ietf(h http.Header, limits []shown) {
	var policies, levels []string
	for i := range limits {
		s := &limits[i]
		name, ok := text(s.limit)
		if !ok {
			continue
		}
		if quota, window, ok := s.policy(); ok {
			policies = append(policies, name+";q="+integer(quota)+";w="+integer(window))
		}
		levels = append(levels, name+";r="+integer(s.available)+";t="+integer(seconds(s.wait)))
	}
	set(h, "RateLimit-Policy", strings.Join(policies, ", "))
	set(h, "RateLimit", strings.Join(levels, ", "))
}

// triple is the style of XHeaders.
func triple(h http.Header, limits []shown) {
	scarcest := &limits[0]
	for i := range limits {
		if limits[i].scarcer(scarcest) {
			scarcest = &limits[i]
		}
	}
	if quota, _, ok := scarcest.policy(); ok {
		h.Set("X-RateLimit-Limit", integer(quota))
	}
	h.Set("X-RateLimit-Remaining", integer(scarcest.available))
	h.Set("X-RateLimit-Reset", integer(seconds(scarcest.wait)))
}

// scarcer reports that s has refused, for longer than o, or has less of its burst left.
func (s *shown) scarcer(o *shown) bool {
	if s.refused || o.refused {
		return s.refused && (!o.refused || s.wait > o.wait)
	}
	return float64(s.available)*float64(o.params.Burst) < float64(o.available)*float64(s.params.Burst)
}

// pair is one half of the style of OpenAIHeaders: what limit stands for is called what.
func pair(what, limit string) style {
	return func(h http.Header, limits []shown) {
		s := find(limits, limit)
		if s == nil {
			return
		}
		if quota, _, ok := s.policy(); ok {
			h.Set("X-Ratelimit-Limit-"+what, integer(quota))
		}
		h.Set("X-Ratelimit-Remaining-"+what, integer(s.available))
		h.Set("X-Ratelimit-Reset-"+what, duration(seconds(s.wait)))
	}
}

// duration writes whole seconds as 1m30s, saturated.
func duration(seconds int64) string {
	return (time.Duration(min(seconds, math.MaxInt64/int64(time.Second))) * time.Second).String()
}

// set leaves out what would be empty: a list without members is a field that is not there.
func set(h http.Header, field, value string) {
	if value != "" {
		h.Set(field, value)
	}
}

// text writes s as a String of RFC 9651, which has printable ASCII alone.
func text(s string) (string, bool) {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return "", false
		}
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`, true
}

// integer writes n, which is not below 0, as an Integer of RFC 9651, which has 15 digits at most.
func integer(n int64) string { return strconv.FormatInt(min(n, 999_999_999_999_999), 10) }
