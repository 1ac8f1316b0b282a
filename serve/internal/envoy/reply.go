package envoy

import (
	"context"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/httplimit"
	"github.com/sluice-go/sluice/runtime/store"
	"github.com/sluice-go/sluice/serve/internal/limits"
)

// reply returns the answer to the request.
func (c *call) reply(ctx context.Context) *ratelimit.RateLimitResponse {
	r := &ratelimit.RateLimitResponse{OverallCode: ratelimit.RateLimitResponse_OK}
	for _, d := range c.descriptors {
		c.count(ctx, d.outcome)
		one := &ratelimit.RateLimitResponse_DescriptorStatus{Code: ratelimit.RateLimitResponse_OK}
		if d.over() {
			one.Code, r.OverallCode = ratelimit.RateLimitResponse_OVER_LIMIT, ratelimit.RateLimitResponse_OVER_LIMIT
		}
		d.show(one)
		r.Statuses = append(r.Statuses, one)
	}
	r.ResponseHeadersToAdd = c.headers()
	if fields := c.metadata(); len(fields) > 0 {
		r.DynamicMetadata = &structpb.Struct{Fields: fields}
	}
	return r
}

// show sets the numbers of a status: those of the limit of tokens with the least left.
func (d *descriptor) show(one *ratelimit.RateLimitResponse_DescriptorStatus) {
	least := -1
	for i, b := range d.balances {
		if b.Unit == "" && (least < 0 || b.Available < d.balances[least].Available) {
			least = i
		}
	}
	until := d.after
	if least >= 0 {
		b := &d.balances[least]
		one.LimitRemaining = uint32(min(b.Available, math.MaxUint32))
		one.CurrentLimit = currentLimit(d.claim.On, b)
		if until == 0 {
			until = b.Full
			if !b.Resets.IsZero() {
				until = max(0, time.Until(b.Resets))
			}
		}
	}
	if least >= 0 || until > 0 {
		one.DurationUntilReset = durationpb.New(until)
	}
}

// unit is the type of the units that Envoy knows.
type unit = ratelimit.RateLimitResponse_RateLimit_Unit

// fixed are the units of a fixed length, in ms, from the longest on. Months and years have none.
var fixed = []struct {
	ms int64
	of unit
}{
	{7 * 24 * 3600_000, ratelimit.RateLimitResponse_RateLimit_WEEK},
	{24 * 3600_000, ratelimit.RateLimitResponse_RateLimit_DAY},
	{3600_000, ratelimit.RateLimitResponse_RateLimit_HOUR},
	{60_000, ratelimit.RateLimitResponse_RateLimit_MINUTE},
	{1000, ratelimit.RateLimitResponse_RateLimit_SECOND},
}

// currentLimit returns the limit of b as Envoy has limits: a number of requests in a number of units of time.
// A limit that does not fit has its name alone. A limit in flight has its number too, and no unit.
func currentLimit(on *limits.Resource, b *runtime.Balance) *ratelimit.RateLimitResponse_RateLimit {
	one := &ratelimit.RateLimitResponse_RateLimit{Name: b.Limit}
	l := b.Params
	tokens := l.Capacity / bucket.Milli
	if l.Absent() || l.Closed() || l.Capacity%bucket.Milli != 0 || tokens > math.MaxUint32 {
		return one
	}
	if l.InFlight() {
		one.RequestsPerUnit = uint32(tokens)
		return one
	}
	of, n, ok := windowOf(on, b)
	if !ok {
		return one
	}
	one.RequestsPerUnit, one.Unit = uint32(tokens), of
	if n > 1 {
		one.UnitMultiplier = wrapperspb.UInt32(n)
	}
	return one
}

// windowOf returns the time that the capacity of a limit is for: its window, or the time in which it refills.
func windowOf(on *limits.Resource, b *runtime.Balance) (of unit, n uint32, ok bool) {
	l := b.Params
	length := l.Period
	if l.Windowed() {
		switch calendar(on, b).Unit {
		case bucket.Month:
			return ratelimit.RateLimitResponse_RateLimit_MONTH, 1, true
		case bucket.Quarter:
			return ratelimit.RateLimitResponse_RateLimit_MONTH, 3, true
		case bucket.Year:
			return ratelimit.RateLimitResponse_RateLimit_YEAR, 1, true
		}
	} else {
		tokens, period := l.WholeRefill()
		if tokens == 0 || bucket.Mul(period, l.Capacity/bucket.Milli)%tokens != 0 {
			return 0, 0, false
		}
		length = bucket.MulDiv(period, l.Capacity/bucket.Milli, tokens)
	}
	for _, f := range fixed {
		if length%f.ms == 0 && length/f.ms <= math.MaxUint32 {
			return f.of, uint32(length / f.ms), true
		}
	}
	return 0, 0, false
}

// calendar returns the windows of a windowed limit of a bucket.
func calendar(on *limits.Resource, b *runtime.Balance) *bucket.Calendar {
	i := slices.Index(on.Spec.Limits, b.Limit)
	if at := on.Spec.KindWith(on.KindOf(b.Entity), i); at != store.NoKind {
		if kind := &on.Spec.Kinds[at]; i < len(kind.Windows) && kind.Windows[i] != nil {
			return kind.Windows[i]
		}
	}
	return &bucket.Calendar{Unit: bucket.FirstUse}
}

// headers returns the header fields for the answer that Envoy's caller gets.
func (c *call) headers() (all []*core.HeaderValue) {
	h := http.Header{}
	httplimit.WriteHeaders(h, c.err, c.balances)
	if c.after > 0 {
		h.Set("Retry-After", "1")
	}
	for _, name := range []string{"RateLimit-Policy", "RateLimit", "Retry-After"} {
		if value := h.Get(name); value != "" {
			all = append(all, &core.HeaderValue{Key: strings.ToLower(name), Value: value})
		}
	}
	return all
}

// metadata returns what an access log and a settle may need to know: the leases, and the limit that refused.
// Without a refusal, resource and entity are those of the first acquire.
func (c *call) metadata() map[string]*structpb.Value {
	fields := map[string]*structpb.Value{}
	set := func(name, value string) {
		if value != "" {
			fields[name] = structpb.NewStringValue(strings.ToValidUTF8(value, "\uFFFD"))
		}
	}
	set("lease", strings.Join(c.names, leaseSeparator))
	if c.degraded {
		fields["degraded"] = structpb.NewBoolValue(true)
	}
	if c.shadowed {
		fields["shadowed"] = structpb.NewBoolValue(true)
	}
	for _, d := range c.descriptors {
		if d.claim.Entity == nil {
			continue
		}
		link := d.claim.Entity.Chain(nil)[0]
		set("resource", d.claim.On.Name())
		set("entity", d.claim.On.Spec.Kinds[link.Kind].Prefix+link.ID)
		if !slices.ContainsFunc(c.descriptors, (*descriptor).over) || d.over() {
			break
		}
	}
	switch err := c.err.(type) { //nolint:errorlint // refused has found them with AsType
	case *store.DeniedError:
		set("resource", err.Resource)
		set("limit", err.Limit)
		set("entity", err.Entity)
	case *store.CostTooLargeError:
		set("resource", err.Resource)
		set("limit", err.Limit)
		set("entity", err.Entity)
	}
	if isInvalid(c.err) {
		set("reason", strings.TrimPrefix(c.err.Error(), "sluice: "))
	}
	return fields
}
