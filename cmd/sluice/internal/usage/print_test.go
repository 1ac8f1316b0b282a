package usage

import (
	"bytes"
	"encoding/csv"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
	"github.com/sluice-go/sluice/runtime/usage"
)

// TestRunning: a window runs until the next one begins.
func TestRunning(t *testing.T) {
	begins := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for span, length := range map[usage.Span]time.Duration{
		usage.Hour: time.Hour, usage.Day: 24 * time.Hour, month: 31 * 24 * time.Hour,
	} {
		u := usage.Usage{Window: usage.Window{Span: span, Start: begins}}
		for after, want := range map[time.Duration]bool{0: true, length - 1: true, length: false} {
			if got := running(u, begins.Add(after)); got != want {
				t.Errorf("%s, %v after it began: running %v, want %v", span, after, got, want)
			}
		}
	}
}

func TestExact(t *testing.T) {
	for milli, want := range map[int64]string{
		0: "0", 1_000: "1", 1_234_567: "1234.567", 500: "0.5", 1: "0.001", -1: "-0.001", -1_500: "-1.5",
		-2_000: "-2", 10_000: "10",
	} {
		if got := exact(milli, ""); got != want {
			t.Errorf("exact(%d) = %s, want %s", milli, got, want)
		}
	}
}

// TestWindowChart: a window's bar is beside the allowance of a limit that the schema has with windows.
func TestWindowChart(t *testing.T) {
	const capacity = 100 * bucket.Milli
	s := &schemafile.Schema{
		Kinds: []store.Kind{{Name: "user", Prefix: "user-"}},
		Specs: []*store.Spec{{Resource: "gpt-4", Limits: []string{"rpm", "usd"}, Kinds: []store.Kind{{
			Name: "user", Prefix: "user-", Limits: []bucket.Limit{
				{Capacity: capacity, Burst: capacity, Refill: capacity, Period: 60_000},
				{Capacity: capacity, Burst: capacity, Period: 86_400_000},
			},
		}}}},
	}
	ends := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	all := []usage.WindowUsage{
		{Resource: "gpt-4", Limit: "usd", End: ends, Millitokens: 100_000},
		{Resource: "gpt-4", Limit: "usd", End: ends.AddDate(0, 0, 1), Millitokens: 50_000},
		{Resource: "gpt-9", Limit: "usd", End: ends, Millitokens: 1_000},
	}
	var out strings.Builder
	command := Command{Entity: "user-1", By: "window"}
	if err := command.windowChart(s, all, ends).Text(&out); err != nil {
		t.Fatal(err)
	}
	bar := func(n int) string { return strings.Repeat("█", n) }
	want := `Consumption of user-1

gpt-4 usd, tokens per window; | is the window's allowance: 100
  2026-03-01 00:00  100  ` + bar(40) + `|
  2026-03-02 00:00   50  ` + bar(20) + strings.Repeat(" ", 20) + `|  still running

gpt-9 usd, tokens per window
  2026-03-01 00:00  1  ` + bar(40) + "\n"
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if n := refills(s, "user-1", "gpt-4", "usd", time.Hour); n != 0 {
		t.Errorf("a limit with windows refills %v in an hour", n)
	}
	if n := refills(s, "user-1", "gpt-4", "rpm", time.Hour); n != 6_000 {
		t.Errorf("rpm refills %v in an hour", n)
	}
}

// TestChartShowsNoControls: names in a chart are quoted unless they are plain.
func TestChartShowsNoControls(t *testing.T) {
	const evil = "a\x1b[2J\nb"
	u := usage.Usage{Window: usage.Window{Resource: evil, Span: usage.Day}}
	u.Limits = []usage.Spent{{Limit: evil, Millitokens: 1000}}
	var out strings.Builder
	drawn := Command{Entity: "user-" + evil, By: "day"}.chart(nil, []usage.Usage{u}, time.Time{})
	if err := drawn.Text(&out); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	if !store.IsPlain(strings.ReplaceAll(text, "\n", "")) || strings.Count(text, `a\x1b[2J\nb"`) != 3 {
		t.Errorf("%q", text)
	}
}

// TestCSVColumns: no two columns have one name, whatever limits are called.
func TestCSVColumns(t *testing.T) {
	var out bytes.Buffer
	spent := func(limits ...string) (u usage.Usage) {
		for _, l := range limits {
			u.Limits = append(u.Limits, usage.Spent{Limit: l, Millitokens: 1000})
		}
		return u
	}
	all := []usage.Usage{spent("writes", "limit writes", "rpm", "running"), spent("resource", "start", "tpm")}
	if err := printCSV(&out, nil, all, time.Time{}); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&out).ReadAll()
	want := []string{"start", "resource", "limit writes", "limit resource", "rpm", "limit running",
		"limit start", "tpm", "limit limit writes", "writes", "running"}
	if err != nil || !slices.Equal(rows[0], want) {
		t.Errorf("%q, %v\nwant\n%q", rows, err, want)
	}
}
