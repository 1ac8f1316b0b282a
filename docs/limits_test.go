package docs_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// dailyRow is a row of docs/limits.md on a limit of a day: its numbers, and what it admits.
var dailyRow = regexp.MustCompile(
	"(?m)^\\| `\\{capacity: ([0-9_]+)(?:, refill: ([0-9_]+))?, every: 1d\\}` \\| ([0-9,]+) \\| ([0-9,]+) \\|$")

// TestDailyLimit compares the table of docs/limits.md with a bucket from which each token is taken as soon
// as it is there.
func TestDailyLimit(t *testing.T) {
	rows := dailyRow.FindAllStringSubmatch(read(t, "docs/limits.md"), -1)
	if len(rows) != 2 {
		t.Fatalf("%d rows, want 2", len(rows))
	}
	number := func(s string) int64 {
		n, err := strconv.ParseInt(strings.NewReplacer("_", "", ",", "").Replace(s), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, row := range rows {
		capacity := number(row[1])
		refill := capacity
		if row[2] != "" {
			refill = number(row[2])
		}
		if first, later := admitted(capacity, refill), refill; number(row[3]) != first || number(row[4]) != later {
			t.Errorf("%s: %d on the first day and %d on later ones", row[0], first, later)
		}
	}
}

// admitted returns the whole tokens that a full bucket admits within a day of minutes, its last instant
// included.
func admitted(capacity, refill int64) int64 {
	const day = 24 * 60 * 60_000
	b := bucket.Balance{
		Limit: bucket.Limit{
			Capacity: capacity * bucket.Milli, Burst: capacity * bucket.Milli,
			Refill: refill * bucket.Milli, Period: day,
		},
		Tokens: capacity * bucket.Milli,
	}
	taken := int64(0)
	for now := int64(0); now <= day; now += 60_000 {
		left := bucket.Available(b, 0, now) / bucket.Milli * bucket.Milli
		b.Tokens -= left
		taken += left
	}
	return taken / bucket.Milli
}

// TestDailyLimitControl: the first day's tokens are more than those of a day of refill.
func TestDailyLimitControl(t *testing.T) {
	if got := fmt.Sprint(admitted(100, 900), admitted(10, 1)); got != "1000 11" {
		t.Error(got)
	}
}
