package bucket_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// dated draws calendars whose windows follow dates.
func dated() *rapid.Generator[*bucket.Calendar] {
	return rapid.Custom(func(t *rapid.T) *bucket.Calendar {
		unit := rapid.SampledFrom([]bucket.Unit{bucket.Day, bucket.Week, bucket.Month, bucket.Quarter,
			bucket.Year}).Draw(t, "unit")
		z, err := bucket.Zone(rapid.SampledFrom(zones).Draw(t, "zone"))
		if err != nil {
			t.Fatal(err)
		}
		return &bucket.Calendar{
			Unit:    unit,
			Length:  unit.Nominal(),
			At:      time.Duration(rapid.IntRange(0, 24*60-1).Draw(t, "minute")) * time.Minute,
			Weekday: time.Weekday(rapid.IntRange(0, 6).Draw(t, "weekday")),
			Date:    rapid.IntRange(1, 31).Draw(t, "date"),
			Month:   time.Month(rapid.IntRange(0, 12).Draw(t, "month")),
			Zone:    z,
		}
	})
}

// drawn are instants of 1990 to 2099, in milliseconds, and those around the transitions of some zones.
func drawn() *rapid.Generator[int64] {
	const year1990, year2100 = 631_152_000_000, 4_102_444_800_000
	around := rapid.Custom(func(t *rapid.T) int64 {
		at := rapid.SampledFrom([]string{"2011-12-30T10:00:00Z", "1994-12-31T10:00:00Z", "1993-08-21T12:00:00Z",
			"2026-03-08T07:00:00Z", "2026-04-23T22:00:00Z", "2040-12-31T00:00:00Z"}).Draw(t, "near")
		near, err := time.Parse(rfc3339, at)
		if err != nil {
			t.Fatal(err)
		}
		return near.UnixMilli() + rapid.Int64Range(-2*allDay, 2*allDay).Draw(t, "off")
	})
	return rapid.OneOf(rapid.Int64Range(year1990, year2100), around)
}

// TestEnd holds any two instants to the definition of End.
func TestEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, now := dated().Draw(t, "calendar"), drawn().Draw(t, "now")
		nearby := rapid.Int64Range(now-c.Length, now+c.Length)
		old := rapid.OneOf(rapid.Just(int64(0)), drawn(), nearby).Draw(t, "old")
		end := c.End(now, old)
		least := now
		if old != 0 {
			least = max(now, old+c.Half())
		}
		if end <= least {
			t.Fatalf("ends at %d, want above %d", end, least)
		}
		if first := c.Next(least, 1); first[0] != end {
			t.Fatalf("ends at %d, the next boundary is %d", end, first[0])
		}
		if last := c.Next(end-1, 1); last[0] != end {
			t.Fatalf("ends at %d, which is no boundary: %d is", end, last[0])
		}
		if later := c.End(now+rapid.Int64Range(0, c.Length).Draw(t, "later"), old); later < end {
			t.Fatalf("ends at %d, and at %d if opened later", end, later)
		}
		if later := c.End(now, max(old, now)+1); later < end {
			t.Fatalf("ends at %d, and at %d after a later window", end, later)
		}
	})
}

// TestLengths: windows that follow one another last half to one and a half of the nominal length.
func TestLengths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := dated().Draw(t, "calendar")
		old := c.Next(drawn().Draw(t, "before"), 1)[0]
		end := c.End(old+rapid.Int64Range(0, hour).Draw(t, "off"), old)
		if length := end - old; length < c.Half() || length > c.Length*3/2 {
			t.Fatalf("from %d to %d it is %d, the nominal length is %d", old, end, length, c.Length)
		}
	})
}

// TestNext: boundaries ascend, and any of them leads to those after it.
func TestNext(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, from := dated().Draw(t, "calendar"), drawn().Draw(t, "from")
		all := c.Next(from, rapid.IntRange(1, 20).Draw(t, "n"))
		at := from
		for _, next := range all {
			if end := c.End(at, 0); end != next || end <= at {
				t.Fatalf("after %d comes %d, in %v", at, end, all)
			}
			at = next
		}
		if i := rapid.IntRange(0, len(all)-1).Draw(t, "i"); !slices.Equal(c.Next(all[i], len(all)-1-i), all[i+1:]) {
			t.Fatalf("after %d, %v", all[i], all)
		}
	})
}

func TestFirstUse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &bucket.Calendar{Unit: bucket.FirstUse, Length: rapid.Int64Range(60_000, 366*allDay).Draw(t, "length")}
		now, old := drawn().Draw(t, "now"), rapid.Int64().Draw(t, "old")
		if end := c.End(now, old); end != now+c.Length {
			t.Fatalf("opened at %d, ends at %d", now, end)
		}
		if next := c.Next(now, 3); next != nil {
			t.Fatalf("boundaries %v", next)
		}
	})
}

// TestAnyNumbers: End and Next keep their promises for calendars of any numbers, at any instant.
func TestAnyNumbers(t *testing.T) {
	numbers := rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1,
		math.MaxInt64 - 400*allDay, math.MaxInt64 - 1, math.MaxInt64}))
	rapid.Check(t, func(t *rapid.T) {
		c := dated().Draw(t, "calendar")
		if rapid.Bool().Draw(t, "wild") {
			c.Unit = bucket.Unit(rapid.Uint8Range(0, 8).Draw(t, "unit"))
			c.Length = numbers.Draw(t, "length")
			c.At = time.Duration(numbers.Draw(t, "at"))
			c.Weekday = time.Weekday(numbers.Draw(t, "weekday"))
			c.Date, c.Month = int(numbers.Draw(t, "date")), time.Month(numbers.Draw(t, "month"))
			c.Zone = rapid.SampledFrom([]*time.Location{nil, time.UTC, time.FixedZone("far", math.MaxInt32),
				time.FixedZone("back", math.MinInt32)}).Draw(t, "zone")
		}
		now, old := numbers.Draw(t, "now"), numbers.Draw(t, "old")
		end, latest := c.End(now, old), int64(math.MaxInt64)
		if c.Unit == bucket.Never {
			latest = bucket.NeverEnds
		}
		if end <= now && end != latest {
			t.Fatalf("%+v opened at %d after %d ends at %d", c, now, old, end)
		}
		n := rapid.IntRange(-1, 5).Draw(t, "n")
		next := c.Next(now, n)
		if len(next) > max(0, n) || len(next) < n && len(next) > 0 && next[len(next)-1] != math.MaxInt64 {
			t.Fatalf("%+v after %d: %v, want %d", c, now, next, n)
		}
		for at := now; len(next) > 0; at, next = next[0], next[1:] {
			if next[0] <= at {
				t.Fatalf("%+v: %d after %d", c, next[0], at)
			}
		}
	})
}
