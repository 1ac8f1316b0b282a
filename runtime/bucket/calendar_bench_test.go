package bucket_test

import (
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// benchCalendars are of an ordinary zone, which has transitions, within its table and beyond.
func benchCalendars(b *testing.B, run func(b *testing.B, c *bucket.Calendar, at int64)) {
	b.Helper()
	york := zone(b, "America/New_York")
	for _, c := range []*bucket.Calendar{
		{Unit: bucket.Day, At: early, Zone: york},
		{Unit: bucket.Week, Weekday: time.Monday, Zone: york},
		{Unit: bucket.Month, Date: 31, Zone: york},
		{Unit: bucket.Day},
	} {
		b.Run(c.String(), func(b *testing.B) { run(b, c, year2026) })
	}
	b.Run("2050", func(b *testing.B) {
		run(b, &bucket.Calendar{Unit: bucket.Day, Zone: york}, year2026+24*365*allDay)
	})
}

func BenchmarkEnd(b *testing.B) {
	benchCalendars(b, func(b *testing.B, c *bucket.Calendar, at int64) {
		b.ReportAllocs()
		for i := int64(0); b.Loop(); i++ {
			sink = c.End(at+i*1000, at)
		}
	})
}

func BenchmarkNext(b *testing.B) {
	benchCalendars(b, func(b *testing.B, c *bucket.Calendar, at int64) {
		b.ReportAllocs()
		for i := int64(0); b.Loop(); i++ {
			sink = c.Next(at+i*1000, 3)[2]
		}
	})
}

// TestEndAllocatesNothing, since each write that opens a window calls it.
func TestEndAllocatesNothing(t *testing.T) {
	c := &bucket.Calendar{Unit: bucket.Month, Date: 31, Zone: zone(t, "America/New_York")}
	if n := testing.AllocsPerRun(100, func() { sink = c.End(year2026, year2026-1) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
