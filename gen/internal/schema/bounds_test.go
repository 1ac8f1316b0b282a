package schema

import (
	"fmt"
	"math/bits"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// TestBoundsOfTheRuntime holds bucket.Limit.Check, which overrides have to pass, to the rules of limits.yaml:
// what one takes, the other takes.
func TestBoundsOfTheRuntime(t *testing.T) {
	answers := []string{"", "is not above 0", "is above 1000000000000:", "is below 1ms", "is above 366 days",
		"is below the capacity", "a second", "full from empty"}
	seen := map[string]bool{}
	rapid.Check(t, func(t *rapid.T) {
		for range 50 { // -short has few draws
			n := nearBounds(t)
			_, problems := Read("limits.yaml", fmt.Appendf(nil, "version: 1\nowner: acme\nrevision: 1\n"+
				"go: {package: x}\nentities: {user: {}}\nresources:\n  chat:\n    entities: {user: {}}\n"+
				"    limits:\n      rpm: {capacity: %d, burst: %d, refill: %d, every: %dms}\n",
				n.Capacity, n.Burst, n.Refill, n.Period.Milliseconds()))
			if n.Refill == 0 { // to the runtime, a limit with windows: see TestBoundsOfWindows
				continue
			}
			limit := bucket.Per(n.Capacity, n.Period).WithBurst(n.Burst)
			limit.Refill = bucket.Mul(n.Refill, bucket.Milli)
			wrong := limit.Check(0)
			if (wrong == "") != (len(problems) == 0) {
				t.Fatalf("%+v:\nbucket: %s\nschema: %v", n, wrong, problems)
			}
			for _, answer := range answers {
				if wrong == answer || answer != "" && strings.Contains(wrong, answer) {
					seen[answer] = true
				}
			}
		}
	})
	for _, answer := range answers {
		if !seen[answer] {
			t.Errorf("Check never said %q", answer)
		}
	}
}

// TestBoundsOfWindows holds the bounds of limits with windows to those of the runtime.
func TestBoundsOfWindows(t *testing.T) {
	const shortest, longest = int64(time.Minute / time.Millisecond), int64(maxPeriod / time.Millisecond)
	right, wrong := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		for range 20 {
			capacity := rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(maxTokens, maxTokens+1)).Draw(t,
				"capacity")
			milli := rapid.OneOf(rapid.Int64Range(shortest, longest), rapid.Int64Range(longest, longest+1)).Draw(t,
				"milliseconds")
			s, problems := Read("limits.yaml", fmt.Appendf(nil, "version: 1\nowner: acme\nrevision: 1\n"+
				"go: {package: x}\nentities: {user: {}}\nresources:\n  chat:\n    limits:\n"+
				"      rpm: {capacity: %d, window: %dms, starts: first_use}\n", capacity, milli))
			limit := bucket.InWindows(capacity, time.Duration(milli)*time.Millisecond)
			why := limit.Check(0)
			if (why == "") != (len(problems) == 0) {
				t.Fatalf("%d in %d ms:\nbucket: %s\nschema: %v", capacity, milli, why, problems)
			}
			if why != "" {
				wrong++
				continue
			}
			right++
			if n := s.Resources[0].Limits[0].Numbers; !n.Windowed() || n.Period.Milliseconds() != limit.Period {
				t.Fatalf("read as %+v, want %+v", n, limit)
			}
		}
	})
	if right == 0 || wrong == 0 {
		t.Errorf("%d limits were right and %d wrong: both need testing", right, wrong)
	}
}

// TestBoundsOfMoney holds the bounds of money to those of the runtime.
func TestBoundsOfMoney(t *testing.T) {
	for capacity, want := range map[string]bool{
		"0": false, "0.000001": true, "100_000_000": true, "100_000_000.000001": false, "99999999999999": false,
	} {
		s, problems := Read("limits.yaml", fmt.Appendf(nil, "version: 1\nowner: acme\nrevision: 1\n"+
			"go: {package: x}\nentities: {user: {}}\nresources:\n  chat:\n    on_unavailable: deny\n    limits:\n"+
			"      day: {money: USD, capacity: %s, window: day}\n", capacity))
		if (len(problems) == 0) != want {
			t.Errorf("%s: %v, want none: %t", capacity, problems, want)
		}
		nanos, why := ParseAmount(capacity)
		n := s.Resources[0].Limits[0].Numbers
		if why != "" || want && (n.Capacity != nanos || n.Currency != "USD") {
			t.Errorf("%s is %d, %s, and read as %+v", capacity, nanos, why, n)
		}
		limit := bucket.Limit{Capacity: nanos, Burst: nanos, Period: day.Milliseconds()}
		if wrong := limit.CheckMoney(0); (wrong == "") != want {
			t.Errorf("%s: %s, want none: %t", capacity, wrong, want)
		}
	}
}

// nearBounds draws numbers on both sides of every bound.
func nearBounds(t *rapid.T) Numbers {
	const (
		longest = int64(maxPeriod / time.Millisecond)
		filling = maxFillDays * uint64(day/time.Millisecond)
	)
	tokens := rapid.OneOf(rapid.Int64Range(0, 20), rapid.Int64Range(1, maxTokens),
		rapid.Int64Range(maxTokens, maxTokens+1))
	milli := rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(1, 100_000), rapid.Int64Range(1, longest),
		rapid.Int64Range(longest, longest+1)).Draw(t, "milliseconds")
	near := func(bound int64, what string) int64 {
		return max(0, bound+rapid.Int64Range(-1, 1).Draw(t, what))
	}
	n := Numbers{
		Capacity: tokens.Draw(t, "capacity"), Burst: tokens.Draw(t, "burst"), Refill: tokens.Draw(t, "refill"),
		Period: time.Duration(milli) * time.Millisecond,
	}
	if rapid.Bool().Draw(t, "fast") {
		n.Refill = near(maxPerMilli*milli, "of the fastest")
	}
	if hi, lo := bits.Mul64(uint64(n.Refill), filling); hi < uint64(milli) && rapid.Bool().Draw(t, "slow") {
		most, _ := bits.Div64(hi, lo, uint64(milli))
		n.Burst = near(int64(min(most, 2*maxTokens)), "of the slowest")
	}
	if rapid.Bool().Draw(t, "plain") {
		n.Capacity = near(n.Burst, "of the burst")
	}
	return n
}

// TestKeepsAsTheRuntime holds what reviews say that a region keeps to what the runtime leaves it.
func TestKeepsAsTheRuntime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &Regions{
			Names: make([]string, rapid.IntRange(minRegions, maxRegions).Draw(t, "regions")),
			Floor: rapid.Int64Range(0, maxFloor).Draw(t, "floor"),
		}
		capacity := rapid.OneOf(rapid.Int64Range(1, 100), rapid.Int64Range(1, maxTokens)).Draw(t, "capacity")
		if is, want := r.Keeps(capacity), bucket.Floor(capacity, len(r.Names), r.Floor); is != want {
			t.Fatalf("%d regions with a floor of %d percent keep %d of %d, want %d", len(r.Names), r.Floor, is,
				capacity, want)
		}
	})
}
