package envoy

import (
	"context"
	"log/slog"
	"sync"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/serve/internal/leases"
	"github.com/sluice-go/sluice/serve/internal/limits"
)

// Current has the Rules in force, and the limits that they name. It is safe for concurrent use.
type Current struct {
	limits *limits.Current
	mu     sync.RWMutex
	rules  *Rules
}

// NewCurrent returns a Current. The rules are bound to the limits.
func NewCurrent(l *limits.Current, rules *Rules) *Current { return &Current{limits: l, rules: rules} }

// Replace puts limits and the rules that are bound to them in force.
func (c *Current) Replace(l *limits.Limits, rules *Rules) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limits.Replace(l)
	c.rules = rules
}

// use returns what is in force, for one request. At its end the request calls Drop of the limits.
func (c *Current) use() (*limits.Limits, *Rules) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.limits.Use(), c.rules
}

// Outcome is what became of a descriptor, or was noticed of it.
type Outcome string

// The outcomes. Negative, Override and Unmatched are counted in addition to another one.
const (
	OK        Outcome = "ok"         // an acquire
	OverLimit Outcome = "over_limit" // an acquire or a peek that a limit of its own denies
	Uncharged Outcome = "uncharged"  // an acquire in a request that another descriptor refused
	Peeked    Outcome = "peeked"
	Settled   Outcome = "settled"
	Unsettled Outcome = "unsettled" // the lease is not there any more, or was never
	Invalid   Outcome = "invalid"   // a value that is no id, or hits that are no cost
	Failed    Outcome = "failed"    // the limits could not be looked up, or too many leases are open
	Unmatched Outcome = "unmatched" // no rule applies
	Negative  Outcome = "negative"  // is_negative_hits, which is refused
	Override  Outcome = "override"  // limit, which is ignored
)

// Config is what a Service serves.
type Config struct {
	Current *Current
	Leases  *leases.Holder
	// LeaseLife is the life of a lease that no settle ends.
	LeaseLife time.Duration
	Logger    *slog.Logger
	// Count is called for each outcome; it may be nil.
	Count func(ctx context.Context, what Outcome)
	// Trace is called for each request, with what serves it; it may be nil.
	Trace grpc.UnaryServerInterceptor
	// Draining ends when the server begins to drain: from then on it admits nothing.
	Draining context.Context //nolint:containedctx // it is the server's state, not a call's
}

// Service is Envoy's rate limit service.
type Service struct {
	ratelimit.UnimplementedRateLimitServiceServer

	Config
}

// ShouldRateLimit implements the service. All acquires of a request are one: if one is denied, none is
// charged.
func (s *Service) ShouldRateLimit(
	ctx context.Context, request *ratelimit.RateLimitRequest,
) (*ratelimit.RateLimitResponse, error) {
	if len(request.GetDescriptors()) == 0 {
		return nil, status.Error(codes.InvalidArgument, "the request has no descriptor: send at least one")
	}
	c := &call{Service: s}
	c.in, c.rules = s.Current.use()
	defer c.in.Drop()
	if err := c.read(ctx, request); err != nil {
		return nil, err
	}
	c.settle(ctx)
	if err := c.unsettled(); err != nil {
		return nil, err
	}
	c.peek(ctx)
	if err := c.acquire(ctx); err != nil {
		return nil, err
	}
	return c.reply(ctx), nil
}

// count counts what became of a descriptor.
func (s *Service) count(ctx context.Context, what Outcome) {
	if s.Count != nil {
		s.Count(ctx, what)
	}
}
