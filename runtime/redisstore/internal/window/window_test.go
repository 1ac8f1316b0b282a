package window

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/inforce"
)

// now is 2027-01-15, 08:00 UTC.
const now, hour, day = int64(1_800_000_000_000), int64(time.Hour / time.Millisecond), 24 * hour

// limits are one that refills, one in days and one by first use.
func limits() ([]bucket.Limit, []*bucket.Calendar) {
	return []bucket.Limit{bucket.Per(60, time.Minute), bucket.InWindows(100, 24*time.Hour),
			bucket.InWindows(5, time.Hour)},
		[]*bucket.Calendar{nil, {Unit: bucket.Day}, {Unit: bucket.FirstUse, Length: hour}}
}

func numbers(all []bucket.Limit, version int64) inforce.Numbers {
	return inforce.Numbers{Limits: all, Version: version}
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
		got := Of(numbers(all, 7), test.has, nil, calendars, now).List
		if fmt.Sprint(got) != fmt.Sprint(test.want) {
			t.Errorf("%v: %v, want %v", test.has, got, test.want)
		}
	}
}

// TestOfPlan: the entity whose plan it is follows the refill, or what stands in its place.
func TestOfPlan(t *testing.T) {
	all, calendars := limits()
	all = append(all, bucket.InFlight(5))
	n := inforce.Numbers{Limits: all, Version: 7, Of: "org-a@b"}
	got := Of(n, []int{0, 2, 3}, []bool{false, false, true, true}, append(calendars, nil), now).List
	want := fmt.Sprint([]any{"60", "0.001@org-a@b", 7, 5000, "-2@org-a@b", kept, hour, now - ahead, 0, 0, 0,
		5000, "-1@org-a@b"})
	if fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
}

// TestServe: arguments serve until the first boundary has passed by more than a clock may be ahead, and for
// calendars that are equal.
func TestServe(t *testing.T) {
	all, calendars := limits()
	a := Of(numbers(all, 0), []int{0, 1, 2}, nil, calendars, now)
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
	if first := Of(numbers(all, 0), []int{0, 2}, nil, calendars, now); !first.Serve(calendars, now+1000*day) {
		t.Error("those by first use do not serve for good")
	}
	if n := testing.AllocsPerRun(100, func() { a.Serve(equal, now) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

// TestExtra holds Extra against the arguments.
func TestExtra(t *testing.T) {
	all, calendars := limits()
	refilling := Of(numbers(all, 0), []int{0}, nil, calendars, now)
	windowed := Of(numbers(all, 0), []int{1}, nil, calendars, now)
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

// TestOfHeld: a limit with holds is told by what stands for its rate.
func TestOfHeld(t *testing.T) {
	all := []bucket.Limit{bucket.InFlight(20), bucket.InWindows(5, time.Hour)}
	calendars := []*bucket.Calendar{nil, {Unit: bucket.FirstUse, Length: hour}}
	want := []any{int64(20_000), -1, int64(5000), -2, kept, hour, now - ahead, int64(0), int64(0), int64(0)}
	got := Of(numbers(all, 7), []int{0, 1}, []bool{true, true}, calendars, now).List
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestSplitHeld: a settle ends all holds. The part of a window's that it leaves charged is used then.
func TestSplitHeld(t *testing.T) {
	of := func(cost, end, epoch int64) bucket.Charge {
		return bucket.Charge{Cost: []int64{cost}, Ends: []int64{end}, Epochs: []int64{epoch}}
	}
	held, windows := []bool{true}, []*bucket.Calendar{{Unit: bucket.Day}}
	for name, test := range map[string]struct {
		charges    []bucket.Charge
		calendars  []*bucket.Calendar
		cost, rest int64
		back       []GiveBack
	}{
		"slots":            {[]bucket.Charge{of(30, 0, 7)}, nil, 0, 0, []GiveBack{{Epoch: 7, Held: 30}}},
		"released slots":   {[]bucket.Charge{of(30, 0, 7)}, nil, -30, 0, []GiveBack{{Epoch: 7, Held: 30}}},
		"lost slots":       {[]bucket.Charge{of(30, 0, bucket.Lost), of(5, 0, 0)}, nil, -35, 0, nil},
		"no charge":        {nil, windows, -5, 0, nil},
		"as reserved":      {[]bucket.Charge{of(30, 2, 7)}, windows, 0, 0, []GiveBack{{0, -30, 2, 7, 30}}},
		"less":             {[]bucket.Charge{of(30, 2, 7)}, windows, -10, 0, []GiveBack{{0, -20, 2, 7, 30}}},
		"more":             {[]bucket.Charge{of(30, 2, 7)}, windows, 4, 4, []GiveBack{{0, -30, 2, 7, 30}}},
		"less, lost":       {[]bucket.Charge{of(30, 2, -1)}, windows, -10, 0, []GiveBack{{0, -20, 2, -1, 0}}},
		"nothing, lost":    {[]bucket.Charge{of(30, 2, -1)}, windows, -30, 0, nil},
		"from before":      {[]bucket.Charge{of(30, 2, 0)}, windows, -10, 0, []GiveBack{{0, 10, 2, 0, 0}}},
		"kept from before": {[]bucket.Charge{of(30, 2, 0)}, windows, 0, 0, nil},
		"the newest first": {[]bucket.Charge{of(30, 1, 6), of(20, 2, 7)}, windows, -25, 0,
			[]GiveBack{{0, 0, 2, 7, 20}, {0, -25, 1, 6, 30}}},
	} {
		rest, back := Split(test.charges, test.calendars, held, []int64{test.cost})
		if rest[0] != test.rest || !slices.Equal(back, test.back) {
			t.Errorf("%s: %v and %v, want %v and %v", name, rest, back, test.rest, test.back)
		}
	}
}

// TestHolds: what is in doubt is not extended, nor what holds nothing.
func TestHolds(t *testing.T) {
	c := bucket.Charge{Cost: []int64{1, 2, 3, 0, 5}, Ends: []int64{0, 9, 0, 0, 0},
		Epochs: []int64{7, 8, -1, 7, 0}}
	want := []GiveBack{{0, 0, 0, 7, 1}, {1, 0, 9, 8, 2}}
	if got := Holds(c); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	args := Append(nil, 1, true, 0, want)
	if want := []any{int64(0), 1, int64(0), int64(9), int64(8), int64(2)}; !slices.Equal(args, want) {
		t.Errorf("arguments %v, want %v", args, want)
	}
}

// TestAppend: the number of give-backs stands in front of them.
func TestAppend(t *testing.T) {
	back := []GiveBack{{Limit: 1, Amount: 30, Ends: 2}, {Limit: 2, Amount: 7, Ends: 7},
		{Limit: 1, Amount: 5, Ends: 1}}
	got := Append([]any{"1"}, 1, false, 40, back)
	if want := []any{"1", int64(40), 2, int64(30), int64(2), int64(5), int64(1)}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
