package redisstore

import (
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	sluice "github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
)

// plenty is gpt4 with limits that nobody reaches: one of them, or both.
func plenty(limits int) *definition {
	def := gpt4()
	def.spec.Limits = def.spec.Limits[:limits]
	for i := range def.spec.Kinds {
		kind := &def.spec.Kinds[i]
		kind.PerCall = kind.PerCall[:limits]
		kind.Limits = nil
		for range limits {
			kind.Limits = append(kind.Limits, bucket.Per(1_000_000_000, time.Hour))
		}
	}
	return def
}

// sixteen has 16 goroutines call do with the number of a key below keys.
func sixteen(b *testing.B, keys int, do func(key int)) {
	b.Helper()
	b.ReportAllocs()
	b.SetParallelism(16 / runtime.GOMAXPROCS(0))
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			do(rand.IntN(keys))
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

// BenchmarkAcquire is the store beside the same script called directly, by 16 goroutines. It wants a real server: SLUICE_REDIS=server.
func BenchmarkAcquire(b *testing.B) {
	for _, limits := range []int{1, 2} {
		for _, keys := range []int{1, 1000} {
			name := strconv.Itoa(limits) + " limits, " + strconv.Itoa(keys) + " keys, "
			b.Run(name+"direct", func(b *testing.B) {
				s := newServer(b)
				client, script := s.client(b), redis.NewScript(anyScript)
				params := []any{limits}
				for range limits {
					params = append(params, "1e+09", "277.77")
				}
				params = append(params, "1")
				for range limits {
					params = append(params, 1)
				}
				sixteen(b, keys, func(key int) {
					id := strconv.Itoa(key)
					of := make([]string, limits)
					for i := range of {
						of[i] = s.prefix + strconv.Itoa(i) + ":{" + id + "}"
					}
					if err := script.Run(b.Context(), client, of, params...).Err(); err != nil {
						b.Error(err)
					}
				})
			})
			b.Run(name+"store", func(b *testing.B) {
				s := newServer(b)
				d := s.desk(b, s.client(b), plenty(limits), sluice.WithObserver(&sluice.Observer{}))
				cost := tokens2{1}
				if limits == 2 {
					cost[1] = 1
				}
				sixteen(b, keys, func(key int) {
					if _, err := d.Acquire(b.Context(), who{user: strconv.Itoa(key)}, cost); err != nil {
						b.Error(err)
					}
				})
			})
		}
	}
}
