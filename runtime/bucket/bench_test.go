package bucket_test

import (
	"testing"

	"github.com/sluice-go/sluice/runtime/bucket"
)

var sink int64

func BenchmarkRefill(b *testing.B) {
	l := perMinute(100)
	b.ReportAllocs()
	for i := int64(0); b.Loop(); i++ {
		sink = bucket.Refill(l, year2026, year2026+i)
	}
}

func BenchmarkAvailable(b *testing.B) {
	balance := bucket.Balance{Limit: perMinute(100)}
	b.ReportAllocs()
	for i := int64(0); b.Loop(); i++ {
		sink = bucket.Available(balance, year2026, year2026+i)
	}
}

func TestNothingIsAllocated(t *testing.T) {
	b := bucket.Balance{Limit: perMinute(100), Tokens: -5}
	if n := testing.AllocsPerRun(100, func() {
		sink = bucket.Available(b, year2026, year2026+7) + bucket.Refill(b.Limit, year2026, year2026+7) +
			int64(bucket.RetryAfter(b, year2026, year2026+7, 1000)) + bucket.Expiry(b, year2026)
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
