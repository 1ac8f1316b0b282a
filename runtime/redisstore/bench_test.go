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
	"github.com/sluice-go/sluice/runtime/store"
)

// unlimited returns gpt4 with limits too high to be reached: one of them, or both.
func unlimited(limits int) *definition {
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

// inDays returns unlimited whose last limit is one of days.
func inDays(limits int) *definition {
	def := unlimited(limits)
	for i := range def.spec.Kinds {
		kind := &def.spec.Kinds[i]
		kind.Windows = make([]*bucket.Calendar, limits)
		kind.Windows[limits-1] = &bucket.Calendar{Unit: bucket.Day}
		kind.Limits[limits-1] = bucket.InWindows(1_000_000_000, 24*time.Hour)
	}
	return def
}

// parallel16 calls do on 16 goroutines with random keys below keys.
func parallel16(b *testing.B, keys int, do func(key int)) {
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

// BenchmarkAcquire compares the store with the same script called directly, on 16 goroutines. It needs a
// real server: SLUICE_REDIS=server.
func BenchmarkAcquire(b *testing.B) {
	for _, limits := range []int{1, 2} {
		for _, keys := range []int{1, 1000} {
			name := strconv.Itoa(limits) + " limits, " + strconv.Itoa(keys) + " keys, "
			b.Run(name+"direct", func(b *testing.B) {
				s := newServer(b)
				client, script := s.client(b), redis.NewScript(anyScript)
				params := []any{limits, 60_000}
				for range limits {
					params = append(params, "1e+09", "277.77", "0")
				}
				params = append(params, "1")
				for range limits {
					params = append(params, 1)
				}
				parallel16(b, keys, func(key int) {
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
			for kind, def := range map[string]*definition{"store": unlimited(limits), "windows": inDays(limits)} {
				b.Run(name+kind, func(b *testing.B) {
					s := newServer(b)
					d := s.process(b, s.client(b), def, sluice.WithObserver(&store.Observer{}))
					cost := tokens2{1}
					if limits == 2 {
						cost[1] = 1
					}
					parallel16(b, keys, func(key int) {
						if _, err := d.Acquire(b.Context(), caller{user: strconv.Itoa(key)}, cost); err != nil {
							b.Error(err)
						}
					})
				})
			}
		}
	}
}
