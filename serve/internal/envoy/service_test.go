package envoy_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/sluice-go/sluice/serve/internal/envoy"
)

// headers returns the header fields of an answer, one in a line.
func headers(a *ratelimit.RateLimitResponse) string {
	var b strings.Builder
	for _, h := range a.ResponseHeadersToAdd {
		b.WriteString(h.Key + ": " + h.Value + "\n")
	}
	return b.String()
}

// forged returns another name than that of a lease.
func forged(lease string) string {
	last := "A"
	if strings.HasSuffix(lease, last) {
		last = "Q"
	}
	return lease[:len(lease)-1] + last
}

// TestReserveAndSettle: the first call reserves an estimate, and the second settles it at what was used.
func TestReserveAndSettle(t *testing.T) {
	bubble(t, options{}, func(r *rig) {
		a := r.want(ok, model(100))
		s := a.Statuses[0]
		limit := s.CurrentLimit
		if s.LimitRemaining != 4900 || limit.Name != "tpm" || limit.RequestsPerUnit != 5_000 ||
			limit.Unit != ratelimit.RateLimitResponse_RateLimit_MINUTE || limit.UnitMultiplier != nil ||
			s.DurationUntilReset.AsDuration() != 1200*time.Millisecond {
			r.Errorf("%v", s)
		}
		if meta(a, "resource") != "model" || meta(a, "entity") != "key-1" || meta(a, "limit") != "" {
			r.Errorf("%v", a.DynamicMetadata)
		}
		const fields = "ratelimit-policy: \"tpm\";q=5000;w=60, \"month\";q=50.0;qu=\"USD\";w=2592000\n" +
			"ratelimit: \"tpm\";r=4900;t=2, \"month\";r=49.999;t="
		if got := headers(a); !strings.HasPrefix(got, fields) {
			r.Errorf("got  %s\nwant %s", got, fields)
		}
		if left := r.left(); left != 4_900 {
			r.Errorf("left %d", left)
		}
		lease := meta(a, "lease")
		r.want(ok, done(lease, 37))
		if left := r.left(); left != 4_963 {
			r.Errorf("left %d, want what was not used to be back", left)
		}
		r.fails(codes.FailedPrecondition, "the lease has been settled before", done(lease, 0))
		r.fails(codes.NotFound, "there is no such lease", done(forged(lease), 0))
		if left := r.left(); left != 4_963 {
			r.Errorf("left %d: a repeated settle has given back", left)
		}
		nothing := meta(r.want(ok, model(100)), "lease")
		r.want(ok, done(nothing, 0))
		if left := r.left(); left != 4_963 {
			r.Errorf("left %d after a settle at 0", left)
		}
		r.counted(map[envoy.Outcome]int{envoy.OK: 2, envoy.Settled: 2, envoy.Unsettled: 2})
	})
}

// TestStreams: 200 streams of 100 tokens start at once against 5,000. Reserving admits 50, and settles to the
// token. The control charges at the end alone: all 200 are admitted.
func TestStreams(t *testing.T) {
	run := func(t *testing.T, reserve bool, want, charged int64) {
		t.Helper()
		bubble(t, options{}, func(r *rig) {
			var admitted atomic.Int64
			var streams sync.WaitGroup
			for range 200 {
				streams.Go(func() {
					first := model(100)
					if !reserve {
						first = model(0) // a look at what is left
					}
					a, err := r.try(first)
					if err != nil {
						r.Error(err)
						return
					}
					if a.OverallCode != ok {
						return
					}
					admitted.Add(1)
					<-time.After(10 * time.Millisecond) // the stream
					last := done(meta(a, "lease"), 100)
					if !reserve {
						last = model(100)
					}
					if _, err := r.try(last); err != nil {
						r.Error(err)
					}
				})
			}
			streams.Wait()
			if n := admitted.Load(); n != want {
				r.Errorf("%d streams were admitted, want %d", n, want)
			}
			if left := r.left(); left > 5_000-charged+2 || left < 5_000-charged { // refill takes 12 ms a token
				r.Errorf("left %d of 5000, want %d", left, 5_000-charged)
			}
			if reserve && r.leases.Stats().Open != 0 {
				r.Errorf("%+v", r.leases.Stats())
			}
		})
	}
	t.Run("reserve", func(t *testing.T) { run(t, true, 50, 5_000) })
	t.Run("control: charge at the end", func(t *testing.T) { run(t, false, 200, 5_000) })
}

// allOrNone sends five descriptors, of which the last is denied, and returns how much the others were
// charged.
func allOrNone(r *rig, send func(all []*common.RateLimitDescriptor)) (charged int64) {
	for range 3 {
		r.want(ok, address("10.0.0.9"))
	}
	all := []*common.RateLimitDescriptor{model(100), address("10.0.0.1"), address("10.0.0.2"),
		hits(50, descriptor("cost", "x", "key", "1", "org", "7")), address("10.0.0.9")}
	send(all)
	for _, ip := range []string{"10.0.0.1", "10.0.0.2"} {
		a := r.want(ok, hits(0, address(ip)))
		charged += int64(3 - a.Statuses[0].LimitRemaining)
	}
	return charged + 5_000 - r.left()
}

// TestAllOrNone: if one of five descriptors is denied, none is charged.
func TestAllOrNone(t *testing.T) {
	bubble(t, options{}, func(r *rig) {
		charged := allOrNone(r, func(all []*common.RateLimitDescriptor) {
			a := r.want(over, all...)
			for i, s := range a.Statuses {
				if (s.Code == over) != (i == 4) {
					r.Errorf("descriptor %d: %v", i+1, s)
				}
			}
			if meta(a, "resource") != "address" || meta(a, "limit") != "rps" || meta(a, "entity") != "ip-10.0.0.9" ||
				meta(a, "lease") != "" || !strings.Contains(headers(a), "retry-after: 1\n") {
				r.Errorf("%v", a)
			}
			d := a.Statuses[4].DurationUntilReset.AsDuration()
			if d < 300*time.Millisecond || d > 334*time.Millisecond {
				r.Errorf("reset in %v", d)
			}
		})
		if charged != 0 {
			r.Errorf("%d tokens were charged for a request that was denied", charged)
		}
		r.counted(map[envoy.Outcome]int{envoy.Uncharged: 4, envoy.OverLimit: 1})
	})
}

// TestAllOrNoneControl: descriptors that are charged in order, each in a request of its own, are caught.
func TestAllOrNoneControl(t *testing.T) {
	bubble(t, options{}, func(r *rig) {
		charged := allOrNone(r, func(all []*common.RateLimitDescriptor) {
			for _, d := range all {
				if a, err := r.try(d); err != nil || a.OverallCode != ok {
					return
				}
			}
		})
		if charged != 152 {
			r.Errorf("%d tokens were charged, want 152", charged)
		}
	})
}

// TestGroup: an admitted group has its leases in one name, and settles each.
func TestGroup(t *testing.T) {
	bubble(t, options{}, func(r *rig) {
		two := descriptor("model", "m", "key", "2", "org", "7")
		a := r.want(ok, model(100), hits(200, two), address("10.0.0.1"))
		lease := meta(a, "lease")
		if n := strings.Count(lease, ","); n != 2 { // the rule with phase end fits address too
			r.Errorf("lease %s", lease)
		}
		if n := r.leases.Stats().Open; n != 3 {
			r.Errorf("%d leases are open", n)
		}
		_, err := r.try(done(lease, 50)) // address has no output
		if status.Code(err) != codes.InvalidArgument {
			r.Error(err)
		}
		if left, n := r.left(), r.leases.Stats().Open; left != 4_950 || n != 1 {
			r.Errorf("left %d, %d leases are open", left, n)
		}
	})
}

// TestPeek: a descriptor without hits charges nothing, and is over its limit if nothing is left. The hits of
// a descriptor count before those of the request.
func TestPeek(t *testing.T) {
	bubble(t, options{}, func(r *rig) {
		send := func(n uint32, d *common.RateLimitDescriptor) *ratelimit.RateLimitResponse {
			a, err := r.client.ShouldRateLimit(r.Context(), &ratelimit.RateLimitRequest{Domain: "gateway",
				HitsAddend: n, Descriptors: []*common.RateLimitDescriptor{d}})
			if err != nil {
				r.Fatal(err)
			}
			return a
		}
		plain := func() *common.RateLimitDescriptor { return descriptor("model", "m", "key", "1", "org", "7") }
		for _, test := range []struct {
			request uint32
			d       *common.RateLimitDescriptor
			left    int64
		}{{0, plain(), 4_999}, {10, plain(), 4_989}, {10, model(5), 4_984}, {10, model(0), 4_984}} {
			a := send(test.request, test.d)
			if left := r.left(); a.OverallCode != ok || left != test.left ||
				int64(a.Statuses[0].LimitRemaining) != test.left {
				r.Errorf("left %d, want %d: %v", left, test.left, a)
			}
		}
		r.want(ok, model(4_984))
		a := r.want(over, model(0), address("10.0.0.1"))
		if a.Statuses[0].Code != over || a.Statuses[1].Code != ok {
			r.Errorf("%v", a)
		}
		r.counted(map[envoy.Outcome]int{envoy.Peeked: 1, envoy.OverLimit: 1, envoy.Uncharged: 1, envoy.OK: 4})
	})
}

// TestRefused: what a caller must not choose is refused or ignored, and counted. Values that a
// caller may choose never become an error, on which Envoy may admit.
func TestRefused(t *testing.T) {
	bubble(t, options{}, func(r *rig) {
		negative := model(100)
		negative.IsNegativeHits = true
		r.fails(codes.InvalidArgument, "descriptor 2 has is_negative_hits, which is refused", model(1), negative)
		r.fails(codes.InvalidArgument, "the request has no descriptor")
		override := model(100)
		override.Limit = &common.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 1_000_000}
		if a := r.want(ok, override); a.Statuses[0].CurrentLimit.RequestsPerUnit != 5_000 {
			r.Errorf("%v", a)
		}
		for name, d := range map[string]*common.RateLimitDescriptor{
			"an id with #":    descriptor("model", "m", "key", "a#b", "org", "7"),
			"an empty id":     descriptor("model", "m", "key", "", "org", "7"),
			"a long id":       descriptor("model", "m", "key", strings.Repeat("x", 60_000), "org", "7"),
			"too many tokens": hits(5_001, descriptor("model", "m", "key", "1", "org", "7")),
			"absurd hits":     hits(1<<64-1, descriptor("model", "m", "key", "1", "org", "7")),
		} {
			if a := r.want(over, d, address("10.0.0.3")); a.Statuses[0].Code != over || a.Statuses[1].Code != ok {
				r.Errorf("%s: %v", name, a)
			}
		}
		if a := r.want(ok, hits(0, address("10.0.0.3"))); a.Statuses[0].LimitRemaining != 3 {
			r.Errorf("a refused request has charged: %v", a)
		}
		r.want(ok, descriptor("nobody", "knows"))
		if a, err := r.client.ShouldRateLimit(r.Context(), &ratelimit.RateLimitRequest{Domain: "other",
			Descriptors: []*common.RateLimitDescriptor{model(1)}}); err != nil || a.OverallCode != ok {
			r.Error(a, err)
		}
		r.counted(map[envoy.Outcome]int{envoy.Negative: 1, envoy.Override: 1, envoy.Unmatched: 2, envoy.Invalid: 4,
			envoy.OverLimit: 1})
	})
	bubble(t, options{rules: strings.Replace(rules, "unmatched: allow", "unmatched: deny", 1)}, func(r *rig) {
		a := r.want(over, descriptor("nobody", "knows"), model(1))
		if a.Statuses[0].Code != over || r.left() != 5_000 {
			r.Errorf("%v", a)
		}
	})
}

// TestCurrentLimit: a limit has a unit if Envoy knows it, and none otherwise.
func TestCurrentLimit(t *testing.T) {
	bubble(t, options{}, func(r *rig) {
		a := r.want(ok, address("10.0.0.1"))
		s := a.Statuses[0]
		if s.LimitRemaining != 2 || s.CurrentLimit.Name != "rps" ||
			s.CurrentLimit.Unit != ratelimit.RateLimitResponse_RateLimit_SECOND {
			r.Errorf("%v", s)
		}
		s = r.want(ok, descriptor("org", "7", "job", "yes")).Statuses[0]
		if s.LimitRemaining != 1 || s.CurrentLimit.Name != "parallel" || s.CurrentLimit.RequestsPerUnit != 2 ||
			s.CurrentLimit.Unit != ratelimit.RateLimitResponse_RateLimit_UNKNOWN {
			r.Errorf("%v", s)
		}
	})
}

// TestLeases: a lease without a settle runs out, and a slot comes back by then or by a settle.
func TestLeases(t *testing.T) {
	bubble(t, options{}, func(r *rig) {
		job := descriptor("org", "7", "job", "yes")
		first := meta(r.want(ok, job), "lease")
		r.want(ok, job)
		r.want(over, job)
		r.want(ok, descriptor("phase", "end", "lease", first))
		r.want(ok, job)
		r.want(over, job)
		<-time.After(10*time.Minute + 2*time.Second)
		if s := r.leases.Stats(); s.Open != 0 {
			r.Errorf("%+v", s)
		}
		r.want(ok, job)
	})
}

// TestFailures: the failure policy decides, and an admission without the store is degraded.
func TestFailures(t *testing.T) {
	bubble(t, options{leases: 2}, func(r *rig) {
		r.want(ok, model(1))
		r.want(ok, model(1))
		if a := r.want(over, model(1)); !strings.Contains(headers(a), "retry-after: 1\n") { // --max-leases
			r.Errorf("%v", a)
		}
		r.counted(map[envoy.Outcome]int{envoy.Failed: 1})
	})
	bubble(t, options{}, func(r *rig) {
		r.drain()
		r.fails(codes.Unavailable, "the server is about to end", model(1))
	})
	bubble(t, options{tokens: []string{"0123456789abcdef"}}, func(r *rig) {
		r.fails(codes.Unauthenticated, "authorization: Bearer TOKEN", model(1))
		for token, want := range map[string]codes.Code{"Bearer 0123456789abcdeX": codes.Unauthenticated,
			"Bearer 0123456789abcdef": codes.OK} {
			ctx := metadata.AppendToOutgoingContext(r.Context(), "authorization", token)
			_, err := r.client.ShouldRateLimit(ctx, &ratelimit.RateLimitRequest{Domain: "gateway",
				Descriptors: []*common.RateLimitDescriptor{model(1)}})
			if status.Code(err) != want {
				r.Errorf("%s: %v", token, err)
			}
		}
	})
}

// TestAbandoned: Envoy does not wait for longer than its time-out. Tokens that were taken then come back.
func TestAbandoned(t *testing.T) {
	bubble(t, options{}, func(r *rig) {
		ctx, cancel := context.WithCancel(r.Context())
		cancel()
		_, err := r.client.ShouldRateLimit(ctx, &ratelimit.RateLimitRequest{Domain: "gateway",
			Descriptors: []*common.RateLimitDescriptor{model(100)}})
		if status.Code(err) != codes.Canceled {
			r.Error(err)
		}
		if left, open := r.left(), r.leases.Stats().Open; left != 5_000 || open != 0 {
			r.Errorf("left %d, %d leases", left, open)
		}
	})
}

// TestReload: rules and limits are replaced together, and leases of before are settled.
func TestReload(t *testing.T) {
	bubble(t, options{}, func(r *rig) {
		lease := meta(r.want(ok, model(100)), "lease")
		r.both.Replace(r.open(), r.rules(strings.Replace(rules, "model: \"*\"", "llm: \"*\"", 1)))
		r.want(ok, done(lease, 40))
		if a := r.want(ok, model(100)); a.Statuses[0].CurrentLimit != nil {
			r.Errorf("%v", protojson.Format(a))
		}
		r.want(ok, hits(60, descriptor("llm", "m", "key", "1", "org", "7")))
		if left := r.left(); left != 4_900 {
			r.Errorf("left %d", left)
		}
	})
}
