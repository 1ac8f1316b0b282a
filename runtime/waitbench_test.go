package runtime_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime"
)

// BenchmarkWaiters measures what 10,000 waiters of one project cost others: the median of other tenants'
// calls, acquired and released, against the same without waiters. It also measures how long the waiters take
// to leave. Meanwhile up to a thousand give-backs a second each serve one of them, which then waits again.
func BenchmarkWaiters(b *testing.B) {
	const many = 10_000
	for _, shape := range []struct {
		name string
		who  func(i int) entity
	}{
		{"of one user", func(int) entity { return ofProject3("1") }},
		{"of a user each", func(i int) entity { return ofProject3(fmt.Sprint(i)) }},
	} {
		b.Run(shape.name, func(b *testing.B) {
			for b.Loop() {
				alone, _ := othersBeside(b, 0, shape.who)
				crowded, leaving := othersBeside(b, many, shape.who)
				b.ReportMetric(float64(alone.Nanoseconds()), "p50-ns-alone")
				b.ReportMetric(float64(crowded.Nanoseconds()), "p50-ns-beside-waiters")
				b.ReportMetric(float64(crowded)/float64(alone), "p50-ratio")
				b.ReportMetric(leaving.Seconds()*1000, "ms-to-leave")
			}
		})
	}
}

// othersBeside returns the median of other tenants' calls beside n waiters, and how long these need to leave.
func othersBeside(b *testing.B, n int, who func(i int) entity) (p50, leaving time.Duration) {
	b.Helper()
	lim, r := openAs(b, &fake{}, tree(together, ofUser, ofProject))
	leases := make(chan *runtime.Lease[cost], 100_000) // more than there will be
	for range 6000 {
		leases <- acquire(b, r, ofProject3("0"), cost{TPM: 1})
	}
	ctx, leave := context.WithCancel(b.Context())
	var waiters, others sync.WaitGroup
	for i := range n {
		waiters.Go(func() {
			for {
				lease, err := r.Wait(ctx, who(i), cost{TPM: 1})
				if err != nil {
					return
				}
				leases <- lease
			}
		})
	}
	for n > 0 && runtime.Waiting(lim) < 2 {
		pause(time.Millisecond)
	}
	const calls = 4000
	took := make([]time.Duration, calls)
	others.Go(func() {
		for i := range calls {
			began := time.Now()
			other := fmt.Sprint("other", i%100)
			acquire(b, r, typed(other, "", other, ""), cost{TPM: 1}).Release(b.Context())
			took[i] = time.Since(began)
			if i%4 == 0 {
				pause(time.Millisecond)
				lease := <-leases
				lease.Release(b.Context())
			}
		}
	})
	others.Wait()
	began := time.Now()
	leave()
	waiters.Wait()
	leaving = time.Since(began)
	slices.Sort(took)
	return took[calls/2], leaving
}

// pause lets real time pass.
func pause(d time.Duration) { <-time.After(d) }
