package words

import (
	"testing"
	"time"

	"github.com/sluice-go/sluice/gen/internal/schema"
	"github.com/sluice-go/sluice/gen/internal/window"
)

func TestNumbers(t *testing.T) {
	const day = 24 * time.Hour
	for want, n := range map[string]schema.Numbers{
		"1 per second":              {Capacity: 1, Burst: 1, Refill: 1, Period: time.Second},
		"100 per minute, burst 150": {Capacity: 100, Burst: 150, Refill: 100, Period: time.Minute},
		"10,000 per hour": {Capacity: 10_000, Burst: 10_000, Refill: 10_000,
			Period: time.Hour},
		"1,000,000 per day": {Capacity: 1_000_000, Burst: 1_000_000, Refill: 1_000_000,
			Period: day},
		"5 per 366 days":    {Capacity: 5, Burst: 5, Refill: 5, Period: 366 * day},
		"5 per 90 minutes":  {Capacity: 5, Burst: 5, Refill: 5, Period: 90 * time.Minute},
		"5 per millisecond": {Capacity: 5, Burst: 5, Refill: 5, Period: time.Millisecond},
		"5 per 1,500 milliseconds": {Capacity: 5, Burst: 5, Refill: 5,
			Period: 1500 * time.Millisecond},
		"9, refilled by 2 per second, burst 10": {Capacity: 9, Burst: 10, Refill: 2, Period: time.Second},
	} {
		if got := Numbers(n); got != want {
			t.Errorf("%+v is %q, want %q", n, got, want)
		}
	}
}

func TestLimit(t *testing.T) {
	own := func(unit string, starts, zone bool) window.Window {
		w := window.Of(unit)
		w.OwnStarts, w.OwnZone = starts, zone
		return w
	}
	at := func(unit, text, zone string) window.Window {
		w := window.Of(unit)
		if why := w.Start(text); why != "" {
			t.Fatal(why)
		}
		w.Zone = zone
		return w
	}
	for want, w := range map[string]window.Window{
		"5,000 per day from 00:00 in UTC":                             own("day", false, false),
		"5,000 per day from 04:30 in America/New_York":                at("day", "04:30", "America/New_York"),
		"5,000 per day from 00:00 in the entity's own zone":           own("day", false, true),
		"5,000 per week from Monday in UTC":                           own("week", false, false),
		"5,000 per month from day 31 in Europe/Berlin":                at("month", "31", "Europe/Berlin"),
		"5,000 per month from the entity's own start in its own zone": own("month", true, true),
		"5,000 per quarter from the entity's own start in UTC":        own("quarter", true, false),
		"5,000 per year in UTC":                                       own("year", false, false),
		"5,000 per 5 hours from the first use": {
			Unit: window.FirstUse, Length: 5 * time.Hour,
		},
	} {
		if got := Limit(schema.Numbers{Capacity: 5000, Burst: 5000, Period: w.Length}, &w); got != want {
			t.Errorf("%v is %q, want %q", w, got, want)
		}
	}
	n := schema.Numbers{Capacity: 1, Burst: 1, Refill: 1, Period: time.Second}
	if got := Limit(n, nil); got != Numbers(n) {
		t.Errorf("without windows it is %q", got)
	}
}

func TestKept(t *testing.T) {
	regions := func(n int, floor int64) *schema.Regions {
		return &schema.Regions{Names: make([]string, n), Floor: floor}
	}
	for want, r := range map[string]*schema.Regions{
		"1 token of each where there are enough":                regions(2, 0),
		"5 % of each, at least 1 token where there are enough":  regions(3, 5),
		"33 % of each, at least 1 token where there are enough": regions(3, 33),
		"an equal part of each":                                 regions(3, 34),
		"49 % of each, at least 1 token where there are enough": regions(2, 49),
	} {
		if got := Kept(r); got != want {
			t.Errorf("%d regions with a floor of %d percent keep %q, want %q", len(r.Names), r.Floor, got, want)
		}
	}
	if got := Kept(regions(2, 50)); got != "an equal part of each" {
		t.Errorf("two with 50 percent keep %q", got)
	}
}

func TestDigits(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 7: "7", 100: "100", 1_000: "1_000", 12_345: "12_345", 1_234_567: "1_234_567", -1: "-1",
		-100: "-100", -1_000: "-1_000",
	} {
		if got := Digits(n, "_"); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
}
