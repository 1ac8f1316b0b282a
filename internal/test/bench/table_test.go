package main

import (
	"strings"
	"testing"
	"time"
)

func TestPrintTable(t *testing.T) {
	rows := []row{
		{"build", []figure{
			{format: "%.0fx", want: atLeast(40), runs: []float64{49, 55.4, 52, 39.8, 60}},
			{format: "%.0f allocs", want: atMost(1), runs: []float64{1, 1, 1, 1, 1}},
		}},
		{"units", []figure{{format: "%.2f units", want: atMost(1), runs: []float64{1.004}}}},
		{"more units", []figure{{format: "%.2f units", want: atMost(1), runs: []float64{1.006}}}},
		{"percent", []figure{{format: "%.1f%% CPU", want: atMost(5), runs: []float64{-1, 4}}}},
		{"shares", []figure{{format: "%.2f", runs: []float64{0.25}}}},
		{"half", []figure{
			{format: "%.0fx", want: atLeast(40), runs: []float64{41}},
			{format: "%.0f allocs", want: atMost(1), runs: []float64{2}},
			{format: "%.0f ns", runs: []float64{10}},
		}},
		{"every run", []figure{{format: "%.0f ms", want: atMost(5), every: true, runs: []float64{4, 4, 6}}}},
	}
	var out strings.Builder
	if err := printTable(&out, rows, 5, conditions{oneWay: 5 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	const want = `
WHAT        TO REACH             MEASURED (median, min-max of 5)
build       >= 40x, <= 1 allocs  52x (40-60), 1 allocs            ok
units       <= 1 units           1.00 units                       ok
more units  <= 1 units           1.01 units                       short
percent     <= 5% CPU            1.5% CPU (-1.0-4.0)              ok
shares      state it             0.25                             -
half        >= 40x, <= 1 allocs  41x, 2 allocs, 10 ns             short
every run   <= 5 ms              4 ms (4-6)                       short

3 of 7 rows fall short. `
	if got, _, _ := strings.Cut(out.String(), "Rows about CPU"); got != want[1:] {
		t.Errorf("got\n%s\nwant\n%s", got, want[1:])
	}
}

func TestMedian(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   float64
	}{{[]float64{3}, 3}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 2, 9}, 3}} {
		if got := median(test.values); got != test.want {
			t.Errorf("median of %v is %v, want %v", test.values, got, test.want)
		}
	}
}

// TestNote: an experiment that returns more or less than its figures is a mistake.
func TestNote(t *testing.T) {
	e := experiment{rows: []row{{"a", make([]figure, 2)}, {"b", make([]figure, 1)}}}
	for _, n := range []int{0, 2, 4} {
		if err := e.note(make([]float64, n)); err == nil {
			t.Errorf("%d values for 3 figures are no error", n)
		}
	}
	e = experiment{rows: []row{{"a", make([]figure, 2)}, {"b", make([]figure, 1)}}}
	if err := e.note([]float64{1, 2, 3}); err != nil || e.rows[1].figures[0].runs[0] != 3 {
		t.Errorf("%v: %+v", err, e.rows)
	}
}
