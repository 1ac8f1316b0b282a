package bucket_test

import (
	"testing"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// benchmarks measures a function on calendars of a zone with transitions, and of UTC.
func benchmarks(b *testing.B, measured func(c *bucket.Calendar, at int64) int64) {
	b.Helper()
	york := zone(b, "America/New_York")
	const year2050 = year2026 + 24*365*allDay // the zone's table ends in 2037
	for _, bench := range []struct {
		name     string
		calendar bucket.Calendar
		from     int64
	}{
		{"day", bucket.Calendar{Unit: bucket.Day, At: early, Zone: york}, year2026},
		{"week", bucket.Calendar{Unit: bucket.Week, Zone: york}, year2026},
		{"month", bucket.Calendar{Unit: bucket.Month, Date: 31, Zone: york}, year2026},
		{"UTC", bucket.Calendar{Unit: bucket.Day}, year2026},
		{"2050", bucket.Calendar{Unit: bucket.Day, Zone: york}, year2050},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := int64(0); b.Loop(); i++ {
				sink = measured(&bench.calendar, bench.from+i*1000)
			}
		})
	}
}

func BenchmarkEnd(b *testing.B) {
	benchmarks(b, func(c *bucket.Calendar, at int64) int64 { return c.End(at, at) })
}

func BenchmarkNext(b *testing.B) {
	benchmarks(b, func(c *bucket.Calendar, at int64) int64 { return c.Next(at, 3)[2] })
}

// TestEndAllocatesNothing, since each write that opens a window calls it.
func TestEndAllocatesNothing(t *testing.T) {
	c := &bucket.Calendar{Unit: bucket.Month, Date: 31, Zone: zone(t, "America/New_York")}
	if n := testing.AllocsPerRun(100, func() { sink = c.End(year2026, year2026-1) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
