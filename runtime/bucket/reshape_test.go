package bucket_test

import (
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// TestReshapeEndsLongWindows: a window that is too long for the new limit ends as its calendar says. None of
// one limit is: not one of a day and a half, nor one in a zone that went back by a day.
func TestReshapeEndsLongWindows(t *testing.T) {
	const hour = int64(time.Hour / time.Millisecond)
	now := time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC).UnixMilli()
	daily, weekly := &bucket.Calendar{Unit: bucket.Day}, &bucket.Calendar{Unit: bucket.Week}
	firstUse := &bucket.Calendar{Unit: bucket.FirstUse, Length: 5 * hour}
	for name, test := range map[string]struct {
		calendar *bucket.Calendar
		period   time.Duration
		ends     int64 // hours from now
		keeps    bool
	}{
		"a day and a half":               {daily, 24 * time.Hour, 36, true},
		"a day and a half and the shift": {daily, 24 * time.Hour, 60, true},
		"a month, now a day":             {daily, 24 * time.Hour, 16 * 24, false},
		"a month, now a week":            {weekly, 7 * 24 * time.Hour, 16 * 24, false},
		"a week and a half":              {weekly, 7 * 24 * time.Hour, 11 * 24, true},
		"a day, now five hours":          {firstUse, 5 * time.Hour, 16, false},
		"five hours":                     {firstUse, 5 * time.Hour, 5, true},
	} {
		t.Run(name, func(t *testing.T) {
			l := bucket.InWindows(100, test.period)
			b := bucket.Balance{Limit: l, Tokens: 40 * bucket.Milli, Ends: now + test.ends*hour}
			s, ok := b.Reshape(test.calendar, l, 0, now)
			want := test.calendar.End(now, 0)
			if test.keeps {
				want = b.Ends
			}
			if !ok || s.Ends != want || s.Fill != 0 {
				t.Errorf("%+v, %t: want it to end at %d, and nothing filled", s, ok, want)
			}
		})
	}
}
