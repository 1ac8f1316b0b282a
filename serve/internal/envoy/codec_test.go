package envoy_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
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
		r.fails(codes.ResourceExhausted, "larger than max", slices.Repeat(many(1), 1_000_000)...)

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

// FuzzRequest: whatever the bytes are, the service answers, and an id that a caller chose never becomes an
// error.
func FuzzRequest(f *testing.F) {
	f.Add("model", "m", "key", "1", "7", uint64(3), true)
	f.Add("phase", "done", "lease", "x", "", uint64(0), false)
	f.Add("remote_address", "a#b", "", "", "", uint64(1<<63), true)
	f.Fuzz(func(t *testing.T, key1, value1, key2, value2, org string, n uint64, own bool) {
		bubble(t, options{}, func(r *rig) {
			d := descriptor(key1, value1, key2, value2, "org", org)
			if own {
				hits(n, d)
			}
			_, err := r.try(d)
			switch status.Code(err) {
			case codes.OK, codes.NotFound, codes.FailedPrecondition:
			case codes.Internal: // the client refuses what is no UTF-8
				if !strings.Contains(err.Error(), "UTF-8") {
					r.Error(err)
				}
			default:
				r.Error(err)
			}
		})
	})
}
