package edge

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/money"
	"github.com/sluice-go/sluice/runtime/store"
)

// Standing is what an answer shows of one limit.
type Standing struct {
	Resource, Limit string
	Params          bucket.Limit // zero if they are not known
	Unit            string       // of Available, as in runtime.Balance
	Available       int64
	Wait            time.Duration
	Refused         bool
}

// Admitted returns, for each limit, the bucket with the least of it: the nearest of equal ones.
func Admitted(balances []runtime.Balance) []Standing {
	var limits []Standing
	for _, b := range balances {
		one := Standing{b.Resource, b.Limit, b.Params, b.Unit, b.Available, b.Full, false}
		if at := Find(limits, b.Resource, b.Limit); at == nil {
			limits = append(limits, one)
		} else if one.Available < at.Available {
			*at = one
		}
	}
	return limits
}

// Refused returns balances as they led to err. It returns none unless limits refused.
func Refused(err error, balances []runtime.Balance) []Standing {
	if _, ok := errors.AsType[*store.CostTooLargeError](err); ok {
		return Admitted(balances)
	}
	denied, ok := errors.AsType[*store.DeniedError](err)
	if !ok {
		return nil
	}
	limits := Admitted(balances)
	for i := range limits {
		limits[i].Wait = min(limits[i].Wait, denied.RetryAfter)
	}
	for _, r := range longest(denied.Refusals) {
		at := Find(limits, r.Resource, r.Limit)
		if at == nil {
			limits = append(limits, Standing{})
			at = &limits[len(limits)-1]
		}
		*at = Standing{r.Resource, r.Limit, paramsOf(balances, r), r.Unit, r.Available, r.RetryAfter, true}
	}
	return limits
}

func paramsOf(balances []runtime.Balance, r store.Refusal) (params bucket.Limit) {
	for _, b := range balances {
		if b.Resource == r.Resource && b.Entity == r.Entity && b.Limit == r.Limit {
			return b.Params
		}
	}
	return params
}

// Find returns the Standing of a resource's limit, or nil.
func Find(limits []Standing, resource, limit string) *Standing {
	for i := range limits {
		if limits[i].Resource == resource && limits[i].Limit == limit {
			return &limits[i]
		}
	}
	return nil
}

// Lookup returns the balances of entity's buckets that r remembers: none if r is a fake.
func Lookup[E store.Entity, C any](r runtime.Acquirer[E, C], entity E) []runtime.Balance {
	if known, ok := r.(interface{ Lookup(E) []runtime.Balance }); ok {
		return known.Lookup(entity)
	}
	return nil
}

// Policy returns the limit as whole tokens in whole seconds. That is the capacity and the time in which it
// refills, if this is whole seconds. Otherwise the seconds are rounded up, and the tokens are what refills in
// them. Of a windowed limit it is the capacity and the nominal length of a window. Money is in
// nano-units. An in-flight limit has no window: its window is 0. A prepaid limit has no policy.
func (s *Standing) Policy() (quota, window int64, ok bool) {
	l := s.Params
	switch {
	case l.Period <= 0 || l.Refill < 0 || l.Prepaid():
		return 0, 0, false
	case l.Closed():
		return 0, max(1, ceilSeconds(l.Period)), true
	case l.InFlight():
		return l.Capacity / bucket.Milli, 0, true
	case s.Unit != "":
		return l.Capacity, max(1, ceilSeconds(l.Period)), true
	case l.Windowed():
		return l.Capacity / bucket.Milli, max(1, ceilSeconds(l.Period)), true
	}
	window = max(1, ceilSeconds(bucket.MulDiv(l.Period, l.Capacity, l.Refill)))
	return bucket.MulDiv(l.Refill, bucket.Mul(window, 1000), l.Period) / bucket.Milli, window, true
}

// Timed reports whether time brings tokens back: nobody knows when calls in flight end, or credits are
// granted.
func (s *Standing) Timed() bool {
	return !s.Params.InFlight() && !s.Params.Prepaid() && s.Wait != store.UntilGrant
}

func ceilSeconds(ms int64) int64 { return ms/1000 + min(1, ms%1000) }

// Fields returns RateLimit-Policy and RateLimit of draft-ietf-httpapi-ratelimit-headers-10. An empty one must
// not be sent: a list without members is a field that is not there.
func Fields(limits []Standing) (policy, left string) {
	var policies, balances []string
	for i := range limits {
		s := &limits[i]
		name, ok := text(s.Limit)
		if !ok {
			continue
		}
		balance := name + ";r=" + s.field(s.Available)
		if quota, window, ok := s.Policy(); ok {
			policy := name + ";q=" + s.field(quota)
			if unit, ok := text(s.Unit); ok && s.Unit != "" {
				policy += ";qu=" + unit
			}
			if window > 0 {
				policy += ";w=" + Integer(window)
			}
			policies = append(policies, policy)
		}
		if s.Timed() {
			balance += ";t=" + Integer(Seconds(s.Wait))
		}
		balances = append(balances, balance)
	}
	return strings.Join(policies, ", "), strings.Join(balances, ", ")
}

// text writes s as a String of RFC 9651, which has only printable ASCII.
func text(s string) (string, bool) {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return "", false
		}
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`, true
}

// field writes a number of the limit as one of RFC 9651: tokens as an Integer, and money as a Decimal. That
// has at most 3 decimals, so money is rounded down to them.
func (s *Standing) field(n int64) string {
	if s.Unit == "" {
		return Integer(n)
	}
	const thousandth = money.Unit / 1000
	decimal := (money.Amount(n) / thousandth * thousandth).String()
	if !strings.Contains(decimal, ".") {
		decimal += ".0"
	}
	return decimal
}

// Number writes a number of the limit as text, exactly. Tokens have at most 15 digits.
func (s *Standing) Number(n int64) string {
	if s.Unit == "" {
		return Integer(n)
	}
	return Number(s.Unit, n)
}

// Integer writes n, which is not negative, as an Integer of RFC 9651, which has at most 15 digits.
func Integer(n int64) string { return strconv.FormatInt(min(n, 999_999_999_999_999), 10) }
