package window

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// now is 2027-01-15, 08:00 UTC.
const now, hour, day = int64(1_800_000_000_000), int64(time.Hour / time.Millisecond), 24 * hour

// limits are one that refills, one in days and one by first use.
func limits() ([]bucket.Limit, []*bucket.Calendar) {
	return []bucket.Limit{bucket.Per(60, time.Minute), bucket.InWindows(100, 24*time.Hour),
			bucket.InWindows(5, time.Hour)},
		[]*bucket.Calendar{nil, {Unit: bucket.Day}, {Unit: bucket.FirstUse, Length: hour}}
}

// TestOf: arguments are those that windows.lua names, of the limits that the bucket has.
func TestOf(t *testing.T) {
	all, calendars := limits()
	for _, test := range []struct {
		has  []int
		want []any
	}{
		{[]int{0}, []any{"60", "0.001", int64(7)}},
		{[]int{1}, []any{int64(100_000), 0, day / 2, int64(0), now - ahead, now + 16*hour, now + 40*hour,
			now + 64*hour}},
		{[]int{2}, []any{int64(5000), 0, kept, hour, now - ahead, int64(0), int64(0), int64(0)}},
	} {
		if got := Of(all, 7, test.has, nil, calendars, now).List; fmt.Sprint(got) != fmt.Sprint(test.want) {
			t.Errorf("%v: %v, want %v", test.has, got, test.want)
		}
	}
}

// TestServe: arguments serve until the first boundary has passed by more than a clock may be ahead, and for
// calendars that are equal.
func TestServe(t *testing.T) {
	all, calendars := limits()
	a := Of(all, 0, []int{0, 1, 2}, nil, calendars, now)
	boundary := now + 16*hour
	for at, want := range map[int64]bool{now - 1: false, now: true, boundary: true, boundary + ahead - 1: true,
		boundary + ahead: false} {
		if got := a.Serve(calendars, at); got != want {
			t.Errorf("%d ms later they serve: %t, want %t", at-now, got, want)
		}
	}
	equal := slices.Clone(calendars)
	equal[1] = &bucket.Calendar{Unit: bucket.Day}
	other := slices.Clone(calendars)
	other[1] = &bucket.Calendar{Unit: bucket.Day, At: time.Hour}
	if !a.Serve(equal, now) || a.Serve(other, now) || (*Args)(nil).Serve(calendars, now) {
		t.Error("they serve for other calendars, or not for equal ones")
	}
	if first := Of(all, 0, []int{0, 2}, nil, calendars, now); !first.Serve(calendars, now+1000*day) {
		t.Error("those by first use do not serve for good")
	}
	if n := testing.AllocsPerRun(100, func() { a.Serve(equal, now) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

// TestExtra holds Extra against the arguments.
func TestExtra(t *testing.T) {
	all, calendars := limits()
	refilling, windowed := Of(all, 0, []int{0}, nil, calendars, now), Of(all, 0, []int{1}, nil, calendars, now)
	if got := len(windowed.List) - len(refilling.List); got != Extra {
		t.Errorf("%d more, want %d", got, Extra)
	}
}

// TestSplit: what comes back goes to the newest charges first; all else stays.
func TestSplit(t *testing.T) {
	_, calendars := limits()
	of := func(cost, end int64) bucket.Charge {
		return bucket.Charge{Cost: []int64{9, cost, 0}, Ends: []int64{0, end, 0}}
	}
	charges := []bucket.Charge{of(30, 1), of(20, 2), of(0, 0), of(10, 2)}
	for _, test := range []struct {
		cost int64
		back []GiveBack
	}{
		{5, nil},
		{0, nil},
		{-10, []GiveBack{{Limit: 1, Amount: 10, Ends: 2}}},
		{-25, []GiveBack{{Limit: 1, Amount: 25, Ends: 2}}},
		{-35, []GiveBack{{Limit: 1, Amount: 30, Ends: 2}, {Limit: 1, Amount: 5, Ends: 1}}},
		{-60, []GiveBack{{Limit: 1, Amount: 30, Ends: 2}, {Limit: 1, Amount: 30, Ends: 1}}},
		{-99, []GiveBack{{Limit: 1, Amount: 30, Ends: 2}, {Limit: 1, Amount: 30, Ends: 1}}},
	} {
		cost := []int64{-3, test.cost, 4}
		rest, back := Split(charges, calendars, nil, cost)
		if want := []int64{-3, max(0, test.cost), 4}; !slices.Equal(rest, want) || !slices.Equal(back, test.back) {
			t.Errorf("%d: %v and %v, want %v and %v", test.cost, rest, back, want, test.back)
		}
		if cost[1] != test.cost {
			t.Errorf("%d: the caller's vector is %v", test.cost, cost)
		}
	}
}

// TestAppend: the number of give-backs stands in front of them.
func TestAppend(t *testing.T) {
	back := []GiveBack{{Limit: 1, Amount: 30, Ends: 2}, {Limit: 2, Amount: 7, Ends: 7}, {Limit: 1, Amount: 5, Ends: 1}}
	got := Append([]any{"1"}, 1, false, 40, back)
	if want := []any{"1", int64(40), 2, int64(30), int64(2), int64(5), int64(1)}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
