package words

import (
	"testing"
	"time"

	"github.com/sluice-go/sluice/gen/internal/schema"
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
