package envoy_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/serve/internal/envoy"
	"github.com/sluice-go/sluice/serve/internal/leases"
	"github.com/sluice-go/sluice/serve/internal/limits"
)

// TestSizes: requests of absurd size are refused before they take memory.
func TestSizes(t *testing.T) {
	bubble(t, options{}, func(r *rig) {
		many := func(n int) (all []*common.RateLimitDescriptor) {
			for i := range n {
				all = append(all, address(fmt.Sprint(i)))
			}
			return all
		}
		r.want(ok, many(50)...)
		r.fails(codes.Internal, "more than 50 descriptors: send fewer", many(51)...)
		wide := make([]string, 2*1_001)
		r.fails(codes.Internal, "more than 1000 entries: send fewer", descriptor(wide...))
		r.fails(codes.ResourceExhausted, "larger than max", address(strings.Repeat("x", 2<<20)))
		r.fails(codes.ResourceExhausted, "larger than max", slices.Repeat(many(1), 100_000)...)
	})
}

// TestMillionDescriptors: so many are refused before they take memory.
func TestMillionDescriptors(t *testing.T) {
	longform.NoRace(t, "it measures memory, with one caller")
	bubble(t, options{}, func(r *rig) {
		many := slices.Repeat([]*common.RateLimitDescriptor{address("1")}, 1_000_000)
		r.fails(codes.ResourceExhausted, "larger than max", many...)

		// 1 MB on the wire, 50 MB once decoded
		empty := slices.Repeat([]*common.RateLimitDescriptor{{}}, 500_000)
		request := &ratelimit.RateLimitRequest{Descriptors: empty}
		synctest.Wait()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := r.client.ShouldRateLimit(r.Context(), request)
		runtime.ReadMemStats(&after)
		if status.Code(err) != codes.Internal {
			r.Error(err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 16<<20 {
			r.Errorf("a request of 10^6 bytes has allocated %d bytes", took)
		}
	})
}

// FuzzRequest: whatever the values are, the service answers. An id that a caller chose never becomes an
// error.
func FuzzRequest(f *testing.F) {
	f.Add("model", "m", "key", "1", "7", uint64(3), true)
	f.Add("phase", "done", "lease", "x", "", uint64(0), false)
	f.Add("remote_address", "a#b", "", "", "", uint64(1<<63), true)
	s := service(f)
	f.Fuzz(func(t *testing.T, key1, value1, key2, value2, org string, n uint64, own bool) {
		d := descriptor(key1, value1, key2, value2, "org", org)
		if own {
			hits(n, d)
		}
		a, err := s.ShouldRateLimit(t.Context(), &ratelimit.RateLimitRequest{Domain: "gateway",
			Descriptors: []*common.RateLimitDescriptor{d}})
		switch status.Code(err) {
		case codes.OK:
			if _, err := proto.Marshal(a); err != nil {
				t.Error(err)
			}
		case codes.NotFound, codes.FailedPrecondition: // a lease
		default:
			t.Error(err)
		}
	})
}

// service returns a Service on an engine of its own, outside of a bubble.
func service(f *testing.F) *envoy.Service {
	f.Helper()
	engine := memdynamo.New()
	if _, err := operator.CreateTable(f.Context(), engine.Client(), "limits"); err != nil {
		f.Fatal(err)
	}
	s, err := readSchema(f)
	if err != nil {
		f.Fatal(err)
	}
	all, err := readRules(f, rules, s)
	if err != nil {
		f.Fatal(err)
	}
	l, err := s.Open(dynamo.New(engine.Client(), "limits"))
	if err != nil {
		f.Fatal(err)
	}
	current := limits.NewCurrent(l, func(err error) { f.Error(err) })
	return &envoy.Service{Config: envoy.Config{
		Current: envoy.NewCurrent(current, all), Leases: leases.New(leases.NewNames("replica"), 100),
		LeaseLife: time.Minute, Logger: slog.New(slog.DiscardHandler), Draining: context.Background(),
	}}
}
